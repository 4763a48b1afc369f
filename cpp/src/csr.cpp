// Purpose, contract, source: csr.hpp. Oracle: cpp/tests/test_graph.cpp (std::set of pairs).
#include "csr.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "huge_pages.hpp"
#include "memorepair/errors.hpp"

namespace memorepair {

namespace {

Array<ArcIndex> zeroes(std::uint64_t size) {
    auto array = fresh_array<ArcIndex>(size);
    std::fill(array.begin(), array.end(), ArcIndex{0});
    return array;
}

// Counts stand two places up, so that after the scatter the cursors have become the offsets: no second array.
void prefix_sum(Array<ArcIndex>& offsets) {
    ArcIndex total = 0;
    for (ArcIndex& offset : offsets) {
        total += offset;
        offset = total;
    }
}

// Lists are short as a rule, and often sorted already: insertion beats a general sort.
void sort_list(NodeId* first, NodeId* last) {
    if (last - first > 24) {
        if (!std::is_sorted(first, last)) {
            std::sort(first, last);
        }
        return;
    }
    for (NodeId* next = first + (first != last); next < last; ++next) {
        const NodeId value = *next;
        NodeId* hole = next;
        for (; hole != first && hole[-1] > value; --hole) {
            *hole = hole[-1];
        }
        *hole = value;
    }
}

void sort_and_merge(Array<ArcIndex>& offsets, Array<NodeId>& heads) {
    NodeId* const base = heads.data();
    ArcIndex kept = 0;
    ArcIndex first = 0;
    const std::uint64_t num_nodes = offsets.size() - 1;
    for (std::uint64_t node = 0; node < num_nodes; ++node) {
        const ArcIndex last = offsets[node + 1];
        sort_list(base + first, base + last);
        NodeId previous = kNoNode;
        for (ArcIndex e = first; e < last; ++e) {
            const NodeId head = base[e];
            base[kept] = head;
            kept += static_cast<ArcIndex>(head != previous);
            previous = head;
        }
        first = last;
        offsets[node + 1] = kept;
    }
    heads.resize(kept);
}

}  // namespace

Csr make_csr(Array<ArcIndex> offsets, Array<NodeId> heads) {
    struct Arrays {
        Array<ArcIndex> offsets;
        Array<NodeId> heads;
    };
    auto arrays = std::make_shared<const Arrays>(Arrays{std::move(offsets), std::move(heads)});
    return {arrays->offsets, arrays->heads, arrays};
}

void check_edges(std::uint64_t num_nodes, std::span<const NodeId> sources, std::span<const NodeId> targets) {
    if (sources.size() != targets.size()) {
        throw InvalidGraph("edges: expected as many targets as sources, got " + std::to_string(sources.size()) +
                           " sources and " + std::to_string(targets.size()) + " targets");
    }
    for (std::size_t e = 0; e < sources.size(); ++e) {
        if (sources[e] >= num_nodes || targets[e] >= num_nodes) {
            const bool is_source = sources[e] >= num_nodes;
            throw_node_range(is_source ? "edge source" : "edge target", is_source ? sources[e] : targets[e], num_nodes);
        }
    }
}

Csr build_csr(std::uint64_t num_nodes, std::span<const NodeId> tails, std::span<const NodeId> heads) {
    auto offsets = zeroes(num_nodes + 2);
    for (std::size_t e = 0; e < tails.size(); ++e) {
        offsets[std::size_t{tails[e]} + 2 - static_cast<std::size_t>(tails[e] == heads[e])] +=
            static_cast<ArcIndex>(tails[e] != heads[e]);
    }
    prefix_sum(offsets);
    auto lists = fresh_array<NodeId>(offsets.back());
    for (std::size_t e = 0; e < tails.size(); ++e) {
        if (tails[e] != heads[e]) {
            lists[offsets[std::size_t{tails[e]} + 1]++] = heads[e];
        }
    }
    offsets.pop_back();
    sort_and_merge(offsets, lists);
    return make_csr(std::move(offsets), std::move(lists));
}

Csr transpose(const Csr& csr) {
    const std::uint64_t num_nodes = csr.num_nodes();
    auto offsets = zeroes(num_nodes + 2);
    for (const NodeId head : csr.heads) {
        ++offsets[std::size_t{head} + 2];
    }
    prefix_sum(offsets);
    auto heads = fresh_array<NodeId>(csr.heads.size());
    for (std::uint64_t tail = 0; tail < num_nodes; ++tail) {
        for (ArcIndex e = csr.offsets[tail]; e < csr.offsets[tail + 1]; ++e) {
            heads[offsets[std::size_t{csr.heads[e]} + 1]++] = static_cast<NodeId>(tail);
        }
    }
    offsets.pop_back();
    return make_csr(std::move(offsets), std::move(heads));
}

}  // namespace memorepair

// Purpose, contract, source: csr.hpp. Oracle: cpp/tests/test_graph.cpp (std::set of pairs).
#include "csr.hpp"

#include <algorithm>
#include <string>

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

void sort_and_merge(Csr& csr) {
    NodeId* const base = csr.heads.data();
    ArcIndex kept = 0;
    ArcIndex first = 0;
    const std::uint64_t num_nodes = csr.num_nodes();
    for (std::uint64_t node = 0; node < num_nodes; ++node) {
        const ArcIndex last = csr.offsets[node + 1];
        sort_list(base + first, base + last);
        NodeId previous = kNoNode;
        for (ArcIndex e = first; e < last; ++e) {
            const NodeId head = base[e];
            base[kept] = head;
            kept += static_cast<ArcIndex>(head != previous);
            previous = head;
        }
        first = last;
        csr.offsets[node + 1] = kept;
    }
    csr.heads.resize(kept);
}

}  // namespace

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
    Csr csr;
    csr.offsets = zeroes(num_nodes + 2);
    for (std::size_t e = 0; e < tails.size(); ++e) {
        csr.offsets[std::size_t{tails[e]} + 2 - static_cast<std::size_t>(tails[e] == heads[e])] +=
            static_cast<ArcIndex>(tails[e] != heads[e]);
    }
    prefix_sum(csr.offsets);
    csr.heads = fresh_array<NodeId>(csr.offsets.back());
    for (std::size_t e = 0; e < tails.size(); ++e) {
        if (tails[e] != heads[e]) {
            csr.heads[csr.offsets[std::size_t{tails[e]} + 1]++] = heads[e];
        }
    }
    csr.offsets.pop_back();
    sort_and_merge(csr);
    return csr;
}

Csr transpose(const Csr& csr) {
    const std::uint64_t num_nodes = csr.num_nodes();
    Csr reverse;
    reverse.offsets = zeroes(num_nodes + 2);
    for (const NodeId head : csr.heads) {
        ++reverse.offsets[std::size_t{head} + 2];
    }
    prefix_sum(reverse.offsets);
    reverse.heads = fresh_array<NodeId>(csr.heads.size());
    for (std::uint64_t tail = 0; tail < num_nodes; ++tail) {
        for (ArcIndex e = csr.offsets[tail]; e < csr.offsets[tail + 1]; ++e) {
            reverse.heads[reverse.offsets[std::size_t{csr.heads[e]} + 1]++] = static_cast<NodeId>(tail);
        }
    }
    reverse.offsets.pop_back();
    return reverse;
}

}  // namespace memorepair

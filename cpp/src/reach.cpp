// Purpose: what a set of roots influences, and what influences it.
// Contract: memorepair/graph.hpp. Breadth-first search: each reached node's list is read once.
// How: a small reach keeps what it has seen in a hash set, so that it costs nothing that grows with the graph; past a
// limit it moves to one bit a node, without a branch per edge and with the next lists on their way to the cache.
// Invariant: queue[0, end) lists exactly what has been seen.
// Source: queue and bitset after the GAP benchmark suite (Beamer et al. 2015). Oracle: cpp/tests/test_graph.cpp.
// Peer: benchmarks/plain_bfs.cpp.
#include <algorithm>

#include "adjacency.hpp"
#include "arc_set.hpp"
#include "memorepair/errors.hpp"
#include "memorepair/graph.hpp"

namespace memorepair {

namespace {

constexpr std::size_t kSmallReach = 512;

// How many nodes ahead the two loads that miss the cache are asked for: where a list begins, and the list itself.
constexpr std::uint64_t kOffsetAhead = 8;
constexpr std::uint64_t kListAhead = 4;

// `queue` has room for one node more than there are.
template <bool kOverlay>
std::uint64_t sweep(const Adjacency& adjacency, std::vector<std::uint64_t>& seen, Array<NodeId>& queue,
                    std::uint64_t next, std::uint64_t end) {
    const Csr& base = adjacency.base();
    const std::uint64_t num_base = base.num_nodes();
    std::uint64_t* const words = seen.data();
    NodeId* const list = queue.data();
    const auto visit = [&](NodeId node) {
        std::uint64_t& word = words[node >> 6];
        const std::uint64_t bit = std::uint64_t{1} << (node & 63);
        list[end] = node;  // stays only when `end` moves on: what an edge finds cannot be predicted
        end += static_cast<std::uint64_t>((word & bit) == 0);
        word |= bit;
    };
    while (next < end) {
        // Spelled out here: GCC takes a function that only prefetches for one without effect, and drops the call.
        if (next + kOffsetAhead < end && list[next + kOffsetAhead] < num_base) {
            __builtin_prefetch(base.offsets.data() + list[next + kOffsetAhead]);
        }
        if (next + kListAhead < end && list[next + kListAhead] < num_base) {
            __builtin_prefetch(base.heads.data() + base.offsets[list[next + kListAhead]]);
        }
        const NodeId node = list[next++];
        if constexpr (kOverlay) {
            adjacency.for_each(node, visit);
        } else if (node < num_base) {
            for (const NodeId head : base.neighbours(node)) {
                visit(head);
            }
        }
    }
    return end;
}

Mask reach_along(const Adjacency& adjacency, std::uint64_t num_nodes, std::span<const NodeId> roots) {
    std::vector<NodeId> small;
    ArcSet small_seen;
    std::size_t next = 0;
    const std::size_t limit = num_nodes / 64 < kSmallReach ? 0 : kSmallReach;
    const auto visit = [&](NodeId node) {
        if (small_seen.insert(node)) {
            small.push_back(node);
        }
    };
    for (const NodeId root : roots) {
        if (root >= num_nodes) {
            throw_node_range("root", root, num_nodes);
        }
        visit(root);
    }
    while (next < small.size() && small.size() <= limit) {
        adjacency.for_each(small[next++], visit);
    }
    if (next == small.size()) {
        std::sort(small.begin(), small.end());
        return Mask::from_sorted(std::move(small), num_nodes);
    }
    std::vector<std::uint64_t> seen(num_words(num_nodes));
    Array<NodeId> queue(num_nodes + 1);
    std::copy(small.begin(), small.end(), queue.begin());
    for (const NodeId node : small) {
        set_bit(seen, node);
    }
    if (adjacency.has_overlay()) {
        sweep<true>(adjacency, seen, queue, next, small.size());
    } else {
        sweep<false>(adjacency, seen, queue, next, small.size());
    }
    return Mask::from_words(std::move(seen), num_nodes);
}

}  // namespace

Mask ProvenanceGraph::reach(std::span<const NodeId> roots) const {
    return reach_along(*children_, num_nodes_, roots);
}

Mask ProvenanceGraph::ancestors(std::span<const NodeId> roots) const {
    return reach_along(*parents_, num_nodes_, roots);
}

}  // namespace memorepair

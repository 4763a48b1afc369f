// Purpose: what a set of roots influences, and what influences it.
// Contract: memorepair/graph.hpp. Breadth-first search: each reached node's list is read once.
// How: one bit a node, without a branch per edge, and with the next lists on their way to the cache. The graph keeps
// the bits and the queue; a search clears only what it has set, and sorts by walking the words that it has touched.
// Invariant: queue[0, end) lists exactly the nodes whose bit is set.
// Source: queue and bitset after the GAP benchmark suite (Beamer et al. 2015). Oracle: cpp/tests/test_graph.cpp.
// Peer: benchmarks/plain_bfs.cpp.
#include <algorithm>

#include "adjacency.hpp"
#include "memorepair/errors.hpp"
#include "memorepair/graph.hpp"
#include "scratch.hpp"

namespace memorepair {

namespace {

// How many nodes ahead the two loads that miss the cache are asked for: where a list begins, and the list itself.
constexpr std::uint64_t kOffsetAhead = 8;
constexpr std::uint64_t kListAhead = 4;

// kFlat: every node is in the base, and no arc outside.
template <bool kFlat>
std::uint64_t sweep(const Adjacency& adjacency, Scratch& scratch, std::span<const NodeId> roots) {
    const Csr& base = adjacency.base();
    const std::uint64_t num_base = base.num_nodes();
    std::uint64_t* const words = scratch.seen.data();
    std::uint64_t* const blocks = scratch.blocks.data();
    NodeId* const list = scratch.queue.data();
    std::uint64_t next = 0;
    std::uint64_t end = 0;
    const auto visit = [&](NodeId node) {
        std::uint64_t& word = words[node >> 6];
        const std::uint64_t bit = std::uint64_t{1} << (node & 63);
        list[end] = node;  // stays only when `end` moves on: what an edge finds cannot be predicted
        end += static_cast<std::uint64_t>((word & bit) == 0);
        word |= bit;
    };
    for (const NodeId root : roots) {
        visit(root);
    }
    while (next < end) {
        // Spelled out here: GCC takes a function that only prefetches for one without effect, and drops the call.
        if (next + kOffsetAhead < end && (kFlat || list[next + kOffsetAhead] < num_base)) {
            __builtin_prefetch(base.offsets.data() + list[next + kOffsetAhead]);
        }
        if (next + kListAhead < end && (kFlat || list[next + kListAhead] < num_base)) {
            __builtin_prefetch(base.heads.data() + base.offsets[list[next + kListAhead]]);
        }
        const NodeId node = list[next++];
        blocks[node >> 12] |= std::uint64_t{1} << ((node >> 6) & 63);
        if constexpr (kFlat) {
            for (const NodeId head : base.neighbours(node)) {
                visit(head);
            }
        } else {
            adjacency.for_each(node, visit);
        }
    }
    return end;
}

// The answer as a mask; every bit is zero afterwards.
Mask collect(Scratch& scratch, std::uint64_t count, std::uint64_t num_nodes) {
    const auto num_touchable = static_cast<std::ptrdiff_t>(num_words(num_nodes));
    const auto num_blocks = static_cast<std::ptrdiff_t>(num_words(num_words(num_nodes)));
    if (Mask::dense_for(count, num_nodes)) {
        std::vector<std::uint64_t> words(scratch.seen.begin(), scratch.seen.begin() + num_touchable);
        std::fill_n(scratch.seen.begin(), num_touchable, 0);
        std::fill_n(scratch.blocks.begin(), num_blocks, 0);
        return Mask::from_words(std::move(words), num_nodes);
    }
    std::vector<NodeId> ids(count);
    if (count * 8 < scratch.blocks.size()) {  // fewer than are worth a walk over all blocks
        std::copy_n(scratch.queue.begin(), count, ids.begin());
        for (const NodeId node : ids) {
            scratch.seen[node >> 6] = 0;
            scratch.blocks[node >> 12] = 0;
        }
        std::sort(ids.begin(), ids.end());
        return Mask::from_sorted(std::move(ids), num_nodes);
    }
    NodeId* out = ids.data();
    for (std::uint64_t b = 0; b < static_cast<std::uint64_t>(num_blocks); ++b) {
        for (std::uint64_t touched = std::exchange(scratch.blocks[b], 0); touched != 0; touched &= touched - 1) {
            const std::uint64_t w = b * 64 + static_cast<std::uint64_t>(std::countr_zero(touched));
            std::uint64_t rest = std::exchange(scratch.seen[w], 0);
            do {
                *out++ = static_cast<NodeId>(w * 64 + static_cast<std::uint64_t>(std::countr_zero(rest)));
                rest &= rest - 1;
            } while (rest != 0);
        }
    }
    return Mask::from_sorted(std::move(ids), num_nodes);
}

Mask reach_along(const Adjacency& adjacency, std::uint64_t num_nodes, std::span<const NodeId> roots,
                 ScratchPool& pool) {
    for (const NodeId root : roots) {
        if (root >= num_nodes) {
            throw_node_range("root", root, num_nodes);
        }
    }
    std::unique_ptr<Scratch> scratch = pool.take(num_nodes);
    const std::uint64_t count = adjacency.is_flat(num_nodes) ? sweep<true>(adjacency, *scratch, roots)
                                                             : sweep<false>(adjacency, *scratch, roots);
    Mask reached = collect(*scratch, count, num_nodes);
    pool.give(std::move(scratch));
    return reached;
}

}  // namespace

Mask ProvenanceGraph::reach(std::span<const NodeId> roots) const {
    return reach_along(*children_, num_nodes_, roots, *scratch_);
}

Mask ProvenanceGraph::ancestors(std::span<const NodeId> roots) const {
    return reach_along(*parents_, num_nodes_, roots, *scratch_);
}

}  // namespace memorepair

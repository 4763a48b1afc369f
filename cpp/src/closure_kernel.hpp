// Purpose: the closure problem in the form every kernel works on.
// Contract: an arc u -> v says "u requires v" and leads to a smaller id (v < u), so there is no cycle and each pass over
// the graph is a plain loop, up or down. Parallel arcs are allowed.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "huge_pages.hpp"
#include "memorepair/types.hpp"

namespace memorepair {

using KernelArc = std::uint32_t;
inline constexpr std::uint64_t kMaxKernelArcs = std::numeric_limits<KernelArc>::max();

// Requirements as lists: `heads[first[u], first[u + 1])` are what u requires.
struct Needs {
    Array<KernelArc> first;
    Array<NodeId> heads;

    NodeId num_nodes() const noexcept { return first.empty() ? 0 : static_cast<NodeId>(first.size() - 1); }
    KernelArc num_arcs() const noexcept { return static_cast<KernelArc>(heads.size()); }
    KernelArc begin(NodeId node) const noexcept { return first[node]; }
    KernelArc end(NodeId node) const noexcept { return first[std::size_t{node} + 1]; }
    std::span<const NodeId> of(NodeId node) const noexcept { return {heads.data() + begin(node), end(node) - begin(node)}; }
};

// The same arcs from the other end: `tails[first[v], first[v + 1])` are who requires v, ascending, and `arcs` beside them
// their places in Needs::heads, where they are asked for.
struct Dependants {
    Array<KernelArc> first;
    Array<NodeId> tails;
    Array<KernelArc> arcs;

    KernelArc begin(NodeId node) const noexcept { return first[node]; }
    KernelArc end(NodeId node) const noexcept { return first[std::size_t{node} + 1]; }
    std::span<const NodeId> of(NodeId node) const noexcept { return {tails.data() + begin(node), end(node) - begin(node)}; }

    void assign(const Needs& needs, bool with_arcs) {
        const NodeId num_nodes = needs.num_nodes();
        first.assign(std::size_t{num_nodes} + 2, 0);
        for (const NodeId head : needs.heads) {
            ++first[std::size_t{head} + 2];
        }
        for (std::size_t i = 1; i < first.size(); ++i) {
            first[i] += first[i - 1];
        }
        renew(tails, needs.heads.size());
        renew(arcs, with_arcs ? needs.heads.size() : 0);
        for (NodeId tail = 0; tail < num_nodes; ++tail) {
            for (KernelArc arc = needs.begin(tail); arc < needs.end(tail); ++arc) {
                const KernelArc place = first[std::size_t{needs.heads[arc]} + 1]++;
                tails[place] = tail;
                if (with_arcs) {
                    arcs[place] = arc;
                }
            }
        }
        first.pop_back();
    }
};

// Flow along one arc, from who requires to what is required.
template <class W>
struct ArcFlow {
    NodeId tail;
    NodeId head;
    W amount;
};

// Sums over paths count shared nodes more than once and may grow exponentially. A capped sum plus another stays inside the
// type. The cap is one less than the largest true sum: that would be all the weight there is, with nothing left to compare
// it with.
template <class W>
inline constexpr W kSumCap = (W{1} << (8 * sizeof(W) - 2)) - 1;

template <class W>
W capped_sum(W left, W right) noexcept {
    return std::min<W>(left + right, kSumCap<W>);
}

}  // namespace memorepair

// Purpose: maximum closure by pseudoflow: a maximum flow from positive weights along requirements to negative ones, and
// the smallest optimal closure read from it.
// Contract: each node's balance (weight + in - out) is what is left on it, or, below zero, the room it still has, never
// below min(weight, 0). Only the arcs of a forest carry flow.
// Requires: sum of |weight| at most 2^62 (W = 64 bit) or 2^125 (128 bit). On an acyclic graph a flow splits into paths,
// so no arc carries more than the positive sum and nothing overflows.
// Source: Hochbaum 2008 (pseudoflow, highest label). It works as push-relabel does (labels bound the distance, the
// highest goes first, a gap ends what is above it), but moves and lifts whole trees. Plain push-relabel
// (cpp/tests/push_relabel.hpp, its oracle) takes 1.5 to 5 times the instructions on the same kernels, and needs a flow on
// every arc: benchmarks/instructions.py.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "closure_kernel.hpp"

namespace memorepair {

template <class W>
class ClosureFlow {
public:
    // `dependants` is memory to work in.
    void solve(const Needs& needs, std::span<const W> weight, Dependants& dependants);

    bool is_chosen(NodeId node) const noexcept { return chosen_[node] != 0; }
    W balance(NodeId node) const noexcept { return nodes_[node].balance; }

    // Calls visit(arc of `needs`, amount) for every arc that carries flow.
    template <class Visit>
    void for_each_flow(Visit&& visit) const {
        for (const Node& node : nodes_) {
            if (node.parent != kNoNode && node.flow > 0) {
                visit(node.arc, node.flow);
            }
        }
    }

private:
    template <bool kPull>
    class Pseudoflow;

    // `flow` runs on `arc` between the node and its parent: to the parent if the node requires it, else from it.
    struct Node {
        W balance;
        W flow;
        NodeId parent;
        NodeId child;     // the first one
        NodeId next;      // among the children of one parent; of a root, among the roots of one label
        NodeId previous;
        NodeId scan;      // the next child to look at
        NodeId label;
        KernelArc arc;
        KernelArc current;  // the next outer arc to look at
        bool requires_parent;
    };

    void return_what_is_missing(std::span<const W> weight);
    void choose(const Needs& needs);

    Array<Node> nodes_;
    std::vector<std::uint8_t> chosen_;
    std::vector<NodeId> roots_;        // per label: the first root with surplus
    std::vector<NodeId> with_label_;   // per label: how many nodes
    std::vector<NodeId> todo_;
};

}  // namespace memorepair

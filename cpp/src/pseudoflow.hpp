// Purpose: a maximum flow from positive weights along requirements to negative ones, by pseudoflow, and the smallest optimal
// closure read from it.
// Contract: closure_flow.hpp; only the arcs of a forest carry flow.
// Source: Hochbaum 2008 (pseudoflow, highest label). It works as push-relabel does (labels bound the distance, the
// highest goes first, a gap ends what is above it), but moves and lifts whole trees.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "closure_kernel.hpp"

namespace memorepair {

template <class W>
class Pseudoflow {
public:
    // Starts anew. `dependants` are those of `needs`, looked at only when it is to `pull`; all must outlive the run.
    void start(const Needs& needs, std::span<const W> weight, const Dependants& dependants, bool pull);
    // Goes on for about `work` nodes and arcs looked at, at least one step. True when the flow is a maximum one.
    bool advance(std::uint64_t work);

    bool is_chosen(NodeId node) const noexcept { return chosen_[node] != 0; }
    W balance(NodeId node) const noexcept { return nodes_[node].balance; }
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
    class Run;

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

    void return_what_is_missing();
    void choose();

    const Needs* needs_ = nullptr;
    const Dependants* dependants_ = nullptr;
    std::span<const W> weight_;
    bool pull_ = false;
    Array<Node> nodes_;
    NodeId highest_ = 0;
    std::vector<NodeId> roots_;        // per label: the first root with surplus
    std::vector<NodeId> with_label_;   // per label: how many nodes
    std::vector<std::uint8_t> chosen_;
    std::vector<NodeId> todo_;
};

}  // namespace memorepair

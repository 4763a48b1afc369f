// Purpose: a maximum flow from positive weights along requirements to negative ones, by push-relabel, and the smallest
// optimal closure read from it.
// Contract: closure_flow.hpp, with a flow on every arc.
// Source: Goldberg and Tarjan 1988; Cherkassky and Goldberg 1997 (highest label, global relabelling).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "closure_kernel.hpp"

namespace memorepair {

template <class W>
class PushRelabel {
public:
    // Starts anew. `dependants` are those of `needs`; all must outlive the run.
    void start(const Needs& needs, std::span<const W> weight, const Dependants& dependants, bool pull);
    // Goes on for about `work` nodes and arcs looked at, at least one step. True when the flow is a maximum one.
    bool advance(std::uint64_t work);

    bool is_chosen(NodeId node) const noexcept { return chosen_[node] != 0; }
    W balance(NodeId node) const noexcept { return nodes_[node].surplus; }
    template <class Visit>
    void for_each_flow(Visit&& visit) const {
        for (std::size_t arc = 0; arc < flow_.size(); ++arc) {
            if (flow_[arc] > 0) {
                visit(static_cast<KernelArc>(arc), flow_[arc]);
            }
        }
    }

private:
    template <bool kPull>
    class Run;

    struct Node {
        W surplus;  // what it has to move; below zero: what it can take
        NodeId label;
        std::uint32_t current;  // position in outer arcs, then inner ones
    };

    void return_what_is_missing();
    void choose();

    const Needs* needs_ = nullptr;
    const Dependants* dependants_ = nullptr;
    std::span<const W> weight_;
    bool pull_ = false;
    Array<Node> nodes_;
    Array<W> flow_;
    NodeId highest_active_ = 0;
    NodeId highest_label_ = 0;
    std::uint64_t since_relabel_ = 0;
    Array<NodeId> active_;  // per label: the head of a list linked by next_
    Array<NodeId> idle_;    // per label: the head of a list linked by next_ and previous_
    Array<NodeId> next_;
    Array<NodeId> previous_;
    Array<W> demand_;
    std::vector<std::uint8_t> chosen_;
    Array<NodeId> queue_;
};

}  // namespace memorepair

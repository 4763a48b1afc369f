// Purpose: maximum closure as a maximum flow from positive weights along requirements to negative ones, and the smallest
// optimal closure read from it.
// Contract: each node's balance (weight + in - out) is what is left on it, or, below zero, the room it still has, never
// below min(weight, 0). Unique is the closure, not the flow.
// How: two algorithms that share nothing take turns, since each has problems that it takes quadratic time for: pseudoflow
// first, which is two to five times as fast on nearly all others (benchmarks/instructions.py), push-relabel when that
// has worked for many times the size of the problem, and so on with turns twice as long. So the time is at most a few
// times that of the better one.
// Both work the same way round: surplus starts on nodes of positive weight and moves along requirements to room (push), or
// lack starts on nodes of negative weight and moves against them to excess (pull): the same with signs and arcs turned
// round. What cannot arrive has to climb until no way is left, so should_pull() chooses the side.
// Requires: sum of |weight| at most 2^62 (W = 64 bit) or 2^125 (128 bit). On an acyclic graph a flow splits into paths,
// so no arc carries more than the positive sum and nothing overflows.
#pragma once

#include <cstdint>
#include <span>

#include "closure_kernel.hpp"
#include "pseudoflow.hpp"
#include "push_relabel.hpp"

namespace memorepair {

// The side with less to move moves: what cannot arrive is most of the work.
template <class W>
bool should_pull(std::span<const W> weight);

template <class W>
class ClosureFlow {
public:
    // How many times the nodes and arcs of a problem a first turn may look at. The families of the benchmarks need 1 to 42.
    static constexpr std::uint64_t kTurn = 64;

    // `dependants` is memory to work in.
    void solve(const Needs& needs, std::span<const W> weight, Dependants& dependants, std::uint64_t turn = kTurn);

    // One: pseudoflow alone has done it.
    std::uint32_t num_turns() const noexcept { return num_turns_; }

    bool is_chosen(NodeId node) const noexcept { return by_pushes() ? pushes_.is_chosen(node) : trees_.is_chosen(node); }
    W balance(NodeId node) const noexcept { return by_pushes() ? pushes_.balance(node) : trees_.balance(node); }

    // Calls visit(arc of `needs`, amount) for every arc that carries flow.
    template <class Visit>
    void for_each_flow(Visit&& visit) const {
        if (by_pushes()) {
            pushes_.for_each_flow(visit);
        } else {
            trees_.for_each_flow(visit);
        }
    }

private:
    bool by_pushes() const noexcept { return num_turns_ % 2 == 0; }

    Pseudoflow<W> trees_;
    PushRelabel<W> pushes_;
    std::uint32_t num_turns_ = 1;
};

}  // namespace memorepair

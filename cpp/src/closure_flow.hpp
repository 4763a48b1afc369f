// Purpose: maximum closure by push-relabel, specialised: no source, no sink, no infinite capacity.
// Contract: on return the flow is a maximum one, from positive weights along requirements to negative ones; a node's
// balance (weight + in - out) is what is left on it, or, below zero, the room it still has, never below min(weight, 0).
// `chosen` is the smallest optimal closure.
// Requires: sum of |weight| at most 2^62 (W = 64 bit) or 2^125 (128 bit). On an acyclic graph a flow splits into paths,
// so no arc carries more than the positive sum and nothing overflows.
// Source: Goldberg and Tarjan 1988; highest label, gap and global relabelling after Cherkassky and Goldberg 1997. A
// requirement cannot be cut, so its forward residual is never stored (Hochbaum 2001 uses the same structure for open
// pits).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "closure_kernel.hpp"

namespace memorepair {

template <class W>
class ClosureFlow {
public:
    void solve(const Needs& needs, std::span<const W> weight);

    const std::vector<std::uint8_t>& chosen() const noexcept { return chosen_; }  // per node
    const Array<W>& balance() const noexcept { return balance_; }                 // per node
    const Array<W>& flow() const noexcept { return flow_; }                       // per arc of `needs`

private:
    template <bool kPull>
    class PushRelabel;

    void return_what_is_missing(const Needs& needs, std::span<const W> weight);
    void choose(const Needs& needs);

    Dependants dependants_;
    Array<W> balance_;
    Array<W> flow_;
    std::vector<std::uint8_t> chosen_;
    Array<NodeId> queue_;
    struct Node {
        W surplus;  // what it has to move; below zero: what it can take
        NodeId label;
        std::uint32_t current;  // position in outer arcs, then inner ones
    };
    Array<Node> nodes_;
    Array<W> demand_;
    Array<NodeId> active_;  // per label: the head of a list linked by next_
    Array<NodeId> idle_;    // per label: the head of a list linked by next_ and previous_
    Array<NodeId> next_;
    Array<NodeId> previous_;
};

}  // namespace memorepair

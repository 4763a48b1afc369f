// Purpose: the smallest maximum-weight closure of an acyclic problem: reduce, flow, and the proof of both.
// Contract: solve() fills chosen(); prove() then gives a flow on the problem's own arcs such that, with `absorbed`, each
// node keeps max(weight, 0) + in - out - absorbed >= 0, and the selection is exactly what that flow forces
// (memorepair/closure.hpp). One solver may be used again and again: it keeps its memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "closure_flow.hpp"
#include "closure_kernel.hpp"
#include "closure_reduce.hpp"

namespace memorepair {

template <class W>
class ClosureSolver {
public:
    void solve(const Needs& needs, std::span<const W> weight) {
        reduce(needs, weight);
        cut();
    }

    // The same in two steps: cut() needs no more than what reduce() keeps.
    void reduce(const Needs& needs, std::span<const W> weight);
    void cut();
    // Between them: gives back most of the memory of the first. Worth it where the next problem is far off.
    void release() {
        dependants_ = {};
        reducer_.release();
    }

    const std::vector<std::uint8_t>& chosen() const noexcept { return chosen_; }  // per node

    // Of the problem just solved. Appends to `flow`.
    void prove(std::span<const W> weight, std::vector<ArcFlow<W>>& flow, Array<W>& absorbed);

private:
    void flow_along_forest(std::vector<ArcFlow<W>>& flow);

    Dependants dependants_;
    ClosureReducer<W> reducer_;
    ClosureFlow<W> flow_;
    std::vector<std::uint8_t> chosen_;
    Array<W> surplus_;
    // The forest of arcs that hold groups together, each node with how many it has and the xor of their places.
    struct Ties {
        std::uint32_t num;
        std::uint32_t mix;
    };
    std::vector<Arc> forest_;
    std::vector<Ties> ties_;
    Array<NodeId> leaves_;
};

}  // namespace memorepair

// Purpose: maximum closure by push-relabel, specialised: no source, no sink, no infinite capacity.
// Contract: on return nothing that holds excess can reach a node with room, so the flow is a maximum preflow;
// `selected` is the smallest optimal closure. Parallel arcs are allowed.
// Requires: no cycle, sum of |weight| <= 2^62. (On an acyclic graph a flow splits into paths, so that no arc carries
// more than the positive sum and nothing overflows; a cycle could carry the same excess round and round.)
// Source: Goldberg and Tarjan 1988; highest label, gap and global relabelling after Cherkassky and Goldberg 1997. A
// requirement cannot be cut, so its forward residual is never stored (Hochbaum 2001 uses the same structure for open
// pits).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "csr.hpp"
#include "memorepair/types.hpp"

namespace memorepair {

struct ClosureFlow {
    std::vector<Weight> flow;            // per arc of `needs`
    std::vector<Weight> absorbed;        // per node
    std::vector<std::uint8_t> selected;  // per node
};

ClosureFlow solve_closure_flow(const Csr& needs, std::span<const Weight> weight);

}  // namespace memorepair

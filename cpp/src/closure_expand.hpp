// Purpose: turn a proof between components into one between the nodes of the graph.
// Contract: what a certificate must satisfy (memorepair/closure.hpp) holds for members if it held for components.
// Excess of a component comes to rest on its first member; a component without excess leaves none on any member.
// How: inside a component everything can reach everything, so surplus is collected along a tree into the first member
// and spread along a tree out of it. No arc carries more than twice the positive sum, less than 2^63 (or 2^126 in 128
// bits): with the positive sum at its limit nothing is negative and nothing flows.
#pragma once

#include <span>
#include <vector>

#include "closure_instance.hpp"

namespace memorepair {

// `weight` per member; `flow` between components, rewritten as flow between members and added to inside components;
// `absorbed` per component what it takes beyond its own positive weights. Returns what each member absorbs.
template <class W>
Array<W> expand_components(const Instance& instance, std::span<const W> weight, const Array<W>& absorbed,
                           std::vector<ArcFlow<W>>& flow);

}  // namespace memorepair

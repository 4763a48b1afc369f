// Purpose: turn a flow between components into a flow between the nodes of the graph.
// Contract: what the certificate must satisfy (memorepair/closure.hpp) holds for nodes if it held for components.
// Excess of a component comes to rest on its first member; a component without excess leaves none on any member.
// How: inside a component everything can reach everything, so surplus is collected along a tree into the first member
// and spread along a tree out of it. No arc carries more than twice the positive sum, less than 2^63: with the positive
// sum at 2^62 nothing is negative and nothing flows.
#pragma once

#include <vector>

#include "closure_instance.hpp"

namespace memorepair {

struct InstanceFlow {
    Array<Weight> on_arc;          // per arc of instance.needs
    std::vector<Weight> absorbed;  // per instance node
};

// `flow` holds what crosses between components; `absorbed` per component what it takes beyond its own positive weights.
void expand_components(const Instance& instance, const Condensed& condensed, const std::vector<Weight>& absorbed,
                       InstanceFlow& flow);

}  // namespace memorepair

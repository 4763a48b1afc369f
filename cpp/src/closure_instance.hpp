// Purpose: the closure problem as the solver sees it: dense ids, and arcs u -> v for "u requires v".
// Contract: `global` is ascending; every arc joins two nodes that may be selected. Nothing here knows masks or flow.
#pragma once

#include <vector>

#include "components.hpp"
#include "csr.hpp"
#include "memorepair/closure.hpp"

namespace memorepair {

struct Instance {
    std::vector<NodeId> global;  // instance node -> node of the graph
    std::vector<Weight> weight;  // per instance node
    Csr needs;                   // u -> v: u requires v
};

// Restricts the graph to the nodes inside `within` that neither are, nor depend on, what is not executable.
// Throws WeightOverflow.
Instance make_instance(const ProvenanceGraph& graph, const ClosureProblem& problem);

// An acyclic view: strongly connected nodes stand or fall together, so each component becomes one node with the summed
// weight. Arcs are those between components, in the order (component, member, arc); parallel ones are kept.
struct Condensed {
    bool trivial = true;  // no cycle: components are the nodes themselves and the fields below stay empty
    std::vector<NodeId> label;
    Csr members;
    std::vector<Weight> weight;
    Csr needs;
};

Condensed condense(const Instance& instance);

}  // namespace memorepair

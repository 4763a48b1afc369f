// Purpose: the closure problem on a graph as the kernels see it: only nodes that may be selected, no cycles, and every
// requirement with a smaller id.
// Contract: strongly connected nodes stand or fall together, so a component is one node of `needs`; with `trivial` each
// is one node of the graph. Nothing here knows weights or flow.
#pragma once

#include <utility>
#include <vector>

#include "closure_kernel.hpp"
#include "csr.hpp"
#include "memorepair/closure.hpp"

namespace memorepair {

struct Instance {
    Needs needs;
    bool trivial = true;
    std::vector<NodeId> global;  // member -> node of the graph; with `trivial`, a member is a node of `needs`

    // Only when not trivial; lists of `needs` are then sorted. Members of a component, its first member the smallest.
    std::vector<NodeId> label;  // member -> node of `needs`
    Csr members;                // node of `needs` -> members
    Csr inner;                  // arcs between members, all of them
    std::vector<std::pair<NodeId, NodeId>> origin;  // per arc of `needs`: tail and head of a member arc behind it
};

// Bits of the nodes that may be selected: inside `within`, and neither without the means to run nor dependent, inside
// `within`, on such a node.
std::vector<std::uint64_t> allowed_nodes(const ProvenanceGraph& graph, const Mask* executable, const Mask* within);

// Restricts the graph to the nodes inside `within` that neither are, nor depend on, what is not executable. Throws
// Capacity past 2^32 - 1 arcs.
Instance make_instance(const ProvenanceGraph& graph, const Mask* executable, const Mask* within);

}  // namespace memorepair

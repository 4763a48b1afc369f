// Purpose: the smallest maximum-weight predecessor closure, with a certificate that a stranger can check.
// Contract: a selected node has all its parents inside `within` selected; a node that is not executable is never
// selected, nor is anything inside `within` that depends on it. Edges that leave `within` are ignored. Exact integers,
// no tolerance. The answer is unique (optimal closures form a lattice), so the order of edges and threads never
// matters.
// Source: Picard 1976 (closure = minimum cut); Hochbaum 2008 (pseudoflow); Goldberg and Tarjan 1988 (push-relabel).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memorepair/graph.hpp"
#include "memorepair/mask.hpp"
#include "memorepair/types.hpp"

namespace memorepair {

// A flow from nodes of positive weight, along requirements, to nodes of negative weight. `sources` and `targets` are
// edges of the graph (source influences target), so flow runs from target to source.
struct Certificate {
    std::vector<NodeId> sources;
    std::vector<NodeId> targets;
    std::vector<Weight> flow;      // positive, one per edge listed
    std::vector<Weight> absorbed;  // one per node of the graph, at most max(-weight, 0)
};

struct Closure {
    Mask selected;
    Weight objective = 0;
    Certificate certificate;
};

// The question: the masks may be null (every node) and are zero-extended to the graph.
struct ClosureProblem {
    std::span<const Weight> weights;  // one per node
    const Mask* executable = nullptr;
    const Mask* within = nullptr;
};

// Throws WeightOverflow when the sum of |weight| over `within` exceeds 2^62, InvalidGraph when sizes do not fit the
// graph.
Closure solve_closure(const ProvenanceGraph& graph, const ClosureProblem& problem);

// True exactly when `selected` is the smallest optimal closure with weight `objective` and the certificate proves it.
// Shares no code with the solver. Throws InvalidGraph when the problem itself does not fit the graph.
bool verify_closure(const ProvenanceGraph& graph, const ClosureProblem& problem, const Mask& selected, Weight objective,
                    std::span<const NodeId> sources, std::span<const NodeId> targets, std::span<const Weight> flow,
                    std::span<const Weight> absorbed);

// Throws InvalidGraph unless there is one weight per node and no mask reaches past the graph.
void check_closure_problem(const ProvenanceGraph& graph, const ClosureProblem& problem);

}  // namespace memorepair

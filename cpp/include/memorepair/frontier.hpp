// Purpose: the whole trade-off at once: the smallest maximum-weight predecessor closure of value - x cost for every
// x >= 0, with one certificate for all of them.
// Contract: closures only shrink as x grows, so each node enters at one breakpoint and the answer is an ordered
// partition into pieces. Exact: breakpoints are reduced fractions, none is missing and close ones stay apart. Selection
// rules are those of memorepair/closure.hpp. Unique, whatever the order of nodes and edges.
// Invariants: point i holds the pieces 0..i; point 0 is what is worth having at any x (it costs nothing).
// Source: Gallo, Grigoriadis and Tarjan 1989; Hochbaum 2008 (monotone parametric cut); the pieces are the finest Sidney
// decomposition of the problem.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "memorepair/graph.hpp"
#include "memorepair/mask.hpp"
#include "memorepair/types.hpp"

namespace memorepair {

// Masks may be null (every node) and are zero-extended to the graph.
struct FrontierProblem {
    std::span<const Weight> values;  // one per node
    std::span<const Weight> costs;   // one per node, none negative
    const Mask* executable = nullptr;
    const Mask* within = nullptr;
};

// The piece of a node that is never selected at x >= 0.
inline constexpr std::uint32_t kNeverSelected = 0xffffffffU;

// A flow along requirements inside pieces. `sources` and `targets` are edges of the graph (source influences target), so
// flow runs from target to source. In the units of value times the denominator of the piece's breakpoint (1 for piece 0
// and for what is never selected), value + in - out = breakpoint x cost for each node of a finite piece; at least 0 in
// piece 0; at most 0 for what is never selected.
struct FrontierCertificate {
    std::vector<NodeId> sources;
    std::vector<NodeId> targets;
    std::vector<Wide> flow;  // positive
};

struct Frontier {
    // Breakpoint i, the largest x (exclusive) at which piece i + 1 is selected, as a reduced fraction; strictly
    // decreasing and positive.
    std::vector<Weight> numerators;
    std::vector<Weight> denominators;
    // Of point i, one more than there are breakpoints.
    std::vector<Weight> values;
    std::vector<Weight> costs;
    std::vector<Weight> sizes;
    std::vector<std::uint32_t> piece;  // per node
    FrontierCertificate certificate;

    // The point that is the smallest optimum at x = numerator / denominator, both at least 0 and below 2^64.
    std::size_t point_at(Wide numerator, Wide denominator) const noexcept;
    Mask closure(std::size_t point) const;
};

// Throws WeightOverflow when the sum of |value| or of costs over `within` exceeds 2^62, InvalidGraph when sizes do not
// fit the graph, InvalidAmount when a cost is negative.
Frontier solve_frontier(const ProvenanceGraph& graph, const FrontierProblem& problem);

// True exactly when the frontier is the whole and exact one, made of smallest optima, and its certificate proves it.
// Shares no code with the solver. Throws InvalidGraph when the problem itself does not fit the graph.
bool verify_frontier(const ProvenanceGraph& graph, const FrontierProblem& problem, std::span<const std::uint32_t> piece,
                     std::span<const Weight> numerators, std::span<const Weight> denominators,
                     std::span<const NodeId> sources, std::span<const NodeId> targets, std::span<const Wide> flow);

// What a budget buys: the dearest point of the frontier within it, and more while money lasts.
struct BudgetChoice {
    std::size_t point = 0;
    std::vector<NodeId> fill;  // in the order it was added
    Weight value = 0;
    Weight cost = 0;
    // No selection within the budget is worth more than bound_value + bound_slope x bound_rest.
    Weight bound_value = 0;
    Weight bound_numerator = 0;  // the slope
    Weight bound_denominator = 1;
    Weight bound_rest = 0;
};

// Best value for cost first; among equals the node with the smaller entry of `tie_order` (one per node; empty: by id).
// Never worth less than adding single nodes that way from nothing, nor than any one node with what it requires, where that
// fits and is not more than 64 nodes.
BudgetChoice choose_within_budget(const ProvenanceGraph& graph, const FrontierProblem& problem,
                                  const Frontier& frontier, Weight budget, std::span<const NodeId> tie_order);

void check_frontier_problem(const ProvenanceGraph& graph, const FrontierProblem& problem);

}  // namespace memorepair

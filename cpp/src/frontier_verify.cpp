// Purpose: check a whole frontier by its one certificate, sharing nothing with the solver.
// Contract: memorepair/frontier.hpp; O(nodes + edges + flow x log degree), claimed numbers cannot overflow.
// Proof. Let l_v be the breakpoint of v's piece (infinite in piece 0, 0 for what is never selected) and suppose that l
// never rises along a dependence, that flow stays inside pieces, and that value_v + in_v - out_v is l_v cost_v in finite
// pieces, >= 0 in piece 0 (whose costs are 0), <= 0 elsewhere. No flow leaves a closed X, so at any x
//   value(X) - x cost(X) <= sum over X of (l_v - x) cost_v - inflow(X)   (the free balance instead of l_v cost_v in 0)
//                        <= the same sum over all v with l_v > x,
// which U = {l_v > x} reaches. So U is optimal; and an optimal X holds every v of U that adds to the sum (cost_v > 0, or
// a free balance > 0), with what it requires, and lets no flow in. If within each piece everything is reached from such
// nodes along requirements and against flow, U is the smallest optimum.
// Source: weak duality; Gallo, Grigoriadis and Tarjan 1989.
#include <algorithm>
#include <numeric>

#include "adjacency.hpp"
#include "memorepair/frontier.hpp"

namespace memorepair {

namespace {

class FrontierChecker {
public:
    FrontierChecker(const ProvenanceGraph& graph, const FrontierProblem& problem, std::span<const std::uint32_t> piece,
                    std::span<const Weight> numerators, std::span<const Weight> denominators)
        : graph_(graph), problem_(problem), piece_(piece), numerators_(numerators), denominators_(denominators) {}

    // Reduced, so that equal answers have equal certificates.
    bool breakpoints_descend() const {
        if (numerators_.size() != denominators_.size() || numerators_.size() >= kNeverSelected) {
            return false;
        }
        for (std::size_t i = 0; i < numerators_.size(); ++i) {
            if (numerators_[i] <= 0 || denominators_[i] <= 0 || std::gcd(numerators_[i], denominators_[i]) != 1) {
                return false;
            }
            if (i > 0 && Wide{numerators_[i]} * denominators_[i - 1] >= Wide{numerators_[i - 1]} * denominators_[i]) {
                return false;
            }
        }
        return true;
    }

    // Every piece is there, holds only what may be selected, and comes after what it requires.
    bool pieces_fit() {
        if (piece_.size() != graph_.num_nodes()) {
            return false;
        }
        mark_eligible();
        std::vector<bool> seen(numerators_.size() + 1);
        for (NodeId node = 0; node < piece_.size(); ++node) {
            if (piece_[node] == kNeverSelected) {
                continue;
            }
            if (piece_[node] > numerators_.size() || !eligible_[node]) {
                return false;
            }
            seen[piece_[node]] = true;
            bool in_order = true;
            graph_.parents_of().for_each(node, [&](NodeId parent) {
                in_order = in_order && (!eligible_[parent] || piece_[parent] <= piece_[node]);
            });
            if (!in_order) {
                return false;
            }
        }
        return std::all_of(seen.begin() + 1, seen.end(), [](bool there) { return there; });
    }

    bool balances_close(std::span<const NodeId> sources, std::span<const NodeId> targets, std::span<const Wide> flow) {
        if (sources.size() != targets.size() || sources.size() != flow.size()) {
            return false;
        }
        balance_.assign(piece_.size(), 0);
        for (NodeId node = 0; node < piece_.size(); ++node) {
            if (eligible_[node]) {
                balance_[node] = is_finite(node) ? Wide{denominators_[piece_[node] - 1]} * problem_.values[node]
                                                 : Wide{problem_.values[node]};
            }
        }
        for (std::size_t i = 0; i < flow.size(); ++i) {
            const NodeId source = sources[i];
            const NodeId target = targets[i];
            if (flow[i] <= 0 || source >= piece_.size() || target >= piece_.size() || !eligible_[source] ||
                !eligible_[target] || piece_[source] != piece_[target] || !graph_.has_edge(source, target)) {
                return false;
            }
            if (__builtin_add_overflow(balance_[source], flow[i], &balance_[source]) ||
                __builtin_sub_overflow(balance_[target], flow[i], &balance_[target])) {
                return false;
            }
        }
        for (NodeId node = 0; node < piece_.size(); ++node) {
            const Weight cost = problem_.costs[node];
            const bool closes = !eligible_[node]                  ? true
                                : is_finite(node)                 ? balance_[node] == Wide{numerators_[piece_[node] - 1]} * cost
                                : piece_[node] == kNeverSelected  ? balance_[node] <= 0
                                                                  : cost == 0 && balance_[node] >= 0;
            if (!closes) {
                return false;
            }
        }
        return true;
    }

    bool pieces_are_smallest(std::span<const NodeId> sources, std::span<const NodeId> targets) const {
        std::vector<std::size_t> first(piece_.size() + 1);
        for (const NodeId source : sources) {
            ++first[std::size_t{source} + 1];
        }
        for (std::size_t i = 1; i < first.size(); ++i) {
            first[i] += first[i - 1];
        }
        std::vector<std::size_t> place(first);
        std::vector<NodeId> against(sources.size());
        for (std::size_t i = 0; i < sources.size(); ++i) {
            against[place[sources[i]]++] = targets[i];
        }
        std::vector<bool> forced(piece_.size());
        std::vector<NodeId> todo;
        const auto force = [&](NodeId node) {
            if (!forced[node]) {
                forced[node] = true;
                todo.push_back(node);
            }
        };
        for (NodeId node = 0; node < piece_.size(); ++node) {
            if (piece_[node] != kNeverSelected && (is_finite(node) ? problem_.costs[node] > 0 : balance_[node] > 0)) {
                force(node);
            }
        }
        while (!todo.empty()) {
            const NodeId node = todo.back();
            todo.pop_back();
            graph_.parents_of().for_each(node, [&](NodeId parent) {
                if (eligible_[parent] && piece_[parent] == piece_[node]) {
                    force(parent);
                }
            });
            for (std::size_t i = first[node]; i < first[std::size_t{node} + 1]; ++i) {
                force(against[i]);
            }
        }
        for (NodeId node = 0; node < piece_.size(); ++node) {
            if (piece_[node] != kNeverSelected && !forced[node]) {
                return false;
            }
        }
        return true;
    }

private:
    bool is_finite(NodeId node) const { return piece_[node] != 0 && piece_[node] != kNeverSelected; }

    // Inside `within`, and neither without the means to run nor dependent on what is.
    void mark_eligible() {
        eligible_.assign(graph_.num_nodes(), problem_.within == nullptr);
        if (problem_.within != nullptr) {
            for (const NodeId node : problem_.within->ids()) {
                eligible_[node] = true;
            }
        }
        if (problem_.executable == nullptr) {
            return;
        }
        std::vector<bool> can_run(graph_.num_nodes());
        for (const NodeId node : problem_.executable->ids()) {
            can_run[node] = true;
        }
        std::vector<NodeId> todo;
        const auto exclude = [&](NodeId node) {
            if (eligible_[node]) {
                eligible_[node] = false;
                todo.push_back(node);
            }
        };
        for (NodeId node = 0; node < can_run.size(); ++node) {
            if (!can_run[node]) {
                exclude(node);
            }
        }
        while (!todo.empty()) {
            const NodeId node = todo.back();
            todo.pop_back();
            graph_.children_of().for_each(node, exclude);
        }
    }

    const ProvenanceGraph& graph_;
    const FrontierProblem& problem_;
    std::span<const std::uint32_t> piece_;
    std::span<const Weight> numerators_;
    std::span<const Weight> denominators_;
    std::vector<bool> eligible_;
    std::vector<Wide> balance_;
};

}  // namespace

bool verify_frontier(const ProvenanceGraph& graph, const FrontierProblem& problem, std::span<const std::uint32_t> piece,
                     std::span<const Weight> numerators, std::span<const Weight> denominators,
                     std::span<const NodeId> sources, std::span<const NodeId> targets, std::span<const Wide> flow) {
    check_frontier_problem(graph, problem);
    FrontierChecker checker(graph, problem, piece, numerators, denominators);
    return checker.breakpoints_descend() && checker.pieces_fit() && checker.balances_close(sources, targets, flow) &&
           checker.pieces_are_smallest(sources, targets);
}

}  // namespace memorepair

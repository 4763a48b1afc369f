// Purpose: check a closure and its certificate, sharing nothing with the solver.
// Contract: memorepair/closure.hpp; O(nodes + edges), sums in 128 bits, so no claimed number can overflow. Everything
// that the solver derives (which nodes are excluded, what is closed) is derived again here by plain means.
// Proof. Let f >= 0 be the flow, a the absorbed amounts, e_v = max(p_v, 0) + in_v - out_v - a_v >= 0. For every closed
// X no flow leaves X, so p(X) <= sum of positive weights - sum of a, with equality exactly when X holds every node with
// e_v > 0, no flow enters X, and a_v = max(-p_v, 0) on X. So if the selection reaches the bound it is optimal, and
// every optimum contains all that is reached from nodes with e_v > 0 along requirements and against flow. If the
// selection IS that set, it is the smallest optimum.
// Source: weak duality of Picard 1976.
#include <algorithm>

#include "adjacency.hpp"
#include "memorepair/closure.hpp"

namespace memorepair {

namespace {

enum : std::uint8_t { kConsidered = 1, kExcluded = 2, kSelected = 4, kForced = 8 };

class Checker {
public:
    Checker(const ProvenanceGraph& graph, const ClosureProblem& problem)
        : graph_(graph), weights_(problem.weights), state_(graph.num_nodes()) {
        mark_considered(problem.within);
        mark_excluded(problem.executable);
    }

    bool selection_is_closed(const Mask& selected) {
        if (selected.size() != graph_.num_nodes()) {
            return false;
        }
        const std::vector<NodeId> ids = selected.ids();
        for (const NodeId node : ids) {
            state_[node] |= kSelected;
        }
        return std::ranges::all_of(ids, [&](NodeId node) {
            bool closed = eligible(node);
            graph_.parents_of().for_each(
                node, [&](NodeId parent) { closed = closed && (!has(parent, kConsidered) || has(parent, kSelected)); });
            return closed;
        });
    }

    bool objective_is(const Mask& selected, Weight objective, std::span<const Weight> absorbed) const {
        Wide value = 0;
        for (const NodeId node : selected.ids()) {
            value += weights_[node];
        }
        Wide bound = 0;
        for (NodeId node = 0; node < weights_.size(); ++node) {
            if (eligible(node)) {
                bound += std::max<Wide>(weights_[node], 0) - absorbed[node];
            }
        }
        return value == objective && bound == objective;
    }

    bool absorbed_fits(std::span<const Weight> absorbed) const {
        if (absorbed.size() != weights_.size()) {
            return false;
        }
        for (NodeId node = 0; node < absorbed.size(); ++node) {
            const Wide room = eligible(node) ? std::max<Wide>(-Wide{weights_[node]}, 0) : 0;
            if (absorbed[node] < 0 || absorbed[node] > room) {
                return false;
            }
        }
        return true;
    }

    // Computes what is left on each node; false when an arc is no arc or something is left below zero.
    bool flow_fits(std::span<const NodeId> sources, std::span<const NodeId> targets, std::span<const Weight> flow,
                   std::span<const Weight> absorbed) {
        if (sources.size() != targets.size() || sources.size() != flow.size()) {
            return false;
        }
        excess_.assign(weights_.size(), 0);
        for (NodeId node = 0; node < weights_.size(); ++node) {
            if (eligible(node)) {
                excess_[node] = std::max<Wide>(weights_[node], 0) - absorbed[node];
            }
        }
        for (std::size_t i = 0; i < flow.size(); ++i) {
            if (flow[i] <= 0 || sources[i] >= weights_.size() || targets[i] >= weights_.size() ||
                !eligible(sources[i]) || !eligible(targets[i]) || !graph_.has_edge(sources[i], targets[i])) {
                return false;
            }
            excess_[sources[i]] += flow[i];
            excess_[targets[i]] -= flow[i];
        }
        return std::ranges::all_of(excess_, [](Wide left) { return left >= 0; });
    }

    // Everything that each optimum must contain, compared with the selection.
    bool selection_is_smallest(std::span<const NodeId> sources, std::span<const NodeId> targets) {
        // Flow runs from target to source, so going against it leads from source to target: a list by source.
        std::vector<std::size_t> first(weights_.size() + 1);
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
        std::vector<NodeId> todo;
        const auto force = [&](NodeId node) {
            if (!has(node, kForced)) {
                state_[node] |= kForced;
                todo.push_back(node);
            }
        };
        for (NodeId node = 0; node < weights_.size(); ++node) {
            if (excess_[node] > 0) {
                force(node);
            }
        }
        while (!todo.empty()) {
            const NodeId node = todo.back();
            todo.pop_back();
            graph_.parents_of().for_each(node, [&](NodeId parent) {
                if (has(parent, kConsidered)) {
                    force(parent);
                }
            });
            for (std::size_t i = first[node]; i < first[std::size_t{node} + 1]; ++i) {
                force(against[i]);
            }
        }
        return std::ranges::all_of(
            state_, [](std::uint8_t state) { return ((state & kForced) != 0) == ((state & kSelected) != 0); });
    }

private:
    bool has(NodeId node, std::uint8_t flag) const { return (state_[node] & flag) != 0; }
    bool eligible(NodeId node) const { return (state_[node] & (kConsidered | kExcluded)) == kConsidered; }

    void mark_considered(const Mask* within) {
        if (within == nullptr) {
            std::fill(state_.begin(), state_.end(), std::uint8_t{kConsidered});
            return;
        }
        for (const NodeId node : within->ids()) {
            state_[node] = kConsidered;
        }
    }

    void mark_excluded(const Mask* executable) {
        if (executable == nullptr) {
            return;
        }
        std::vector<std::uint8_t> can_run(state_.size());
        for (const NodeId node : executable->ids()) {
            can_run[node] = 1;
        }
        std::vector<NodeId> todo;
        const auto exclude = [&](NodeId node) {
            if (eligible(node)) {
                state_[node] |= kExcluded;
                todo.push_back(node);
            }
        };
        for (NodeId node = 0; node < state_.size(); ++node) {
            if (can_run[node] == 0) {
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
    std::span<const Weight> weights_;
    std::vector<std::uint8_t> state_;
    std::vector<Wide> excess_;
};

}  // namespace

bool verify_closure(const ProvenanceGraph& graph, const ClosureProblem& problem, const Mask& selected, Weight objective,
                    std::span<const NodeId> sources, std::span<const NodeId> targets, std::span<const Weight> flow,
                    std::span<const Weight> absorbed) {
    check_closure_problem(graph, problem);
    Checker checker(graph, problem);
    return checker.selection_is_closed(selected) && checker.absorbed_fits(absorbed) &&
           checker.flow_fits(sources, targets, flow, absorbed) && checker.objective_is(selected, objective, absorbed) &&
           checker.selection_is_smallest(sources, targets);
}

}  // namespace memorepair

// Purpose: the smallest maximum-weight closure: restrict, condense cycles, solve, and write the certificate.
// Contract: memorepair/closure.hpp. Each step is exact for the smallest optimum, and none leaves a gap in the
// certificate.
// Source: Picard 1976; see closure_reduce.hpp and closure_flow.hpp for the steps.
#include "memorepair/closure.hpp"

#include <algorithm>

#include "closure_expand.hpp"
#include "closure_instance.hpp"
#include "closure_solver.hpp"
#include "memorepair/errors.hpp"

namespace memorepair {

namespace {

void check_sum(const ClosureProblem& problem) {
    Wide sum = 0;
    const auto add = [&](Weight weight) { sum += weight < 0 ? -Wide{weight} : Wide{weight}; };
    if (problem.within == nullptr) {
        std::for_each(problem.weights.begin(), problem.weights.end(), add);
    } else {
        problem.within->for_each_run([&](std::uint64_t first, std::uint64_t end) {
            std::for_each(problem.weights.begin() + static_cast<std::ptrdiff_t>(first),
                          problem.weights.begin() + static_cast<std::ptrdiff_t>(end), add);
        });
    }
    if (sum > kMaxWeightSum) {
        throw WeightOverflow("weights: expected a sum of absolute values of at most 2^62, got more; scale them down");
    }
}

Array<Weight> sum_over_members(const Instance& instance, std::span<const Weight> weight) {
    Array<Weight> out;
    out.assign(instance.needs.num_nodes(), 0);
    for (std::size_t member = 0; member < weight.size(); ++member) {
        out[instance.label[member]] += weight[member];
    }
    return out;
}

}  // namespace

Closure solve_closure(const ProvenanceGraph& graph, const ClosureProblem& problem) {
    check_closure_problem(graph, problem);
    check_sum(problem);
    Instance instance = make_instance(graph, problem.executable, problem.within);
    const std::size_t num_members = instance.global.size();
    Array<Weight> weight(num_members);
    for (std::size_t member = 0; member < num_members; ++member) {
        weight[member] = problem.weights[instance.global[member]];
    }
    const Array<Weight> condensed = instance.trivial ? Array<Weight>{} : sum_over_members(instance, weight);
    const Array<Weight>& node_weight = instance.trivial ? weight : condensed;

    ClosureSolver<Weight> solver;
    solver.reduce(instance.needs, node_weight);
    solver.release();
    if (instance.trivial) {
        instance.needs = {};
    }
    solver.cut();
    std::vector<ArcFlow<Weight>> flow;
    Array<Weight> absorbed;
    solver.prove(node_weight, flow, absorbed);
    if (!instance.trivial) {
        absorbed = expand_components<Weight>(instance, weight, absorbed, flow);
    }

    Closure closure;
    std::vector<std::uint64_t> selected(num_words(graph.num_nodes()));
    closure.certificate.absorbed.assign(graph.num_nodes(), 0);
    for (std::size_t member = 0; member < num_members; ++member) {
        const NodeId node = instance.global[member];
        closure.certificate.absorbed[node] = absorbed[member];
        if (solver.chosen()[instance.trivial ? member : instance.label[member]] != 0) {
            set_bit(selected, node);
            closure.objective += weight[member];
        }
    }
    closure.selected = Mask::from_words(std::move(selected), graph.num_nodes());
    closure.certificate.sources.reserve(flow.size());
    closure.certificate.targets.reserve(flow.size());
    closure.certificate.flow.reserve(flow.size());
    for (const ArcFlow<Weight>& entry : flow) {
        closure.certificate.sources.push_back(instance.global[entry.head]);
        closure.certificate.targets.push_back(instance.global[entry.tail]);
        closure.certificate.flow.push_back(entry.amount);
    }
    return closure;
}

}  // namespace memorepair

// Purpose: does a frontier problem fit its graph? Asked by the solver, the budget and the verifier, decided in none.
// Contract: memorepair/frontier.hpp.
#include <string>

#include "memorepair/closure.hpp"
#include "memorepair/errors.hpp"
#include "memorepair/frontier.hpp"

namespace memorepair {

void check_frontier_problem(const ProvenanceGraph& graph, const FrontierProblem& problem) {
    const auto check_length = [&](const char* name, std::size_t length) {
        if (length != graph.num_nodes()) {
            throw InvalidGraph(std::string(name) + ": expected one per node (" + std::to_string(graph.num_nodes()) +
                               "), got " + std::to_string(length));
        }
    };
    check_length("values", problem.values.size());
    check_length("costs", problem.costs.size());
    check_closure_problem(graph, {problem.values, problem.executable, problem.within});
    for (std::size_t node = 0; node < problem.costs.size(); ++node) {
        if (problem.costs[node] < 0) {
            throw InvalidAmount("costs: expected none below 0, got " + std::to_string(problem.costs[node]) +
                                " at node " + std::to_string(node));
        }
    }
}

}  // namespace memorepair

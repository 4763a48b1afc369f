// Purpose: does a closure problem fit its graph? Asked by the solver and by the verifier, and decided in neither.
// Contract: memorepair/closure.hpp.
#include <string>

#include "memorepair/closure.hpp"
#include "memorepair/errors.hpp"

namespace memorepair {

namespace {

void check_mask(const Mask* mask, const char* name, std::uint64_t num_nodes) {
    if (mask != nullptr && mask->size() > num_nodes) {
        throw InvalidGraph(std::string(name) + ": expected a mask of size at most " + std::to_string(num_nodes) +
                           ", got " + std::to_string(mask->size()));
    }
}

}  // namespace

void check_closure_problem(const ProvenanceGraph& graph, const ClosureProblem& problem) {
    if (problem.weights.size() != graph.num_nodes()) {
        throw InvalidGraph("weights: expected one per node (" + std::to_string(graph.num_nodes()) + "), got " +
                           std::to_string(problem.weights.size()));
    }
    check_mask(problem.executable, "executable", graph.num_nodes());
    check_mask(problem.within, "within", graph.num_nodes());
}

}  // namespace memorepair

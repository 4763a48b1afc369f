// Runs each kernel once on one problem, with callgrind counting nothing but the kernel.
// Usage: kernels_driver FILE, written by instructions.py: uint64 nodes, edges, roots, ids; uint32 sources, targets,
// roots, ids; int64 values, costs, weights. Prints one line per kernel: its name and a number that names its answer.
#include <valgrind/callgrind.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#include "closure_flow.hpp"
#include "closure_instance.hpp"
#include "closure_reduce.hpp"
#include "memorepair/closure.hpp"
#include "memorepair/frontier.hpp"
#include "memorepair/graph.hpp"
#include "memorepair/mask.hpp"
#include "push_relabel.hpp"

namespace {

using namespace memorepair;

template <class T>
std::vector<T> read(std::FILE* file, std::uint64_t count) {
    std::vector<T> values(count);
    if (std::fread(values.data(), sizeof(T), count, file) != count) {
        std::fputs("kernels_driver: the file ends early\n", stderr);
        std::exit(1);
    }
    return values;
}

template <class Kernel>
auto counted(const char* name, Kernel&& kernel) {
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
    auto answer = kernel();
    CALLGRIND_STOP_INSTRUMENTATION;
    CALLGRIND_DUMP_STATS_AT(name);
    return answer;
}

void report(const char* name, std::uint64_t answer) {
    std::printf("%s %llu\n", name, static_cast<unsigned long long>(answer));
}

}  // namespace

int main(int argc, char** argv) {
    std::FILE* file = argc == 2 ? std::fopen(argv[1], "rb") : nullptr;
    if (file == nullptr) {
        std::fputs("usage: kernels_driver FILE\n", stderr);
        return 1;
    }
    const auto sizes = read<std::uint64_t>(file, 4);
    const auto sources = read<NodeId>(file, sizes[1]);
    const auto targets = read<NodeId>(file, sizes[1]);
    const auto roots = read<NodeId>(file, sizes[2]);
    const auto ids = read<NodeId>(file, sizes[3]);
    const auto values = read<Weight>(file, sizes[0]);
    const auto costs = read<Weight>(file, sizes[0]);
    const auto weights = read<Weight>(file, sizes[0]);
    std::fclose(file);

    const auto graph = counted("build", [&] { return ProvenanceGraph::from_edges(sizes[0], sources, targets); });
    report("build", graph.num_edges());

    const auto bytes = graph.to_bytes();
    const auto loaded = counted("load", [&] { return ProvenanceGraph::from_bytes(bytes); });
    report("load", loaded.num_edges());

    const Mask cascade = counted("reach", [&] { return graph.reach(roots); });
    report("reach", cascade.count());

    const auto kept = counted("filter", [&] { return cascade.filter(ids); });
    report("filter", kept.size());

    const Closure closure = counted("closure", [&] { return solve_closure(graph, {.weights = weights}); });
    report("closure", static_cast<std::uint64_t>(closure.objective));

    // The closure's steps one by one, the flow by two algorithms.
    const Instance instance = counted("instance", [&] { return make_instance(graph, nullptr, nullptr); });
    report("instance", instance.needs.num_arcs());
    if (instance.trivial) {
        Array<Weight> weight;
        for (const NodeId node : instance.global) {
            weight.push_back(weights[node]);
        }
        Dependants dependants;
        ClosureReducer<Weight> reducer;
        report("reduce", counted("reduce", [&] {
                   reducer.run(instance.needs, weight, dependants);
                   return reducer.kernel().num_nodes();
               }));
        const auto trees = counted("flow", [&] {
            ClosureFlow<Weight> flow;
            flow.solve(reducer.kernel(), reducer.kernel_weight(), dependants);
            return flow;
        });
        const auto pushes = counted("push_relabel", [&] {
            PushRelabel<Weight> flow;
            dependants.assign(reducer.kernel(), true);
            flow.start(reducer.kernel(), reducer.kernel_weight(), dependants, should_pull(reducer.kernel_weight()));
            while (!flow.advance(~std::uint64_t{0})) {
            }
            return flow;
        });
        std::uint64_t chosen = 0;
        for (NodeId node = 0; node < reducer.kernel().num_nodes(); ++node) {
            if (trees.is_chosen(node) != pushes.is_chosen(node)) {
                std::fputs("kernels_driver: the two flows differ\n", stderr);
                return 1;
            }
            chosen += static_cast<std::uint64_t>(trees.is_chosen(node));
        }
        report("flow", chosen);
    }

    const Frontier frontier = counted("frontier", [&] { return solve_frontier(graph, {.values = values, .costs = costs}); });
    report("frontier", frontier.numerators.size());
}

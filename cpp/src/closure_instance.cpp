// Purpose, contract: closure_instance.hpp.
#include "closure_instance.hpp"

#include <algorithm>

#include "adjacency.hpp"
#include "memorepair/errors.hpp"

namespace memorepair {

namespace {

// Bits of the nodes that may be selected.
std::vector<std::uint64_t> allowed_nodes(const ProvenanceGraph& graph, const ClosureProblem& problem) {
    const std::uint64_t num_nodes = graph.num_nodes();
    std::vector<std::uint64_t> allowed(num_words(num_nodes), ~std::uint64_t{0});
    if (problem.within != nullptr) {
        allowed = problem.within->to_words(num_nodes);
    } else if ((num_nodes & 63) != 0) {
        allowed.back() = (std::uint64_t{1} << (num_nodes & 63)) - 1;
    }
    Wide sum = 0;
    for_each_bit(allowed, [&](NodeId node) {
        const Wide weight = problem.weights[node];
        sum += weight < 0 ? -weight : weight;
    });
    if (sum > kMaxWeightSum) {
        throw WeightOverflow("weights: expected a sum of absolute values of at most 2^62, got more; scale them down");
    }
    if (problem.executable == nullptr) {
        return allowed;
    }
    const std::vector<std::uint64_t> executable = problem.executable->to_words(num_nodes);
    std::vector<NodeId> excluded;
    for (std::size_t w = 0; w < allowed.size(); ++w) {
        for (std::uint64_t rest = allowed[w] & ~executable[w]; rest != 0; rest &= rest - 1) {
            excluded.push_back(static_cast<NodeId>(w * 64 + static_cast<unsigned>(std::countr_zero(rest))));
        }
        allowed[w] &= executable[w];
    }
    while (!excluded.empty()) {
        const NodeId node = excluded.back();
        excluded.pop_back();
        graph.children_of().for_each(node, [&](NodeId child) {
            if (test_bit(allowed, child)) {
                allowed[child >> 6] &= ~(std::uint64_t{1} << (child & 63));
                excluded.push_back(child);
            }
        });
    }
    return allowed;
}

// Histories are written in order, so most graphs show at a glance that they have no cycle.
bool runs_one_way(const Csr& csr) {
    bool down = true;
    bool up = true;
    for (NodeId node = 0; node < csr.num_nodes(); ++node) {
        for (const NodeId head : csr.neighbours(node)) {
            down = down && head < node;
            up = up && head > node;
        }
        if (!down && !up) {
            return false;
        }
    }
    return true;
}

}  // namespace

Instance make_instance(const ProvenanceGraph& graph, const ClosureProblem& problem) {
    const std::vector<std::uint64_t> allowed = allowed_nodes(graph, problem);
    Instance instance;
    Array<NodeId> local(graph.num_nodes());  // read only where `allowed` is set
    for_each_bit(allowed, [&](NodeId node) {
        local[node] = static_cast<NodeId>(instance.global.size());
        instance.global.push_back(node);
    });
    const std::size_t num_local = instance.global.size();
    const bool whole = num_local == graph.num_nodes();
    instance.weight.reserve(num_local);
    instance.needs.offsets.reserve(num_local + 1);
    instance.needs.offsets.push_back(0);
    if (whole) {
        instance.needs.heads.reserve(graph.num_edges());
    }
    for (const NodeId node : instance.global) {
        instance.weight.push_back(problem.weights[node]);
        graph.parents_of().for_each(node, [&](NodeId parent) {
            if (whole || test_bit(allowed, parent)) {
                instance.needs.heads.push_back(local[parent]);
            }
        });
        instance.needs.offsets.push_back(instance.needs.heads.size());
    }
    return instance;
}

Condensed condense(const Instance& instance) {
    Condensed out;
    if (runs_one_way(instance.needs)) {
        return out;
    }
    Components components = strongly_connected(instance.needs);
    if (components.num == instance.global.size()) {
        return out;
    }
    out.trivial = false;
    out.label = std::move(components.label);
    out.members = members_by_label(out.label, components.num);
    out.weight.assign(components.num, 0);
    out.needs.offsets.reserve(std::size_t{components.num} + 1);
    out.needs.offsets.push_back(0);
    for (NodeId own = 0; own < components.num; ++own) {
        for (const NodeId member : out.members.neighbours(own)) {
            out.weight[own] += instance.weight[member];
            for (const NodeId head : instance.needs.neighbours(member)) {
                if (out.label[head] != own) {
                    out.needs.heads.push_back(out.label[head]);
                }
            }
        }
        out.needs.offsets.push_back(out.needs.heads.size());
    }
    return out;
}

}  // namespace memorepair

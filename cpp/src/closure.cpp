// Purpose: the smallest maximum-weight closure: restrict, condense cycles, peel, flow, and write the certificate.
// Contract: memorepair/closure.hpp. Each step is exact for the smallest optimum, and none leaves a gap in the
// certificate: peeled nodes need only zeroes, and components are expanded to their members at the end.
// Source: Picard 1976; see closure_peel.hpp and closure_flow.hpp for the steps.
#include "memorepair/closure.hpp"

#include "closure_expand.hpp"
#include "closure_flow.hpp"
#include "closure_instance.hpp"
#include "closure_peel.hpp"

namespace memorepair {

namespace {

struct Kernel {
    std::vector<NodeId> origin;  // kernel node -> node of the peeled graph
    std::vector<Weight> weight;
    Csr needs;
};

// What the peel left open, its arcs in the order of the peeled graph.
Kernel extract_open(const Csr& needs, std::span<const Weight> weight, const std::vector<Fate>& fate) {
    Kernel kernel;
    Array<NodeId> local(weight.size());  // read only where fate is open
    for (NodeId node = 0; node < weight.size(); ++node) {
        if (fate[node] == Fate::open) {
            local[node] = static_cast<NodeId>(kernel.origin.size());
            kernel.origin.push_back(node);
            kernel.weight.push_back(weight[node]);
        }
    }
    kernel.needs.offsets.reserve(kernel.origin.size() + 1);
    kernel.needs.offsets.push_back(0);
    for (const NodeId node : kernel.origin) {
        for (const NodeId head : needs.neighbours(node)) {
            if (fate[head] == Fate::open) {
                kernel.needs.heads.push_back(local[head]);
            }
        }
        kernel.needs.offsets.push_back(kernel.needs.heads.size());
    }
    return kernel;
}

// Walks the arcs of the instance in the very order in which condense() and extract_open() kept them.
void place_kernel_flow(const Instance& instance, const Condensed& condensed, const Kernel& kernel,
                       const std::vector<Fate>& fate, const std::vector<Weight>& kernel_flow, InstanceFlow& flow) {
    const Csr& needs = instance.needs;
    const auto label = [&](NodeId node) { return condensed.trivial ? node : condensed.label[node]; };
    std::size_t next = 0;
    const auto place = [&](NodeId own, NodeId member) {
        for (ArcIndex arc = needs.offsets[member]; arc < needs.offsets[std::size_t{member} + 1]; ++arc) {
            const NodeId other = label(needs.heads[arc]);
            if (other != own && fate[other] == Fate::open) {
                flow.on_arc[arc] = kernel_flow[next++];
            }
        }
    };
    for (const NodeId own : kernel.origin) {
        if (condensed.trivial) {
            place(own, own);
        } else {
            for (const NodeId member : condensed.members.neighbours(own)) {
                place(own, member);
            }
        }
    }
}

Certificate write_certificate(const Instance& instance, const InstanceFlow& flow, std::uint64_t num_nodes) {
    Certificate certificate;
    certificate.absorbed.assign(num_nodes, 0);
    for (NodeId node = 0; node < instance.global.size(); ++node) {
        certificate.absorbed[instance.global[node]] = flow.absorbed[node];
        for (ArcIndex arc = instance.needs.offsets[node]; arc < instance.needs.offsets[std::size_t{node} + 1]; ++arc) {
            if (flow.on_arc[arc] != 0) {
                certificate.sources.push_back(instance.global[instance.needs.heads[arc]]);
                certificate.targets.push_back(instance.global[node]);
                certificate.flow.push_back(flow.on_arc[arc]);
            }
        }
    }
    return certificate;
}

}  // namespace

Closure solve_closure(const ProvenanceGraph& graph, const ClosureProblem& problem) {
    check_closure_problem(graph, problem);
    const Instance instance = make_instance(graph, problem);
    const Condensed condensed = condense(instance);
    const Csr& needs = condensed.trivial ? instance.needs : condensed.needs;
    const std::vector<Weight>& weight = condensed.trivial ? instance.weight : condensed.weight;

    const std::vector<Fate> fate = peel(needs, weight);
    const Kernel kernel = extract_open(needs, weight, fate);
    const ClosureFlow solved = solve_closure_flow(kernel.needs, kernel.weight);

    std::vector<std::uint8_t> chosen(weight.size());
    std::vector<Weight> absorbed(weight.size());
    for (std::size_t node = 0; node < weight.size(); ++node) {
        chosen[node] = static_cast<std::uint8_t>(fate[node] == Fate::taken);
    }
    for (std::size_t node = 0; node < kernel.origin.size(); ++node) {
        chosen[kernel.origin[node]] = solved.selected[node];
        absorbed[kernel.origin[node]] = solved.absorbed[node];
    }

    Closure closure;
    std::vector<NodeId> selected;
    for (NodeId node = 0; node < instance.global.size(); ++node) {
        if (chosen[condensed.trivial ? node : condensed.label[node]] != 0) {
            selected.push_back(instance.global[node]);
            closure.objective += instance.weight[node];
        }
    }
    closure.selected = Mask::from_sorted(std::move(selected), graph.num_nodes());

    InstanceFlow flow;
    flow.on_arc.assign(instance.needs.heads.size(), 0);
    place_kernel_flow(instance, condensed, kernel, fate, solved.flow, flow);
    if (condensed.trivial) {
        flow.absorbed = std::move(absorbed);
    } else {
        flow.absorbed.resize(instance.global.size());
        expand_components(instance, condensed, absorbed, flow);
    }
    closure.certificate = write_certificate(instance, flow, graph.num_nodes());
    return closure;
}

}  // namespace memorepair

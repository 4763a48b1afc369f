// Purpose, contract: closure_instance.hpp.
#include "closure_instance.hpp"

#include <algorithm>
#include <string>

#include "adjacency.hpp"
#include "components.hpp"
#include "memorepair/errors.hpp"

namespace memorepair {

namespace {

[[noreturn]] void refuse_arcs(std::uint64_t num_arcs) {
    throw Capacity("closure: expected at most " + std::to_string(kMaxKernelArcs) + " edges between candidates, got " +
                   std::to_string(num_arcs));
}

// Histories are written in order, so most graphs show at a glance that they have no cycle: all arcs run down the ids,
// or all up.
struct Direction {
    bool down = true;
    bool up = true;
};

Direction direction_of(const Needs& needs) {
    Direction out;
    for (NodeId node = 0; node < needs.num_nodes() && (out.down || out.up); ++node) {
        for (const NodeId head : needs.of(node)) {
            out.down = out.down && head < node;
            out.up = out.up && head > node;
        }
    }
    return out;
}

// Gives each node the number that `number` says.
template <class Number>
void renumber(Instance& instance, Number&& number) {
    const NodeId num_nodes = instance.needs.num_nodes();
    std::vector<NodeId> old(num_nodes);
    std::vector<NodeId> global(num_nodes);
    for (NodeId node = 0; node < num_nodes; ++node) {
        old[number(node)] = node;
        global[number(node)] = instance.global[node];
    }
    Needs needs;
    needs.first.reserve(std::size_t{num_nodes} + 1);
    renew(needs.heads, instance.needs.heads.size());
    KernelArc next = 0;
    for (const NodeId node : old) {
        needs.first.push_back(next);
        for (const NodeId head : instance.needs.of(node)) {
            needs.heads[next++] = number(head);
        }
    }
    needs.first.push_back(next);
    instance.needs = std::move(needs);
    instance.global = std::move(global);
}

void order_or_condense(Instance& instance) {
    Needs& needs = instance.needs;
    Array<ArcIndex> offsets(needs.first.begin(), needs.first.end());
    Components components = strongly_connected(Csr{offsets, needs.heads, nullptr});
    if (components.num == instance.global.size()) {
        renumber(instance, [&](NodeId node) { return components.label[node]; });
        return;
    }
    instance.inner = make_csr(std::move(offsets), std::move(needs.heads));
    const Csr& inner = instance.inner;
    instance.trivial = false;
    instance.label = std::move(components.label);
    instance.members = members_by_label(instance.label, components.num);
    needs.first.clear();
    needs.first.reserve(std::size_t{components.num} + 1);
    needs.heads = {};
    needs.heads.reserve(inner.heads.size());
    instance.origin.reserve(inner.heads.size());
    needs.first.push_back(0);
    struct Crossing {
        NodeId need;
        NodeId tail;
        NodeId head;
        auto operator<=>(const Crossing&) const = default;
    };
    std::vector<Crossing> crossings;
    for (NodeId own = 0; own < components.num; ++own) {
        crossings.clear();
        for (const NodeId member : instance.members.neighbours(own)) {
            for (const NodeId head : inner.neighbours(member)) {
                if (instance.label[head] != own) {
                    crossings.push_back({instance.label[head], member, head});
                }
            }
        }
        std::sort(crossings.begin(), crossings.end());
        for (const Crossing& crossing : crossings) {
            if (needs.heads.size() == needs.first.back() || needs.heads.back() != crossing.need) {
                needs.heads.push_back(crossing.need);
                instance.origin.push_back({crossing.tail, crossing.head});
            }
        }
        needs.first.push_back(needs.num_arcs());
    }
}

}  // namespace

std::vector<std::uint64_t> allowed_nodes(const ProvenanceGraph& graph, const Mask* executable, const Mask* within) {
    const std::uint64_t num_nodes = graph.num_nodes();
    std::vector<std::uint64_t> allowed(num_words(num_nodes), ~std::uint64_t{0});
    if (within != nullptr) {
        allowed = within->to_words(num_nodes);
    } else if ((num_nodes & 63) != 0) {
        allowed.back() = (std::uint64_t{1} << (num_nodes & 63)) - 1;
    }
    if (executable == nullptr) {
        return allowed;
    }
    const std::vector<std::uint64_t> can_run = executable->to_words(num_nodes);
    std::vector<NodeId> excluded;
    for (std::size_t w = 0; w < allowed.size(); ++w) {
        for (std::uint64_t rest = allowed[w] & ~can_run[w]; rest != 0; rest &= rest - 1) {
            excluded.push_back(static_cast<NodeId>(w * 64 + static_cast<unsigned>(std::countr_zero(rest))));
        }
        allowed[w] &= can_run[w];
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

Instance make_instance(const ProvenanceGraph& graph, const Mask* executable, const Mask* within) {
    const std::vector<std::uint64_t> allowed = allowed_nodes(graph, executable, within);
    Instance instance;
    Array<NodeId> local;
    local.assign(graph.num_nodes(), kNoNode);
    for_each_bit(allowed, [&](NodeId node) {
        local[node] = static_cast<NodeId>(instance.global.size());
        instance.global.push_back(node);
    });
    const std::size_t num_local = instance.global.size();
    Needs& needs = instance.needs;
    needs.first.resize(num_local + 1);
    // An upper bound: what is not used is never touched.
    std::uint64_t num_arcs = graph.num_edges();
    if (num_local < graph.num_nodes()) {
        num_arcs = 0;
        for (const NodeId node : instance.global) {
            graph.parents_of().for_each(node, [&](NodeId) { ++num_arcs; });
        }
    }
    if (num_arcs > kMaxKernelArcs) {
        refuse_arcs(num_arcs);
    }
    renew(needs.heads, num_arcs);
    KernelArc kept = 0;
    for (std::size_t node = 0; node < num_local; ++node) {
        needs.first[node] = kept;
        graph.parents_of().for_each(instance.global[node], [&](NodeId parent) {
            needs.heads[kept] = local[parent];  // stays only when `kept` moves on
            // A snapshot that was not validated may tie a node to itself.
            kept += static_cast<KernelArc>(local[parent] != kNoNode && local[parent] != node);
        });
    }
    needs.first[num_local] = kept;
    needs.heads.resize(kept);
    const Direction direction = direction_of(needs);
    if (!direction.down) {
        if (direction.up) {
            renumber(instance, [last = needs.num_nodes() - 1](NodeId node) { return last - node; });
        } else {
            order_or_condense(instance);
        }
    }
    return instance;
}

}  // namespace memorepair

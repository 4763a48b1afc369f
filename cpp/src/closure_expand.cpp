// Purpose, contract: closure_expand.hpp. Oracle: the verifier, in cpp/tests/test_closure.cpp.
#include "closure_expand.hpp"

#include <algorithm>

namespace memorepair {

namespace {

// An arc of a spanning tree: from a member to the one nearer to the first member.
struct Branch {
    NodeId node;
    NodeId nearer;
    ArcIndex arc;
};

// Breadth first from `root` inside its component; `visit_arcs(node, f)` calls f(other, arc). Nearest first, the root
// left out.
template <class VisitArcs>
void span_component(NodeId root, const std::vector<NodeId>& label, std::vector<std::uint8_t>& seen,
                    std::vector<Branch>& tree, VisitArcs&& visit_arcs) {
    tree.clear();
    seen[root] = 1;
    for (std::size_t next = 0; next <= tree.size(); ++next) {
        const NodeId node = next == 0 ? root : tree[next - 1].node;
        visit_arcs(node, [&](NodeId other, ArcIndex arc) {
            if (label[other] == label[root] && seen[other] == 0) {
                seen[other] = 1;
                tree.push_back({other, node, arc});
            }
        });
    }
    seen[root] = 0;
    for (const Branch& branch : tree) {
        seen[branch.node] = 0;
    }
}

struct Reverse {
    Csr tails;
    Array<ArcIndex> arcs;
};

Reverse reverse_with_arcs(const Csr& csr) {
    Reverse out{transpose(csr), {}};
    out.arcs.resize(csr.heads.size());
    Array<ArcIndex> place(out.tails.offsets);
    for (NodeId tail = 0; tail < csr.num_nodes(); ++tail) {
        for (ArcIndex arc = csr.offsets[tail]; arc < csr.offsets[std::size_t{tail} + 1]; ++arc) {
            out.arcs[place[csr.heads[arc]]++] = arc;
        }
    }
    return out;
}

}  // namespace

void expand_components(const Instance& instance, const Condensed& condensed, const std::vector<Weight>& absorbed,
                       InstanceFlow& flow) {
    const Csr& needs = instance.needs;
    const std::size_t num_nodes = instance.global.size();
    // What a member has over (or lacks, below zero) after the flow between components.
    std::vector<Weight> balance(num_nodes);
    for (NodeId node = 0; node < num_nodes; ++node) {
        balance[node] += std::max<Weight>(instance.weight[node], 0);
        for (ArcIndex arc = needs.offsets[node]; arc < needs.offsets[std::size_t{node} + 1]; ++arc) {
            balance[node] -= flow.on_arc[arc];
            balance[needs.heads[arc]] += flow.on_arc[arc];
        }
    }
    const Reverse reverse = reverse_with_arcs(needs);
    std::vector<std::uint8_t> seen(num_nodes);
    std::vector<Branch> tree;
    std::vector<Weight> carried(num_nodes);
    const auto carry = [&](std::span<const NodeId> members, Weight sign, bool towards_root) {
        for (const NodeId member : members) {
            carried[member] = std::max<Weight>(sign * balance[member], 0);
        }
        const NodeId root = members.front();
        if (towards_root) {
            span_component(root, condensed.label, seen, tree, [&](NodeId node, auto&& visit) {
                for (ArcIndex i = reverse.tails.offsets[node]; i < reverse.tails.offsets[std::size_t{node} + 1]; ++i) {
                    visit(reverse.tails.heads[i], reverse.arcs[i]);
                }
            });
        } else {
            span_component(root, condensed.label, seen, tree, [&](NodeId node, auto&& visit) {
                for (ArcIndex arc = needs.offsets[node]; arc < needs.offsets[std::size_t{node} + 1]; ++arc) {
                    visit(needs.heads[arc], arc);
                }
            });
        }
        for (std::size_t i = tree.size(); i-- > 0;) {
            flow.on_arc[tree[i].arc] += carried[tree[i].node];
            carried[tree[i].nearer] += carried[tree[i].node];
        }
    };
    for (NodeId own = 0; own < condensed.weight.size(); ++own) {
        const std::span<const NodeId> members = condensed.members.neighbours(own);
        // The component as one node has already set its own negative weights against its own positive ones.
        Weight positive = 0;
        for (const NodeId member : members) {
            positive += std::max<Weight>(instance.weight[member], 0);
        }
        Weight to_absorb = positive - std::max<Weight>(condensed.weight[own], 0) + absorbed[own];
        for (const NodeId member : members) {
            const Weight share = std::min(to_absorb, std::max<Weight>(-instance.weight[member], 0));
            flow.absorbed[member] = share;
            balance[member] -= share;
            to_absorb -= share;
        }
        if (members.size() > 1) {
            carry(members, 1, true);
            carry(members, -1, false);
        }
    }
}

}  // namespace memorepair

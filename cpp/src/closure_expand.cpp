// Purpose, contract: closure_expand.hpp. Oracle: the verifier, in cpp/tests/test_closure.cpp.
#include "closure_expand.hpp"

#include <algorithm>

namespace memorepair {

namespace {

// An arc of a spanning tree: from a member to the one nearer to the first member.
struct Branch {
    NodeId node;
    NodeId nearer;
};

// Breadth first from `root` along `arcs`, inside its component. Nearest first, the root left out.
void span_component(NodeId root, const Csr& arcs, const std::vector<NodeId>& label, std::vector<std::uint8_t>& seen,
                    std::vector<Branch>& tree) {
    tree.clear();
    seen[root] = 1;
    for (std::size_t next = 0; next <= tree.size(); ++next) {
        const NodeId node = next == 0 ? root : tree[next - 1].node;
        for (const NodeId other : arcs.neighbours(node)) {
            if (label[other] == label[root] && seen[other] == 0) {
                seen[other] = 1;
                tree.push_back({other, node});
            }
        }
    }
    seen[root] = 0;
    for (const Branch& branch : tree) {
        seen[branch.node] = 0;
    }
}

}  // namespace

template <class W>
Array<W> expand_components(const Instance& instance, std::span<const W> weight, const Array<W>& absorbed,
                           std::vector<ArcFlow<W>>& flow) {
    const std::size_t num_members = weight.size();
    // What a member has over (or lacks, below zero) after the flow between components.
    std::vector<W> balance(num_members);
    for (std::size_t node = 0; node < num_members; ++node) {
        balance[node] = std::max<W>(weight[node], 0);
    }
    for (ArcFlow<W>& entry : flow) {
        const auto needs = instance.needs.of(entry.tail);
        const auto place = std::lower_bound(needs.begin(), needs.end(), entry.head) - needs.begin();
        const auto [tail, head] = instance.origin[instance.needs.begin(entry.tail) + static_cast<std::size_t>(place)];
        entry.tail = tail;
        entry.head = head;
        balance[entry.tail] -= entry.amount;
        balance[entry.head] += entry.amount;
    }
    const Csr reverse = transpose(instance.inner);
    Array<W> taken;
    taken.assign(num_members, 0);
    std::vector<std::uint8_t> seen(num_members);
    std::vector<Branch> tree;
    std::vector<W> carried(num_members);
    const auto carry = [&](std::span<const NodeId> members, bool towards_root) {
        for (const NodeId member : members) {
            carried[member] = std::max<W>(towards_root ? balance[member] : -balance[member], 0);
        }
        span_component(members.front(), towards_root ? reverse : instance.inner, instance.label, seen, tree);
        for (std::size_t i = tree.size(); i-- > 0;) {
            const auto [node, nearer] = tree[i];
            if (carried[node] != 0) {
                flow.push_back({towards_root ? node : nearer, towards_root ? nearer : node, carried[node]});
                carried[nearer] += carried[node];
            }
        }
    };
    for (NodeId own = 0; own < instance.needs.num_nodes(); ++own) {
        const std::span<const NodeId> members = instance.members.neighbours(own);
        // The component as one node has already set its own negative weights against its own positive ones.
        W positive = 0;
        W total = 0;
        for (const NodeId member : members) {
            positive += std::max<W>(weight[member], 0);
            total += weight[member];
        }
        W to_absorb = positive - std::max<W>(total, 0) + absorbed[own];
        for (const NodeId member : members) {
            const W share = std::min(to_absorb, std::max<W>(-weight[member], 0));
            taken[member] = share;
            balance[member] -= share;
            to_absorb -= share;
        }
        if (members.size() > 1) {
            carry(members, true);
            carry(members, false);
        }
    }
    return taken;
}

template Array<Weight> expand_components(const Instance&, std::span<const Weight>, const Array<Weight>&,
                                         std::vector<ArcFlow<Weight>>&);
template Array<Wide> expand_components(const Instance&, std::span<const Wide>, const Array<Wide>&,
                                       std::vector<ArcFlow<Wide>>&);

}  // namespace memorepair

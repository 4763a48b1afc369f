// Purpose, contract: closure_solver.hpp. Oracle: the verifier and brute force, in cpp/tests/test_closure.cpp.
// How the proof grows: every group that the reduction made is a tree of arcs. What each node absorbs and keeps follows
// from the record, from the last merge to the first; what the arcs of a tree carry then follows from its leaves inwards,
// since every node's account must close. That no arc carries less than nothing is what the rules of closure_reduce.hpp
// are for.
#include "closure_solver.hpp"

namespace memorepair {

template <class W>
void ClosureSolver<W>::reduce(const Needs& needs, std::span<const W> weight) {
    reducer_.run(needs, weight, dependants_);
    chosen_.assign(needs.num_nodes(), 0);
}

template <class W>
void ClosureSolver<W>::cut() {
    flow_.solve(reducer_.kernel(), reducer_.kernel_weight(), dependants_);
    const Reductions<W>& record = reducer_.record();
    for (const NodeAmount<W>& taken : record.taken) {
        chosen_[taken.node] = 1;
    }
    for (NodeId node = 0; node < reducer_.kernel().num_nodes(); ++node) {
        chosen_[reducer_.name(node)] = static_cast<std::uint8_t>(flow_.is_chosen(node));
    }
    for (std::size_t i = record.merges.size(); i-- > 0;) {
        chosen_[record.merges[i].gone] = chosen_[record.merges[i].kept];
    }
}

template <class W>
void ClosureSolver<W>::prove(std::span<const W> weight, std::vector<ArcFlow<W>>& flow, Array<W>& absorbed) {
    const Reductions<W>& record = reducer_.record();
    absorbed.assign(weight.size(), 0);
    surplus_.assign(weight.size(), 0);
    for (const NodeAmount<W>& entry : record.absorbed) {
        absorbed[entry.node] = entry.amount;
    }
    for (const NodeAmount<W>& entry : record.taken) {
        surplus_[entry.node] = -entry.amount;
    }
    for (NodeId node = 0; node < reducer_.kernel().num_nodes(); ++node) {
        const W balance = flow_.balance(node);
        absorbed[reducer_.name(node)] = std::max<W>(-reducer_.kernel_weight()[node], 0) + std::min<W>(balance, 0);
        surplus_[reducer_.name(node)] = -std::max<W>(balance, 0);
    }
    flow.reserve(flow.size() + reducer_.kernel().num_nodes() + record.merges.size() + record.tree.size());
    flow_.for_each_flow([&](KernelArc place, W amount) {
        const auto [tail, head] = reducer_.origin(place);
        surplus_[tail] -= amount;
        surplus_[head] += amount;
        flow.push_back({tail, head, amount});
    });
    for (std::size_t i = record.merges.size(); i-- > 0;) {
        const Merge<W>& merge = record.merges[i];
        const W whole = absorbed[merge.kept];
        const W room_gone = std::max<W>(-merge.gone_weight, 0);
        const W room_kept = std::max<W>(-merge.kept_weight, 0);
        if (merge.gone_weight + merge.kept_weight > 0) {
            absorbed[merge.gone] = room_gone;
            absorbed[merge.kept] = room_kept;
        } else if (merge.gone_weight > 0 || merge.kept_weight > 0) {
            // One side's weight has vanished into the other's room.
            absorbed[merge.gone] = merge.gone_weight > 0 ? 0 : merge.kept_weight + whole;
            absorbed[merge.kept] = merge.kept_weight > 0 ? 0 : merge.gone_weight + whole;
        } else {
            absorbed[merge.gone] = std::min(whole, room_gone);
            absorbed[merge.kept] = whole - absorbed[merge.gone];
        }
    }
    for (std::size_t node = 0; node < weight.size(); ++node) {
        surplus_[node] += std::max<W>(weight[node], 0) - absorbed[node];
    }
    forest_.assign(record.tree.begin(), record.tree.end());
    for (const Merge<W>& merge : record.merges) {
        forest_.push_back(merge.arc);
    }
    flow_along_forest(flow);
}

template <class W>
void ClosureSolver<W>::flow_along_forest(std::vector<ArcFlow<W>>& flow) {
    ties_.assign(surplus_.size(), {0, 0});
    for (std::uint32_t i = 0; i < forest_.size(); ++i) {
        for (const NodeId end : {forest_[i].tail, forest_[i].head}) {
            ++ties_[end].num;
            ties_[end].mix ^= i;
        }
    }
    leaves_.resize(surplus_.size());
    std::size_t num_leaves = 0;
    for (NodeId node = 0; node < surplus_.size(); ++node) {
        if (ties_[node].num == 1) {
            leaves_[num_leaves++] = node;
        }
    }
    for (std::size_t next = 0; next < num_leaves; ++next) {
        const NodeId leaf = leaves_[next];
        if (ties_[leaf].num != 1) {
            continue;
        }
        const std::uint32_t place = ties_[leaf].mix;
        const auto [tail, head] = forest_[place];
        const NodeId other = leaf == tail ? head : tail;
        const W amount = leaf == tail ? surplus_[leaf] : -surplus_[leaf];
        if (amount != 0) {
            flow.push_back({tail, head, amount});
        }
        surplus_[other] += surplus_[leaf];
        ties_[leaf].num = 0;
        ties_[other].mix ^= place;
        if (--ties_[other].num == 1) {
            leaves_[num_leaves++] = other;
        }
    }
}

template class ClosureSolver<Weight>;
template class ClosureSolver<Wide>;

}  // namespace memorepair

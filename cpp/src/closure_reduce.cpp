// Purpose, contract, rules: closure_reduce.hpp. Oracle: the verifier and brute force, in cpp/tests/test_closure.cpp.
// How: a round is one pass down the ids (dependants first: drop, merge into the requirement), one pass up (requirements
// first: take, merge into the dependant), and a rebuild that leaves plain lists behind. Rounds go on while they pay.
#include "closure_reduce.hpp"

#include <numeric>
#include <utility>

namespace memorepair {

namespace {

// A round costs as much as the flow on about half of what it starts from.
constexpr std::size_t kWorthwhile = 2;

void fill_with_ids(Array<NodeId>& array, NodeId size) {
    renew(array, size);
    std::iota(array.begin(), array.end(), NodeId{0});
}

// Calls visit(member) for each node of the ring, from `node` on, until it returns false.
template <class Visit>
void for_ring(const Array<NodeId>& ring, NodeId node, Visit&& visit) {
    NodeId member = node;
    do {
        if (!visit(member)) {
            return;
        }
        member = ring[member];
    } while (member != node);
}

}  // namespace

template <class W>
void ClosureReducer<W>::run(const Needs& needs, std::span<const W> weight, Dependants& dependants) {
    dependants_ = &dependants;
    record_.clear();
    weight_.assign(weight.begin(), weight.end());
    first_round_ = true;
    now_ = 0;
    std::size_t before = needs.num_nodes();
    std::size_t after = round(needs);
    while (after != 0 && (before - after) * kWorthwhile >= before) {
        before = after;
        std::swap(weight_, levels_[now_].weight);
        after = round(levels_[now_].needs);
    }
}

// Returns the number of nodes left.
template <class W>
std::size_t ClosureReducer<W>::round(const Needs& needs) {
    const NodeId num_nodes = needs.num_nodes();
    dependants_->assign(needs, !first_round_);
    fate_.assign(num_nodes, Fate::open);
    fill_with_ids(part_of_, num_nodes);
    fill_with_ids(lower_, num_nodes);
    fill_with_ids(upper_, num_nodes);
    drop_from_the_top(needs);
    take_from_the_bottom(needs);
    rebuild(needs);
    return kernel().num_nodes();
}

template <class W>
void ClosureReducer<W>::drop_from_the_top(const Needs& needs) {
    bound_.assign(needs.num_nodes(), 0);
    for (NodeId node = needs.num_nodes(); node-- > 0;) {
        if (fate_[node] != Fate::open) {
            continue;
        }
        const W weight = weight_[node];
        const W worth = weight + bound_[node];
        if (worth <= 0) {
            drop_with_dependants(node);
            continue;
        }
        // Requirements come later in this pass, so each still stands for itself alone.
        if (weight > 0 && needs.end(node) - needs.begin(node) == 1) {
            const KernelArc arc = needs.begin(node);
            const NodeId only = needs.heads[arc];
            bound_[only] = capped_sum(bound_[only], bound_[node]);
            merge(node, only, origin_of(node, arc, needs), true);
            std::swap(lower_[only], lower_[node]);
            continue;
        }
        for (const NodeId need : needs.of(node)) {
            bound_[need] = capped_sum(bound_[need], std::min(worth, kSumCap<W>));
        }
    }
}

template <class W>
void ClosureReducer<W>::take_from_the_bottom(const Needs& needs) {
    // What a dependant pays for a node and all below it: nothing for what is taken, nor inside a group. Until its own turn
    // a node holds the prices, as of the merge, of those merged into it, which it pays itself: an over-count once some of
    // what they require is taken, which may leave more for the next round and never takes too much.
    bound_.assign(needs.num_nodes(), 0);
    for (NodeId node = 0; node < needs.num_nodes(); ++node) {
        if (fate_[node] != Fate::open) {
            if (fate_[node] == Fate::merged) {
                bound_[node] = bound_[find(node)];
            }
            continue;
        }
        const W weight = weight_[node];
        W price = std::exchange(bound_[node], 0);
        for (const NodeId need : needs.of(node)) {
            price = capped_sum(price, bound_[need]);
        }
        if (weight > 0) {
            if (weight > price) {
                take_with_needs(node, needs);
            } else {
                bound_[node] = price - weight;
            }
            continue;
        }
        NodeId only = kNoNode;
        Arc arc{};
        bool many = false;
        for_ring(lower_, node, [&](NodeId member) {
            for (KernelArc place = dependants_->begin(member); place < dependants_->end(member); ++place) {
                const NodeId other = find(dependants_->tails[place]);
                if (other == node || fate_[other] != Fate::open || other == only) {
                    continue;
                }
                if (only != kNoNode) {
                    many = true;
                    return false;
                }
                only = other;
                arc = origin_from(place, member);
            }
            return true;
        });
        if (many) {
            bound_[node] = std::min(price - weight, kSumCap<W>);
        } else if (only == kNoNode) {
            fate_[node] = Fate::dropped;
        } else {
            bound_[only] = capped_sum(bound_[only], price);  // its turn comes later
            merge(node, only, arc, false);
            std::swap(upper_[only], upper_[node]);
        }
    }
}

template <class W>
void ClosureReducer<W>::merge(NodeId gone, NodeId kept, Arc arc, bool into_need) {
    record_.merges.push_back({name_of(gone), name_of(kept), weight_[gone], weight_[kept], arc, into_need});
    weight_[kept] += weight_[gone];
    fate_[gone] = Fate::merged;
    part_of_[gone] = kept;
}

// Breadth first over dependants: the tree carries every gain down to where it is absorbed.
template <class W>
void ClosureReducer<W>::drop_with_dependants(NodeId root) {
    visits_.assign(1, {root, 0});
    fate_[root] = Fate::dropped;
    for (std::size_t next = 0; next < visits_.size(); ++next) {
        for_ring(lower_, visits_[next].node, [&](NodeId member) {
            for (KernelArc place = dependants_->begin(member); place < dependants_->end(member); ++place) {
                const NodeId tail = dependants_->tails[place];
                if (fate_[tail] == Fate::open) {
                    fate_[tail] = Fate::dropped;
                    visits_.push_back({tail, static_cast<std::uint32_t>(next)});
                    record_.tree.push_back(origin_from(place, member));
                }
            }
            return true;
        });
    }
    if (visits_.size() == 1) {
        return;
    }
    carried_.assign(visits_.size(), 0);
    for (std::size_t i = visits_.size(); i-- > 0;) {
        const NodeId node = visits_[i].node;
        W carried = carried_[i];
        const W absorbed = std::min<W>(carried, std::max<W>(-weight_[node], 0));
        if (absorbed > 0) {
            record_.absorbed.push_back({name_of(node), absorbed});
            carried -= absorbed;
        }
        carried += std::max<W>(weight_[node], 0);
        if (i != 0) {
            carried_[visits_[i].parent] += carried;
        }
    }
}

// Breadth first over requirements: the tree carries from above what each one lacks.
template <class W>
void ClosureReducer<W>::take_with_needs(NodeId root, const Needs& needs) {
    visits_.assign(1, {root, 0});
    fate_[root] = Fate::taken;
    for (std::size_t next = 0; next < visits_.size(); ++next) {
        for_ring(upper_, visits_[next].node, [&](NodeId member) {
            for (KernelArc arc = needs.begin(member); arc < needs.end(member); ++arc) {
                const NodeId need = find(needs.heads[arc]);
                if (fate_[need] == Fate::open) {
                    fate_[need] = Fate::taken;
                    bound_[need] = 0;
                    visits_.push_back({need, static_cast<std::uint32_t>(next)});
                    record_.tree.push_back(origin_of(member, arc, needs));
                }
            }
            return true;
        });
    }
    carried_.assign(visits_.size(), 0);
    for (std::size_t i = visits_.size(); i-- > 0;) {
        const NodeId node = visits_[i].node;
        const W weight = weight_[node];
        const W left = weight - carried_[i];
        if (weight < 0) {
            record_.absorbed.push_back({name_of(node), -weight});
        }
        record_.taken.push_back({name_of(node), std::max<W>(left, 0)});
        if (i != 0) {
            carried_[visits_[i].parent] += std::max<W>(-left, 0);
        }
    }
}

template <class W>
void ClosureReducer<W>::rebuild(const Needs& needs) {
    const NodeId num_nodes = needs.num_nodes();
    renew(new_id_, num_nodes);
    NodeId num_left = 0;
    for (NodeId node = 0; node < num_nodes; ++node) {
        new_id_[node] = fate_[node] == Fate::open ? num_left++ : kNoNode;
    }
    for (NodeId node = 0; node < num_nodes; ++node) {
        if (fate_[node] == Fate::merged) {
            new_id_[node] = new_id_[find(node)];
        }
    }
    Level& out = levels_[first_round_ ? now_ : 1 - now_];
    out.needs.first.resize(std::size_t{num_left} + 1);
    renew(out.needs.heads, needs.heads.size());
    renew(out.origin, needs.heads.size());
    renew(out.name, num_left);
    renew(out.weight, num_left);
    stamp_.assign(num_left, kNoNode);  // the last node that listed this one
    KernelArc kept = 0;
    for (NodeId node = 0; node < num_nodes; ++node) {
        if (fate_[node] != Fate::open) {
            continue;
        }
        const NodeId id = new_id_[node];
        out.needs.first[id] = kept;
        out.name[id] = name_of(node);
        out.weight[id] = weight_[node];
        for_ring(upper_, node, [&](NodeId member) {
            for (KernelArc arc = needs.begin(member); arc < needs.end(member); ++arc) {
                const NodeId need = new_id_[needs.heads[arc]];
                if (need == kNoNode || need == id || stamp_[need] == id) {
                    continue;
                }
                stamp_[need] = id;
                out.needs.heads[kept] = need;
                out.origin[kept] = origin_of(member, arc, needs);
                ++kept;
            }
            return true;
        });
    }
    out.needs.first[num_left] = kept;
    out.needs.heads.resize(kept);
    out.origin.resize(kept);
    now_ = first_round_ ? now_ : 1 - now_;
    first_round_ = false;
}

template <class W>
void ClosureReducer<W>::release() {
    levels_[1 - now_] = {};
    weight_ = bound_ = {};
    fate_ = {};
    part_of_ = lower_ = upper_ = stamp_ = new_id_ = {};
}

template <class W>
NodeId ClosureReducer<W>::find(NodeId node) noexcept {
    while (part_of_[node] != node) {
        part_of_[node] = part_of_[part_of_[node]];
        node = part_of_[node];
    }
    return node;
}

template class ClosureReducer<Weight>;
template class ClosureReducer<Wide>;

}  // namespace memorepair

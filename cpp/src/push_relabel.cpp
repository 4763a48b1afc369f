// Purpose, contract, source: push_relabel.hpp. Oracle: the verifier, brute force and pseudoflow, in
// cpp/tests/test_closure.cpp.
// How: highest label first, current arcs, gaps, global relabelling; no source, no sink, no infinite capacity. A node's
// residual arcs are its outer arcs (uncuttable, so always open) and its inner ones (open while they carry flow). A target
// has label 1; label n + 1 (dead) means that none can be reached.
// What is quadratic: surplus that has to come back, a little at a time, from where it cannot stay.
#include "push_relabel.hpp"

#include <utility>

namespace memorepair {

// Moves surplus from tails to heads of requirements, or (kPull) lack from heads to tails.
template <class W>
template <bool kPull>
class PushRelabel<W>::Run {
public:
    explicit Run(PushRelabel& at)
        : at_(at), needs_(*at.needs_), dependants_(*at.dependants_), nodes_(at.nodes_.data()), flow_(at.flow_.data()),
          num_nodes_(needs_.num_nodes()), dead_(num_nodes_ + 1) {}

    void start() {
        for (NodeId node = 0; node < num_nodes_; ++node) {
            nodes_[node].surplus = kPull ? -at_.weight_[node] : at_.weight_[node];
        }
        start_greedily();
        relabel_all();
    }

    bool advance(std::uint64_t work) {
        const std::uint64_t patience = 2 * (6 * std::uint64_t{num_nodes_} + needs_.num_arcs());
        while (true) {
            while (highest_active_ > 0 && at_.active_[highest_active_] == kNoNode) {
                --highest_active_;
            }
            if (highest_active_ == 0) {
                return true;
            }
            const NodeId node = at_.active_[highest_active_];
            at_.active_[highest_active_] = at_.next_[node];
            discharge(node);
            if (at_.since_relabel_ > patience) {
                relabel_all();
                work_ += num_nodes_ + 2 * std::uint64_t{needs_.num_arcs()};
            }
            if (work_ >= work) {
                return false;
            }
        }
    }

private:
    std::uint32_t num_outer(NodeId node) const {
        return kPull ? dependants_.end(node) - dependants_.begin(node) : needs_.end(node) - needs_.begin(node);
    }
    std::uint32_t num_inner(NodeId node) const {
        return kPull ? needs_.end(node) - needs_.begin(node) : dependants_.end(node) - dependants_.begin(node);
    }
    std::pair<NodeId, KernelArc> need(KernelArc place) const { return {needs_.heads[place], place}; }
    std::pair<NodeId, KernelArc> dependant(KernelArc place) const {
        return {dependants_.tails[place], dependants_.arcs[place]};
    }
    // The far end and the arc. Where lists start is looked up once per node by the caller.
    std::pair<NodeId, KernelArc> outer(KernelArc place) const { return kPull ? dependant(place) : need(place); }
    std::pair<NodeId, KernelArc> inner(KernelArc place) const { return kPull ? need(place) : dependant(place); }
    KernelArc outer_begin(NodeId node) const { return kPull ? dependants_.begin(node) : needs_.begin(node); }
    KernelArc inner_begin(NodeId node) const { return kPull ? needs_.begin(node) : dependants_.begin(node); }

    // Most surplus finds its target without labels: each node, in the order of the arcs, gives every neighbour what can
    // be taken there or beyond. On a tree this is the maximum flow already; where paths meet the demand is over-counted,
    // some surplus comes to rest too far, and the residual arcs let it return.
    void start_greedily() {
        Array<W>& demand = at_.demand_;
        demand.resize(num_nodes_);
        const auto backwards = [&](NodeId i) { return kPull ? num_nodes_ - 1 - i : i; };
        for (NodeId i = 0; i < num_nodes_; ++i) {
            const NodeId node = backwards(i);
            W wanted = std::max<W>(-nodes_[node].surplus, 0);
            const KernelArc first = outer_begin(node);
            for (KernelArc place = first; place < first + num_outer(node); ++place) {
                wanted = capped_sum(wanted, demand[outer(place).first]);
            }
            demand[node] = wanted;
        }
        for (NodeId i = num_nodes_; i-- > 0;) {
            const NodeId node = backwards(i);
            W left = nodes_[node].surplus;
            if (left <= 0) {
                continue;
            }
            const auto give = [&](KernelArc place, W wanted) {
                const auto [head, arc] = outer(place);
                const W amount = std::min(left, wanted);
                if (amount > 0) {
                    left -= amount;
                    nodes_[head].surplus += amount;
                    flow_[arc] += amount;
                    demand[head] -= std::min(demand[head], amount);
                }
            };
            const KernelArc first = outer_begin(node);
            const KernelArc last = first + num_outer(node);
            // Targets next door first: handed further, the surplus would pass them by and have to come back.
            for (KernelArc place = first; left > 0 && place < last; ++place) {
                give(place, -nodes_[outer(place).first].surplus);
            }
            for (KernelArc place = first; left > 0 && place < last; ++place) {
                give(place, demand[outer(place).first]);
            }
            nodes_[node].surplus = left;
        }
    }

    // Exact labels: breadth first, backwards along residual arcs, from all targets at once.
    void relabel_all() {
        const std::size_t used = std::size_t{highest_label_} + 1;
        std::fill_n(at_.active_.begin(), used, kNoNode);
        std::fill_n(at_.idle_.begin(), used, kNoNode);
        highest_active_ = highest_label_ = 0;
        NodeId* const queue = at_.queue_.data();
        std::size_t end = 0;
        for (NodeId node = 0; node < num_nodes_; ++node) {
            nodes_[node].current = 0;
            nodes_[node].label = dead_;
            if (nodes_[node].surplus < 0) {
                nodes_[node].label = 1;
                queue[end++] = node;
            }
        }
        for (std::size_t next = 0; next < end; ++next) {
            const NodeId node = queue[next];
            const NodeId label = nodes_[node].label + 1;
            const auto reach = [&](NodeId other) {
                if (nodes_[other].label == dead_) {
                    nodes_[other].label = label;
                    queue[end++] = other;
                }
            };
            const KernelArc first_inner = inner_begin(node);
            for (KernelArc place = first_inner; place < first_inner + num_inner(node); ++place) {
                reach(inner(place).first);
            }
            const KernelArc first_outer = outer_begin(node);
            for (KernelArc place = first_outer; place < first_outer + num_outer(node); ++place) {
                const auto [other, arc] = outer(place);
                if (flow_[arc] > 0) {
                    reach(other);
                }
            }
            if (nodes_[node].surplus > 0) {
                insert_active(node);
            } else {
                insert_idle(node);
            }
        }
        at_.since_relabel_ = 0;
    }

    void receive(NodeId node, W amount) {
        const W before = nodes_[node].surplus;
        nodes_[node].surplus = before + amount;
        if (before <= 0 && before + amount > 0) {
            remove_idle(node);
            insert_active(node);
        }
    }

    // Moves surplus along admissible arcs from the current one on. True when it is gone.
    bool move_along(NodeId node, NodeId label) {
        Node& own = nodes_[node];
        const std::uint32_t outers = num_outer(node);
        const KernelArc first_outer = outer_begin(node);
        std::uint32_t at = own.current;
        for (; at < outers; ++at) {
            const auto [head, arc] = outer(first_outer + at);
            if (nodes_[head].label + 1 == label) {
                flow_[arc] += own.surplus;
                receive(head, own.surplus);
                own.surplus = 0;
                work_ += 1 + at - own.current;
                own.current = at;
                return true;
            }
        }
        const std::uint32_t all = outers + num_inner(node);
        const KernelArc first_inner = inner_begin(node);
        for (; at < all; ++at) {
            const auto [tail, arc] = inner(first_inner + (at - outers));
            if (nodes_[tail].label + 1 == label && flow_[arc] > 0) {
                const W amount = std::min(flow_[arc], own.surplus);
                flow_[arc] -= amount;
                own.surplus -= amount;
                receive(tail, amount);
                if (own.surplus == 0) {
                    work_ += 1 + at - own.current;
                    own.current = at;
                    return true;
                }
            }
        }
        work_ += 1 + all - own.current;
        return false;
    }

    // The smallest label that makes some residual arc admissible; dead_ when there is none.
    NodeId lift(NodeId node) {
        const std::uint32_t outers = num_outer(node);
        const std::uint32_t inners = num_inner(node);
        const KernelArc first_outer = outer_begin(node);
        const KernelArc first_inner = inner_begin(node);
        NodeId best = dead_;
        std::uint32_t best_at = 0;
        for (std::uint32_t i = 0; i < outers; ++i) {
            const NodeId label = nodes_[outer(first_outer + i).first].label;
            if (label < best) {
                best = label;
                best_at = i;
            }
        }
        for (std::uint32_t i = 0; i < inners; ++i) {
            const auto [tail, arc] = inner(first_inner + i);
            if (nodes_[tail].label < best && flow_[arc] > 0) {
                best = nodes_[tail].label;
                best_at = outers + i;
            }
        }
        nodes_[node].current = best_at;
        at_.since_relabel_ += 12 + std::uint64_t{outers} + inners;
        work_ += 1 + std::uint64_t{outers} + inners;
        return std::min(best, num_nodes_) + 1;
    }

    void discharge(NodeId node) {
        while (true) {
            const NodeId label = nodes_[node].label;
            if (move_along(node, label)) {
                insert_idle(node);
                return;
            }
            if (at_.active_[label] == kNoNode && at_.idle_[label] == kNoNode) {
                close_gap(label);
                nodes_[node].label = dead_;
                return;
            }
            nodes_[node].label = lift(node);
            if (nodes_[node].label >= dead_) {
                return;
            }
            highest_label_ = std::max(highest_label_, nodes_[node].label);
        }
    }

    // No node has this label any more, so nothing above it can come down to a target.
    void close_gap(NodeId label) {
        for (NodeId above = label + 1; above <= highest_label_; ++above) {
            for (Array<NodeId>* lists : {&at_.active_, &at_.idle_}) {
                for (NodeId node = (*lists)[above]; node != kNoNode; node = at_.next_[node]) {
                    nodes_[node].label = dead_;
                }
                (*lists)[above] = kNoNode;
            }
        }
        highest_label_ = label;
    }

    void insert_active(NodeId node) {
        const NodeId label = nodes_[node].label;
        at_.next_[node] = at_.active_[label];
        at_.active_[label] = node;
        highest_active_ = std::max(highest_active_, label);
        highest_label_ = std::max(highest_label_, label);
    }

    void insert_idle(NodeId node) {
        const NodeId label = nodes_[node].label;
        const NodeId first = at_.idle_[label];
        at_.next_[node] = first;
        at_.previous_[node] = kNoNode;
        if (first != kNoNode) {
            at_.previous_[first] = node;
        }
        at_.idle_[label] = node;
        highest_label_ = std::max(highest_label_, label);
    }

    void remove_idle(NodeId node) {
        const NodeId before = at_.previous_[node];
        const NodeId after = at_.next_[node];
        if (before == kNoNode) {
            at_.idle_[nodes_[node].label] = after;
        } else {
            at_.next_[before] = after;
        }
        if (after != kNoNode) {
            at_.previous_[after] = before;
        }
    }

    PushRelabel& at_;
    const Needs& needs_;
    const Dependants& dependants_;
    Node* const nodes_;
    W* const flow_;
    const NodeId num_nodes_;
    const NodeId dead_;
    NodeId& highest_active_ = at_.highest_active_;
    NodeId& highest_label_ = at_.highest_label_;
    std::uint64_t work_ = 0;
};

template <class W>
void PushRelabel<W>::start(const Needs& needs, std::span<const W> weight, const Dependants& dependants, bool pull) {
    const NodeId num_nodes = needs.num_nodes();
    needs_ = &needs;
    dependants_ = &dependants;
    weight_ = weight;
    pull_ = pull;
    flow_.assign(needs.heads.size(), 0);
    active_.assign(std::size_t{num_nodes} + 2, kNoNode);
    idle_.assign(std::size_t{num_nodes} + 2, kNoNode);
    highest_active_ = highest_label_ = 0;
    nodes_.resize(num_nodes);
    next_.resize(num_nodes);
    previous_.resize(num_nodes);
    queue_.resize(num_nodes);
    if (pull) {
        Run<true>(*this).start();
    } else {
        Run<false>(*this).start();
    }
}

template <class W>
bool PushRelabel<W>::advance(std::uint64_t work) {
    if (!(pull_ ? Run<true>(*this).advance(work) : Run<false>(*this).advance(work))) {
        return false;
    }
    if (pull_) {
        for (Node& node : nodes_) {
            node.surplus = -node.surplus;
        }
        return_what_is_missing();
    }
    choose();
    return true;
}

// Pulled flow that no excess stood behind, taken back from the top down.
template <class W>
void PushRelabel<W>::return_what_is_missing() {
    const Needs& needs = *needs_;
    for (NodeId node = needs.num_nodes(); node-- > 0;) {
        W missing = std::min<W>(weight_[node], 0) - nodes_[node].surplus;
        if (missing <= 0) {
            continue;
        }
        nodes_[node].surplus += missing;
        for (KernelArc arc = needs.begin(node); missing > 0; ++arc) {
            const W amount = std::min(missing, flow_[arc]);
            flow_[arc] -= amount;
            nodes_[needs.heads[arc]].surplus -= amount;
            missing -= amount;
        }
    }
}

// Forward from what still holds excess, along arcs and against flow: the smallest of all minimum cuts.
template <class W>
void PushRelabel<W>::choose() {
    chosen_.assign(nodes_.size(), 0);
    std::size_t end = 0;
    const auto select = [&](NodeId node) {
        if (chosen_[node] == 0) {
            chosen_[node] = 1;
            queue_[end++] = node;
        }
    };
    for (NodeId node = 0; node < nodes_.size(); ++node) {
        if (nodes_[node].surplus > 0) {
            select(node);
        }
    }
    for (std::size_t next = 0; next < end; ++next) {
        const NodeId node = queue_[next];
        for (const NodeId head : needs_->of(node)) {
            select(head);
        }
        for (KernelArc place = dependants_->begin(node); place < dependants_->end(node); ++place) {
            if (flow_[dependants_->arcs[place]] > 0) {
                select(dependants_->tails[place]);
            }
        }
    }
}

template class PushRelabel<Weight>;
template class PushRelabel<Wide>;

}  // namespace memorepair

// Purpose, contract, source: closure_flow.hpp. Oracle: the verifier and brute force, in cpp/tests/test_closure.cpp.
// How: excess starts on positive nodes, room on negative ones. A node's residual arcs are its requirements (always
// open) and its dependants (open while the arc carries flow). Labels are lower bounds of the distance to room; a node
// with room has label 1. The longest distance is n, so label n + 1 (dead_) means: no room can be reached from here;
// such nodes rest.
// Invariants: a node with room holds no excess; each node with a label below dead_ stands in exactly one list of its
// label, active if it holds excess, else idle; the node being discharged stands in none.
#include "closure_flow.hpp"

#include <algorithm>
#include <string>

#include "memorepair/errors.hpp"

namespace memorepair {

namespace {

class Solver {
public:
    Solver(const Csr& needs, std::span<const Weight> weight);
    void run();
    ClosureFlow finish() &&;

private:
    void start_greedily();
    void relabel_all();
    void discharge(NodeId node);
    bool push_along(NodeId node, NodeId label);
    NodeId lift(NodeId node);
    void receive(NodeId node, Weight amount);
    void close_gap(NodeId label);
    void insert_active(NodeId node);
    void insert_idle(NodeId node);
    void remove_idle(NodeId node);
    std::uint64_t degree(NodeId node) const {
        return needs_.neighbours(node).size() + (tail_offsets_[std::size_t{node} + 1] - tail_offsets_[node]);
    }

    const Csr& needs_;
    NodeId num_nodes_;
    NodeId dead_;
    // The reverse graph: who requires a node, and by which arc.
    Array<ArcIndex> tail_offsets_;
    Array<NodeId> tails_;
    Array<ArcIndex> tail_arcs_;

    std::vector<Weight> flow_;
    std::vector<Weight> excess_;
    std::vector<Weight> room_;
    std::vector<Weight> absorbed_;
    std::vector<NodeId> label_;
    std::vector<ArcIndex> current_;  // position in requirements, then dependants

    std::vector<NodeId> active_;  // per label: the head of a list linked by next_
    std::vector<NodeId> idle_;    // per label: the head of a list linked by next_ and previous_
    std::vector<NodeId> next_;
    std::vector<NodeId> previous_;
    std::vector<NodeId> queue_;
    NodeId highest_active_ = 0;
    NodeId highest_label_ = 0;
    std::uint64_t work_ = 0;
};

Solver::Solver(const Csr& needs, std::span<const Weight> weight)
    : needs_(needs), num_nodes_(static_cast<NodeId>(weight.size())), dead_(num_nodes_ + 1) {
    const std::size_t n = num_nodes_;
    tail_offsets_.assign(n + 2, 0);
    for (const NodeId head : needs.heads) {
        ++tail_offsets_[std::size_t{head} + 2];
    }
    for (std::size_t i = 1; i < tail_offsets_.size(); ++i) {
        tail_offsets_[i] += tail_offsets_[i - 1];
    }
    tails_.resize(needs.heads.size());
    tail_arcs_.resize(needs.heads.size());
    for (NodeId tail = 0; tail < num_nodes_; ++tail) {
        for (ArcIndex arc = needs.offsets[tail]; arc < needs.offsets[std::size_t{tail} + 1]; ++arc) {
            const ArcIndex place = tail_offsets_[std::size_t{needs.heads[arc]} + 1]++;
            tails_[place] = tail;
            tail_arcs_[place] = arc;
        }
    }
    tail_offsets_.pop_back();

    flow_.assign(needs.heads.size(), 0);
    excess_.resize(n);
    room_.resize(n);
    absorbed_.assign(n, 0);
    for (std::size_t node = 0; node < n; ++node) {
        excess_[node] = std::max<Weight>(weight[node], 0);
        room_[node] = std::max<Weight>(-weight[node], 0);
    }
    label_.resize(n);
    current_.resize(n);
    active_.assign(n + 2, kNoNode);
    idle_.assign(n + 2, kNoNode);
    next_.resize(n);
    previous_.resize(n);
    queue_.reserve(n);
}

void Solver::insert_active(NodeId node) {
    const NodeId label = label_[node];
    next_[node] = active_[label];
    active_[label] = node;
    highest_active_ = std::max(highest_active_, label);
    highest_label_ = std::max(highest_label_, label);
}

void Solver::insert_idle(NodeId node) {
    const NodeId label = label_[node];
    const NodeId first = idle_[label];
    next_[node] = first;
    previous_[node] = kNoNode;
    if (first != kNoNode) {
        previous_[first] = node;
    }
    idle_[label] = node;
    highest_label_ = std::max(highest_label_, label);
}

void Solver::remove_idle(NodeId node) {
    const NodeId before = previous_[node];
    const NodeId after = next_[node];
    if (before == kNoNode) {
        idle_[label_[node]] = after;
    } else {
        next_[before] = after;
    }
    if (after != kNoNode) {
        previous_[after] = before;
    }
}

// Most excess finds its room without labels: down the topological order, each node gives every requirement what can be
// absorbed there or below. On a tree of requirements this is the maximum flow already; where requirements are shared
// the demand is over-counted, some excess comes to rest too low, and the residual arcs let it return.
void Solver::start_greedily() {
    std::vector<ArcIndex> waiting(num_nodes_);
    for (NodeId node = 0; node < num_nodes_; ++node) {
        waiting[node] = tail_offsets_[std::size_t{node} + 1] - tail_offsets_[node];
        if (waiting[node] == 0) {
            queue_.push_back(node);
        }
    }
    for (std::size_t next = 0; next < queue_.size(); ++next) {
        for (const NodeId head : needs_.neighbours(queue_[next])) {
            if (--waiting[head] == 0) {
                queue_.push_back(head);
            }
        }
    }
    // Over-counting grows exponentially on ladders. The cap is no less than what can ever flow (with a positive sum of
    // 2^62 there is no room at all), and a capped value plus another stays below 2^63.
    constexpr auto kCap = static_cast<Weight>(kMaxWeightSum - 1);
    std::vector<Weight> demand(room_);
    for (std::size_t i = queue_.size(); i-- > 0;) {
        for (const NodeId head : needs_.neighbours(queue_[i])) {
            demand[queue_[i]] = std::min(demand[queue_[i]] + demand[head], kCap);
        }
    }
    for (const NodeId node : queue_) {
        const Weight taken = std::min(excess_[node], room_[node]);
        excess_[node] -= taken;
        room_[node] -= taken;
        absorbed_[node] += taken;
        const auto give = [&](ArcIndex arc, Weight wanted) {
            const NodeId head = needs_.heads[arc];
            const Weight amount = std::min(excess_[node], wanted);
            excess_[node] -= amount;
            excess_[head] += amount;
            flow_[arc] += amount;
            demand[head] -= std::min(demand[head], amount);
        };
        // Room next door first: handed further down, the excess would pass it by and have to come back.
        const ArcIndex last = needs_.offsets[std::size_t{node} + 1];
        for (ArcIndex arc = needs_.offsets[node]; excess_[node] > 0 && arc < last; ++arc) {
            const NodeId head = needs_.heads[arc];
            give(arc, std::max<Weight>(room_[head] - excess_[head], 0));
        }
        for (ArcIndex arc = needs_.offsets[node]; excess_[node] > 0 && arc < last; ++arc) {
            give(arc, demand[needs_.heads[arc]]);
        }
    }
}

// Exact labels: breadth first, backwards along residual arcs, from all room at once.
void Solver::relabel_all() {
    std::fill(label_.begin(), label_.end(), dead_);
    std::fill(current_.begin(), current_.end(), ArcIndex{0});
    for (NodeId label = 0; label <= highest_label_; ++label) {
        active_[label] = idle_[label] = kNoNode;
    }
    highest_active_ = highest_label_ = 0;
    queue_.clear();
    for (NodeId node = 0; node < num_nodes_; ++node) {
        if (room_[node] > 0) {
            label_[node] = 1;
            queue_.push_back(node);
        }
    }
    for (std::size_t next = 0; next < queue_.size(); ++next) {
        const NodeId node = queue_[next];
        const NodeId label = label_[node] + 1;
        const auto reach = [&](NodeId other) {
            if (label_[other] == dead_) {
                label_[other] = label;
                queue_.push_back(other);
            }
        };
        for (ArcIndex i = tail_offsets_[node]; i < tail_offsets_[std::size_t{node} + 1]; ++i) {
            reach(tails_[i]);
        }
        for (ArcIndex arc = needs_.offsets[node]; arc < needs_.offsets[std::size_t{node} + 1]; ++arc) {
            if (flow_[arc] > 0) {
                reach(needs_.heads[arc]);
            }
        }
        if (excess_[node] > 0) {
            insert_active(node);
        } else {
            insert_idle(node);
        }
    }
    work_ = 0;
}

void Solver::receive(NodeId node, Weight amount) {
    const Weight taken = std::min(amount, room_[node]);
    room_[node] -= taken;
    absorbed_[node] += taken;
    amount -= taken;
    if (amount > 0) {
        if (excess_[node] == 0) {
            remove_idle(node);
            insert_active(node);
        }
        excess_[node] += amount;
    }
}

// No node has this label any more, so nothing above it can come down to room.
void Solver::close_gap(NodeId label) {
    for (NodeId above = label + 1; above <= highest_label_; ++above) {
        for (std::vector<NodeId>* lists : {&active_, &idle_}) {
            for (NodeId node = (*lists)[above]; node != kNoNode; node = next_[node]) {
                label_[node] = dead_;
            }
            (*lists)[above] = kNoNode;
        }
    }
    highest_label_ = label;
}

// Pushes along admissible arcs from the current one on. True when the excess is gone.
bool Solver::push_along(NodeId node, NodeId label) {
    const std::span<const NodeId> heads = needs_.neighbours(node);
    ArcIndex at = current_[node];
    for (; at < heads.size(); ++at) {
        const NodeId head = heads[at];
        if (label_[head] + 1 == label) {
            flow_[needs_.offsets[node] + at] += excess_[node];
            receive(head, excess_[node]);
            excess_[node] = 0;
            current_[node] = at;
            return true;
        }
    }
    const ArcIndex first = tail_offsets_[node];
    const ArcIndex num_arcs = heads.size() + (tail_offsets_[std::size_t{node} + 1] - first);
    for (; at < num_arcs; ++at) {
        const ArcIndex place = first + (at - heads.size());
        const NodeId tail = tails_[place];
        Weight& carried = flow_[tail_arcs_[place]];
        if (label_[tail] + 1 == label && carried > 0) {
            const Weight amount = std::min(carried, excess_[node]);
            carried -= amount;
            excess_[node] -= amount;
            receive(tail, amount);
            if (excess_[node] == 0) {
                current_[node] = at;
                return true;
            }
        }
    }
    return false;
}

// The smallest label that makes some residual arc admissible; dead_ when there is none.
NodeId Solver::lift(NodeId node) {
    const std::span<const NodeId> heads = needs_.neighbours(node);
    NodeId best = dead_;
    ArcIndex best_at = 0;
    for (ArcIndex at = 0; at < heads.size(); ++at) {
        if (label_[heads[at]] < best) {
            best = label_[heads[at]];
            best_at = at;
        }
    }
    const ArcIndex first = tail_offsets_[node];
    const ArcIndex last = tail_offsets_[std::size_t{node} + 1];
    for (ArcIndex place = first; place < last; ++place) {
        if (label_[tails_[place]] < best && flow_[tail_arcs_[place]] > 0) {
            best = label_[tails_[place]];
            best_at = heads.size() + (place - first);
        }
    }
    current_[node] = best_at;
    work_ += 12 + degree(node);
    return std::min(best, num_nodes_) + 1;
}

void Solver::discharge(NodeId node) {
    while (true) {
        const NodeId label = label_[node];
        if (push_along(node, label)) {
            insert_idle(node);
            return;
        }
        if (active_[label] == kNoNode && idle_[label] == kNoNode) {
            close_gap(label);
            label_[node] = dead_;
            return;
        }
        label_[node] = lift(node);
        if (label_[node] >= dead_) {
            return;
        }
        highest_label_ = std::max(highest_label_, label_[node]);
    }
}

void Solver::run() {
    const std::uint64_t limit = 2 * (6 * std::uint64_t{num_nodes_} + needs_.num_arcs());
    start_greedily();
    relabel_all();
    while (true) {
        while (highest_active_ > 0 && active_[highest_active_] == kNoNode) {
            --highest_active_;
        }
        if (highest_active_ == 0) {
            return;
        }
        const NodeId node = active_[highest_active_];
        active_[highest_active_] = next_[node];
        discharge(node);
        if (work_ > limit) {
            relabel_all();
        }
    }
}

ClosureFlow Solver::finish() && {
    ClosureFlow out;
    out.selected.assign(num_nodes_, 0);
    queue_.clear();
    const auto select = [&](NodeId node) {
        if (out.selected[node] == 0) {
            out.selected[node] = 1;
            queue_.push_back(node);
        }
    };
    // Forward from what still holds excess, along arcs and against flow: the smallest of all minimum cuts.
    for (NodeId node = 0; node < num_nodes_; ++node) {
        if (excess_[node] > 0) {
            select(node);
        }
    }
    for (std::size_t next = 0; next < queue_.size(); ++next) {
        const NodeId node = queue_[next];
        for (const NodeId head : needs_.neighbours(node)) {
            select(head);
        }
        for (ArcIndex i = tail_offsets_[node]; i < tail_offsets_[std::size_t{node} + 1]; ++i) {
            if (flow_[tail_arcs_[i]] > 0) {
                select(tails_[i]);
            }
        }
    }
    out.flow = std::move(flow_);
    out.absorbed = std::move(absorbed_);
    return out;
}

}  // namespace

ClosureFlow solve_closure_flow(const Csr& needs, std::span<const Weight> weight) {
    if (weight.size() >= kMaxNodes - 1) {
        throw Capacity("closure: expected fewer than 2^32 - 2 undecided nodes, got " + std::to_string(weight.size()));
    }
    Solver solver(needs, weight);
    solver.run();
    return std::move(solver).finish();
}

}  // namespace memorepair

// Purpose, contract, source: pseudoflow.hpp. Oracle: the verifier, brute force and push-relabel, in
// cpp/tests/test_closure.cpp.
// How: every node stands in a tree whose arcs alone carry flow and whose root alone has a surplus (a strong tree) or can take
// some (a weak one). A strong root looks, among the nodes of its tree that share its label, for an outer arc to a node
// one label lower. Found: the tree is hung below that node, and the surplus runs up to the root there; where it meets
// an inner arc that carries too little, the tree splits, and the rest stays behind on a new root. Not found: the nodes
// are lifted by one. If no node has the label below, nothing can be reached any more, and the tree rests for good.
// Pulling may leave lack on a node that had no room; one sweep along the requirements takes back the flow behind it.
// What is quadratic: a surplus that has to go a long way, a little further each time. Its tree grows with the way, and is
// walked or lifted as a whole at every step.
// Invariants: labels never fall from a root towards the leaves; a weak tree holds no node above label 0 of its own
// making, and a node dead for good is never looked for.
#include "pseudoflow.hpp"

#include <utility>

namespace memorepair {

namespace {

// No node looks for one with this label.
constexpr NodeId kDead = kNoNode - 1;

}  // namespace

// Moves surplus from tails to heads of requirements, or (kPull) lack from heads to tails. Inside, a node's balance is
// what it has to move, or, below zero, what it can take.
template <class W>
template <bool kPull>
class Pseudoflow<W>::Run {
public:
    explicit Run(Pseudoflow& at)
        : at_(at), needs_(*at.needs_), dependants_(*at.dependants_), nodes_(at.nodes_.data()),
          num_nodes_(needs_.num_nodes()) {}

    void start() {
        at_.with_label_.assign(2, 0);
        at_.roots_.assign(2, kNoNode);
        for (NodeId node = 0; node < num_nodes_; ++node) {
            const W balance = kPull ? -at_.weight_[node] : at_.weight_[node];
            const auto label = static_cast<NodeId>(balance > 0);
            nodes_[node] = {balance, 0, kNoNode, kNoNode, kNoNode, kNoNode, kNoNode, label, 0, outer_begin(node), false};
            ++at_.with_label_[label];
            if (label != 0) {
                add_root(node);
            }
        }
    }

    bool advance(std::uint64_t work) {
        while (true) {
            raise_new_roots();
            while (highest_ > 0 && at_.roots_[highest_] == kNoNode) {
                --highest_;
            }
            if (highest_ == 0) {
                return true;
            }
            if (at_.with_label_[highest_ - 1] == 0) {
                bury_highest();
                continue;
            }
            const NodeId root = at_.roots_[highest_];
            at_.roots_[highest_] = nodes_[root].next;
            nodes_[root].next = nodes_[root].previous = kNoNode;
            grow(root);
            if (work_ >= work) {
                return false;
            }
        }
    }

private:
    KernelArc outer_begin(NodeId node) const { return kPull ? dependants_.begin(node) : needs_.begin(node); }
    KernelArc outer_end(NodeId node) const { return kPull ? dependants_.end(node) : needs_.end(node); }
    NodeId outer_head(KernelArc place) const { return kPull ? dependants_.tails[place] : needs_.heads[place]; }
    KernelArc outer_arc(KernelArc place) const { return kPull ? dependants_.arcs[place] : place; }
    // Surplus moves up to the parent as freely as it likes: the arc is an outer one.
    bool is_outer(const Node& node) const { return node.requires_parent != kPull; }

    void add_root(NodeId node) {
        const NodeId label = nodes_[node].label;
        nodes_[node].next = at_.roots_[label];
        at_.roots_[label] = node;
        highest_ = std::max(highest_, label);
    }

    // Weak trees that have turned strong.
    void raise_new_roots() {
        NodeId node = std::exchange(at_.roots_[0], kNoNode);
        while (node != kNoNode) {
            const NodeId next = nodes_[node].next;
            lift(node);
            add_root(node);
            node = next;
        }
    }

    void bury_highest() {
        std::vector<NodeId>& todo = at_.todo_;
        todo.clear();
        for (NodeId root = std::exchange(at_.roots_[highest_], kNoNode); root != kNoNode;) {
            todo.push_back(root);
            root = std::exchange(nodes_[root].next, kNoNode);
        }
        while (!todo.empty()) {
            Node& node = nodes_[todo.back()];
            todo.pop_back();
            --at_.with_label_[node.label];
            node.label = kDead;
            for (NodeId child = node.child; child != kNoNode; child = nodes_[child].next) {
                todo.push_back(child);
            }
        }
    }

    void lift(NodeId node) {
        const NodeId label = ++nodes_[node].label;
        if (label == at_.with_label_.size()) {
            at_.with_label_.push_back(0);
            at_.roots_.push_back(kNoNode);
        }
        --at_.with_label_[label - 1];
        ++at_.with_label_[label];
        nodes_[node].current = outer_begin(node);
    }

    // Looks at the nodes of the tree that share the root's label, depth first. Each is lifted when nothing was found
    // below it, so the root comes last.
    void grow(NodeId root) {
        NodeId node = root;
        if (find_place(root)) {
            move_surplus(root);
            return;
        }
        while (true) {
            const NodeId child = next_child(node);
            if (child != kNoNode) {
                if (find_place(child)) {
                    move_surplus(root);
                    return;
                }
                node = child;
                continue;
            }
            lift(node);
            if (node == root) {
                add_root(root);
                return;
            }
            node = nodes_[node].parent;
        }
    }

    // Hangs the tree below a node one label lower that `node` can give to. False when there is none.
    bool find_place(NodeId node) {
        Node& own = nodes_[node];
        own.scan = own.child;
        const NodeId wanted = own.label - 1;
        const KernelArc begin = own.current;
        const KernelArc end = outer_end(node);
        for (KernelArc place = begin; place < end; ++place) {
            const NodeId head = outer_head(place);
            if (nodes_[head].label == wanted) {
                own.current = place;
                work_ += place - begin;
                hang(node, head, outer_arc(place));
                return true;
            }
        }
        work_ += end - begin + 1;
        own.current = end;
        return false;
    }

    // The way from `node` up to its root is turned round, so that surplus can run down it to the new parent.
    void hang(NodeId node, NodeId parent, KernelArc arc) {
        W flow = 0;
        bool requires_parent = !kPull;
        while (true) {
            Node& own = nodes_[node];
            const NodeId above = own.parent;
            ++work_;
            if (above != kNoNode) {
                detach(node);
            }
            attach(node, parent);
            std::swap(own.flow, flow);
            std::swap(own.arc, arc);
            std::swap(own.requires_parent, requires_parent);
            requires_parent = !requires_parent;
            if (above == kNoNode) {
                return;
            }
            parent = node;
            node = above;
        }
    }

    // Up to the root, or as far as the inner arcs carry it.
    void move_surplus(NodeId node) {
        W there = 1;
        while (nodes_[node].balance != 0 && nodes_[node].parent != kNoNode) {
            Node& own = nodes_[node];
            const NodeId parent = own.parent;
            there = nodes_[parent].balance;
            ++work_;
            W amount = own.balance;
            if (is_outer(own)) {
                own.flow += amount;
            } else if (amount <= own.flow) {
                own.flow -= amount;
            } else {
                amount = std::exchange(own.flow, 0);
                detach(node);
                own.next = own.previous = kNoNode;
                add_root(node);
            }
            own.balance -= amount;
            nodes_[parent].balance += amount;
            node = parent;
        }
        if (nodes_[node].balance > 0 && there <= 0) {
            add_root(node);
        }
    }

    void attach(NodeId node, NodeId parent) {
        const NodeId first = nodes_[parent].child;
        nodes_[node].parent = parent;
        nodes_[node].next = first;
        nodes_[node].previous = kNoNode;
        nodes_[parent].child = node;
        if (first != kNoNode) {
            nodes_[first].previous = node;
        }
    }

    void detach(NodeId node) {
        const auto [before, after] = std::pair(nodes_[node].previous, nodes_[node].next);
        (before == kNoNode ? nodes_[nodes_[node].parent].child : nodes_[before].next) = after;
        if (after != kNoNode) {
            nodes_[after].previous = before;
        }
        nodes_[node].parent = kNoNode;
    }

    NodeId next_child(NodeId node) {
        NodeId child = nodes_[node].scan;
        while (child != kNoNode && nodes_[child].label != nodes_[node].label) {
            child = nodes_[child].next;
            ++work_;
        }
        nodes_[node].scan = child == kNoNode ? kNoNode : nodes_[child].next;
        return child;
    }

    Pseudoflow& at_;
    const Needs& needs_;
    const Dependants& dependants_;
    Node* const nodes_;
    const NodeId num_nodes_;
    NodeId& highest_ = at_.highest_;
    std::uint64_t work_ = 0;
};

template <class W>
void Pseudoflow<W>::start(const Needs& needs, std::span<const W> weight, const Dependants& dependants, bool pull) {
    needs_ = &needs;
    dependants_ = &dependants;
    weight_ = weight;
    pull_ = pull;
    highest_ = 0;
    renew(nodes_, needs.num_nodes());
    if (pull) {
        Run<true>(*this).start();
    } else {
        Run<false>(*this).start();
    }
}

template <class W>
bool Pseudoflow<W>::advance(std::uint64_t work) {
    if (!(pull_ ? Run<true>(*this).advance(work) : Run<false>(*this).advance(work))) {
        return false;
    }
    if (pull_) {
        for (Node& node : nodes_) {
            node.balance = -node.balance;
        }
        return_what_is_missing();
    }
    choose();
    return true;
}

// Pulled flow that no excess stood behind, taken back from the top down.
template <class W>
void Pseudoflow<W>::return_what_is_missing() {
    for (std::size_t node = nodes_.size(); node-- > 0;) {
        Node& own = nodes_[node];
        W missing = std::min<W>(weight_[node], 0) - own.balance;
        if (missing <= 0) {
            continue;
        }
        own.balance += missing;
        const auto take_back = [&](W& flow, NodeId head) {
            const W amount = std::min(missing, flow);
            flow -= amount;
            nodes_[head].balance -= amount;
            missing -= amount;
        };
        if (own.parent != kNoNode && own.requires_parent) {
            take_back(own.flow, own.parent);
        }
        for (NodeId child = own.child; child != kNoNode && missing > 0; child = nodes_[child].next) {
            if (!nodes_[child].requires_parent) {
                take_back(nodes_[child].flow, child);
            }
        }
    }
}

// Forward from what still holds excess, along arcs and against flow: the smallest of all minimum cuts.
template <class W>
void Pseudoflow<W>::choose() {
    chosen_.assign(nodes_.size(), 0);
    todo_.clear();
    const auto select = [&](NodeId node) {
        if (chosen_[node] == 0) {
            chosen_[node] = 1;
            todo_.push_back(node);
        }
    };
    for (NodeId node = 0; node < nodes_.size(); ++node) {
        if (nodes_[node].balance > 0) {
            select(node);
        }
    }
    while (!todo_.empty()) {
        const NodeId node = todo_.back();
        todo_.pop_back();
        for (const NodeId head : needs_->of(node)) {
            select(head);
        }
        const Node& own = nodes_[node];
        if (own.parent != kNoNode && !own.requires_parent && own.flow > 0) {
            select(own.parent);
        }
        for (NodeId child = own.child; child != kNoNode; child = nodes_[child].next) {
            if (nodes_[child].requires_parent && nodes_[child].flow > 0) {
                select(child);
            }
        }
    }
}

template class Pseudoflow<Weight>;
template class Pseudoflow<Wide>;

}  // namespace memorepair

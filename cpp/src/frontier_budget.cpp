// Purpose: what a budget buys beyond the frontier.
// Contract: memorepair/frontier.hpp. Oracle: brute force, in tests/test_frontier.py.
// How: single nodes whose requirements are met are added by value for cost, and so are packages: a node with the few
// requirements it lacks. No one order is best, so there are several tries, each from the start: from the dearest point of
// the frontier within the budget or from what is free (a dear piece may leave the money for nothing else), single nodes
// or packages first, and what is free at the end (it may open what crowds out something better).
// Source: greedy for knapsacks with precedence; the bound is the concave hull of the frontier.
#include <algorithm>
#include <queue>
#include <string>

#include "adjacency.hpp"
#include "closure_instance.hpp"
#include "memorepair/errors.hpp"
#include "memorepair/frontier.hpp"

namespace memorepair {

namespace {

// A package may bring this many requirements along: enough for what one artifact is made of, and it keeps the search
// linear.
constexpr std::size_t kMaxPackage = 64;

class BudgetFill {
public:
    BudgetFill(const ProvenanceGraph& graph, const FrontierProblem& problem, const Frontier& frontier, Weight budget,
               std::span<const NodeId> tie_order)
        : graph_(graph),
          problem_(problem),
          frontier_(frontier),
          budget_(budget),
          tie_order_(tie_order),
          allowed_(allowed_nodes(graph, problem.executable, problem.within)) {}

    enum class Order { nodes_first, packages_first, free_last };

    BudgetChoice from(std::size_t point, Order order) {
        start(point, order == Order::free_last);
        if (order != Order::packages_first) {
            add_ready();
        }
        if (order == Order::free_last) {
            add_free();
        }
        add_packages(order == Order::packages_first);
        add_ready();
        std::erase_if(choice_.fill, [&](NodeId node) { return frontier_.piece[node] <= point; });
        return std::move(choice_);
    }

private:
    // True when `left` comes after `right`.
    struct Later {
        const BudgetFill* fill;
        bool operator()(NodeId left, NodeId right) const { return fill->is_better(fill->alone(right), fill->alone(left)); }
    };

    struct Package {
        NodeId root;
        Weight value;
        Weight cost;
    };

    // Of values above 0: with 0 for nothing everything would compare as equal, and spoil the order.
    bool is_better(const Package& left, const Package& right) const {
        if (left.cost == 0 && right.cost == 0) {
            if (left.value != right.value) {
                return left.value > right.value;
            }
        } else {
            const Wide mine = Wide{left.value} * right.cost;
            const Wide other = Wide{right.value} * left.cost;
            if (mine != other) {
                return mine > other;
            }
        }
        const NodeId first = tie_order_.empty() ? left.root : tie_order_[left.root];
        const NodeId second = tie_order_.empty() ? right.root : tie_order_[right.root];
        return first != second ? first < second : left.root < right.root;
    }

    Package alone(NodeId node) const { return {node, problem_.values[node], problem_.costs[node]}; }

    void start(std::size_t point, bool with_nothing) {
        choice_ = {};
        choice_.point = point;
        choice_.value = with_nothing ? 0 : frontier_.values[point];
        choice_.cost = with_nothing ? 0 : frontier_.costs[point];
        taken_.assign(graph_.num_nodes(), false);
        waiting_.assign(graph_.num_nodes(), 0);
        for (NodeId node = 0; node < taken_.size(); ++node) {
            taken_[node] = !with_nothing && frontier_.piece[node] <= point;
        }
        for (NodeId node = 0; node < taken_.size(); ++node) {
            if (!is_candidate(node)) {
                continue;
            }
            graph_.parents_of().for_each(node, [&](NodeId parent) {
                waiting_[node] += static_cast<NodeId>(is_candidate(parent));
            });
            if (waiting_[node] == 0) {
                offer(node);
            }
        }
    }

    void add_free() {
        for (NodeId node = 0; node < taken_.size(); ++node) {
            if (frontier_.piece[node] == 0 && !taken_[node]) {
                take(node);
            }
        }
    }

    bool is_candidate(NodeId node) const { return test_bit(allowed_, node) && !taken_[node]; }

    void offer(NodeId node) {
        if (problem_.values[node] > 0) {
            ready_.push(node);
        }
    }

    void add_ready() {
        while (!ready_.empty()) {
            const NodeId node = ready_.top();
            ready_.pop();
            if (!taken_[node] && problem_.costs[node] <= budget_ - choice_.cost) {
                take(node);
            }
        }
    }

    // By value for cost of the whole package as it is now, or of the node it is for: packages share what they bring along,
    // so that either may be the better guess. Taking one may shrink others, so each is gathered again.
    void add_packages(bool by_package) {
        std::vector<Package> wanted;
        std::vector<NodeId> members;
        for (NodeId node = 0; node < taken_.size(); ++node) {
            if (is_candidate(node) && problem_.values[node] > 0 && gather(node, members)) {
                const Package package = sum(node, members);
                if (package.value > 0) {
                    wanted.push_back(package);
                }
            }
        }
        std::sort(wanted.begin(), wanted.end(),
                  [&](const Package& left, const Package& right) {
                      return by_package ? is_better(left, right) : is_better(alone(left.root), alone(right.root));
                  });
        for (const Package& before : wanted) {
            if (!taken_[before.root] && gather(before.root, members)) {
                const Package package = sum(before.root, members);
                if (package.value > 0 && package.cost <= budget_ - choice_.cost) {
                    take_package(members);
                    if (!by_package) {
                        add_ready();  // what it opens comes before the next package
                    }
                }
            }
        }
    }

    Package sum(NodeId root, std::span<const NodeId> members) const {
        Package package{root, 0, 0};
        for (const NodeId node : members) {
            package.value += problem_.values[node];
            package.cost += problem_.costs[node];
        }
        return package;
    }

    // The node with all it lacks; false when that is more than a package may hold.
    bool gather(NodeId root, std::vector<NodeId>& members) {
        members.assign(1, root);
        in_package_.resize(taken_.size());
        in_package_[root] = true;
        for (std::size_t next = 0; next < members.size() && members.size() <= kMaxPackage; ++next) {
            graph_.parents_of().for_each(members[next], [&](NodeId parent) {
                if (is_candidate(parent) && !in_package_[parent] && members.size() <= kMaxPackage) {
                    in_package_[parent] = true;
                    members.push_back(parent);
                }
            });
        }
        for (const NodeId node : members) {
            in_package_[node] = false;
        }
        return members.size() <= kMaxPackage;
    }

    // Requirements first. Where a cycle leaves nobody ready, what the member that lacks the fewest lacks is such a cycle.
    void take_package(std::vector<NodeId>& members) {
        std::vector<NodeId> cycle;
        std::vector<NodeId> lacking;
        while (!members.empty()) {
            const auto next =
                std::find_if(members.begin(), members.end(), [&](NodeId node) { return waiting_[node] == 0; });
            if (next != members.end()) {
                take(*next);
                members.erase(next);
                continue;
            }
            cycle = members;
            for (const NodeId member : members) {
                gather(member, lacking);
                if (lacking.size() < cycle.size()) {
                    cycle = lacking;
                }
            }
            for (const NodeId member : cycle) {
                take(member);
            }
            std::erase_if(members, [&](NodeId node) { return taken_[node]; });
        }
    }

    void take(NodeId node) {
        taken_[node] = true;
        choice_.fill.push_back(node);
        choice_.value += problem_.values[node];
        choice_.cost += problem_.costs[node];
        graph_.children_of().for_each(node, [&](NodeId child) {
            if (is_candidate(child) && --waiting_[child] == 0) {
                offer(child);
            }
        });
    }

    const ProvenanceGraph& graph_;
    const FrontierProblem& problem_;
    const Frontier& frontier_;
    Weight budget_;
    std::span<const NodeId> tie_order_;
    std::vector<std::uint64_t> allowed_;
    std::vector<bool> taken_;
    std::vector<bool> in_package_;
    std::vector<NodeId> waiting_;
    std::priority_queue<NodeId, std::vector<NodeId>, Later> ready_{Later{this}};
    BudgetChoice choice_;
};

}  // namespace

BudgetChoice choose_within_budget(const ProvenanceGraph& graph, const FrontierProblem& problem,
                                  const Frontier& frontier, Weight budget, std::span<const NodeId> tie_order) {
    check_frontier_problem(graph, problem);
    if (budget < 0) {
        throw InvalidGraph("budget: expected at least 0, got " + std::to_string(budget));
    }
    if (!tie_order.empty() && tie_order.size() != graph.num_nodes()) {
        throw InvalidGraph("tie_order: expected one per node (" + std::to_string(graph.num_nodes()) + "), got " +
                           std::to_string(tie_order.size()));
    }
    const auto above = std::upper_bound(frontier.costs.begin(), frontier.costs.end(), budget);
    const auto point = static_cast<std::size_t>(above - frontier.costs.begin()) - 1;
    BudgetFill fill(graph, problem, frontier, budget, tie_order);
    using Order = BudgetFill::Order;
    BudgetChoice choice = fill.from(point, Order::nodes_first);
    const auto try_other = [&](std::size_t start, Order order) {
        BudgetChoice other = fill.from(start, order);
        if (other.value > choice.value) {
            choice = std::move(other);
        }
    };
    try_other(point, Order::packages_first);
    if (point != 0) {
        try_other(0, Order::nodes_first);
        try_other(0, Order::packages_first);
    }
    try_other(0, Order::free_last);
    choice.bound_value = frontier.values[point];
    if (point < frontier.numerators.size()) {
        choice.bound_numerator = frontier.numerators[point];
        choice.bound_denominator = frontier.denominators[point];
        choice.bound_rest = budget - frontier.costs[point];
    }
    return choice;
}

}  // namespace memorepair

// Purpose: what a budget buys beyond the frontier.
// Contract: memorepair/frontier.hpp. Oracle: brute force, in tests/test_frontier.py.
// How: units (nodes, or nodes that require one another) whose requirements are met are added by value for cost, and so
// are packages: a unit with the few requirements it lacks. No one order is best, so there are several tries, each from the
// start: from the dearest point of the frontier within the budget or from what is free (a dear piece may leave the money
// for nothing else), units or packages first, the package worth most first (a cheap one with a better ratio must not crowd
// it out), and what is free at the end (it may open what crowds out something better).
// Invariant: the money left only shrinks, and what is in a package and taken meanwhile has been paid for. So what is too
// dear once stays too dear. What holds too much may shrink, so packages are looked for again while some are taken.
// Source: greedy for knapsacks with precedence; the bound is the concave hull of the frontier.
#include <algorithm>
#include <numeric>
#include <queue>
#include <string>

#include "closure_instance.hpp"
#include "memorepair/errors.hpp"
#include "memorepair/frontier.hpp"

namespace memorepair {

namespace {

// A package may hold this many units: enough for what one artifact is made of, and it bounds the work per unit.
constexpr std::uint32_t kMaxPackage = 64;
// A chain of packages, each of which brings the next within reach, is followed this far.
constexpr int kMaxRounds = 16;

class BudgetFill {
public:
    BudgetFill(const ProvenanceGraph& graph, const FrontierProblem& problem, const Frontier& frontier, Weight budget,
               std::span<const NodeId> tie_order)
        : frontier_(frontier),
          budget_(budget),
          instance_(make_instance(graph, problem.executable, problem.within)),
          num_units_(instance_.needs.num_nodes()),
          units_(num_units_),
          in_package_(num_units_) {
        dependants_.assign(instance_.needs, false);
        for (NodeId id = 0; id < num_units_; ++id) {
            Unit& unit = units_[id];
            unit = {id, 0, 0, kNoNode, kNoNode, 0};
            for_members(id, [&](NodeId node) {
                unit.value += problem.values[node];
                unit.cost += problem.costs[node];
                unit.node = std::min(unit.node, node);
                unit.tie = std::min(unit.tie, tie_order.empty() ? node : tie_order[node]);
                unit.piece = frontier.piece[node];
            });
        }
        rank_units();
    }

    enum class Order { units_first, packages_first, largest_first, free_last };

    BudgetChoice from(std::size_t point, Order order) {
        start(point, order == Order::free_last);
        if (order == Order::largest_first) {
            add_largest();
        }
        if (order != Order::packages_first) {
            add_ready();
        }
        if (order == Order::free_last) {
            add_free();
        }
        std::size_t before = 0;
        for (int round = 0; round < kMaxRounds && (round == 0 || before != added_.size()); ++round) {
            before = added_.size();
            add_packages(order == Order::packages_first);
            add_ready();
        }
        for (const NodeId id : added_) {
            if (units_[id].piece > point) {
                for_members(id, [&](NodeId node) { choice_.fill.push_back(node); });
            }
        }
        return std::move(choice_);
    }

private:
    struct Unit {
        NodeId id;
        Weight value;
        Weight cost;
        NodeId tie;   // the smallest of its nodes
        NodeId node;  // the same
        std::uint32_t piece;
    };

    // Of values above 0: with 0 for nothing everything would compare as equal, and spoil the order.
    static bool is_better(const Unit& left, const Unit& right) {
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
        return left.tie != right.tie ? left.tie < right.tie : left.node < right.node;
    }

    template <class Visit>
    void for_members(NodeId id, Visit&& visit) const {
        if (instance_.trivial) {
            visit(instance_.global[id]);
            return;
        }
        for (const NodeId member : instance_.members.neighbours(id)) {
            visit(instance_.global[member]);
        }
    }

    void rank_units() {
        std::vector<Unit> wanted;
        for (const Unit& unit : units_) {
            if (unit.value > 0) {
                wanted.push_back(unit);
            }
        }
        std::sort(wanted.begin(), wanted.end(), is_better);
        rank_.assign(num_units_, kNoNode);
        for (const Unit& unit : wanted) {
            rank_[unit.id] = static_cast<NodeId>(ranked_.size());
            ranked_.push_back(unit.id);
        }
    }

    Weight rest() const { return budget_ - choice_.cost; }

    void start(std::size_t point, bool with_nothing) {
        choice_ = {};
        choice_.point = point;
        added_.clear();
        taken_.assign(num_units_, 0);
        waiting_.assign(num_units_, 0);
        if (!with_nothing) {
            choice_.value = frontier_.values[point];
            choice_.cost = frontier_.costs[point];
            for (const Unit& unit : units_) {
                taken_[unit.id] = static_cast<std::uint8_t>(unit.piece <= point);
            }
        }
        for (NodeId id = 0; id < num_units_; ++id) {
            if (taken_[id] != 0) {
                continue;
            }
            for (const NodeId need : instance_.needs.of(id)) {
                waiting_[id] += static_cast<KernelArc>(taken_[need] == 0);
            }
            if (waiting_[id] == 0) {
                offer(id);
            }
        }
    }

    void add_free() {
        for (const Unit& unit : units_) {
            if (unit.piece == 0 && taken_[unit.id] == 0) {
                take(unit.id);
            }
        }
    }

    void offer(NodeId id) {
        if (units_[id].value > 0 && units_[id].cost <= rest()) {
            ready_.push(rank_[id]);
        }
    }

    void add_ready() {
        while (!ready_.empty()) {
            const NodeId id = ranked_[ready_.top()];
            ready_.pop();
            if (taken_[id] == 0 && units_[id].cost <= rest()) {
                take(id);
            }
        }
    }

    // By value for cost of the whole package as it is now, or of the unit it is for: packages share what they bring along,
    // so that either may be the better guess. Taking one may shrink others, so each is gathered again.
    void add_packages(bool by_package) {
        find_packages();
        std::sort(packages_.begin(), packages_.end(), [&](const Unit& left, const Unit& right) {
            return by_package ? is_better(left, right) : rank_[left.id] < rank_[right.id];
        });
        for (const Unit& before : packages_) {
            if (taken_[before.id] == 0 && gather(before.id)) {
                const Unit package = gathered(before.id);
                if (package.value > 0 && package.cost <= rest()) {
                    take_gathered();
                    if (!by_package) {
                        add_ready();  // what it opens comes before the next package
                    }
                }
            }
        }
    }

    void add_largest() {
        find_packages();
        const auto largest = std::min_element(
            packages_.begin(), packages_.end(), [](const Unit& left, const Unit& right) {
                return left.value != right.value ? left.value > right.value : is_better(left, right);
            });
        if (largest != packages_.end() && gather(largest->id)) {
            take_gathered();
        }
    }

    // Requirements first: where one's own package holds too much or is too dear, so is every package that it is part of.
    void find_packages() {
        packages_.clear();
        is_within_reach_.assign(num_units_, 0);
        lacking_.first.clear();
        lacking_.heads.clear();
        for (NodeId id = 0; id < num_units_; ++id) {
            lacking_.first.push_back(lacking_.num_arcs());
            if (taken_[id] != 0 || waiting_[id] > kMaxPackage) {
                continue;
            }
            bool fits = true;
            for (const NodeId need : instance_.needs.of(id)) {
                if (taken_[need] == 0) {
                    lacking_.heads.push_back(need);
                    fits = fits && is_within_reach_[need] != 0;
                }
            }
            lacking_.first.push_back(lacking_.num_arcs());
            fits = fits && gather(id);
            lacking_.first.pop_back();
            const Unit package = fits ? gathered(id) : Unit{};
            if (fits && package.cost <= rest()) {
                is_within_reach_[id] = 1;
                if (package.value > 0 && units_[id].value > 0) {
                    packages_.push_back(package);
                }
            } else {
                lacking_.heads.resize(lacking_.first.back());
            }
        }
        lacking_.first.push_back(lacking_.num_arcs());
    }

    // The unit with all it lacks, into members_; false when that is more than a package may hold.
    bool gather(NodeId root) {
        members_.assign(1, root);
        in_package_[root] = 1;
        for (std::size_t next = 0; next < members_.size() && members_.size() <= kMaxPackage; ++next) {
            for (const NodeId need : lacking_.of(members_[next])) {
                if (taken_[need] == 0 && in_package_[need] == 0) {
                    in_package_[need] = 1;
                    members_.push_back(need);
                }
            }
        }
        for (const NodeId id : members_) {
            in_package_[id] = 0;
        }
        return members_.size() <= kMaxPackage;
    }

    Unit gathered(NodeId root) const {
        Unit package = units_[root];
        package.value = package.cost = 0;
        for (const NodeId id : members_) {
            package.value += units_[id].value;
            package.cost += units_[id].cost;
        }
        return package;
    }

    void take_gathered() {
        std::sort(members_.begin(), members_.end());  // requirements have smaller ids
        std::for_each(members_.begin(), members_.end(), [&](NodeId id) { take(id); });
    }

    void take(NodeId id) {
        taken_[id] = 1;
        added_.push_back(id);
        choice_.value += units_[id].value;
        choice_.cost += units_[id].cost;
        for (const NodeId tail : dependants_.of(id)) {
            if (taken_[tail] == 0 && --waiting_[tail] == 0) {
                offer(tail);
            }
        }
    }

    const Frontier& frontier_;
    const Weight budget_;
    const Instance instance_;
    const NodeId num_units_;
    Dependants dependants_;
    std::vector<Unit> units_;
    std::vector<NodeId> ranked_;  // those worth something, the best first
    std::vector<NodeId> rank_;

    // Of the try at work.
    BudgetChoice choice_;
    std::vector<NodeId> added_;
    std::vector<std::uint8_t> taken_;
    std::vector<KernelArc> waiting_;  // requirements not taken yet
    std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready_;
    std::vector<Unit> packages_;
    Needs lacking_;  // of those within reach, what was not taken when packages were found
    std::vector<std::uint8_t> is_within_reach_;
    std::vector<NodeId> members_;
    std::vector<std::uint8_t> in_package_;
};

}  // namespace

BudgetChoice choose_within_budget(const ProvenanceGraph& graph, const FrontierProblem& problem,
                                  const Frontier& frontier, Weight budget, std::span<const NodeId> tie_order) {
    check_frontier_problem(graph, problem);
    if (budget < 0) {
        throw InvalidAmount("budget: expected at least 0, got " + std::to_string(budget));
    }
    if (!tie_order.empty() && tie_order.size() != graph.num_nodes()) {
        throw InvalidGraph("tie_order: expected one per node (" + std::to_string(graph.num_nodes()) + "), got " +
                           std::to_string(tie_order.size()));
    }
    const auto above = std::upper_bound(frontier.costs.begin(), frontier.costs.end(), budget);
    const auto point = static_cast<std::size_t>(above - frontier.costs.begin()) - 1;
    BudgetFill fill(graph, problem, frontier, budget, tie_order);
    using Order = BudgetFill::Order;
    BudgetChoice choice = fill.from(point, Order::units_first);
    const auto try_other = [&](std::size_t start, Order order) {
        BudgetChoice other = fill.from(start, order);
        if (other.value > choice.value) {
            choice = std::move(other);
        }
    };
    try_other(point, Order::packages_first);
    if (point != 0) {
        try_other(0, Order::units_first);
        try_other(0, Order::packages_first);
    }
    try_other(0, Order::largest_first);
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

// Purpose: the frontier solver and its verifier against brute force over all closed sets, and against single closures.
#include <algorithm>
#include <optional>
#include <vector>

#include "check.hpp"
#include "memorepair/closure.hpp"
#include "memorepair/errors.hpp"
#include "memorepair/frontier.hpp"

using namespace memorepair;
using Ids = std::vector<NodeId>;
using Weights = std::vector<Weight>;

namespace {

struct Case {
    NodeId n = 0;
    Ids sources;
    Ids targets;
    Weights values;
    Weights costs;
    std::optional<Mask> executable;
    std::optional<Mask> within;

    ProvenanceGraph graph() const { return ProvenanceGraph::from_edges(n, sources, targets); }
    FrontierProblem problem() const {
        return {values, costs, executable ? &*executable : nullptr, within ? &*within : nullptr};
    }
};

struct ClosedSet {
    std::uint32_t set;
    Wide value;
    Wide cost;
};

std::vector<ClosedSet> closed_sets(const Case& c) {
    std::uint32_t inside = (1U << c.n) - 1;
    if (c.within) {
        inside = 0;
        for (const NodeId v : c.within->ids()) inside |= 1U << v;
    }
    std::uint32_t can_run = ~0U;
    if (c.executable) {
        can_run = 0;
        for (const NodeId v : c.executable->ids()) can_run |= 1U << v;
    }
    Ids needs(c.n);
    for (std::size_t e = 0; e < c.sources.size(); ++e) needs[c.targets[e]] |= 1U << c.sources[e];
    std::vector<ClosedSet> out;
    for (std::uint32_t set = 0; set < (1U << c.n); ++set) {
        if ((set & ~inside) != 0 || (set & ~can_run) != 0) continue;
        ClosedSet candidate{set, 0, 0};
        bool closed = true;
        for (NodeId v = 0; v < c.n && closed; ++v) {
            if ((set >> v & 1U) == 0) continue;
            closed = (needs[v] & inside & ~set) == 0;
            candidate.value += c.values[v];
            candidate.cost += c.costs[v];
        }
        if (closed) out.push_back(candidate);
    }
    return out;
}

// The smallest optimum at x = numerator / denominator.
std::uint32_t best_at(const std::vector<ClosedSet>& sets, Wide numerator, Wide denominator) {
    const auto worth = [&](const ClosedSet& s) { return s.value * denominator - s.cost * numerator; };
    const ClosedSet* best = &sets.front();
    for (const ClosedSet& s : sets) {
        if (worth(s) > worth(*best) || (worth(s) == worth(*best) && std::popcount(s.set) < std::popcount(best->set))) {
            best = &s;
        }
    }
    return best->set;
}

std::uint32_t bits(const Mask& mask) {
    std::uint32_t set = 0;
    for (const NodeId v : mask.ids()) set |= 1U << v;
    return set;
}

bool verify(const ProvenanceGraph& graph, const Case& c, const Frontier& f) {
    return verify_frontier(graph, c.problem(), f.piece, f.numerators, f.denominators, f.certificate.sources,
                           f.certificate.targets, f.certificate.flow);
}

Case random_case(check::Random& random, NodeId max_nodes) {
    Case c;
    c.n = static_cast<NodeId>(random.below(max_nodes + 1));
    const std::uint64_t num_edges = c.n == 0 ? 0 : random.below(3 * c.n + 1);
    const bool acyclic = random.below(2) == 0;
    for (std::uint64_t e = 0; e < num_edges; ++e) {
        auto s = static_cast<NodeId>(random.below(c.n));
        auto t = static_cast<NodeId>(random.below(c.n));
        if (acyclic && s > t) std::swap(s, t);
        c.sources.push_back(s);
        c.targets.push_back(t);
    }
    const std::uint64_t kind = random.below(4);
    const Weight most = kind == 0 ? 1 : kind == 1 ? 4 : kind == 2 ? 1000 : (Weight{1} << 61) / (c.n + 1);
    for (NodeId v = 0; v < c.n; ++v) {
        const Weight value = random.between(0, most);
        c.values.push_back(random.below(4) == 0 ? -value : value);
        c.costs.push_back(random.below(4) == 0 ? 0 : random.between(0, most));
    }
    const auto mask = [&](std::uint64_t percent) {
        Ids ids;
        for (NodeId v = 0; v < c.n; ++v) {
            if (random.below(100) < percent) ids.push_back(v);
        }
        return Mask::from_ids(ids, c.n);
    };
    if (random.below(3) == 0) c.executable = mask(85);
    if (random.below(3) == 0) c.within = mask(75);
    return c;
}

void check_tampering(const ProvenanceGraph& graph, const Case& c, const Frontier& f, check::Random& random) {
    const auto refused = [&](auto&& change) {
        Frontier other = f;
        change(other);
        CHECK(!verify(graph, c, other));
    };
    refused([](Frontier& x) { x.piece.push_back(kNeverSelected); });
    refused([](Frontier& x) { x.certificate.flow.push_back(1); });
    refused([](Frontier& x) {
        x.numerators.push_back(1);
        x.denominators.push_back((Weight{1} << 62) - 1);  // a breakpoint without nodes
    });
    for (const NodeId v : f.closure(f.numerators.size()).ids()) {
        refused([&](Frontier& x) { x.piece[v] = kNeverSelected; });
        refused([&](Frontier& x) { x.piece[v] = static_cast<std::uint32_t>(x.numerators.size() + 1); });
    }
    if (!f.numerators.empty()) {
        const auto i = static_cast<std::size_t>(random.below(f.numerators.size()));
        refused([&](Frontier& x) { x.numerators[i] = -x.numerators[i]; });
        refused([&](Frontier& x) { ++x.numerators[i]; });
    }
    if (!f.certificate.flow.empty()) {
        const auto i = static_cast<std::size_t>(random.below(f.certificate.flow.size()));
        refused([&](Frontier& x) { x.certificate.flow[i] = 0; });
        refused([&](Frontier& x) { x.certificate.flow[i] = -x.certificate.flow[i]; });
        refused([&](Frontier& x) { x.certificate.sources[i] = c.n; });
        refused([&](Frontier& x) { x.certificate.sources[i] = x.certificate.targets[i]; });
    }
}

void test_brute_force() {
    check::Random random(16);
    for (int round = 0; round < 3000; ++round) {
        const Case c = random_case(random, 9);
        const ProvenanceGraph graph = c.graph();
        const Frontier f = solve_frontier(graph, c.problem());
        CHECK(verify(graph, c, f));
        const std::vector<ClosedSet> sets = closed_sets(c);
        const auto agrees = [&](Wide numerator, Wide denominator) {
            const std::size_t point = f.point_at(numerator, denominator);
            const std::uint32_t best = best_at(sets, numerator, denominator);
            CHECK(bits(f.closure(point)) == best);
        };
        agrees(0, 1);
        for (std::size_t i = 0; i < f.numerators.size(); ++i) {
            const Weight p = f.numerators[i];
            const Weight q = f.denominators[i];
            agrees(p, q);
            // Between two breakpoints lies their mediant, below the last one a half of it.
            agrees(i + 1 < f.numerators.size() ? Wide{p} + f.numerators[i + 1] : Wide{p},
                   i + 1 < f.numerators.size() ? Wide{q} + f.denominators[i + 1] : Wide{q} * 2);
            CHECK(bits(f.closure(i)) != bits(f.closure(i + 1)));
        }
        agrees(Wide{1} << 63, 1);  // past every ratio
        for (std::size_t i = 0; i < f.values.size(); ++i) {
            Wide value = 0;
            Wide cost = 0;
            const Mask closure = f.closure(i);
            for (const NodeId v : closure.ids()) {
                value += c.values[v];
                cost += c.costs[v];
            }
            CHECK(value == f.values[i] && cost == f.costs[i]);
            CHECK(closure.count() == static_cast<std::uint64_t>(f.sizes[i]));
        }
        check_tampering(graph, c, f, random);
    }
}

// Larger than brute force reaches: the verifier, and one closure at each of some cost weights.
void test_against_closures() {
    check::Random random(17);
    for (int round = 0; round < 60; ++round) {
        Case c = random_case(random, 800);
        for (NodeId v = 0; v < c.n; ++v) {
            c.values[v] %= 1 << 20;
            c.costs[v] %= 1 << 20;
        }
        const ProvenanceGraph graph = c.graph();
        const Frontier f = solve_frontier(graph, c.problem());
        CHECK(verify(graph, c, f));
        for (int i = 0; i < 5; ++i) {
            const Weight p = random.between(0, 3000);
            const Weight q = random.between(1, 1000);
            Weights weights;
            for (NodeId v = 0; v < c.n; ++v) weights.push_back(q * c.values[v] - p * c.costs[v]);
            const FrontierProblem problem = c.problem();
            CHECK(solve_closure(graph, {weights, problem.executable, problem.within}).selected ==
                  f.closure(f.point_at(p, q)));
        }
    }
}

void test_budget() {
    check::Random random(18);
    for (int round = 0; round < 1000; ++round) {
        const Case c = random_case(random, 9);
        const ProvenanceGraph graph = c.graph();
        const Frontier f = solve_frontier(graph, c.problem());
        const std::vector<ClosedSet> sets = closed_sets(c);
        const Weight budget = random.between(0, f.costs.back() + 2);
        const BudgetChoice choice = choose_within_budget(graph, c.problem(), f, budget, {});
        Wide best = 0;
        for (const ClosedSet& s : sets) {
            if (s.cost <= budget) best = std::max(best, s.value);
        }
        std::uint32_t taken = bits(f.closure(choice.point));
        for (const NodeId v : choice.fill) taken |= 1U << v;
        const auto found = std::find_if(sets.begin(), sets.end(), [&](const ClosedSet& s) { return s.set == taken; });
        CHECK(found != sets.end() && found->value == choice.value && found->cost == choice.cost);
        CHECK(choice.cost <= budget && choice.value <= best);
        CHECK((best - choice.bound_value) * choice.bound_denominator <= Wide{choice.bound_numerator} * choice.bound_rest);
    }
}

void test_limits() {
    const Weight top = Weight{1} << 62;
    Case c;
    c.n = 3;
    c.sources = {0};
    c.targets = {1};
    c.values = {top, 0, 0};
    c.costs = {1, top - 1, 0};
    CHECK(verify(c.graph(), c, solve_frontier(c.graph(), c.problem())));
    c.values = {top, 1, 0};
    CHECK_THROWS(solve_frontier(c.graph(), c.problem()), WeightOverflow);
    c.values = {1, 1, 1};
    c.costs = {top, 1, 0};
    CHECK_THROWS(solve_frontier(c.graph(), c.problem()), WeightOverflow);
    c.costs = {1, -1, 0};
    CHECK_THROWS(solve_frontier(c.graph(), c.problem()), InvalidAmount);
    c.costs = {1};
    CHECK_THROWS(solve_frontier(c.graph(), c.problem()), InvalidGraph);
    // Ratios that differ in the ninth digit are two breakpoints.
    c.values = {1000000000, 0, 1000000001};
    c.costs = {1000000000, 0, 1000000000};
    CHECK(solve_frontier(c.graph(), c.problem()).numerators.size() == 2);
}

}  // namespace

int main() {
    test_brute_force();
    test_against_closures();
    test_budget();
    test_limits();
    return check::finish("frontier");
}

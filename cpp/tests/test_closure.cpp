// Purpose: the closure solver and its verifier against brute force over all subsets.
#include <algorithm>
#include <optional>
#include <thread>
#include <vector>

#include "check.hpp"
#include "closure_flow.hpp"
#include "closure_solver.hpp"
#include "forge.hpp"
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
    Weights weights;
    std::optional<Mask> executable;
    std::optional<Mask> within;

    ProvenanceGraph graph() const { return ProvenanceGraph::from_edges(n, sources, targets); }
    ClosureProblem problem() const {
        return {weights, executable ? &*executable : nullptr, within ? &*within : nullptr};
    }
};

struct Best {
    Wide value = 0;
    std::uint32_t set = 0;
};

// Every subset of at most 2^n: the largest value, then the fewest nodes. Optima form a lattice, so the fewest is
// unique.
Best brute_force(const Case& c) {
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
    Best best;
    int fewest = 0;
    for (std::uint32_t set = 1; set < (1U << c.n); ++set) {
        if ((set & ~inside) != 0 || (set & ~can_run) != 0) continue;
        Wide value = 0;
        bool closed = true;
        for (NodeId v = 0; v < c.n && closed; ++v) {
            if ((set >> v & 1U) == 0) continue;
            closed = (needs[v] & inside & ~set) == 0;
            value += c.weights[v];
        }
        if (closed && (value > best.value || (value == best.value && std::popcount(set) < fewest))) {
            best = {value, set};
            fewest = std::popcount(set);
        }
    }
    return best;
}

bool verify(const ProvenanceGraph& graph, const Case& c, const Closure& k) {
    return verify_closure(graph, c.problem(), k.selected, k.objective, k.certificate.sources, k.certificate.targets,
                          k.certificate.flow, k.certificate.absorbed);
}

Mask random_mask(check::Random& random, NodeId n, std::uint64_t percent) {
    Ids ids;
    for (NodeId v = 0; v < n; ++v) {
        if (random.below(100) < percent) ids.push_back(v);
    }
    return Mask::from_ids(ids, n);
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
    const Weight most = kind == 0 ? 1 : kind == 1 ? 5 : kind == 2 ? 1000 : (Weight{1} << 62) / (c.n + 1);
    for (NodeId v = 0; v < c.n; ++v) {
        const Weight weight = kind == 3 && random.below(2) == 0 ? most : random.between(0, most);
        c.weights.push_back(random.below(2) == 0 ? weight : -weight);
    }
    if (random.below(3) == 0) c.executable = random_mask(random, c.n, 85);
    if (random.below(3) == 0) c.within = random_mask(random, c.n, 75);
    return c;
}

// Each change of a proof must be refused.
void check_tampering(const ProvenanceGraph& graph, const Case& c, const Closure& k, check::Random& random) {
    const auto refused = [&](auto&& change) {
        Closure other = k;
        change(other);
        CHECK(!verify(graph, c, other));
    };
    refused([](Closure& x) { ++x.objective; });
    refused([](Closure& x) { --x.objective; });
    refused([](Closure& x) { x.selected = x.selected.resized(x.selected.size() + 1); });
    refused([](Closure& x) { x.certificate.absorbed.push_back(0); });
    refused([](Closure& x) { x.certificate.flow.push_back(1); });
    if (c.n > 0) {
        const auto v = static_cast<NodeId>(random.below(c.n));
        const Mask one = Mask::from_ids(Ids{v}, c.n);
        refused([&](Closure& x) { x.selected = x.selected.contains(v) ? x.selected - one : x.selected | one; });
        refused([&](Closure& x) { ++x.certificate.absorbed[v]; });
        refused([&](Closure& x) { --x.certificate.absorbed[v]; });
    }
    if (!k.certificate.flow.empty()) {
        const auto i = static_cast<std::size_t>(random.below(k.certificate.flow.size()));
        refused([&](Closure& x) { x.certificate.flow[i] = 0; });
        refused([&](Closure& x) { x.certificate.flow[i] = -x.certificate.flow[i]; });
        refused([&](Closure& x) { x.certificate.sources[i] = c.n; });
        refused([&](Closure& x) { x.certificate.sources[i] = x.certificate.targets[i]; });
    }
}

void test_brute_force() {
    check::Random random(6);
    for (int round = 0; round < 6000; ++round) {
        const Case c = random_case(random, 10);
        const ProvenanceGraph graph = c.graph();
        const Closure k = solve_closure(graph, c.problem());
        const Best best = brute_force(c);
        std::uint32_t set = 0;
        for (const NodeId v : k.selected.ids()) set |= 1U << v;
        CHECK(k.objective == best.value);
        CHECK(set == best.set);
        CHECK(verify(graph, c, k));
        check_tampering(graph, c, k, random);
    }
}

// Larger than brute force reaches: the verifier, itself checked above, is the judge.
void test_verified() {
    check::Random random(7);
    for (int round = 0; round < 150; ++round) {
        const Case c = random_case(random, 2000);
        const ProvenanceGraph graph = c.graph();
        CHECK(verify(graph, c, solve_closure(graph, c.problem())));
    }
    // Layers with many shared requirements: relabelling, gaps and returned flow all happen.
    for (int round = 0; round < 60; ++round) {
        Case c;
        const NodeId width = 40;
        const NodeId layers = 20;
        c.n = width * layers;
        for (NodeId v = width; v < c.n; ++v) {
            for (std::uint64_t e = 0; e < 1 + random.below(5); ++e) {
                c.sources.push_back(static_cast<NodeId>((v / width - 1) * width + random.below(width)));
                c.targets.push_back(v);
            }
        }
        if (round % 3 == 0) {
            for (std::uint64_t e = 0; e < random.below(60); ++e) {  // a few arcs back make large components
                c.sources.push_back(static_cast<NodeId>(random.below(c.n)));
                c.targets.push_back(static_cast<NodeId>(random.below(c.n)));
            }
        }
        for (NodeId v = 0; v < c.n; ++v) c.weights.push_back(random.between(-100, v / width >= 10 ? 120 : 60));
        const ProvenanceGraph graph = c.graph();
        CHECK(verify(graph, c, solve_closure(graph, c.problem())));
    }
    // A ladder doubles the number of paths at each rung: whatever counts along paths must not overflow.
    for (const Weight scale : {Weight{1}, Weight{1} << 50}) {
        Case c;
        c.n = 2000;
        for (NodeId v = 1; v < c.n; ++v) {
            for (NodeId back = 1; back <= std::min<NodeId>(v, 3); ++back) {
                c.sources.push_back(v - back);
                c.targets.push_back(v);
            }
        }
        for (NodeId v = 0; v < c.n; ++v) c.weights.push_back(scale * random.between(-2, 2));
        const ProvenanceGraph graph = c.graph();
        CHECK(verify(graph, c, solve_closure(graph, c.problem())));
    }
}

// The balances are what the flow comes to, and no room is left below nothing.
template <class W, class Flow, class Chosen>
bool is_flow(const Flow& flow, const Needs& needs, const Array<W>& weight, const Chosen& chosen) {
    Array<W> balance(weight);
    bool same = true;
    flow.for_each_flow([&](KernelArc arc, W amount) {
        const auto tail = std::upper_bound(needs.first.begin(), needs.first.end(), arc) - needs.first.begin() - 1;
        balance[static_cast<std::size_t>(tail)] -= amount;
        balance[needs.heads[arc]] += amount;
        same = same && amount > 0;
    });
    for (NodeId v = 0; v < needs.num_nodes(); ++v) {
        same = same && flow.is_chosen(v) == chosen(v) && flow.balance(v) == balance[v] &&
               balance[v] >= std::min<W>(weight[v], 0);
    }
    return same;
}

// Two algorithms that share nothing, each whole or a little at a time, either way round, and both in turns: the smallest
// optimum is unique, so they must agree.
template <class W>
void test_flows(std::uint64_t seed) {
    check::Random random(seed);
    // Kept from round to round, as the library keeps them.
    Dependants dependants;
    ClosureFlow<W> flow;
    Pseudoflow<W> trees;
    PushRelabel<W> pushes;
    ClosureSolver<W> reduced;
    std::uint64_t trees_paused = 0;
    std::uint64_t pushes_paused = 0;
    std::uint64_t trees_won = 0;
    std::uint64_t pushes_won = 0;
    for (int round = 0; round < 400; ++round) {
        const auto n = static_cast<NodeId>(1 + random.below(round % 10 == 0 ? 3000 : 60));
        const std::uint64_t span = round % 3 == 0 ? 8 : n;
        Needs needs;
        Array<W> weight;
        for (NodeId v = 0; v < n; ++v) {
            needs.first.push_back(needs.num_arcs());
            const auto reach = std::min<std::uint64_t>(v, span);
            for (std::uint64_t e = 0; reach > 0 && e < random.below(5); ++e) {
                needs.heads.push_back(v - 1 - static_cast<NodeId>(random.below(reach)));
            }
            weight.push_back((W{1} << (8 * sizeof(W) - 24)) / 3000 / 100 * random.between(-100, 90 + round % 20));
        }
        needs.first.push_back(needs.num_arcs());
        flow.solve(needs, weight, dependants, round % 2 == 0 ? ClosureFlow<W>::kTurn : 0);  // or turns of one step each
        dependants.assign(needs, true);
        (flow.num_turns() % 2 == 1 ? trees_won : pushes_won) += static_cast<std::uint64_t>(flow.num_turns() > 1);
        reduced.solve(needs, weight);
        const auto chosen = [&](NodeId v) { return reduced.chosen()[v] != 0; };
        CHECK(is_flow(flow, needs, weight, chosen));
        for (const bool pull : {false, true}) {
            trees.start(needs, weight, dependants, pull);
            while (!trees.advance(random.below(100))) {
                ++trees_paused;
            }
            pushes.start(needs, weight, dependants, pull);
            while (!pushes.advance(random.below(100))) {
                ++pushes_paused;
            }
            CHECK(is_flow(trees, needs, weight, chosen) && is_flow(pushes, needs, weight, chosen));
        }
    }
    CHECK(trees_paused > 100 && pushes_paused > 100 && trees_won > 0 && pushes_won > 0);
}

// What is there to gain has a long way to go: pseudoflow walks the same trees again and again, push-relabel does not.
void test_turns() {
    const NodeId n = 20000;
    Needs needs;
    Array<Weight> weight;
    for (NodeId v = 0; v < n; ++v) {
        needs.first.push_back(needs.num_arcs());
        for (NodeId step = 1; step <= 3 && step <= v; ++step) {
            needs.heads.push_back(v - step);
        }
        weight.push_back(v % 2 == 1 ? Weight{v} + 1 : Weight{v} - n);
    }
    needs.first.push_back(needs.num_arcs());
    ClosureFlow<Weight> flow;
    Dependants dependants;
    flow.solve(needs, weight, dependants);
    CHECK(flow.num_turns() == 2);
    const auto chosen = [&](NodeId) { return false; };  // all there is to gain pays for all there is to lose, and no more
    CHECK(is_flow(flow, needs, weight, chosen));
    for (Weight& amount : weight) {
        amount = amount > 0 ? 1 : -1;
    }
    flow.solve(needs, weight, dependants);
    CHECK(flow.num_turns() == 1);
}

// A snapshot that nobody validated may say that a node needs itself. Merged into itself, its weight would double.
void test_self_need() {
    const auto honest = ProvenanceGraph::from_edges(2, std::vector<NodeId>{0}, std::vector<NodeId>{1}).to_bytes();
    forge::Bytes bytes(honest.begin(), honest.end());
    forge::put(bytes, bytes.size() - 8, 4, 1);  // the first of two heads: the one parent of node 1
    forge::seal_graph(bytes);
    const auto graph = ProvenanceGraph::from_bytes(bytes);
    CHECK(graph.parents(1) == std::vector<NodeId>{1});
    const std::vector<Weight> weights{-1, (Weight{1} << 62) - 1};
    const Closure closure = solve_closure(graph, {weights, nullptr, nullptr});
    CHECK(closure.objective == weights[1] && closure.selected.count() == 1);
    CHECK(solve_frontier(graph, {.values = weights, .costs = std::vector<Weight>{1, 1}}).numerators.size() == 1);
}

// One graph, many solvers: the answer and its proof do not depend on who else is at work.
void test_threads() {
    check::Random random(10);
    const Case c = random_case(random, 4000);
    const ProvenanceGraph graph = c.graph();
    const Closure alone = solve_closure(graph, c.problem());
    std::vector<Closure> together(4);
    std::vector<std::thread> threads;
    for (Closure& closure : together) {
        threads.emplace_back([&] { closure = solve_closure(graph, c.problem()); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Closure& closure : together) {
        CHECK(closure.selected == alone.selected && closure.objective == alone.objective);
        CHECK(closure.certificate.flow == alone.certificate.flow && closure.certificate.sources == alone.certificate.sources);
    }
}

void test_limits() {
    Case c;
    c.n = 2;
    c.sources = {0};
    c.targets = {1};
    const Weight top = Weight{1} << 62;
    c.weights = {0, top};
    CHECK(solve_closure(c.graph(), c.problem()).objective == top);
    c.weights = {-1, top};
    CHECK_THROWS(solve_closure(c.graph(), c.problem()), WeightOverflow);
    c.weights = {INT64_MIN, INT64_MIN};
    CHECK_THROWS(solve_closure(c.graph(), c.problem()), WeightOverflow);
    c.weights = {-1, top};
    c.within = Mask::from_ids(Ids{1}, 2);  // what is outside does not count
    CHECK(solve_closure(c.graph(), c.problem()).objective == top);
    c.within = Mask(3);
    CHECK_THROWS(solve_closure(c.graph(), c.problem()), InvalidGraph);
    c.within.reset();
    c.weights = {1};
    CHECK_THROWS(solve_closure(c.graph(), c.problem()), InvalidGraph);
    // A ring with all the weight the limit allows: flow inside the component runs both ways.
    Case ring;
    ring.n = 4;
    ring.sources = {0, 1, 2, 3};
    ring.targets = {1, 2, 3, 0};
    ring.weights = {top / 2, -(top / 4), top / 4 - 1, -1};
    const Closure k = solve_closure(ring.graph(), ring.problem());
    CHECK(k.selected.count() == 4 && verify(ring.graph(), ring, k));
}

}  // namespace

int main() {
    test_brute_force();
    test_verified();
    test_flows<Weight>(8);
    test_flows<Wide>(9);
    test_turns();
    test_self_need();
    test_threads();
    test_limits();
    return check::finish("closure");
}

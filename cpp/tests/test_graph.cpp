// Purpose: building, growing, reach and order against a set of pairs.
#include <algorithm>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "check.hpp"
#include "memorepair/errors.hpp"
#include "memorepair/graph.hpp"

using memorepair::Mask;
using memorepair::NodeId;
using memorepair::ProvenanceGraph;
using Ids = std::vector<NodeId>;

namespace {

// The plain model: a set of pairs, and a matrix closed by Warshall's rule.
struct Model {
    NodeId num_nodes = 0;
    std::set<std::pair<NodeId, NodeId>> edges;

    std::vector<std::vector<char>> reachable() const {
        std::vector<std::vector<char>> to(num_nodes, std::vector<char>(num_nodes));
        for (NodeId v = 0; v < num_nodes; ++v) to[v][v] = 1;
        for (const auto& [s, t] : edges) to[s][t] = 1;
        for (NodeId k = 0; k < num_nodes; ++k)
            for (NodeId i = 0; i < num_nodes; ++i)
                for (NodeId j = 0; j < num_nodes; ++j) to[i][j] = static_cast<char>(to[i][j] | (to[i][k] & to[k][j]));
        return to;
    }

    Ids order() const {
        const auto to = reachable();
        Ids out;
        std::vector<char> done(num_nodes);
        while (out.size() < num_nodes) {
            for (NodeId v = 0; v < num_nodes; ++v) {
                bool ready = done[v] == 0;
                for (const auto& [s, t] : edges) {
                    ready = ready && !(to[v][t] && to[t][v] && !to[v][s] && done[s] == 0);
                }
                if (!ready) continue;
                for (NodeId u = 0; u < num_nodes; ++u) {
                    if (to[u][v] && to[v][u]) {
                        out.push_back(u);
                        done[u] = 1;
                    }
                }
                break;
            }
        }
        return out;
    }
};

void compare(const ProvenanceGraph& graph, const Model& model, check::Random& random) {
    CHECK(graph.num_nodes() == model.num_nodes);
    CHECK(graph.num_edges() == model.edges.size());
    const auto to = model.reachable();
    for (NodeId v = 0; v < model.num_nodes; ++v) {
        Ids parents;
        Ids children;
        for (const auto& [s, t] : model.edges) {
            if (t == v) parents.push_back(s);
            if (s == v) children.push_back(t);
        }
        CHECK(graph.parents(v) == parents);
        CHECK(graph.children(v) == children);
    }
    Ids roots;
    for (std::uint64_t i = 0; model.num_nodes > 0 && i < random.below(4); ++i) {
        roots.push_back(static_cast<NodeId>(random.below(model.num_nodes)));
    }
    Ids forward;
    Ids backward;
    for (NodeId v = 0; v < model.num_nodes; ++v) {
        if (std::ranges::any_of(roots, [&](NodeId r) { return to[r][v] != 0; })) forward.push_back(v);
        if (std::ranges::any_of(roots, [&](NodeId r) { return to[v][r] != 0; })) backward.push_back(v);
    }
    CHECK(graph.reach(roots) == Mask::from_ids(forward, model.num_nodes));
    CHECK(graph.ancestors(roots) == Mask::from_ids(backward, model.num_nodes));
    const Ids order = model.order();
    CHECK(graph.order() == order);
    Ids groups(model.num_nodes);
    NodeId next = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        if (i > 0 && !(to[order[i]][order[i - 1]] && to[order[i - 1]][order[i]])) ++next;
        groups[order[i]] = next;
    }
    CHECK(graph.groups() == groups);
}

void test_random() {
    check::Random random(3);
    for (int round = 0; round < 400; ++round) {
        Model model;
        ProvenanceGraph graph;
        const std::uint64_t steps = 1 + random.below(5);
        for (std::uint64_t step = 0; step < steps; ++step) {
            const auto added = static_cast<NodeId>(random.below(8));
            model.num_nodes += added;
            Ids sources;
            Ids targets;
            for (std::uint64_t e = 0; model.num_nodes > 0 && e < random.below(20); ++e) {
                const auto s = static_cast<NodeId>(random.below(model.num_nodes));
                const auto t = static_cast<NodeId>(random.below(model.num_nodes));
                sources.push_back(s);
                targets.push_back(t);
                if (s != t) model.edges.insert({s, t});
            }
            graph.append(added, sources, targets);
        }
        compare(graph, model, random);
    }
}

void test_growth_equals_build() {
    check::Random random(4);
    ProvenanceGraph grown;
    Ids all_sources;
    Ids all_targets;
    NodeId num_nodes = 0;
    for (int step = 0; step < 3000; ++step) {
        const auto added = static_cast<NodeId>(1 + random.below(20));
        num_nodes += added;
        Ids sources;
        Ids targets;
        for (std::uint64_t e = 0; e < 3 * added; ++e) {
            sources.push_back(static_cast<NodeId>(random.below(num_nodes)));
            targets.push_back(static_cast<NodeId>(num_nodes - 1 - random.below(added)));
        }
        grown.append(added, sources, targets);
        all_sources.insert(all_sources.end(), sources.begin(), sources.end());
        all_targets.insert(all_targets.end(), targets.begin(), targets.end());
        if (step % 500 == 499) {
            const auto built = ProvenanceGraph::from_edges(num_nodes, all_sources, all_targets);
            CHECK(grown.num_edges() == built.num_edges());
            CHECK(grown.order() == built.order());
            CHECK(grown.groups() == built.groups());
            bool same = true;
            for (NodeId v = 0; v < num_nodes; ++v) {
                same = same && grown.parents(v) == built.parents(v) && grown.children(v) == built.children(v);
            }
            CHECK(same);
            // Small reaches (hash set), large ones (bits), and the switch in between.
            for (int query = 0; query < 50; ++query) {
                const Ids root{static_cast<NodeId>(random.below(num_nodes))};
                CHECK(grown.reach(root) == built.reach(root));
                CHECK(grown.ancestors(root) == built.ancestors(root));
            }
        }
    }
}

void test_refusals() {
    const Ids one{1};
    const Ids two{2, 0};
    CHECK_THROWS(ProvenanceGraph::from_edges(2, two, Ids({0, 1})), memorepair::NodeRange);
    CHECK_THROWS(ProvenanceGraph::from_edges(3, one, two), memorepair::InvalidGraph);
    CHECK_THROWS(ProvenanceGraph::from_edges(std::uint64_t{1} << 32, {}, {}), memorepair::Capacity);
    auto graph = ProvenanceGraph::from_edges(2, Ids{0}, one);
    const auto attempt = [&](std::uint64_t added, const Ids& s, const Ids& t) {
        graph.append(added, s, t);
        return 0;
    };
    CHECK_THROWS(attempt(5, Ids{7}, Ids{0}), memorepair::NodeRange);
    CHECK_THROWS(attempt(5, one, two), memorepair::InvalidGraph);
    CHECK_THROWS(attempt(~std::uint64_t{0}, {}, {}), memorepair::Capacity);
    CHECK_THROWS(attempt(0xffffffffU, {}, {}), memorepair::Capacity);
    CHECK(graph.num_nodes() == 2 && graph.num_edges() == 1);
    CHECK_THROWS(graph.reach(Ids{2}), memorepair::NodeRange);
    CHECK_THROWS(graph.parents(2), memorepair::NodeRange);
}

void test_long_chain() {
    constexpr NodeId n = 1000000;
    Ids sources;
    Ids targets;
    for (NodeId v = 0; v + 1 < n; ++v) {
        sources.push_back(v + 1);
        targets.push_back(v);
    }
    const auto graph = ProvenanceGraph::from_edges(n, sources, targets);
    CHECK(graph.reach(Ids{n - 1}).count() == n);
    CHECK(graph.reach(Ids{700}).count() == 701);
    CHECK(graph.order().front() == n - 1);
    sources.push_back(0);
    targets.push_back(n - 1);
    const auto ring = ProvenanceGraph::from_edges(n, sources, targets);
    CHECK(std::ranges::count(ring.groups(), NodeId{0}) == n);
}

// Readers share one graph without a lock; ThreadSanitizer watches.
void test_shared_readers() {
    check::Random random(5);
    Ids sources;
    Ids targets;
    for (int e = 0; e < 30000; ++e) {
        sources.push_back(static_cast<NodeId>(random.below(10000)));
        targets.push_back(static_cast<NodeId>(random.below(10000)));
    }
    const auto graph = ProvenanceGraph::from_edges(10000, sources, targets);
    const auto expected = graph.reach(Ids{1, 2, 3});
    std::vector<std::thread> threads;
    std::vector<char> same(4);
    for (std::size_t i = 0; i < same.size(); ++i) {
        threads.emplace_back([&, i] {
            for (int round = 0; round < 20; ++round) {
                same[i] = static_cast<char>(graph.reach(Ids{1, 2, 3}) == expected && graph.order().size() == 10000);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(std::ranges::all_of(same, [](char ok) { return ok != 0; }));
}

}  // namespace

int main() {
    test_random();
    test_growth_equals_build();
    test_refusals();
    test_long_chain();
    test_shared_readers();
    return check::finish("graph");
}

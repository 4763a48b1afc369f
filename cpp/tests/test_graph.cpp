// Purpose: building, growing, reach and order against a set of pairs.
#include <algorithm>
#include <memory>
#include <set>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "check.hpp"
#include "forge.hpp"
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

// The plain reach, for graphs too large for the matrix.
Ids walk(const std::vector<Ids>& lists, const Ids& roots) {
    std::vector<char> seen(lists.size());
    Ids todo;
    const auto visit = [&](NodeId node) {
        if (seen[node] == 0) {
            seen[node] = 1;
            todo.push_back(node);
        }
    };
    for (const NodeId root : roots) visit(root);
    for (std::size_t i = 0; i < todo.size(); ++i) {
        for (const NodeId head : lists[todo[i]]) visit(head);
    }
    std::sort(todo.begin(), todo.end());
    return todo;
}

// Reaches of every size in turn, on memory that the graph keeps: sorted, by blocks, by words; with and without overlay.
void test_reach_again_and_again() {
    check::Random random(6);
    NodeId num_nodes = 200000;
    std::vector<Ids> children(num_nodes);
    std::vector<Ids> parents(num_nodes);
    Ids sources;
    Ids targets;
    for (NodeId e = 0; e < num_nodes; ++e) {
        const auto a = static_cast<NodeId>(random.below(num_nodes));
        const auto b = static_cast<NodeId>(random.below(num_nodes));
        sources.push_back(std::min(a, b));
        targets.push_back(std::max(a, b));
        children[std::min(a, b)].push_back(std::max(a, b));
        parents[std::max(a, b)].push_back(std::min(a, b));
    }
    auto graph = ProvenanceGraph::from_edges(num_nodes, sources, targets);
    for (int round = 0; round < 150; ++round) {
        Ids roots(random.below(3) == 0 ? random.below(5) : std::uint64_t{1} << random.below(14));
        for (NodeId& root : roots) root = static_cast<NodeId>(random.below(num_nodes));
        CHECK(graph.reach(roots) == Mask::from_ids(walk(children, roots), num_nodes));
        CHECK(graph.ancestors(roots) == Mask::from_ids(walk(parents, roots), num_nodes));
        roots.push_back(num_nodes);
        CHECK_THROWS(graph.reach(roots), memorepair::NodeRange);
        if (round % 25 == 24) {
            const auto low = static_cast<NodeId>(random.below(num_nodes));
            graph.append(1, Ids{low, num_nodes}, Ids{num_nodes, 7});
            children.emplace_back();
            parents.emplace_back();
            children[low].push_back(num_nodes);
            parents[num_nodes].push_back(low);
            children[num_nodes].push_back(7);
            parents[7].push_back(num_nodes);
            ++num_nodes;
        }
    }
}

ProvenanceGraph read(const forge::Bytes& bytes) {
    // A copy of the exact length, so that a read past the end is seen by AddressSanitizer.
    return ProvenanceGraph::from_bytes(forge::Bytes(bytes.begin(), bytes.end()));
}

forge::Bytes bytes_of(const ProvenanceGraph& graph) {
    const auto bytes = graph.to_bytes();
    return {bytes.begin(), bytes.end()};
}

bool is_valid(const ProvenanceGraph& graph) {
    try {
        graph.validate();
        return true;
    } catch (const memorepair::InvalidGraph&) {
        return false;
    }
}

void test_snapshot() {
    check::Random random(7);
    for (int round = 0; round < 200; ++round) {
        Model model;
        ProvenanceGraph graph;
        for (std::uint64_t step = 0; step < 1 + random.below(4); ++step) {  // an overlay, as a rule
            const auto added = static_cast<NodeId>(random.below(8));
            model.num_nodes += added;
            Ids sources;
            Ids targets;
            for (std::uint64_t e = 0; model.num_nodes > 0 && e < random.below(20); ++e) {
                sources.push_back(static_cast<NodeId>(random.below(model.num_nodes)));
                targets.push_back(static_cast<NodeId>(random.below(model.num_nodes)));
                if (sources.back() != targets.back()) model.edges.insert({sources.back(), targets.back()});
            }
            graph.append(added, sources, targets);
        }
        const auto bytes = bytes_of(graph);
        CHECK(bytes.size() == 48 + 16 * graph.num_nodes() + 8 * graph.num_edges());
        auto sealed = bytes;
        forge::seal_graph(sealed);  // the checksum by another hand
        CHECK(sealed == bytes);
        auto loaded = read(bytes);
        compare(loaded, model, random);
        CHECK(is_valid(loaded) && is_valid(graph) && bytes_of(loaded) == bytes);
        graph.append(1, Ids{model.num_nodes}, Ids{0});
        loaded.append(1, Ids{model.num_nodes}, Ids{0});
        CHECK(bytes_of(loaded) == bytes_of(graph));

        for (std::size_t bit = 0; bit < bytes.size() * 8; bit += 1 + random.below(20)) {
            auto flipped = bytes;
            flipped[bit / 8] = static_cast<std::uint8_t>(flipped[bit / 8] ^ (1U << (bit % 8)));
            CHECK_THROWS(read(flipped), memorepair::InvalidGraph);
        }
        for (std::size_t length = 0; length < bytes.size(); ++length) {
            CHECK_THROWS(read({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length)}),
                         memorepair::InvalidGraph);
        }
        // A right checksum over a number that is wrong: refused, or in memory and told by validate().
        for (std::size_t at = 0; at < bytes.size(); at += 4) {
            if (at >= 24 && at < 32) continue;
            auto forged = bytes;
            const std::uint64_t old = forge::number(forged, at, 4);
            forge::put(forged, at, 4, random.below(2) == 0 ? random.below(model.num_nodes + 2) : 0xffffffffU);
            forge::seal_graph(forged);
            if (forge::number(forged, at, 4) == old) continue;
            try {
                const auto graph_of_lies = read(forged);
                CHECK(!is_valid(graph_of_lies));
                (void)graph_of_lies.order();
                for (NodeId node = 0; node < graph_of_lies.num_nodes(); ++node) {
                    CHECK(graph_of_lies.reach(Ids{node}).contains(node));
                }
            } catch (const memorepair::InvalidGraph&) {
                CHECK(true);
            }
        }
    }
    // More than one block of offsets and of lists, and sizes that fill no stripe.
    Ids sources;
    Ids targets;
    for (int e = 0; e < 60001; ++e) {
        sources.push_back(static_cast<NodeId>(random.below(30011)));
        targets.push_back(static_cast<NodeId>(random.below(30011)));
    }
    const auto graph = ProvenanceGraph::from_edges(30011, sources, targets);
    auto bytes = bytes_of(graph);
    CHECK(is_valid(read(bytes)) && bytes_of(read(bytes)) == bytes && read(bytes).order() == graph.order());
    // Kept, not copied, until the graph has grown out of it; copied where the bytes are not aligned.
    auto kept = std::make_shared<forge::Bytes>(bytes);
    const std::weak_ptr<forge::Bytes> watch = kept;
    const std::span<const std::uint8_t> span(*kept);
    auto loaded = ProvenanceGraph::from_bytes(span, std::move(kept));
    CHECK(!watch.expired() && bytes_of(loaded) == bytes && loaded.order() == graph.order());
    loaded.append(1, Ids{0}, Ids{30011});
    CHECK(!watch.expired() && loaded.children(0).back() == 30011);
    loaded.append(90000, {}, {});
    CHECK(watch.expired() && is_valid(loaded) && loaded.children(0).back() == 30011);
    auto shifted = std::make_shared<forge::Bytes>(bytes);
    shifted->insert(shifted->begin(), 0);
    const std::weak_ptr<forge::Bytes> watch_shifted = shifted;
    const auto rest = std::span<const std::uint8_t>(*shifted).subspan(1);
    const auto copied = ProvenanceGraph::from_bytes(rest, std::move(shifted));
    CHECK(watch_shifted.expired() && bytes_of(copied) == bytes);
    // Offsets that run backwards, or past the lists and back.
    for (const std::uint64_t wrong : {std::uint64_t{60001}, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
        for (const std::size_t at : {std::size_t{32}, std::size_t{40}, std::size_t{32 + 4096 - 8}, std::size_t{32 + 4096},
                                     std::size_t{32 + 8 * 30011}, std::size_t{40 + 8 * 30011}}) {
            auto forged = bytes;
            forge::put(forged, at, 8, wrong);
            forge::seal_graph(forged);
            CHECK_THROWS(read(forged), memorepair::InvalidGraph);
        }
    }
    forge::put(bytes, bytes.size() - 4, 4, 30011);
    forge::seal_graph(bytes);
    CHECK_THROWS(read(bytes), memorepair::InvalidGraph);
    // Sizes whose product or sum would wrap around, or ask for more memory than there is.
    const std::uint64_t far = ~std::uint64_t{0};
    for (const std::uint64_t nodes : {std::uint64_t{0}, std::uint64_t{0xffffffff}, std::uint64_t{1} << 61, far}) {
        for (const std::uint64_t edges : {std::uint64_t{1}, std::uint64_t{1} << 61, far - nodes + 1}) {
            forge::Bytes header(48);
            header[0] = 1;
            forge::put(header, 8, 8, nodes);
            forge::put(header, 16, 8, edges);
            if (nodes != 0 || edges != 0) CHECK_THROWS(read(header), memorepair::InvalidGraph);
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
    test_reach_again_and_again();
    test_snapshot();
    test_refusals();
    test_long_chain();
    test_shared_readers();
    return check::finish("graph");
}

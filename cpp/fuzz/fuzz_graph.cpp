// Purpose: any bytes as a graph snapshot, with their own checksum and with a right one and fitting sizes.
// Contract: refused with InvalidGraph, or read as a graph that is written as the very same bytes; then every kernel
// stays in its memory and comes back, and after validate() it also keeps its promises.
#include <algorithm>
#include <cstdlib>

#include "../tests/forge.hpp"
#include "memorepair/closure.hpp"
#include "memorepair/errors.hpp"
#include "memorepair/frontier.hpp"
#include "memorepair/graph.hpp"

namespace {

using memorepair::NodeId;
using memorepair::ProvenanceGraph;
using memorepair::Weight;

void require(bool holds) {
    if (!holds) {
        std::abort();
    }
}

bool is_valid(const ProvenanceGraph& graph) {
    try {
        graph.validate();
        return true;
    } catch (const memorepair::InvalidGraph&) {
        return false;
    }
}

void use(const ProvenanceGraph& graph, bool valid) {
    const std::uint64_t num_nodes = graph.num_nodes();
    const auto order = graph.order();
    const auto groups = graph.groups();
    require(!valid || (order.size() == num_nodes && groups.size() == num_nodes));
    for (NodeId node = 0; node < num_nodes; ++node) {
        const std::vector<NodeId> root{node};
        require(graph.reach(root).contains(node) && graph.ancestors(root).contains(node));
        for (const NodeId child : graph.children(node)) {
            require(!valid || (graph.has_edge(node, child) && child != node));
        }
        for (const NodeId parent : graph.parents(node)) {
            require(!valid || (graph.has_edge(parent, node) && graph.reach({&parent, 1}).contains(node)));
        }
    }
    // Small weights, and the largest whose sum is within the limit: doubled, they overflow.
    const auto most = static_cast<Weight>((std::uint64_t{1} << 62) / std::max<std::uint64_t>(num_nodes, 1));
    for (const Weight scale : {Weight{1}, std::max<Weight>(most / 12, 1)}) {
        std::vector<Weight> weights(num_nodes);
        std::vector<Weight> costs(num_nodes);
        for (std::size_t i = 0; i < weights.size(); ++i) {
            weights[i] = scale * (static_cast<Weight>(i * 7 % 23) - 11);
            costs[i] = scale * static_cast<Weight>(i * 5 % 11);
        }
        const memorepair::ClosureProblem problem{weights, nullptr, nullptr};
        const memorepair::Closure closure = memorepair::solve_closure(graph, problem);
        const memorepair::Certificate& proof = closure.certificate;
        const bool proved = memorepair::verify_closure(graph, problem, closure.selected, closure.objective, proof.sources,
                                                       proof.targets, proof.flow, proof.absorbed);
        require(!valid || proved);
        const memorepair::FrontierProblem question{weights, costs};
        const memorepair::Frontier frontier = memorepair::solve_frontier(graph, question);
        const memorepair::FrontierCertificate& flow = frontier.certificate;
        const bool whole = memorepair::verify_frontier(graph, question, frontier.piece, frontier.numerators,
                                                       frontier.denominators, flow.sources, flow.targets, flow.flow);
        require(!valid || whole);
        const auto choice = memorepair::choose_within_budget(graph, question, frontier, 20 * scale, {});
        require(choice.cost <= 20 * scale);
    }
}

void read(const forge::Bytes& bytes) {
    ProvenanceGraph graph;
    try {
        graph = ProvenanceGraph::from_bytes(bytes);
    } catch (const memorepair::InvalidGraph&) {
        return;
    }
    require(std::ranges::equal(graph.to_bytes(), bytes));
    const bool valid = is_valid(graph);
    use(graph, valid);
    const std::uint64_t before = graph.num_nodes();
    graph.append(2, std::vector<NodeId>{0, static_cast<NodeId>(before)},
                 std::vector<NodeId>{static_cast<NodeId>(before), static_cast<NodeId>(before + 1)});
    require(graph.num_nodes() == before + 2 && is_valid(graph) == valid);
    require(!valid || graph.reach(std::vector<NodeId>{0}).contains(before + 1));
    const auto grown = ProvenanceGraph::from_bytes(graph.to_bytes());
    require(std::ranges::equal(grown.to_bytes(), graph.to_bytes()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    forge::Bytes bytes(data, data + size);
    read(bytes);
    // A mutator hits fitting sizes, totals and checksums once in a lifetime: the first byte says how many nodes, the
    // rest is counts and heads, brought into range. What lists say, and whether they agree, is left as it came.
    if (size < 1) {
        return 0;
    }
    const std::uint64_t nodes = std::min<std::uint64_t>(data[0] % 24, (size - 1) / 2);
    std::vector<std::uint8_t> rest(data + 1, data + size);
    std::uint64_t totals[2] = {0, 0};
    for (std::size_t i = 0; i < 2 * nodes; ++i) {
        rest[i] = static_cast<std::uint8_t>(rest[i] % 8);
        totals[i / nodes] += rest[i];
    }
    const std::uint64_t edges = std::min(totals[0], totals[1]);
    for (std::size_t side = 0; side < 2; ++side) {
        for (std::size_t i = (side + 1) * nodes; totals[side] > edges; --i) {
            const std::uint64_t cut = std::min<std::uint64_t>(rest[i - 1], totals[side] - edges);
            rest[i - 1] = static_cast<std::uint8_t>(rest[i - 1] - cut);
            totals[side] -= cut;
        }
    }
    rest.resize(2 * (nodes + edges));
    forge::Bytes whole(48 + 16 * nodes + 8 * edges);
    whole[0] = 1;
    forge::put(whole, 8, 8, nodes);
    forge::put(whole, 16, 8, edges);
    for (std::size_t side = 0; side < 2; ++side) {
        std::uint64_t offset = 0;
        for (std::size_t node = 0; node < nodes; ++node) {
            offset += rest[side * nodes + node];
            forge::put(whole, 32 + 8 * (side * (nodes + 1) + node + 1), 8, offset);
        }
    }
    for (std::size_t i = 0; i < 2 * edges; ++i) {
        const std::uint8_t head = rest[2 * nodes + i];
        forge::put(whole, 48 + 16 * nodes + 4 * i, 4, head != 0xff ? head % nodes : head);
    }
    forge::seal_graph(whole);
    read(whole);
    // And a graph that holds what it says, then one number of it changed.
    std::vector<NodeId> ends[2];
    for (std::size_t i = 1; i < size; ++i) {
        ends[i % 2].push_back(data[i] % 24);
    }
    ends[1].resize(ends[0].size());
    const auto honest = ProvenanceGraph::from_edges(24, ends[0], ends[1]).to_bytes();
    whole.assign(honest.begin(), honest.end());
    require(is_valid(ProvenanceGraph::from_bytes(whole)));
    read(whole);
    forge::put(whole, 32 + 4 * (data[0] % ((whole.size() - 32) / 4)), 4, data[size - 1] % 24);
    forge::seal_graph(whole);
    read(whole);
    return 0;
}

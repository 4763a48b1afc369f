// Purpose: building and growing the influence graph.
// Contract and invariants: memorepair/graph.hpp. Oracle: cpp/tests/test_graph.cpp (std::set of pairs).
#include "memorepair/graph.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "adjacency.hpp"
#include "arc_set.hpp"
#include "memorepair/errors.hpp"
#include "scratch.hpp"

namespace memorepair {

namespace {

// The overlay may hold this share of the base before both become a new base: an append then costs a constant on
// average, and a reach walks few linked lists.
constexpr std::uint64_t kOverlayShare = 4;
constexpr std::uint64_t kOverlayFloor = 1024;

void check_num_nodes(std::uint64_t num_nodes) {
    if (num_nodes > kMaxNodes) {
        throw Capacity("number of nodes: expected at most " + std::to_string(kMaxNodes) + ", got " +
                       std::to_string(num_nodes));
    }
}

}  // namespace

Csr Adjacency::merged(std::uint64_t num_nodes) const {
    Array<ArcIndex> offsets(num_nodes + 1);
    Array<NodeId> heads(base_.num_arcs() + links_.size());
    offsets[0] = 0;
    NodeId* next = heads.data();
    std::vector<NodeId> added;
    for (std::uint64_t node = 0; node < num_nodes; ++node) {
        const std::span<const NodeId> old = base_list(static_cast<NodeId>(node));
        added.clear();
        if (node < first_link_.size()) {
            for (std::uint32_t link = first_link_[node]; link != kNoLink; link = links_[link].next) {
                added.push_back(links_[link].head);
            }
        }
        if (added.empty()) {
            next = std::copy(old.begin(), old.end(), next);
        } else {
            std::sort(added.begin(), added.end());
            next = std::merge(old.begin(), old.end(), added.begin(), added.end(), next);
        }
        offsets[node + 1] = static_cast<ArcIndex>(next - heads.data());
    }
    return make_csr(std::move(offsets), std::move(heads));
}

ProvenanceGraph::ProvenanceGraph()
    : children_(std::make_unique<Adjacency>()),
      parents_(std::make_unique<Adjacency>()),
      overlay_(std::make_unique<ArcSet>()),
      scratch_(std::make_unique<ScratchPool>()) {}
ProvenanceGraph::ProvenanceGraph(ProvenanceGraph&&) noexcept = default;
ProvenanceGraph& ProvenanceGraph::operator=(ProvenanceGraph&&) noexcept = default;
ProvenanceGraph::~ProvenanceGraph() = default;

ProvenanceGraph ProvenanceGraph::from_edges(std::uint64_t num_nodes, std::span<const NodeId> sources,
                                            std::span<const NodeId> targets) {
    check_num_nodes(num_nodes);
    ProvenanceGraph graph;
    check_edges(num_nodes, sources, targets);
    // Parents first: edges come child by child as a rule, so their lists fill in order and one scatter is enough.
    Csr parents = build_csr(num_nodes, targets, sources);
    graph.children_ = std::make_unique<Adjacency>(transpose(parents));
    graph.parents_ = std::make_unique<Adjacency>(std::move(parents));
    graph.num_nodes_ = num_nodes;
    return graph;
}

std::uint64_t ProvenanceGraph::num_edges() const noexcept {
    return children_->base().num_arcs() + overlay_->size();
}

void ProvenanceGraph::check_node(std::uint64_t node) const {
    if (node >= num_nodes_) {
        throw_node_range("node", node, num_nodes_);
    }
}

bool ProvenanceGraph::has_edge(NodeId source, NodeId target) const {
    if (source >= num_nodes_ || target >= num_nodes_) {
        return false;
    }
    const std::span<const NodeId> out = children_->base_list(source);
    const std::span<const NodeId> in = parents_->base_list(target);
    const bool in_base = out.size() <= in.size() ? std::binary_search(out.begin(), out.end(), target)
                                                 : std::binary_search(in.begin(), in.end(), source);
    return in_base || overlay_->contains(ArcSet::key(source, target));
}

void ProvenanceGraph::append(std::uint64_t num_new_nodes, std::span<const NodeId> sources,
                             std::span<const NodeId> targets) {
    if (num_new_nodes > kMaxNodes) {
        check_num_nodes(num_new_nodes);
    }
    const std::uint64_t num_nodes = num_nodes_ + num_new_nodes;
    check_num_nodes(num_nodes);
    if (num_nodes_ == 0) {
        *this = from_edges(num_nodes, sources, targets);
        return;
    }
    check_edges(num_nodes, sources, targets);
    if (overlay_->size() + sources.size() >= Adjacency::kMaxLinks) {
        throw Capacity("appended edges: expected fewer than " + std::to_string(Adjacency::kMaxLinks) +
                       " at once, got " + std::to_string(sources.size()));
    }
    // All memory first: from here on nothing can throw, so a failed append leaves the graph as it was.
    children_->reserve(num_nodes, sources.size());
    parents_->reserve(num_nodes, sources.size());
    overlay_->reserve(sources.size());
    num_nodes_ = num_nodes;
    for (std::size_t e = 0; e < sources.size(); ++e) {
        const NodeId source = sources[e];
        const NodeId target = targets[e];
        if (source != target && !has_edge(source, target)) {
            overlay_->insert(ArcSet::key(source, target));
            children_->add(source, target);
            parents_->add(target, source);
        }
    }
    const Csr& base = children_->base();
    const std::uint64_t grown = overlay_->size() + (num_nodes_ - base.num_nodes());
    if (grown > kOverlayFloor + (base.num_nodes() + base.num_arcs()) / kOverlayShare) {
        compact();
    }
}

void ProvenanceGraph::compact() {
    try {
        auto children = std::make_unique<Adjacency>(children_->merged(num_nodes_));
        auto parents = std::make_unique<Adjacency>(parents_->merged(num_nodes_));
        children_ = std::move(children);
        parents_ = std::move(parents);
        overlay_->clear();
    } catch (const std::bad_alloc&) {
        // The append itself has succeeded and the overlay still answers; the next append tries again.
    }
}

std::vector<NodeId> ProvenanceGraph::parents(std::uint64_t node) const {
    check_node(node);
    return parents_->sorted(static_cast<NodeId>(node));
}

std::vector<NodeId> ProvenanceGraph::children(std::uint64_t node) const {
    check_node(node);
    return children_->sorted(static_cast<NodeId>(node));
}

}  // namespace memorepair

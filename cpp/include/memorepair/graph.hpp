// Purpose: the influence graph: who was produced with whose support.
// Contract: an edge source -> target means "source influences target". Self edges are dropped and duplicates merged. A
// graph only grows; an operation that throws has changed nothing.
// Invariants: both directions hold the same edges; num_edges counts each edge once; the overlay holds no edge of the
// base.
// Source: CSR after the GAP benchmark suite; base plus overlay after log-structured merging.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "memorepair/mask.hpp"
#include "memorepair/types.hpp"

namespace memorepair {

struct Csr;
class Adjacency;
class ArcSet;
class ScratchPool;

// Thread safety: const members may run at the same time; append() needs the graph for itself.
class ProvenanceGraph {
public:
    ProvenanceGraph();
    ProvenanceGraph(ProvenanceGraph&&) noexcept;
    ProvenanceGraph& operator=(ProvenanceGraph&&) noexcept;
    ~ProvenanceGraph();

    static ProvenanceGraph from_edges(std::uint64_t num_nodes, std::span<const NodeId> sources,
                                      std::span<const NodeId> targets);

    // What to_bytes() wrote; format in graph_codec.cpp. Throws InvalidGraph for bytes that are damaged. Bytes that were
    // made to deceive may get past it: then every kernel stays inside its memory, and validate() tells.
    static ProvenanceGraph from_bytes(std::span<const std::uint8_t> bytes);
    // The same without a copy, for bytes that neither change nor go away while `owner` lives. The graph holds it until
    // it has grown so far that it makes arrays of its own.
    static ProvenanceGraph from_bytes(std::span<const std::uint8_t> bytes, std::shared_ptr<const void> owner);
    // Base and overlay as one. The same graph gives the same bytes.
    Array<std::uint8_t> to_bytes() const;
    // Throws InvalidGraph unless all lists are sorted and both directions hold the same edges. O(nodes + edges).
    void validate() const;

    std::uint64_t num_nodes() const noexcept { return num_nodes_; }
    std::uint64_t num_edges() const noexcept;

    // Adds nodes with the next ids, then edges between any nodes. Amortised O(what is appended).
    void append(std::uint64_t num_new_nodes, std::span<const NodeId> sources, std::span<const NodeId> targets);

    // Everything the roots influence, the roots included. O(what is reached and its edges), but for the first search,
    // and for searches at the same time: each of those allocates O(num_nodes).
    Mask reach(std::span<const NodeId> roots) const;
    // Everything that influences the roots, the roots included.
    Mask ancestors(std::span<const NodeId> roots) const;

    // Sorted.
    std::vector<NodeId> parents(std::uint64_t node) const;
    std::vector<NodeId> children(std::uint64_t node) const;
    bool has_edge(NodeId source, NodeId target) const;

    // Strongly connected components, numbered in the order order() lists them.
    std::vector<NodeId> groups() const;
    // A topological order of the groups, each group's nodes ascending and adjacent. Among the groups that are ready,
    // the one with the smallest node comes first, so the answer depends on the graph alone.
    std::vector<NodeId> order() const;

    // For kernels: unsorted across base and overlay.
    const Adjacency& children_of() const noexcept { return *children_; }
    const Adjacency& parents_of() const noexcept { return *parents_; }

private:
    struct Ordering;
    Ordering compute_ordering() const;
    void check_node(std::uint64_t node) const;
    void compact();

    std::uint64_t num_nodes_ = 0;
    std::unique_ptr<Adjacency> children_;
    std::unique_ptr<Adjacency> parents_;
    std::unique_ptr<ArcSet> overlay_;
    std::unique_ptr<ScratchPool> scratch_;
};

}  // namespace memorepair

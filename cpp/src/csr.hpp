// Purpose: compressed adjacency (CSR), built by counting, prefix sums and scattering.
// Contract: neighbours(u) is sorted and free of duplicates and of u itself.
// Invariant: what the views show never changes, and lives as long as `owner` does; copies share it.
// Source: the counting-sort build of the GAP benchmark suite (Beamer et al. 2015).
#pragma once

#include <memory>
#include <span>

#include "memorepair/types.hpp"

namespace memorepair {

// Views, so that the bytes of a snapshot serve as they are.
struct Csr {
    std::span<const ArcIndex> offsets;  // num_nodes + 1
    std::span<const NodeId> heads;
    std::shared_ptr<const void> owner;

    std::uint64_t num_nodes() const noexcept { return offsets.empty() ? 0 : offsets.size() - 1; }
    ArcIndex num_arcs() const noexcept { return heads.size(); }
    std::span<const NodeId> neighbours(NodeId node) const noexcept {
        return {heads.data() + offsets[node], heads.data() + offsets[std::size_t{node} + 1]};
    }
};

// A CSR of its own arrays.
Csr make_csr(Array<ArcIndex> offsets, Array<NodeId> heads);

// Throws NodeRange, or InvalidGraph when the lengths differ.
void check_edges(std::uint64_t num_nodes, std::span<const NodeId> sources, std::span<const NodeId> targets);

// One list of heads per tail, from edges that were checked. Self edges are dropped and duplicates merged.
Csr build_csr(std::uint64_t num_nodes, std::span<const NodeId> tails, std::span<const NodeId> heads);

// The reverse graph. Lists of the result are sorted because tails are visited in order.
Csr transpose(const Csr& csr);

}  // namespace memorepair

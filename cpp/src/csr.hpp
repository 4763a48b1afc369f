// Purpose: compressed adjacency (CSR), built by counting, prefix sums and scattering.
// Contract: neighbours(u) is sorted and free of duplicates and of u itself.
// Source: the counting-sort build of the GAP benchmark suite (Beamer et al. 2015).
#pragma once

#include <span>

#include "memorepair/types.hpp"

namespace memorepair {

struct Csr {
    Array<ArcIndex> offsets;  // num_nodes + 1
    Array<NodeId> heads;

    std::uint64_t num_nodes() const noexcept { return offsets.empty() ? 0 : offsets.size() - 1; }
    ArcIndex num_arcs() const noexcept { return heads.size(); }
    std::span<const NodeId> neighbours(NodeId node) const noexcept {
        return {heads.data() + offsets[node], heads.data() + offsets[std::size_t{node} + 1]};
    }
};

// Throws NodeRange, or InvalidGraph when the lengths differ.
void check_edges(std::uint64_t num_nodes, std::span<const NodeId> sources, std::span<const NodeId> targets);

// One list of heads per tail, from edges that were checked. Self edges are dropped and duplicates merged.
Csr build_csr(std::uint64_t num_nodes, std::span<const NodeId> tails, std::span<const NodeId> heads);

// The reverse graph. Lists of the result are sorted because tails are visited in order.
Csr transpose(const Csr& csr);

}  // namespace memorepair

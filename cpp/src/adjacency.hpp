// Purpose: one direction of the graph: a base CSR and the arcs appended since, as linked lists.
// Contract: for_each visits each neighbour once; base neighbours first and sorted, appended ones after, newest first.
// Invariant: first_link_ is empty while there is no overlay, so a graph that never grows pays nothing.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "csr.hpp"
#include "memorepair/types.hpp"

namespace memorepair {

class Adjacency {
public:
    Adjacency() : base_{{&kNoArcs, 1}, {}, nullptr} {}
    explicit Adjacency(Csr base) : base_(std::move(base)) {}

    const Csr& base() const noexcept { return base_; }
    bool has_overlay() const noexcept { return !links_.empty(); }

    // The base is all there is.
    bool is_flat(std::uint64_t num_nodes) const noexcept { return links_.empty() && base_.num_nodes() == num_nodes; }

    template <class Visit>
    void for_each(NodeId node, Visit&& visit) const {
        if (node < base_.num_nodes()) {
            for (const NodeId head : base_.neighbours(node)) {
                visit(head);
            }
        }
        if (node < first_link_.size()) {
            for (std::uint32_t link = first_link_[node]; link != kNoLink; link = links_[link].next) {
                visit(links_[link].head);
            }
        }
    }

    std::vector<NodeId> sorted(NodeId node) const {
        std::vector<NodeId> out;
        for_each(node, [&](NodeId head) { out.push_back(head); });
        std::sort(out.begin(), out.end());
        return out;
    }

    std::span<const NodeId> base_list(NodeId node) const noexcept {
        return node < base_.num_nodes() ? base_.neighbours(node) : std::span<const NodeId>{};
    }

    // After reserve(num_nodes, n) the next n calls of add() for nodes below num_nodes throw nothing.
    void reserve(std::uint64_t num_nodes, std::uint64_t extra) {
        grow(links_, links_.size() + extra);
        if (extra != 0 && first_link_.size() < num_nodes) {
            grow(first_link_, num_nodes);
            first_link_.resize(num_nodes, kNoLink);
        }
    }

    void add(NodeId tail, NodeId head) {
        links_.push_back({head, first_link_[tail]});
        first_link_[tail] = static_cast<std::uint32_t>(links_.size() - 1);
    }

    // Base and overlay as one CSR over `num_nodes` nodes.
    Csr merged(std::uint64_t num_nodes) const;

    static constexpr std::uint64_t kMaxLinks = 0xffffffffU;

private:
    struct Link {
        NodeId head;
        std::uint32_t next;
    };
    static constexpr std::uint32_t kNoLink = 0xffffffffU;
    static constexpr ArcIndex kNoArcs = 0;  // the offsets of no nodes

    // reserve() alone would grow to the exact size each time, and make appending quadratic.
    template <class T>
    static void grow(std::vector<T>& items, std::uint64_t needed) {
        if (needed > items.capacity()) {
            items.reserve(std::max<std::uint64_t>(needed, 2 * items.capacity()));
        }
    }

    Csr base_;
    std::vector<std::uint32_t> first_link_;
    std::vector<Link> links_;
};

}  // namespace memorepair

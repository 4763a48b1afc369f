// Purpose: strongly connected components, and the canonical order of nodes and groups.
// Contract: components.hpp, memorepair/graph.hpp. No recursion: a chain of millions needs no stack.
// Source: Tarjan 1972; Kahn 1962 with a heap. Oracle: cpp/tests/test_graph.cpp (mutual reach by brute force).
#include "components.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "adjacency.hpp"
#include "memorepair/graph.hpp"

namespace memorepair {

Components strongly_connected(const Csr& csr) {
    struct Frame {
        NodeId node;
        ArcIndex next;
    };
    const auto num_nodes = static_cast<NodeId>(csr.num_nodes());
    Components out;
    out.label.assign(num_nodes, kNoNode);
    std::vector<NodeId> number(num_nodes, kNoNode);
    std::vector<NodeId> low(num_nodes);
    std::vector<NodeId> open;
    std::vector<Frame> frames;
    NodeId counter = 0;
    const auto enter = [&](NodeId node) {
        number[node] = low[node] = counter++;
        open.push_back(node);
        frames.push_back({node, csr.offsets[node]});
    };
    for (NodeId root = 0; root < num_nodes; ++root) {
        if (number[root] != kNoNode) {
            continue;
        }
        enter(root);
        while (!frames.empty()) {
            Frame& frame = frames.back();
            const NodeId node = frame.node;
            if (frame.next < csr.offsets[std::size_t{node} + 1]) {
                const NodeId head = csr.heads[frame.next++];
                if (number[head] == kNoNode) {
                    enter(head);
                } else if (out.label[head] == kNoNode) {
                    low[node] = std::min(low[node], number[head]);
                }
                continue;
            }
            frames.pop_back();
            if (!frames.empty()) {
                NodeId& above = low[frames.back().node];
                above = std::min(above, low[node]);
            }
            if (low[node] == number[node]) {
                while (out.label[node] == kNoNode) {
                    out.label[open.back()] = out.num;
                    open.pop_back();
                }
                ++out.num;
            }
        }
    }
    return out;
}

Csr members_by_label(const std::vector<NodeId>& label, NodeId num) {
    Array<ArcIndex> offsets;
    offsets.assign(std::size_t{num} + 2, 0);
    for (const NodeId own : label) {
        ++offsets[std::size_t{own} + 2];
    }
    for (std::size_t i = 1; i < offsets.size(); ++i) {
        offsets[i] += offsets[i - 1];
    }
    Array<NodeId> heads(label.size());
    for (std::size_t node = 0; node < label.size(); ++node) {
        heads[offsets[std::size_t{label[node]} + 1]++] = static_cast<NodeId>(node);
    }
    offsets.pop_back();
    return make_csr(std::move(offsets), std::move(heads));
}

struct ProvenanceGraph::Ordering {
    std::vector<NodeId> group;
    std::vector<NodeId> nodes;
};

ProvenanceGraph::Ordering ProvenanceGraph::compute_ordering() const {
    const bool flat = !children_->has_overlay() && children_->base().num_nodes() == num_nodes_;
    const Csr copy = flat ? Csr{} : children_->merged(num_nodes_);
    const Csr& csr = flat ? children_->base() : copy;
    const Components components = strongly_connected(csr);
    const std::vector<NodeId>& label = components.label;
    const Csr members = members_by_label(label, components.num);

    std::vector<ArcIndex> waiting(components.num);
    for (NodeId node = 0; node < num_nodes_; ++node) {
        for (const NodeId head : csr.neighbours(node)) {
            waiting[label[head]] += static_cast<ArcIndex>(label[head] != label[node]);
        }
    }
    // A group stands in the heap by its smallest node.
    std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
    for (NodeId own = 0; own < components.num; ++own) {
        if (waiting[own] == 0) {
            ready.push(members.neighbours(own).front());
        }
    }
    Ordering out;
    out.group.resize(num_nodes_);
    out.nodes.reserve(num_nodes_);
    NodeId next_group = 0;
    while (!ready.empty()) {
        const NodeId own = label[ready.top()];
        ready.pop();
        for (const NodeId node : members.neighbours(own)) {
            out.group[node] = next_group;
            out.nodes.push_back(node);
            for (const NodeId head : csr.neighbours(node)) {
                if (label[head] != own && --waiting[label[head]] == 0) {
                    ready.push(members.neighbours(label[head]).front());
                }
            }
        }
        ++next_group;
    }
    return out;
}

std::vector<NodeId> ProvenanceGraph::groups() const {
    return compute_ordering().group;
}

std::vector<NodeId> ProvenanceGraph::order() const {
    return compute_ordering().nodes;
}

}  // namespace memorepair

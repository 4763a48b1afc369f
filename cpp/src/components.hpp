// Purpose: strongly connected components.
// Contract: label[v] < num; labels are in reverse topological order (an arc u -> v has label[u] >= label[v]).
// Source: Tarjan 1972, with an explicit stack.
#pragma once

#include <vector>

#include "csr.hpp"
#include "memorepair/types.hpp"

namespace memorepair {

struct Components {
    NodeId num = 0;
    std::vector<NodeId> label;
};

Components strongly_connected(const Csr& csr);

// Members of each label, ascending: a CSR from label to nodes.
Csr members_by_label(const std::vector<NodeId>& label, NodeId num);

}  // namespace memorepair

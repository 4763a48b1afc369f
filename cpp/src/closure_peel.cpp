// Purpose, contract: closure_peel.hpp. Oracle: the verifier and brute force, in cpp/tests/test_closure.cpp.
#include "closure_peel.hpp"

namespace memorepair {

std::vector<Fate> peel(const Csr& needs, std::span<const Weight> weight) {
    const auto num_nodes = static_cast<NodeId>(weight.size());
    const Csr dependants = transpose(needs);
    std::vector<Fate> fate(num_nodes, Fate::open);
    std::vector<ArcIndex> open_needs(num_nodes);
    std::vector<ArcIndex> open_dependants(num_nodes);
    std::vector<NodeId> ready;
    const auto decide = [&](NodeId node) {
        if (fate[node] != Fate::open) {
            return;
        }
        if (open_needs[node] == 0 && weight[node] > 0) {
            fate[node] = Fate::taken;
            ready.push_back(node);
        } else if (open_dependants[node] == 0 && weight[node] <= 0) {
            fate[node] = Fate::dropped;
            ready.push_back(node);
        }
    };
    for (NodeId node = 0; node < num_nodes; ++node) {
        open_needs[node] = needs.neighbours(node).size();
        open_dependants[node] = dependants.neighbours(node).size();
    }
    for (NodeId node = 0; node < num_nodes; ++node) {
        decide(node);
        while (!ready.empty()) {
            const NodeId done = ready.back();
            ready.pop_back();
            // A taken node has no open requirement and a dropped one no open dependant: one side each is left to tell.
            if (fate[done] == Fate::taken) {
                for (const NodeId dependant : dependants.neighbours(done)) {
                    --open_needs[dependant];
                    decide(dependant);
                }
            } else {
                for (const NodeId need : needs.neighbours(done)) {
                    --open_dependants[need];
                    decide(need);
                }
            }
        }
    }
    return fate;
}

}  // namespace memorepair

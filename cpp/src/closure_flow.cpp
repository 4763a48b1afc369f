// Purpose, contract, how: closure_flow.hpp. Oracle: brute force, the verifier and the other algorithm, in
// cpp/tests/test_closure.cpp.
#include "closure_flow.hpp"

namespace memorepair {

// Where one side has so many times fewer nodes, its few trees do the work in a few searches, whatever they have to move.
constexpr std::size_t kFewer = 16;

template <class W>
bool should_pull(std::span<const W> weight) {
    W total = 0;
    std::size_t num_positive = 0;
    std::size_t num_negative = 0;
    for (const W amount : weight) {
        total += amount;
        num_positive += static_cast<std::size_t>(amount > 0);
        num_negative += static_cast<std::size_t>(amount < 0);
    }
    if (num_positive * kFewer < num_negative) {
        return false;
    }
    return num_negative * kFewer < num_positive || total > 0;
}

template <class W>
void ClosureFlow<W>::solve(const Needs& needs, std::span<const W> weight, Dependants& dependants, std::uint64_t turn) {
    const bool pull = should_pull(weight);
    if (pull) {
        dependants.assign(needs, true);
    }
    trees_.start(needs, weight, dependants, pull);
    num_turns_ = 1;
    for (std::uint64_t work = turn * (std::uint64_t{needs.num_nodes()} + needs.num_arcs()); !trees_.advance(work); work *= 2) {
        if (num_turns_ == 1) {
            if (!pull) {
                dependants.assign(needs, true);
            }
            pushes_.start(needs, weight, dependants, pull);
        }
        ++num_turns_;
        if (pushes_.advance(work)) {
            return;
        }
        ++num_turns_;
    }
}

template bool should_pull<Weight>(std::span<const Weight> weight);
template bool should_pull<Wide>(std::span<const Wide> weight);
template class ClosureFlow<Weight>;
template class ClosureFlow<Wide>;

}  // namespace memorepair

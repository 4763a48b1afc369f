// Purpose: shrink a closure problem, exactly for the SMALLEST optimum, to the kernel that needs a flow.
// Contract: run() leaves kernel() and kernel_weight(); every node of the problem is taken, dropped, part of another one,
// or in the kernel. record() of what happened is all that closure_solver.hpp needs to extend a flow on the kernel to one
// on the whole problem.
// The rules, on a node u with weight p_u, requirements above and dependants below it in the passes:
//   drop  u and all that depends on it when p_u + gain(u) <= 0, gain(u) = sum over direct dependants d of
//         max(0, p_d + gain(d)): an over-count of what can be won with u, since it counts shared nodes again. With no
//         dependant left: drop what is not worth anything. (R2, R4)
//   take  u and all it requires when p_u > price(u), price(u) = sum over direct requirements v of max(0, price(v) - p_v):
//         an over-count of what u costs. With no requirement left: take what is worth something. (R1, R5)
//   merge u into its only requirement when p_u > 0: who takes that takes u too. (R3a)
//   merge u into its only dependant when p_u <= 0: nobody else wants u. (R3b)
// All four are strict where a tie would make the optimum larger. Gains and prices are flows along trees, so each
// decision has a proof of its own: closure_solver.hpp.
// Two rules that look right and are not: to take what a whole closure's weight pays for, and to merge by local ratio
// (tests/test_closure.py keeps a counterexample of each).
// Source: kernelisation of sparse closures (data reduction for project selection and open pits).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "closure_kernel.hpp"

namespace memorepair {

// An arc of the problem by its ends.
struct Arc {
    NodeId tail;
    NodeId head;
};

// One node becomes part of another: `arc` joins the two, in the direction of the requirement.
template <class W>
struct Merge {
    NodeId gone;
    NodeId kept;
    W gone_weight;  // of both before the merge
    W kept_weight;
    Arc arc;
    bool into_need;  // else into the dependant
};

template <class W>
struct NodeAmount {
    NodeId node;
    W amount;
};

// Nodes are those of the problem.
template <class W>
struct Reductions {
    std::vector<Merge<W>> merges;  // in the order they happened
    std::vector<Arc> tree;         // arcs along which a group was dropped or taken at once
    std::vector<NodeAmount<W>> absorbed;
    std::vector<NodeAmount<W>> taken;  // and what is left on it

    void clear() {
        merges.clear();
        tree.clear();
        absorbed.clear();
        taken.clear();
    }
};

template <class W>
class ClosureReducer {
public:
    // `dependants` is memory to work in.
    void run(const Needs& needs, std::span<const W> weight, Dependants& dependants);

    const Needs& kernel() const noexcept { return levels_[now_].needs; }
    std::span<const W> kernel_weight() const noexcept { return {levels_[now_].weight.data(), levels_[now_].weight.size()}; }
    // Gives back the memory that only run() needs.
    void release();

    // The node of the problem that a kernel node stands for, and the arc of the problem behind a kernel arc.
    NodeId name(NodeId node) const noexcept { return levels_[now_].name[node]; }
    Arc origin(KernelArc arc) const noexcept { return levels_[now_].origin[arc]; }
    const Reductions<W>& record() const noexcept { return record_; }

private:
    enum class Fate : std::uint8_t { open, merged, taken, dropped };
    // The problem after some rounds. The first level has no names and no origins: they would say what is there.
    struct Level {
        Needs needs;
        Array<W> weight;
        Array<NodeId> name;
        Array<Arc> origin;
    };

    std::size_t round(const Needs& needs);
    void drop_from_the_top(const Needs& needs);
    void take_from_the_bottom(const Needs& needs);
    void rebuild(const Needs& needs);
    void drop_with_dependants(NodeId node);
    void take_with_needs(NodeId node, const Needs& needs);
    NodeId find(NodeId node) noexcept;
    NodeId name_of(NodeId node) const noexcept { return first_round_ ? node : levels_[now_].name[node]; }
    Arc origin_of(NodeId tail, KernelArc arc, const Needs& needs) const noexcept {
        return first_round_ ? Arc{tail, needs.heads[arc]} : levels_[now_].origin[arc];
    }
    // Of a dependant by its place.
    Arc origin_from(KernelArc place, NodeId head) const noexcept {
        return first_round_ ? Arc{dependants_->tails[place], head} : levels_[now_].origin[dependants_->arcs[place]];
    }
    void merge(NodeId gone, NodeId kept, Arc arc, bool into_need);

    Level levels_[2];
    unsigned now_ = 0;
    bool first_round_ = true;
    Reductions<W> record_;

    // Of the round at work.
    Array<W> weight_;
    Dependants* dependants_ = nullptr;
    std::vector<Fate> fate_;
    Array<NodeId> part_of_;  // union-find
    // Groups as rings through the node that stands for them: those merged into their requirement, whose dependants
    // count as the group's, and those merged into their dependant, whose requirements do.
    Array<NodeId> lower_;
    Array<NodeId> upper_;
    Array<W> bound_;  // in the first pass gain(u), in the second max(0, price(u) - p_u)
    struct Visit {
        NodeId node;
        std::uint32_t parent;  // place in the list of visits
    };
    std::vector<Visit> visits_;
    std::vector<W> carried_;
    Array<NodeId> stamp_;
    Array<NodeId> new_id_;
};

}  // namespace memorepair

// Purpose: every breakpoint of value - x cost by divide and conquer.
// Contract: memorepair/frontier.hpp. Oracle: brute force and the verifier, in cpp/tests/test_frontier.cpp.
// How: what is never selected is what x = 0 leaves out; what is free is decided among nodes without cost. Between the
// two, take a set P of nodes that x = 0 selects, given what is already in, and solve at the ratio x = value(P) / cost(P).
// If nothing is worth more than that, P enters as one piece at x. Otherwise the smallest optimum S enters earlier than
// the rest: split into S and P \ S, and forget the arcs between (they are met). So k pieces take at most 2k - 1 steps, of up
// to three solves each, on problems that get smaller and smaller.
// Numbers: at x = p / q weights are q value - p cost. While that fits in 64 bits the exact ratio is used; otherwise a
// slightly smaller one that fits splits just as well, and only what it cannot split is solved in 128 bits.
#include "memorepair/frontier.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "closure_expand.hpp"
#include "closure_instance.hpp"
#include "closure_solver.hpp"
#include "memorepair/errors.hpp"

namespace memorepair {

namespace {

// Below this many nodes a lopsided split is no trouble.
constexpr NodeId kSmallPiece = 64;
// A split is lopsided when the smaller side has less than one in this many nodes.
constexpr NodeId kLopsided = 20;

struct Ratio {
    Weight numerator;
    Weight denominator;  // positive
};

Ratio reduced(Weight numerator, Weight denominator) {
    const Weight divisor = std::gcd(numerator, denominator);
    return {numerator / divisor, denominator / divisor};
}

bool is_less(Ratio left, Ratio right) {
    return Wide{left.numerator} * right.denominator < Wide{right.numerator} * left.denominator;
}

// Nodes that enter together, and where.
struct Atom {
    Ratio ratio;
    NodeId id;
};

// Nodes of the instance and the arcs between them.
struct Piece {
    Needs needs;
    Array<NodeId> nodes;
    bool lopsided = false;
};

// A solver with its last problem and proof.
template <class W>
struct Workspace {
    ClosureSolver<W> solver;
    Array<W> weight;
    std::vector<ArcFlow<W>> proof;
    Array<W> absorbed;

    void prove() {
        proof.clear();
        solver.prove(weight, proof, absorbed);
    }
};

class FrontierSolver {
public:
    FrontierSolver(const Instance& instance, const Array<Weight>& value, const Array<Weight>& cost)
        : value_(value), cost_(cost), instance_(instance), atom_(instance.needs.num_nodes(), kNever) {}

    void run() {
        Piece rest = without_never();
        rest = without_free(std::move(rest));
        set_apart(rest);
        todo_.push_back(std::move(rest));
        while (!todo_.empty()) {
            Piece piece = std::move(todo_.back());
            todo_.pop_back();
            if (piece.needs.num_arcs() == 0) {
                for (const NodeId node : piece.nodes) {
                    emit_node(node);
                }
            } else {
                divide(piece);
            }
        }
        order_atoms();
    }

    // Per node of the instance: 0 free, 1.. in the order of entry, kNeverSelected.
    std::vector<std::uint32_t> piece_of;
    std::vector<Ratio> breakpoints;
    std::vector<ArcFlow<Wide>> flow;
    // What the components of the instance absorb: used where it does not follow from the piece.
    Array<Wide> absorbed;

private:
    static constexpr NodeId kNever = kNoNode;
    static constexpr NodeId kFree = kNoNode - 1;

    Piece without_never() {
        const NodeId num_nodes = instance_.needs.num_nodes();
        narrow_.weight = value_;
        narrow_.solver.solve(instance_.needs, narrow_.weight);
        narrow_.prove();
        absorbed.assign(narrow_.absorbed.begin(), narrow_.absorbed.end());
        for (const ArcFlow<Weight>& entry : narrow_.proof) {
            if (narrow_.solver.chosen()[entry.tail] == 0) {
                flow.push_back({entry.tail, entry.head, entry.amount});
            }
        }
        Piece whole;
        whole.nodes.resize(num_nodes);
        std::iota(whole.nodes.begin(), whole.nodes.end(), NodeId{0});
        return part(instance_.needs, whole.nodes, narrow_.solver.chosen(), 1);
    }

    // Only what costs nothing, and needs nothing that costs, can be free.
    Piece without_free(Piece all) {
        const NodeId num_nodes = all.needs.num_nodes();
        std::vector<std::uint8_t> costless(num_nodes);
        bool any = false;
        for (NodeId node = 0; node < num_nodes; ++node) {
            const auto needs = all.needs.of(node);
            costless[node] = static_cast<std::uint8_t>(
                cost_[all.nodes[node]] == 0 &&
                std::all_of(needs.begin(), needs.end(), [&](NodeId need) { return costless[need] != 0; }));
            any = any || costless[node] != 0;
        }
        if (!any) {
            return all;
        }
        const Piece candidates = part(all.needs, all.nodes, costless, 1);
        set_weights(candidates.nodes, {0, 1}, narrow_.weight);
        narrow_.solver.solve(candidates.needs, narrow_.weight);
        narrow_.prove();
        for (NodeId node = 0; node < candidates.nodes.size(); ++node) {
            if (narrow_.solver.chosen()[node] != 0) {
                atom_[candidates.nodes[node]] = kFree;
                absorbed[candidates.nodes[node]] = narrow_.absorbed[node];
            }
        }
        for (const ArcFlow<Weight>& entry : narrow_.proof) {
            if (narrow_.solver.chosen()[entry.tail] != 0) {
                flow.push_back({candidates.nodes[entry.tail], candidates.nodes[entry.head], entry.amount});
            }
        }
        std::vector<std::uint8_t> is_free(num_nodes);
        for (NodeId node = 0; node < num_nodes; ++node) {
            is_free[node] = static_cast<std::uint8_t>(atom_[all.nodes[node]] == kFree);
        }
        return part(all.needs, all.nodes, is_free, 0);
    }

    // The nodes on one side and the arcs among them.
    Piece part(const Needs& needs, const Array<NodeId>& nodes, const std::vector<std::uint8_t>& side,
               std::uint8_t wanted) {
        Piece out;
        local_.resize(side.size());
        NodeId count = 0;
        KernelArc num_arcs = 0;
        for (NodeId node = 0; node < side.size(); ++node) {
            if (side[node] == wanted) {
                local_[node] = count++;
                num_arcs += needs.end(node) - needs.begin(node);
            }
        }
        out.nodes.resize(count);
        out.needs.first.resize(std::size_t{count} + 1);
        out.needs.heads.resize(num_arcs);
        KernelArc kept = 0;
        for (NodeId node = 0; node < side.size(); ++node) {
            if (side[node] != wanted) {
                continue;
            }
            out.nodes[local_[node]] = nodes[node];
            out.needs.first[local_[node]] = kept;
            for (const NodeId head : needs.of(node)) {
                if (side[head] == wanted) {
                    out.needs.heads[kept++] = local_[head];
                }
            }
        }
        out.needs.first[count] = kept;
        out.needs.heads.resize(kept);
        return out;
    }

    void emit_node(NodeId node) {
        atom_[node] = emit(reduced(value_[node], cost_[node]));
    }

    NodeId emit(Ratio ratio) {
        const auto id = static_cast<NodeId>(atoms_.size());
        atoms_.push_back({ratio, id});
        return id;
    }

    void divide(const Piece& whole) {
        Weight value = 0;
        Weight size = 0;  // sum of |value|
        Weight cost = 0;
        for (const NodeId node : whole.nodes) {
            value += value_[node];
            size += value_[node] < 0 ? -value_[node] : value_[node];
            cost += cost_[node];
        }
        const Ratio ratio = reduced(value, cost);
        const NodeId num_nodes = whole.needs.num_nodes();
        if (whole.lopsided && num_nodes > kSmallPiece) {
            const Ratio middle = shortened(median_ratio(whole), size, cost);
            if (middle.numerator > 0 && try_split(whole, middle)) {
                return;
            }
        }
        if (Wide{ratio.denominator} * size + Wide{ratio.numerator} * cost <= kMaxWeightSum) {
            solve_exactly(narrow_, whole, ratio);
            return;
        }
        const Ratio near = shortened(ratio, size, cost);
        if (near.numerator == 0 || !try_split(whole, near)) {
            solve_exactly(wide_, whole, ratio);
        }
    }

    template <class W>
    void set_weights(const Array<NodeId>& nodes, Ratio at, Array<W>& weight) {
        weight.resize(nodes.size());
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            weight[i] = W{at.denominator} * value_[nodes[i]] - W{at.numerator} * cost_[nodes[i]];
        }
    }

    // At any ratio that splits. False when everything or nothing is worth it there.
    bool try_split(const Piece& whole, Ratio at) {
        set_weights(whole.nodes, at, narrow_.weight);
        narrow_.solver.solve(whole.needs, narrow_.weight);
        return split(whole, narrow_.solver.chosen());
    }

    template <class W>
    void solve_exactly(Workspace<W>& at, const Piece& whole, Ratio ratio) {
        set_weights(whole.nodes, ratio, at.weight);
        at.solver.solve(whole.needs, at.weight);
        if (split(whole, at.solver.chosen())) {
            return;
        }
        const NodeId id = emit(ratio);
        for (const NodeId node : whole.nodes) {
            atom_[node] = id;
        }
        at.prove();
        for (const ArcFlow<W>& entry : at.proof) {
            flow.push_back({whole.nodes[entry.tail], whole.nodes[entry.head], entry.amount});
        }
    }

    bool split(const Piece& whole, const std::vector<std::uint8_t>& chosen) {
        const NodeId num_nodes = whole.needs.num_nodes();
        const auto num_chosen = static_cast<NodeId>(std::count(chosen.begin(), chosen.end(), std::uint8_t{1}));
        if (num_chosen == 0 || num_chosen == num_nodes) {
            return false;
        }
        const bool lopsided = std::uint64_t{std::min(num_chosen, num_nodes - num_chosen)} * kLopsided < num_nodes;
        for (const std::uint8_t side : {std::uint8_t{0}, std::uint8_t{1}}) {
            Piece piece = part(whole.needs, whole.nodes, chosen, side);
            piece.lopsided = lopsided;
            set_apart(piece);
            if (!piece.nodes.empty()) {
                todo_.push_back(std::move(piece));
            }
        }
        return true;
    }

    // Nodes that nothing ties to the others enter at their own ratio.
    void set_apart(Piece& piece) {
        const NodeId num_nodes = piece.needs.num_nodes();
        tied_.assign(num_nodes, 0);
        for (NodeId node = 0; node < num_nodes; ++node) {
            for (const NodeId head : piece.needs.of(node)) {
                tied_[node] = tied_[head] = 1;
            }
        }
        const auto num_tied = static_cast<NodeId>(std::count(tied_.begin(), tied_.end(), std::uint8_t{1}));
        if (num_tied == num_nodes) {
            return;
        }
        for (NodeId node = 0; node < num_nodes; ++node) {
            if (tied_[node] == 0) {
                emit_node(piece.nodes[node]);
            }
        }
        const bool lopsided = piece.lopsided;
        piece = part(piece.needs, piece.nodes, tied_, 1);
        piece.lopsided = lopsided;
    }

    // Of the ratios of nodes with what they require next to them.
    Ratio median_ratio(const Piece& piece) {
        sample_.clear();
        for (NodeId node = 0; node < piece.needs.num_nodes(); ++node) {
            const Weight value = value_[piece.nodes[node]];
            if (value <= 0) {
                continue;
            }
            Weight cost = cost_[piece.nodes[node]];
            for (const NodeId need : piece.needs.of(node)) {
                cost += cost_[piece.nodes[need]];
            }
            if (cost > 0) {
                sample_.push_back({value, cost});
            }
        }
        if (sample_.empty()) {
            return {0, 1};
        }
        const auto middle = sample_.begin() + static_cast<std::ptrdiff_t>(sample_.size() / 2);
        std::nth_element(sample_.begin(), middle, sample_.end(), is_less);
        return *middle;
    }

    // Not above `ratio`, near it, and small enough for 64-bit weights where that is possible.
    static Ratio shortened(Ratio ratio, Weight size, Weight cost) {
        const Wide half = kMaxWeightSum / 2;
        Wide denominator = std::min<Wide>(half / std::max<Wide>(size, 1), half);
        // The numerator must keep within the half as well: denominator * ratio * cost <= half.
        const Wide by_cost = half / std::max<Wide>(cost, 1);
        if (denominator * ratio.numerator > by_cost * ratio.denominator) {
            denominator = by_cost * ratio.denominator / ratio.numerator;
        }
        if (denominator < 1) {
            return {0, 1};
        }
        const Wide numerator = denominator * ratio.numerator / ratio.denominator;
        return {static_cast<Weight>(numerator), static_cast<Weight>(denominator)};
    }

    // Dearest ratio first; equal ones are one piece.
    void order_atoms() {
        std::sort(atoms_.begin(), atoms_.end(),
                  [](const Atom& left, const Atom& right) { return is_less(right.ratio, left.ratio); });
        std::vector<std::uint32_t> place(atoms_.size());
        for (const Atom& atom : atoms_) {
            if (breakpoints.empty() || is_less(atom.ratio, breakpoints.back())) {
                breakpoints.push_back(atom.ratio);
            }
            place[atom.id] = static_cast<std::uint32_t>(breakpoints.size());
        }
        piece_of.resize(atom_.size());
        for (std::size_t node = 0; node < atom_.size(); ++node) {
            const NodeId atom = atom_[node];
            piece_of[node] = atom == kNever ? kNeverSelected : atom == kFree ? 0 : place[atom];
        }
    }

    const Array<Weight>& value_;
    const Array<Weight>& cost_;
    const Instance& instance_;
    std::vector<NodeId> atom_;  // per node of the instance
    std::vector<Atom> atoms_;
    std::vector<Piece> todo_;

    Workspace<Weight> narrow_;
    Workspace<Wide> wide_;
    Array<NodeId> local_;
    std::vector<std::uint8_t> tied_;
    std::vector<Ratio> sample_;
};

// Throws WeightOverflow.
void check_sums(const FrontierProblem& problem) {
    Wide value = 0;
    Wide cost = 0;
    const auto add = [&](std::uint64_t first, std::uint64_t end) {
        for (std::uint64_t node = first; node < end; ++node) {
            value += problem.values[node] < 0 ? -Wide{problem.values[node]} : Wide{problem.values[node]};
            cost += problem.costs[node];
        }
    };
    if (problem.within == nullptr) {
        add(0, problem.values.size());
    } else {
        problem.within->for_each_run(add);
    }
    if (value > kMaxWeightSum || cost > kMaxWeightSum) {
        throw WeightOverflow(std::string(value > kMaxWeightSum ? "values" : "costs") +
                             ": expected a sum of absolute values of at most 2^62, got more; scale them down");
    }
}

// Flow inside components, in the units of each one's piece.
void expand_flow(const Instance& instance, const Array<Weight>& value, const Array<Weight>& cost,
                 FrontierSolver& solved) {
    Array<Wide> weight(instance.global.size());
    Array<Wide> condensed;
    condensed.assign(instance.needs.num_nodes(), 0);
    for (std::size_t member = 0; member < weight.size(); ++member) {
        const std::uint32_t piece = solved.piece_of[instance.label[member]];
        const bool finite = piece != 0 && piece != kNeverSelected;
        const Ratio at = finite ? solved.breakpoints[piece - 1] : Ratio{0, 1};
        weight[member] = Wide{at.denominator} * value[member] - Wide{at.numerator} * cost[member];
        condensed[instance.label[member]] += weight[member];
    }
    for (NodeId node = 0; node < instance.needs.num_nodes(); ++node) {
        const std::uint32_t piece = solved.piece_of[node];
        if (piece != 0 && piece != kNeverSelected) {
            solved.absorbed[node] = std::max<Wide>(-condensed[node], 0);
        }
    }
    expand_components<Wide>(instance, weight, solved.absorbed, solved.flow);
}

}  // namespace

std::size_t Frontier::point_at(Wide numerator, Wide denominator) const noexcept {
    std::size_t low = 0;
    std::size_t high = numerators.size();
    while (low < high) {  // the first breakpoint that is not above x
        const std::size_t middle = low + (high - low) / 2;
        if (Wide{numerators[middle]} * denominator > numerator * denominators[middle]) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

Mask Frontier::closure(std::size_t point) const {
    std::vector<std::uint64_t> words(num_words(piece.size()));
    for (std::size_t node = 0; node < piece.size(); ++node) {
        if (piece[node] <= point) {
            set_bit(words, node);
        }
    }
    return Mask::from_words(std::move(words), piece.size());
}

Frontier solve_frontier(const ProvenanceGraph& graph, const FrontierProblem& problem) {
    check_frontier_problem(graph, problem);
    check_sums(problem);
    const Instance instance = make_instance(graph, problem.executable, problem.within);
    const std::size_t num_members = instance.global.size();
    Array<Weight> value(num_members);
    Array<Weight> cost(num_members);
    for (std::size_t member = 0; member < num_members; ++member) {
        value[member] = problem.values[instance.global[member]];
        cost[member] = problem.costs[instance.global[member]];
    }
    Array<Weight> group_value;
    Array<Weight> group_cost;
    if (!instance.trivial) {
        group_value.assign(instance.needs.num_nodes(), 0);
        group_cost.assign(instance.needs.num_nodes(), 0);
        for (std::size_t member = 0; member < num_members; ++member) {
            group_value[instance.label[member]] += value[member];
            group_cost[instance.label[member]] += cost[member];
        }
    }
    FrontierSolver solver(instance, instance.trivial ? value : group_value, instance.trivial ? cost : group_cost);
    solver.run();
    if (!instance.trivial) {
        expand_flow(instance, value, cost, solver);
    }

    Frontier out;
    for (const Ratio& breakpoint : solver.breakpoints) {
        out.numerators.push_back(breakpoint.numerator);
        out.denominators.push_back(breakpoint.denominator);
    }
    const std::size_t num_points = solver.breakpoints.size() + 1;
    out.values.assign(num_points, 0);
    out.costs.assign(num_points, 0);
    out.sizes.assign(num_points, 0);
    out.piece.assign(graph.num_nodes(), kNeverSelected);
    for (std::size_t member = 0; member < num_members; ++member) {
        const std::uint32_t piece = solver.piece_of[instance.trivial ? member : instance.label[member]];
        out.piece[instance.global[member]] = piece;
        if (piece != kNeverSelected) {
            out.values[piece] += value[member];
            out.costs[piece] += cost[member];
            ++out.sizes[piece];
        }
    }
    std::partial_sum(out.values.begin(), out.values.end(), out.values.begin());
    std::partial_sum(out.costs.begin(), out.costs.end(), out.costs.begin());
    std::partial_sum(out.sizes.begin(), out.sizes.end(), out.sizes.begin());
    FrontierCertificate& certificate = out.certificate;
    certificate.sources.reserve(solver.flow.size());
    certificate.targets.reserve(solver.flow.size());
    certificate.flow.reserve(solver.flow.size());
    for (const ArcFlow<Wide>& entry : solver.flow) {
        certificate.sources.push_back(instance.global[entry.head]);
        certificate.targets.push_back(instance.global[entry.tail]);
        certificate.flow.push_back(entry.amount);
    }
    return out;
}

}  // namespace memorepair

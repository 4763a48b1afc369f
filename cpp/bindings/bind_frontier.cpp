// Purpose: ProvenanceGraph.frontier, Frontier and what it answers, and verify_frontier.
// Contract: memorepair/frontier.hpp. A Frontier keeps its graph and copies of its arrays and masks, so that verify() and
// for_budget() work on the very question that was answered. It never changes. Fractions are Python's own.
#include "graph_handle.hpp"
#include "memorepair/frontier.hpp"

namespace memorepair::bindings {

namespace {

// The certificate as Python sees it: numpy has no 128-bit integers, so flow = flow_high * 2^64 + flow_low.
struct FrontierCertificateView {
    py::array sources;
    py::array targets;
    py::array flow_high;
    py::array flow_low;
};

struct FrontierView {
    std::shared_ptr<const GraphHandle> graph;
    std::uint64_t num_nodes = 0;
    std::uint64_t num_edges = 0;
    std::vector<Weight> node_values;
    std::vector<Weight> node_costs;
    std::optional<Mask> executable;
    std::optional<Mask> within;
    Frontier frontier;  // without its certificate, which lives in the arrays below
    py::array numerators;
    py::array denominators;
    py::array values;
    py::array costs;
    py::array sizes;
    py::array piece;
    std::shared_ptr<FrontierCertificateView> certificate;

    FrontierProblem problem() const {
        return {node_values, node_costs, executable ? &*executable : nullptr, within ? &*within : nullptr};
    }
};

struct FrontierPointView {
    std::shared_ptr<Mask> selected;
    Weight value = 0;
    Weight cost = 0;
    py::object cost_weight;
};

struct BudgetChoiceView {
    std::size_t point = 0;
    std::shared_ptr<Mask> certified;
    py::array fill;
    std::shared_ptr<Mask> selected;
    Weight value = 0;
    Weight cost = 0;
    py::object bound;
};

template <class Numerator>
py::object fraction(Numerator numerator, Weight denominator) {
    return py::module_::import("fractions").attr("Fraction")(numerator, denominator);
}

py::array weights_out(const std::vector<Weight>& weights) {
    return array_out(std::vector<Weight>(weights), py::dtype::of<Weight>());
}

std::shared_ptr<FrontierCertificateView> certificate_out(FrontierCertificate proof) {
    std::vector<Weight> high(proof.flow.size());
    std::vector<std::uint64_t> low(proof.flow.size());
    for (std::size_t i = 0; i < proof.flow.size(); ++i) {
        high[i] = static_cast<Weight>(proof.flow[i] >> 64);
        low[i] = static_cast<std::uint64_t>(proof.flow[i]);
    }
    return std::make_shared<FrontierCertificateView>(
        FrontierCertificateView{ids_out(std::move(proof.sources)), ids_out(std::move(proof.targets)),
                                array_out(std::move(high), py::dtype::of<Weight>()),
                                array_out(std::move(low), py::dtype::of<std::uint64_t>())});
}

std::vector<Wide> flow_in(std::span<const Weight> high, std::span<const std::uint64_t> low) {
    if (high.size() != low.size()) {
        throw InvalidGraph("flow: expected as many high as low words, got " + std::to_string(high.size()) + " and " +
                           std::to_string(low.size()));
    }
    std::vector<Wide> flow(high.size());
    for (std::size_t i = 0; i < flow.size(); ++i) {
        flow[i] = (Wide{high[i]} << 64) | Wide{low[i]};
    }
    return flow;
}

std::shared_ptr<FrontierView> frontier(std::shared_ptr<GraphHandle> handle, const py::object& values,
                                       const py::object& costs, const py::object& executable, const py::object& within) {
    auto view = std::make_shared<FrontierView>();
    const auto given_values = weights_in(values, "values");
    const auto given_costs = weights_in(costs, "costs");
    view->node_values.assign(given_values.begin(), given_values.end());
    view->node_costs.assign(given_costs.begin(), given_costs.end());
    view->executable = copy_of(mask_in(executable, "executable"));
    view->within = copy_of(mask_in(within, "within"));
    view->frontier = handle->read([&](const ProvenanceGraph& graph) {
        view->num_nodes = graph.num_nodes();
        view->num_edges = graph.num_edges();
        return solve_frontier(graph, view->problem());
    });
    view->graph = std::move(handle);
    view->numerators = weights_out(view->frontier.numerators);
    view->denominators = weights_out(view->frontier.denominators);
    view->values = weights_out(view->frontier.values);
    view->costs = weights_out(view->frontier.costs);
    view->sizes = weights_out(view->frontier.sizes);
    view->piece = ids_out(std::vector<NodeId>(view->frontier.piece));
    view->certificate = certificate_out(std::move(view->frontier.certificate));
    view->frontier.certificate = {};
    return view;
}

// Runs on the graph that was asked about, or not at all.
template <class Kernel>
auto on_same_graph(const FrontierView& view, Kernel&& kernel) {
    return view.graph->read([&](const ProvenanceGraph& graph) {
        if (graph.num_nodes() != view.num_nodes || graph.num_edges() != view.num_edges) {
            throw InvalidGraph("frontier: expected the graph it was computed on (" + std::to_string(view.num_nodes) +
                               " nodes, " + std::to_string(view.num_edges) + " edges), got one that has grown to " +
                               std::to_string(graph.num_nodes()) + " nodes, " + std::to_string(graph.num_edges()) +
                               " edges; compute the frontier again");
        }
        return kernel(graph);
    });
}

bool verify(const FrontierView& view) {
    const FrontierCertificateView& proof = *view.certificate;
    const auto sources = ids_in(proof.sources, "sources");
    const auto targets = ids_in(proof.targets, "targets");
    const auto flow = flow_in(weights_in(proof.flow_high, "flow_high"),
                              array_in<std::uint64_t>(proof.flow_low, "flow_low", "uint64"));
    return on_same_graph(view, [&](const ProvenanceGraph& graph) {
        return verify_frontier(graph, view.problem(), view.frontier.piece, view.frontier.numerators,
                               view.frontier.denominators, sources, targets, flow);
    });
}

bool verify_given(const GraphHandle& handle, const py::object& values, const py::object& costs, const py::object& executable,
                  const py::object& within, const py::object& piece, const py::object& numerators,
                  const py::object& denominators, const py::object& sources, const py::object& targets,
                  const py::object& flow_high, const py::object& flow_low) {
    const FrontierProblem problem{weights_in(values, "values"), weights_in(costs, "costs"),
                                  mask_in(executable, "executable"), mask_in(within, "within")};
    const auto pieces = ids_in(piece, "piece");
    const auto above = weights_in(numerators, "numerators");
    const auto below = weights_in(denominators, "denominators");
    const auto from = ids_in(sources, "sources");
    const auto to = ids_in(targets, "targets");
    const auto high = weights_in(flow_high, "flow_high");
    const auto low = array_in<std::uint64_t>(flow_low, "flow_low", "uint64");
    if (high.size() != low.size()) {
        return false;
    }
    const auto flow = flow_in(high, low);
    return handle.read([&](const ProvenanceGraph& graph) {
        return verify_frontier(graph, problem, pieces, above, below, from, to, flow);
    });
}

py::list breakpoints(const FrontierView& view) {
    const py::object make = py::module_::import("fractions").attr("Fraction");
    py::list out;
    for (std::size_t i = 0; i < view.frontier.numerators.size(); ++i) {
        out.append(make(view.frontier.numerators[i], view.frontier.denominators[i]));
    }
    return out;
}

std::shared_ptr<FrontierPointView> make_point(const FrontierView& view, std::size_t index, py::object cost_weight) {
    return std::make_shared<FrontierPointView>(
        FrontierPointView{std::make_shared<Mask>(view.frontier.closure(index)), view.frontier.values[index],
                          view.frontier.costs[index], std::move(cost_weight)});
}

std::shared_ptr<FrontierPointView> point(const FrontierView& view, const py::object& index) {
    const std::int64_t wanted = integer_in(index, "index");
    const std::size_t num_breakpoints = view.frontier.numerators.size();
    if (wanted < 0 || static_cast<std::uint64_t>(wanted) > num_breakpoints) {
        throw NodeRange("index: expected a point from 0 to " + std::to_string(num_breakpoints) + ", got " +
                        py::str(index).cast<std::string>());
    }
    const auto at = static_cast<std::size_t>(wanted);
    py::object weight = py::none();
    if (at != 0) {
        weight = at == num_breakpoints ? fraction(0, 1)
                                       : fraction(view.frontier.numerators[at], view.frontier.denominators[at]);
    }
    return make_point(view, at, std::move(weight));
}

std::shared_ptr<FrontierPointView> at(const FrontierView& view, const py::object& cost_weight) {
    const bool is_rational = !PyBool_Check(cost_weight.ptr()) && py::hasattr(cost_weight, "numerator") &&
                             py::hasattr(cost_weight, "denominator");
    if (!is_rational) {
        throw py::type_error(std::string("cost_weight: expected an int or a Fraction, got ") +
                             Py_TYPE(cost_weight.ptr())->tp_name);
    }
    // Both may be numpy's, which wrap where Python's own do not.
    const auto whole = [&](const char* part) {
        const py::object given = cost_weight.attr(part);
        auto index = py::reinterpret_steal<py::object>(PyNumber_Index(given.ptr()));
        if (!index) {
            throw py::error_already_set();
        }
        return index;
    };
    const py::object below = whole("denominator");
    if (below.equal(py::int_(0))) {
        throw InvalidAmount("cost_weight: expected a denominator above 0, got 0");
    }
    const py::object weight = py::module_::import("fractions").attr("Fraction")(whole("numerator"), below);
    const py::object numerator = weight.attr("numerator");
    const py::object denominator = weight.attr("denominator");
    if (numerator < py::int_(0)) {
        throw InvalidAmount("cost_weight: expected at least 0, got " + py::str(weight).cast<std::string>());
    }
    // The first breakpoint that is not above the weight, which may have any number of digits.
    std::size_t low = 0;
    std::size_t high = view.frontier.numerators.size();
    while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        if (py::int_(view.frontier.numerators[middle]) * denominator >
            numerator * py::int_(view.frontier.denominators[middle])) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return make_point(view, low, weight);
}

std::shared_ptr<BudgetChoiceView> for_budget(const FrontierView& view, const py::object& budget,
                                             const py::object& tie_order) {
    const Weight limit = integer_in(budget, "budget");
    if (limit < 0) {  // the core would name a number that was brought into range
        throw InvalidAmount("budget: expected at least 0, got " + py::str(budget).cast<std::string>());
    }
    const auto order = tie_order.is_none() ? std::span<const NodeId>{} : ids_in(tie_order, "tie_order");
    if (!tie_order.is_none() && order.size() != view.num_nodes) {
        throw InvalidGraph("tie_order: expected one per node (" + std::to_string(view.num_nodes) + "), got " +
                           std::to_string(order.size()));
    }
    BudgetChoice choice = on_same_graph(view, [&](const ProvenanceGraph& graph) {
        return choose_within_budget(graph, view.problem(), view.frontier, limit, order);
    });
    auto out = std::make_shared<BudgetChoiceView>();
    const Mask certified = view.frontier.closure(choice.point);
    out->point = choice.point;
    out->certified = std::make_shared<Mask>(certified);
    out->selected = std::make_shared<Mask>(certified | Mask::from_ids(choice.fill, view.num_nodes));
    out->value = choice.value;
    out->cost = choice.cost;
    out->bound = fraction(choice.bound_numerator, choice.bound_denominator) * py::int_(choice.bound_rest) +
                 py::int_(choice.bound_value);
    out->fill = ids_out(std::move(choice.fill));
    return out;
}

}  // namespace

void bind_frontier(py::module_& module) {
    py::classh<FrontierCertificateView>(
        module, "FrontierCertificate",
        "One flow (from target to source of each edge listed) that proves every point of a frontier: "
        "flow_high * 2**64 + flow_low, positive.",
        py::is_final(), made_by_library())
        .def_readonly("sources", &FrontierCertificateView::sources, "uint32, edges that carry flow (target to source)")
        .def_readonly("targets", &FrontierCertificateView::targets, "uint32, one per source")
        .def_readonly("flow_high", &FrontierCertificateView::flow_high,
                      "int64, the upper part of the flow on each edge listed")
        .def_readonly("flow_low", &FrontierCertificateView::flow_low, "uint64, the lower 64 bits of it");

    py::classh<FrontierPointView>(module, "FrontierPoint", "The smallest optimum at one cost weight.", py::is_final(),
                                  made_by_library())
        .def_property_readonly(
            "selected", [](const FrontierPointView& view) { return view.selected; }, "Mask of its nodes.")
        .def_readonly("value", &FrontierPointView::value, "The sum of their values.")
        .def_readonly("cost", &FrontierPointView::cost, "The sum of their costs.")
        .def_readonly(
            "cost_weight", &FrontierPointView::cost_weight,
            "The weight asked for. From point(index): the smallest Fraction that gives it, 0 for the last; None for "
            "point(0), which is free and worth having at any weight.")
        .def("__repr__", [](const FrontierPointView& view) {
            return "FrontierPoint(selected=" + std::to_string(view.selected->count()) +
                   ", value=" + std::to_string(view.value) + ", cost=" + std::to_string(view.cost) +
                   ", cost_weight=" + py::str(view.cost_weight).cast<std::string>() + ")";
        });

    py::classh<BudgetChoiceView>(
        module, "BudgetChoice",
        "What a budget buys: a point of the frontier, and a greedy fill that is not certified. It may be "
        "worth less than the best selection within the budget; `bound` tells by how much at most.",
        py::is_final(), made_by_library())
        .def_readonly("point", &BudgetChoiceView::point,
                      "The dearest point within the budget, or 0 where filling up from what is free is worth more.")
        .def_property_readonly(
            "certified", [](const BudgetChoiceView& view) { return view.certified; }, "Mask: that point's closure.")
        .def_readonly("fill", &BudgetChoiceView::fill,
                      "What was added to it, uint32, in order: nodes whose parents are in by then.")
        .def_property_readonly(
            "selected", [](const BudgetChoiceView& view) { return view.selected; }, "Mask: both together.")
        .def_readonly("value", &BudgetChoiceView::value, "The sum of values of all that is selected.")
        .def_readonly("cost", &BudgetChoiceView::cost, "The sum of their costs, within the budget.")
        .def_readonly("bound", &BudgetChoiceView::bound,
                      "Fraction: no selection within the budget is worth more (the concave hull of the frontier).")
        .def("__repr__", [](const BudgetChoiceView& view) {
            return "BudgetChoice(point=" + std::to_string(view.point) + ", fill=" + std::to_string(view.fill.size()) +
                   ", value=" + std::to_string(view.value) + ", cost=" + std::to_string(view.cost) +
                   ", bound=" + py::str(view.bound).cast<std::string>() + ")";
        });

    py::classh<FrontierView>(
        module, "Frontier",
        "The smallest optimum of value - x cost for every x >= 0: points from the largest x down, each "
        "within the next. Point 0 is what is worth having at any x; point i is the answer from "
        "breakpoints[i] (0 for the last) up to, and without, breakpoints[i - 1]. len() is the number of "
        "points, one more than there are breakpoints.",
        py::is_final(), made_by_library())
        .def_property_readonly("breakpoints", &breakpoints,
                               "Fractions, strictly decreasing, positive; a new list each time.")
        .def_readonly("numerators", &FrontierView::numerators, "int64, of the breakpoints, reduced.")
        .def_readonly("denominators", &FrontierView::denominators, "int64, of the breakpoints, reduced.")
        .def_readonly("values", &FrontierView::values, "int64, per point the value of what is selected.")
        .def_readonly("costs", &FrontierView::costs, "int64, per point the cost of what is selected.")
        .def_readonly("sizes", &FrontierView::sizes, "int64, per point the number of nodes.")
        .def_readonly("piece", &FrontierView::piece,
                      "uint32, per node the first point that holds it; 2**32 - 1 for a node that none holds.")
        .def_property_readonly(
            "free", [](const FrontierView& view) { return view.frontier.closure(0); },
            "Mask: point 0, which costs nothing.")
        .def_readonly("certificate", &FrontierView::certificate, "FrontierCertificate: what verify() checks.")
        .def("point", &point, py::arg("index"),
             "Point `index`, the largest cost weight first; the cost_weight of point 0 is None. Raises NodeRangeError.")
        .def("at", &at, py::arg("cost_weight"), "The smallest optimum at a cost weight, an int or a Fraction.")
        .def("for_budget", &for_budget, py::arg("budget"), py::arg("tie_order") = py::none(),
             "The dearest point within the budget, filled up greedily by value for cost: single nodes whose parents "
             "are in, and nodes with up to 63 ancestors they lack. Not always the best; `bound` is what no selection can "
             "exceed. Among equals the node with the smaller entry of `tie_order` (uint32, one per node) goes first, "
             "else the smaller id. Raises InvalidGraphError when the graph has grown since.")
        .def("verify", &verify,
             "Check every point by the certificate, with code that shares nothing with the solver. Raises "
             "InvalidGraphError when the graph has grown since.")
        .def(
            "__len__", [](const FrontierView& view) { return view.frontier.values.size(); }, "The number of points.")
        .def("__repr__", [](const FrontierView& view) {
            return "Frontier(points=" + std::to_string(view.frontier.values.size()) + ")";
        });

    auto graph = py::reinterpret_borrow<py::classh<GraphHandle>>(module.attr("ProvenanceGraph"));
    graph.def(
        "frontier", &frontier, py::arg("values"), py::arg("costs"), py::arg("executable") = py::none(),
        py::arg("within") = py::none(),
        "The smallest optimum of value - x cost for every x >= 0, under the rules of closure(). int64, one value and "
        "one cost per node; costs are at least 0, values may be below. Raises WeightOverflowError when the sum of "
        "|value| or of costs inside `within` exceeds 2**62, InvalidAmountError for a negative cost, InvalidGraphError "
        "when sizes do not fit.");

    module.def(
        "verify_frontier", &verify_given, py::arg("graph"), py::arg("values"), py::arg("costs"), py::arg("executable"),
        py::arg("within"), py::arg("piece"), py::arg("numerators"), py::arg("denominators"), py::arg("sources"),
        py::arg("targets"), py::arg("flow_high"), py::arg("flow_low"),
        "Is this the whole frontier of smallest optima, and does this certificate prove it? Arrays as Frontier and its "
        "certificate hold them.");
}

}  // namespace memorepair::bindings

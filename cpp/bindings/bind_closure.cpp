// Purpose: ProvenanceGraph.closure, Closure, Certificate and verify_closure.
// Contract: memorepair/closure.hpp. A Closure keeps its graph and copies of its weights and masks, so that verify()
// asks the very question that was answered. Closures and certificates never change.
#include "graph_handle.hpp"
#include "memorepair/closure.hpp"

namespace memorepair::bindings {

namespace {

// The certificate as Python sees it: arrays made once, read-only, shared by all who ask.
struct CertificateView {
    py::array sources;
    py::array targets;
    py::array flow;
    py::array absorbed;
};

struct ClosureView {
    std::shared_ptr<const GraphHandle> graph;
    std::uint64_t num_nodes = 0;
    std::uint64_t num_edges = 0;
    std::vector<Weight> weights;
    std::optional<Mask> executable;
    std::optional<Mask> within;
    std::shared_ptr<Mask> selected;
    Weight objective = 0;
    std::shared_ptr<CertificateView> certificate;
};

const Mask* pointer_to(const std::optional<Mask>& mask) {
    return mask.has_value() ? &*mask : nullptr;
}

std::shared_ptr<ClosureView> closure(std::shared_ptr<GraphHandle> handle, const py::object& weights,
                                     const py::object& executable, const py::object& within) {
    const std::span<const Weight> span = weights_in(weights, "weights");
    auto view = std::make_shared<ClosureView>();
    view->weights.assign(span.begin(), span.end());
    view->executable = copy_of(mask_in(executable, "executable"));
    view->within = copy_of(mask_in(within, "within"));
    Closure solved = handle->read([&](const ProvenanceGraph& graph) {
        view->num_nodes = graph.num_nodes();
        view->num_edges = graph.num_edges();
        return solve_closure(graph, {view->weights, pointer_to(view->executable), pointer_to(view->within)});
    });
    view->graph = std::move(handle);
    view->objective = solved.objective;
    view->selected = std::make_shared<Mask>(std::move(solved.selected));
    Certificate& proof = solved.certificate;
    view->certificate = std::make_shared<CertificateView>(
        CertificateView{ids_out(std::move(proof.sources)), ids_out(std::move(proof.targets)),
                        array_out(std::move(proof.flow), py::dtype::of<Weight>()),
                        array_out(std::move(proof.absorbed), py::dtype::of<Weight>())});
    return view;
}

bool verify(const ClosureView& view) {
    const CertificateView& proof = *view.certificate;
    const auto sources = ids_in(proof.sources, "sources");
    const auto targets = ids_in(proof.targets, "targets");
    const auto flow = weights_in(proof.flow, "flow");
    const auto absorbed = weights_in(proof.absorbed, "absorbed");
    return view.graph->read([&](const ProvenanceGraph& graph) {
        if (graph.num_nodes() != view.num_nodes || graph.num_edges() != view.num_edges) {
            throw InvalidGraph("closure: expected the graph it was computed on (" + std::to_string(view.num_nodes) +
                               " nodes, " + std::to_string(view.num_edges) + " edges), got one that has grown to " +
                               std::to_string(graph.num_nodes()) + " nodes, " + std::to_string(graph.num_edges()) +
                               " edges; compute the closure again");
        }
        return verify_closure(graph, {view.weights, pointer_to(view.executable), pointer_to(view.within)},
                              *view.selected, view.objective, sources, targets, flow, absorbed);
    });
}

bool verify_given(const GraphHandle& handle, const py::object& weights, const py::object& executable, const py::object& within,
                  const Mask& selected, const py::object& objective, const py::object& sources,
                  const py::object& targets, const py::object& flow, const py::object& absorbed) {
    const ClosureProblem problem{weights_in(weights, "weights"), mask_in(executable, "executable"),
                                 mask_in(within, "within")};
    // A claim past 64 bits is clamped to a value that no valid objective has, and so is refused.
    const Weight claimed = integer_in(objective, "objective");
    const auto from = ids_in(sources, "sources");
    const auto to = ids_in(targets, "targets");
    const auto amounts = weights_in(flow, "flow");
    const auto taken = weights_in(absorbed, "absorbed");
    return handle.read([&](const ProvenanceGraph& graph) {
        return verify_closure(graph, problem, selected, claimed, from, to, amounts, taken);
    });
}

std::string repr(const ClosureView& view) {
    return "Closure(selected=" + std::to_string(view.selected->count()) +
           ", objective=" + std::to_string(view.objective) + ")";
}

}  // namespace

void bind_closure(py::module_& module) {
    py::classh<CertificateView>(module, "Certificate", "A flow that proves a closure optimal and smallest.",
                                py::is_final(), made_by_library())
        .def_readonly("sources", &CertificateView::sources, "uint32, edges that carry flow (from target to source)")
        .def_readonly("targets", &CertificateView::targets, "uint32, one per source")
        .def_readonly("flow", &CertificateView::flow, "int64, positive")
        .def_readonly("absorbed", &CertificateView::absorbed, "int64, one per node, at most max(-weight, 0)");

    py::classh<ClosureView>(module, "Closure", "The smallest maximum-weight predecessor closure.", py::is_final(), made_by_library())
        .def_property_readonly(
            "selected", [](const ClosureView& view) { return view.selected; }, "Mask of its nodes.")
        .def_readonly("objective", &ClosureView::objective, "The sum of their weights.")
        .def_readonly("certificate", &ClosureView::certificate, "Certificate: what verify() checks.")
        .def("verify", &verify,
             "Check selection, objective and certificate against the graph, with code that shares nothing with the "
             "solver. Raises InvalidGraphError when the graph has grown since.")
        .def("__repr__", &repr);

    auto graph = py::reinterpret_borrow<py::classh<GraphHandle>>(module.attr("ProvenanceGraph"));
    graph.def(
        "closure", &closure, py::arg("weights"), py::arg("executable") = py::none(), py::arg("within") = py::none(),
        "The smallest maximum-weight set that holds, with each node, its parents inside `within`, and nothing that "
        "is not executable. weights: int64, one per node. A mask smaller than the graph leaves out the rest. Raises WeightOverflowError when the sum of |weight| "
        "inside `within` exceeds 2**62.");

    module.def("verify_closure", &verify_given, py::arg("graph"), py::arg("weights"), py::arg("executable"),
               py::arg("within"), py::arg("selected"), py::arg("objective"), py::arg("sources"), py::arg("targets"),
               py::arg("flow"), py::arg("absorbed"),
               "Is this the smallest optimal closure, and does this certificate prove it?");
}

}  // namespace memorepair::bindings

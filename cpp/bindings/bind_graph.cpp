// Purpose: memorepair._core.ProvenanceGraph, but for its closure (bind_closure.cpp).
// Contract: memorepair/graph.hpp; locking in graph_handle.hpp.
#include "graph_handle.hpp"
#include "memorepair/mask.hpp"

namespace memorepair::bindings {

namespace {

using Handle = std::shared_ptr<GraphHandle>;

Handle from_edges(const py::object& num_nodes, const py::object& sources, const py::object& targets) {
    const std::uint64_t num = count_in(num_nodes, "num_nodes");
    const std::span<const NodeId> from = ids_in(sources, "sources");
    const std::span<const NodeId> to = ids_in(targets, "targets");
    const py::gil_scoped_release release;
    return std::make_shared<GraphHandle>(ProvenanceGraph::from_edges(num, from, to));
}

// Bytes serve as they are, because Python never changes them; any other buffer is copied.
Handle from_bytes(const py::object& data) {
    if (PyBytes_Check(data.ptr())) {
        const std::span bytes(reinterpret_cast<const std::uint8_t*>(PyBytes_AS_STRING(data.ptr())),
                              static_cast<std::size_t>(PyBytes_GET_SIZE(data.ptr())));
        // The last to let go may be an append, which runs without the GIL.
        std::shared_ptr<const void> owner(data.inc_ref().ptr(), [](PyObject* object) {
            const py::gil_scoped_acquire acquire;
            Py_DECREF(object);
        });
        const py::gil_scoped_release release;
        return std::make_shared<GraphHandle>(ProvenanceGraph::from_bytes(bytes, std::move(owner)));
    }
    const BytesIn bytes(data, "data");
    const py::gil_scoped_release release;
    return std::make_shared<GraphHandle>(ProvenanceGraph::from_bytes(bytes.span()));
}

py::bytes to_bytes(const GraphHandle& handle) {
    return bytes_out(handle.read([](const ProvenanceGraph& graph) { return graph.to_bytes(); }));
}

void validate(const GraphHandle& handle) {
    handle.read([](const ProvenanceGraph& graph) { graph.validate(); });
}

void append(GraphHandle& handle, const py::object& num_new_nodes, const py::object& sources,
            const py::object& targets) {
    const std::uint64_t num = count_in(num_new_nodes, "num_new_nodes");
    const std::span<const NodeId> from = ids_in(sources, "sources");
    const std::span<const NodeId> to = ids_in(targets, "targets");
    handle.write([&](ProvenanceGraph& graph) { graph.append(num, from, to); });
}

template <Mask (ProvenanceGraph::*Kernel)(std::span<const NodeId>) const>
Mask search(const GraphHandle& handle, const py::object& roots) {
    const std::span<const NodeId> span = ids_in(roots, "roots");
    return handle.read([&](const ProvenanceGraph& graph) { return (graph.*Kernel)(span); });
}

template <std::vector<NodeId> (ProvenanceGraph::*Kernel)(std::uint64_t) const>
py::array list(const GraphHandle& handle, const py::object& node) {
    const std::uint64_t id = node_in(node, "node");
    if (id > kNoNode) {  // the core would name a number that was brought into range
        throw NodeRange("node: expected an id below 4294967295, got " + py::str(node).cast<std::string>());
    }
    return ids_out(handle.read([&](const ProvenanceGraph& graph) { return (graph.*Kernel)(id); }));
}

template <std::vector<NodeId> (ProvenanceGraph::*Kernel)() const>
py::array whole(const GraphHandle& handle) {
    return ids_out(handle.read([](const ProvenanceGraph& graph) { return (graph.*Kernel)(); }));
}

std::uint64_t num_nodes(const GraphHandle& handle) {
    return handle.glance([](const ProvenanceGraph& graph) { return graph.num_nodes(); });
}

std::uint64_t num_edges(const GraphHandle& handle) {
    return handle.glance([](const ProvenanceGraph& graph) { return graph.num_edges(); });
}

std::string repr(const GraphHandle& handle) {
    return "ProvenanceGraph(num_nodes=" + std::to_string(num_nodes(handle)) +
           ", num_edges=" + std::to_string(num_edges(handle)) + ")";
}

}  // namespace

void bind_graph(py::module_& module) {
    py::classh<GraphHandle>(module, "ProvenanceGraph",
                            "An influence graph that only grows. Safe to share among threads.", py::is_final(), made_by_library())
        .def_static("from_edges", &from_edges, py::arg("num_nodes"), py::arg("sources"), py::arg("targets"),
                    "Nodes 0 to num_nodes - 1; sources[i] influences targets[i] (uint32). Self edges are dropped, "
                    "duplicates merged. Raises NodeRangeError, InvalidGraphError, CapacityError.")
        .def_static("from_bytes", &from_bytes, py::arg("data"),
                    "What to_bytes() wrote, from any contiguous buffer; bytes are kept, not copied. Raises InvalidGraphError for damaged bytes; "
                    "validate() proves the rest.")
        .def("to_bytes", &to_bytes, "A snapshot that loads without being built again.")
        .def("validate", &validate,
             "Prove that all lists are sorted and that parents and children hold the same edges, else raise "
             "InvalidGraphError.")
        .def_property_readonly("num_nodes", &num_nodes, "How many nodes; ids are below this number.")
        .def_property_readonly("num_edges", &num_edges, "How many distinct edges.")
        .def("append", &append, py::arg("num_new_nodes"), py::arg("sources"), py::arg("targets"),
             "Add nodes with the next ids, then edges between any nodes. An append that raises has changed nothing.")
        .def("reach", &search<&ProvenanceGraph::reach>, py::arg("roots"),
             "Everything the roots influence, the roots included.")
        .def("ancestors", &search<&ProvenanceGraph::ancestors>, py::arg("roots"),
             "Everything that influences the roots, the roots included.")
        .def("parents", &list<&ProvenanceGraph::parents>, py::arg("node"), "Sorted, read-only uint32.")
        .def("children", &list<&ProvenanceGraph::children>, py::arg("node"), "Sorted, read-only uint32.")
        .def("groups", &whole<&ProvenanceGraph::groups>,
             "Per node its strongly connected component, numbered as order() lists them.")
        .def("order", &whole<&ProvenanceGraph::order>,
             "All nodes, influence first; nodes of a group adjacent and ascending; smallest id first among what is "
             "ready.")
        .def("__repr__", &repr);
}

}  // namespace memorepair::bindings

// Purpose: memorepair._core.Mask.
// Contract: memorepair/mask.hpp; immutable, so no method needs a lock, and long ones run without the GIL.
#include "bind.hpp"
#include "memorepair/mask.hpp"

namespace memorepair::bindings {

namespace {

std::uint64_t work(const Mask& mask) {
    return mask.is_dense() ? num_words(mask.size()) : mask.count();
}

template <Mask (*Operation)(const Mask&, const Mask&)>
Mask combine(const Mask& left, const Mask& right) {
    const ReleaseForLongWork release(work(left) + work(right));
    return Operation(left, right);
}

Mask unite(const Mask& left, const Mask& right) {
    return left | right;
}
Mask intersect(const Mask& left, const Mask& right) {
    return left & right;
}
Mask subtract(const Mask& left, const Mask& right) {
    return left - right;
}

Mask from_ids(const py::object& ids, const py::object& size) {
    const std::span<const NodeId> span = ids_in(ids, "ids");
    const std::uint64_t num = count_in(size, "size");
    const ReleaseForLongWork release(span.size());
    return Mask::from_ids(span, num);
}

Mask from_bytes(const py::object& data) {
    if (!PyBytes_Check(data.ptr())) {
        throw py::type_error(std::string("data: expected bytes, got ") + Py_TYPE(data.ptr())->tp_name);
    }
    const BytesIn bytes(data, "data");
    const ReleaseForLongWork release(bytes.span().size());
    return Mask::from_bytes(bytes.span());
}

py::bytes to_bytes(const Mask& mask) {
    std::vector<std::uint8_t> data;
    {
        const ReleaseForLongWork release(work(mask));
        data = mask.to_bytes();
    }
    return bytes_out(data);
}

py::array ids_of(const Mask& mask) {
    std::vector<NodeId> ids;
    {
        const ReleaseForLongWork release(mask.count());
        ids = mask.ids();
    }
    return ids_out(std::move(ids));
}

py::array test(const Mask& mask, const py::object& ids) {
    const std::span<const NodeId> span = ids_in(ids, "ids");
    Array<std::uint8_t> hit(span.size());
    {
        const ReleaseForLongWork release(span.size());
        mask.test(span, hit);
    }
    return array_out(std::move(hit), py::dtype::of<bool>());
}

py::array filter(const Mask& mask, const py::object& ids) {
    const std::span<const NodeId> span = ids_in(ids, "ids");
    Array<NodeId> kept;
    {
        const ReleaseForLongWork release(span.size());
        kept = mask.filter(span);
    }
    return ids_out(std::move(kept));
}

std::string repr(const Mask& mask) {
    return "Mask(size=" + std::to_string(mask.size()) + ", count=" + std::to_string(mask.count()) + ")";
}

// Mask.__new__(Mask) gives the empty mask, not an object with nothing inside; Mask(...) goes on to its constructor.
PyObject* new_mask(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    const bool is_bare = PyTuple_GET_SIZE(args) == 0 && (kwargs == nullptr || PyDict_GET_SIZE(kwargs) == 0);
    return is_bare ? py::cast(Mask(0)).release().ptr() : py::detail::make_new_instance(type);
}

py::custom_type_setup never_empty() {
    return py::custom_type_setup([](PyHeapTypeObject* heap) { heap->ht_type.tp_new = &new_mask; });
}

}  // namespace

void bind_mask(py::module_& module) {
    py::classh<Mask>(module, "Mask", "An immutable set of node ids below `size`.", py::is_final(),
                     never_empty())
        .def(py::init([](const py::object& size) { return Mask(count_in(size, "size")); }), py::arg("size") = 0,
             "The empty set below `size`.")
        .def_static("from_ids", &from_ids, py::arg("ids"), py::arg("size"),
                    "The set of `ids` (uint32, any order, repeats allowed). Raises NodeRangeError.")
        .def_static("from_bytes", &from_bytes, py::arg("data"),
                    "What to_bytes() wrote. Raises InvalidMaskError for anything else.")
        .def_property_readonly("size", &Mask::size, "Ids are below this number.")
        .def("count", &Mask::count, "How many ids are set.")
        .def("ids", &ids_of, "The set ids, sorted, as a read-only uint32 array.")
        .def("test", &test, py::arg("ids"), "For each of `ids`, is it set? A read-only bool array.")
        .def("filter", &filter, py::arg("ids"), "The `ids` that are NOT set, in order, repeats kept.")
        .def(
            "resized", [](const Mask& mask, const py::object& size) { return mask.resized(count_in(size, "size")); },
            py::arg("size"), "The same ids below another size. Raises NodeRangeError if one does not fit.")
        .def("to_bytes", &to_bytes, "Compact and canonical: equal masks give equal bytes.")
        .def("__or__", &combine<unite>, py::is_operator())
        .def("__and__", &combine<intersect>, py::is_operator())
        .def("__sub__", &combine<subtract>, py::is_operator())
        .def(
            "__eq__", [](const Mask& left, const Mask& right) { return left == right; }, py::is_operator())
        .def("__bool__", [](const Mask& mask) { return mask.count() != 0; })
        .def(
            "__contains__",
            [](const Mask& mask, const py::object& id) {
                // As in a set, an id past the size is simply not in it; `test` and `filter` are the strict ones.
                const auto node = node_in(id, "mask id");
                return node < mask.size() && mask.contains(node);
            },
            py::arg("id"))
        .def("__repr__", &repr);
}

}  // namespace memorepair::bindings

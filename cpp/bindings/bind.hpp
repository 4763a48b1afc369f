// Purpose: what every binding file needs: arrays in, arrays out, integers without wrap-around.
// Contract: input arrays are 1-D, C-contiguous and of exactly the named dtype, else TypeError (nothing is converted or
// copied behind the caller's back); output arrays are read-only and own their memory through a capsule. The caller must
// not write to an input array while the call runs: kernels run without the GIL.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "memorepair/errors.hpp"
#include "memorepair/mask.hpp"
#include "memorepair/types.hpp"

namespace memorepair::bindings {

namespace py = pybind11;

void bind_errors(py::module_& module);
void bind_mask(py::module_& module);
void bind_graph(py::module_& module);
void bind_closure(py::module_& module);
void bind_frontier(py::module_& module);

inline bool is_sequence_of_ints(py::handle object) {
    if (!PyList_Check(object.ptr()) && !PyTuple_Check(object.ptr()) && !PyRange_Check(object.ptr())) {
        return false;
    }
    for (const py::handle item : object) {
        if (PyLong_Check(item.ptr()) == 0) {
            return false;
        }
    }
    return true;
}

template <class T>
std::span<const T> array_in(py::handle object, const char* name, const char* dtype) {
    if (!py::isinstance<py::array>(object)) {
        throw py::type_error(std::string(name) + ": expected a numpy array of " + dtype + ", got " +
                             Py_TYPE(object.ptr())->tp_name +
                             (is_sequence_of_ints(object) ? std::string("; pass np.array(") + name + ", dtype=np." + dtype + ")" : ""));
    }
    // A subclass may mean something else by its memory: a masked array's mask would be dropped without a word.
    if (Py_TYPE(object.ptr()) != py::detail::npy_api::get().PyArray_Type_ && py::hasattr(object, "mask")) {
        throw py::type_error(std::string(name) + ": expected a numpy array without a mask, got " +
                             Py_TYPE(object.ptr())->tp_name +
                             "; pass .filled(...) with what a masked entry stands for, or leave the entry out of every "
                             "array that belongs with this one");
    }
    const auto array = py::reinterpret_borrow<py::array>(object);
    constexpr int kLayout = int{py::array::c_style} | int{py::detail::npy_api::NPY_ARRAY_ALIGNED_};
    if (!py::array_t<T>::check_(object) || array.ndim() != 1 || (array.flags() & kLayout) != kLayout) {
        throw py::type_error(std::string(name) + ": expected a 1-D C-contiguous numpy array of " + dtype + ", got " +
                             std::to_string(array.ndim()) + "-D " + py::str(array.dtype()).cast<std::string>() +
                             ((array.flags() & kLayout) != kLayout ? ", not contiguous or not aligned" : "") +
                             "; pass np.ascontiguousarray(" + name + ", dtype=np." + dtype + ")");
    }
    return {static_cast<const T*>(array.data()), static_cast<std::size_t>(array.size())};
}

// Null for None. Valid as long as the caller's argument.
inline const Mask* mask_in(py::handle object, const char* name) {
    if (object.is_none()) {
        return nullptr;
    }
    if (!py::isinstance<Mask>(object)) {
        throw py::type_error(std::string(name) + ": expected a Mask or None, got " + Py_TYPE(object.ptr())->tp_name +
                             "; pass Mask.from_ids(ids, size)");
    }
    return object.cast<const Mask*>();
}

inline std::optional<Mask> copy_of(const Mask* mask) {
    return mask == nullptr ? std::nullopt : std::optional<Mask>(*mask);
}

inline std::span<const NodeId> ids_in(py::handle object, const char* name) {
    return array_in<NodeId>(object, name, "uint32");
}

inline std::span<const Weight> weights_in(py::handle object, const char* name) {
    return array_in<Weight>(object, name, "int64");
}

// The bytes of anything that has a contiguous buffer, without a copy. They may change while they are read.
class BytesIn {
public:
    BytesIn(py::handle object, const char* name) {
        if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) {
            PyErr_Clear();
            throw py::type_error(std::string(name) + ": expected bytes or another contiguous buffer, got " +
                                 Py_TYPE(object.ptr())->tp_name);
        }
    }
    BytesIn(const BytesIn&) = delete;
    BytesIn& operator=(const BytesIn&) = delete;
    ~BytesIn() { PyBuffer_Release(&view_); }

    std::span<const std::uint8_t> span() const noexcept {
        return {static_cast<const std::uint8_t*>(view_.buf), static_cast<std::size_t>(view_.len)};
    }

private:
    Py_buffer view_{};
};

template <class Bytes>
py::bytes bytes_out(const Bytes& data) {
    return {reinterpret_cast<const char*>(data.data()), data.size()};
}

// Releases the GIL for long work only: whoever gives it away queues behind every other Python thread to get it back,
// which costs far more than a short look into a mask.
class ReleaseForLongWork {
public:
    explicit ReleaseForLongWork(std::uint64_t num_items) {
        if (num_items >= kLongWork) {
            release_.emplace();
        }
    }

private:
    static constexpr std::uint64_t kLongWork = 4096;
    std::optional<py::gil_scoped_release> release_;
};

// A class that only the library makes: without this, Cls.__new__(Cls) would hand out an object with nothing inside.
inline PyObject* refuse_new(PyTypeObject* type, PyObject* /*args*/, PyObject* /*kwargs*/) {
    const bool has_maker = PyObject_HasAttrString(reinterpret_cast<PyObject*>(type), "from_edges") != 0;
    PyErr_Format(PyExc_TypeError, "%s: made by the library only, it cannot be called%s", type->tp_name,
                 has_maker ? "; use from_edges() or from_bytes()" : "");
    return nullptr;
}

inline py::custom_type_setup made_by_library() {
    return py::custom_type_setup([](PyHeapTypeObject* heap) { heap->ht_type.tp_new = &refuse_new; });
}

// `dtype` is given because bool arrays travel as bytes. The capsule and the flag are set by hand: pybind11's own ways
// cost as much as a small kernel.
template <class Vector>
py::array array_out(Vector values, const py::dtype& dtype) {
    auto owner = std::make_unique<Vector>(std::move(values));
    const auto capsule = py::reinterpret_steal<py::object>(PyCapsule_New(owner.get(), nullptr, [](PyObject* self) {
        delete static_cast<Vector*>(PyCapsule_GetPointer(self, nullptr));
    }));
    if (!capsule) {
        throw py::error_already_set();
    }
    const Vector& kept = *owner.release();  // the capsule owns it from here on
    py::array array(dtype, {static_cast<py::ssize_t>(kept.size())}, {dtype.itemsize()}, kept.data(), capsule);
    py::detail::array_proxy(array.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
    return array;
}

template <class Vector>
py::array ids_out(Vector ids) {
    return array_out(std::move(ids), py::dtype::of<NodeId>());
}

// A Python integer (or anything with __index__) as a signed 64-bit number; what does not fit is clamped, so that the
// range check of the caller refuses it with its own message. bool is an int in Python and no count here.
inline std::int64_t integer_in(py::handle object, const char* name) {
    if (PyBool_Check(object.ptr()) || !PyIndex_Check(object.ptr())) {
        throw py::type_error(std::string(name) + ": expected an int, got " + Py_TYPE(object.ptr())->tp_name);
    }
    const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(object.ptr()));
    if (!index) {
        throw py::error_already_set();
    }
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
    if (overflow != 0) {
        return overflow > 0 ? INT64_MAX : INT64_MIN;
    }
    return value;
}

// A number of nodes: never negative; too large is for the core to refuse, unless the message would name the clamp.
inline std::uint64_t count_in(py::handle object, const char* name) {
    const std::int64_t value = integer_in(object, name);
    if (value == INT64_MAX) {
        throw Capacity(std::string(name) + ": expected at most 4294967295, got " +
                       py::str(object).cast<std::string>());
    }
    if (value < 0) {
        throw InvalidGraph(std::string(name) + ": expected at least 0, got " + py::str(object).cast<std::string>());
    }
    return static_cast<std::uint64_t>(value);
}

// A node id: never negative; too large is for the core to refuse.
inline std::uint64_t node_in(py::handle object, const char* name) {
    const std::int64_t value = integer_in(object, name);
    if (value < 0) {
        throw NodeRange(std::string(name) + ": expected at least 0, got " + py::str(object).cast<std::string>());
    }
    return static_cast<std::uint64_t>(value);
}

}  // namespace memorepair::bindings

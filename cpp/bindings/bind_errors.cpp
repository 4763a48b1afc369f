// Purpose: errors of the core become the classes of memorepair.errors.
// Contract: the module is imported when an error is thrown, not before, so that _core can be imported first.
#include "bind.hpp"

namespace memorepair::bindings {

namespace {

void raise(const char* name, const char* message) {
    try {
        const py::object type = py::module_::import("memorepair.errors").attr(name);
        PyErr_SetString(type.ptr(), message);
    } catch (py::error_already_set& missing) {
        missing.restore();
    }
}

void translate(std::exception_ptr thrown) {
    try {
        if (thrown) {
            std::rethrow_exception(thrown);
        }
    } catch (const WeightOverflow& error) {
        raise("WeightOverflowError", error.what());
    } catch (const NodeRange& error) {
        raise("NodeRangeError", error.what());
    } catch (const InvalidGraph& error) {
        raise("InvalidGraphError", error.what());
    } catch (const InvalidAmount& error) {
        raise("InvalidAmountError", error.what());
    } catch (const InvalidMask& error) {
        raise("InvalidMaskError", error.what());
    } catch (const Capacity& error) {
        raise("CapacityError", error.what());
    }
}

}  // namespace

void bind_errors(py::module_&) {
    py::register_local_exception_translator(&translate);
}

}  // namespace memorepair::bindings

// Purpose: the Python module memorepair._core: the table of contents of the bindings.
// Contract: the stub python/memorepair/_core.pyi, kept by hand and checked by mypy.stubtest.
#include "bind.hpp"

PYBIND11_MODULE(_core, module) {
    module.doc() = "Exact kernels over influence graphs: reach, masks, order, maximum closure and its whole frontier.";
    memorepair::bindings::bind_errors(module);
    memorepair::bindings::bind_mask(module);
    memorepair::bindings::bind_graph(module);
    memorepair::bindings::bind_closure(module);
    memorepair::bindings::bind_frontier(module);
}

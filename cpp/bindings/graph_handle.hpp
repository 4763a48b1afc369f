// Purpose: a graph that many Python threads may use at once.
// Contract: read() runs a kernel without the GIL, together with other readers; write() runs alone and is never starved:
// who comes after a waiting writer waits behind it at the gate (a shared_mutex by itself may let readers pass for
// ever).
// Invariant: the lock is taken after the GIL is released and given back before the GIL is asked for again, so that no
// thread waits for one while it holds the other. But for one case: an append that lets go of the bytes a graph was
// loaded from asks for the GIL under the lock, and may, because no thread that holds the GIL ever waits for the lock.
#pragma once

#include <mutex>
#include <shared_mutex>

#include "bind.hpp"
#include "memorepair/graph.hpp"

namespace memorepair::bindings {

class GraphHandle {
public:
    explicit GraphHandle(ProvenanceGraph graph) : graph_(std::move(graph)) {}

    template <class Kernel>
    auto read(Kernel&& kernel) const {
        const py::gil_scoped_release release;
        std::unique_lock gate(gate_);
        const std::shared_lock lock(mutex_);
        gate.unlock();
        return kernel(graph_);
    }

    // For an answer that takes no time: keeps the GIL when no writer is near, and so never queues for it.
    template <class Look>
    auto glance(Look&& look) const {
        {
            std::unique_lock gate(gate_, std::try_to_lock);
            if (gate) {
                const std::shared_lock lock(mutex_, std::try_to_lock);
                if (lock) {
                    return look(graph_);
                }
            }
        }
        return read(look);
    }

    template <class Change>
    void write(Change&& change) {
        const py::gil_scoped_release release;
        const std::unique_lock gate(gate_);
        const std::unique_lock lock(mutex_);
        change(graph_);
    }

private:
    mutable std::mutex gate_;
    mutable std::shared_mutex mutex_;
    ProvenanceGraph graph_;
};

}  // namespace memorepair::bindings

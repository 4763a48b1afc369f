// Purpose: the working memory of a search, kept by its graph from one search to the next: a search of a few nodes then
// allocates nothing and clears nothing that grows with the graph.
// Contract: take() hands out memory for `num_nodes` whose bits are all zero, to one caller at a time; who has taken it
// gives it back as clean, or lets it go. Searches at the same time find the pool empty and get memory of their own.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "huge_pages.hpp"
#include "memorepair/mask.hpp"

namespace memorepair {

struct Scratch {
    explicit Scratch(std::uint64_t num_nodes)
        : capacity(num_nodes),
          seen(num_words(num_nodes)),
          blocks(num_words(seen.size())),
          queue(fresh_array<NodeId>(num_nodes + 1)) {}

    std::uint64_t capacity;
    std::vector<std::uint64_t> seen;    // a bit a node
    std::vector<std::uint64_t> blocks;  // a bit a word of `seen`
    Array<NodeId> queue;                // one more than there are nodes
};

class ScratchPool {
public:
    ScratchPool() = default;
    ScratchPool(const ScratchPool&) = delete;
    ScratchPool& operator=(const ScratchPool&) = delete;
    ~ScratchPool() { delete idle_.load(); }

    std::unique_ptr<Scratch> take(std::uint64_t num_nodes) {
        std::unique_ptr<Scratch> scratch(idle_.exchange(nullptr));
        if (!scratch || scratch->capacity < num_nodes) {
            scratch.reset();
            // With room to grow: a graph that is searched after every append must not pay for all nodes each time.
            scratch = std::make_unique<Scratch>(num_nodes + num_nodes / 4);
        }
        return scratch;
    }

    void give(std::unique_ptr<Scratch> scratch) noexcept { delete idle_.exchange(scratch.release()); }

private:
    std::atomic<Scratch*> idle_ = nullptr;
};

}  // namespace memorepair

// Purpose: a hash set of arcs as 64-bit keys: open addressing, insertion only.
// Contract: insert() tells whether the key was new; reserve() makes the next `extra` insertions throw nothing.
// Invariants: capacity is a power of two, at most half full; kEmpty is no key (it would join kNoNode to itself).
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace memorepair {

class ArcSet {
public:
    static std::uint64_t key(std::uint32_t source, std::uint32_t target) noexcept {
        return (std::uint64_t{source} << 32) | target;
    }

    std::uint64_t size() const noexcept { return size_; }

    void reserve(std::uint64_t extra) {
        const std::uint64_t needed = std::bit_ceil(2 * (size_ + extra) + 16);
        if (needed > slots_.size()) {
            std::vector<std::uint64_t> old(needed, kEmpty);
            old.swap(slots_);
            for (const std::uint64_t key : old) {
                if (key != kEmpty) {
                    slots_[find(key)] = key;
                }
            }
        }
    }

    bool insert(std::uint64_t key) {
        if (2 * (size_ + 1) > slots_.size()) {
            reserve(size_ + 1);
        }
        std::uint64_t& slot = slots_[find(key)];
        if (slot == key) {
            return false;
        }
        slot = key;
        ++size_;
        return true;
    }

    bool contains(std::uint64_t key) const noexcept { return size_ != 0 && slots_[find(key)] == key; }

    void clear() noexcept {
        slots_ = {};
        size_ = 0;
    }

private:
    static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};

    // The finaliser of splitmix64: ids come in rows, and rows must not cluster.
    std::uint64_t find(std::uint64_t key) const noexcept {
        std::uint64_t hash = key;
        hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9ULL;
        hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebULL;
        hash ^= hash >> 31;
        const std::uint64_t last = slots_.size() - 1;
        std::uint64_t slot = hash & last;
        while (slots_[slot] != kEmpty && slots_[slot] != key) {
            slot = (slot + 1) & last;
        }
        return slot;
    }

    std::vector<std::uint64_t> slots_;
    std::uint64_t size_ = 0;
};

}  // namespace memorepair

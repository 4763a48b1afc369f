// Purpose: an immutable set of node ids below a fixed size.
// Contract: every operation returns a new mask; binary operators zero-extend to the larger size; ids out of range
// throw.
// Invariants: sparse (sorted ids) exactly when 32 * count < size, else dense (words); bits past `size` are zero. So
// equal masks have equal members, and a small set costs nothing that grows with the size.
// Source: the split into sorted ids and bit words follows Roaring (Lemire et al. 2016), with one container only.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "memorepair/types.hpp"

namespace memorepair {

// Thread safety: immutable after construction, so any number of threads may read one mask.
class Mask {
public:
    Mask() = default;
    explicit Mask(std::uint64_t size);

    static Mask from_ids(std::span<const NodeId> ids, std::uint64_t size);
    // `ids` strictly increasing and below `size`: the caller's promise.
    static Mask from_sorted(std::vector<NodeId> ids, std::uint64_t size);
    // `words` holds ceil(size / 64) words with a zero tail: the caller's promise.
    static Mask from_words(std::vector<std::uint64_t> words, std::uint64_t size);
    // Throws InvalidMask for anything to_bytes() would not have written.
    static Mask from_bytes(std::span<const std::uint8_t> bytes);

    std::uint64_t size() const noexcept { return size_; }
    std::uint64_t count() const noexcept { return count_; }
    static bool dense_for(std::uint64_t count, std::uint64_t size) noexcept { return size > 0 && count * 32 >= size; }
    bool is_dense() const noexcept { return dense_for(count_, size_); }
    bool contains(std::uint64_t id) const;

    // Sorted.
    std::vector<NodeId> ids() const;
    // One byte per bit of `ids`: 1 where the id is in the mask. out.size() == ids.size().
    void test(std::span<const NodeId> ids, std::span<std::uint8_t> out) const;
    // The ids that are NOT in the mask, in order, repeats kept.
    Array<NodeId> filter(std::span<const NodeId> ids) const;
    // Growing is free of charge; shrinking below a set id throws NodeRange.
    Mask resized(std::uint64_t size) const;
    // The bits as words, zero-extended to `size` >= size().
    std::vector<std::uint64_t> to_words(std::uint64_t size) const;
    // Canonical and compact; format in mask_codec.cpp.
    std::vector<std::uint8_t> to_bytes() const;

    friend Mask operator|(const Mask& left, const Mask& right);
    friend Mask operator&(const Mask& left, const Mask& right);
    friend Mask operator-(const Mask& left, const Mask& right);
    friend bool operator==(const Mask& left, const Mask& right) = default;

    // Calls visit(first, end) for every maximal run of set ids, ascending.
    template <class Visit>
    void for_each_run(Visit&& visit) const;

private:
    bool has(NodeId id) const noexcept;
    bool by_words(std::uint64_t num_ids) const noexcept;

    std::uint64_t size_ = 0;
    std::uint64_t count_ = 0;
    std::vector<NodeId> sparse_;
    std::vector<std::uint64_t> words_;
};

inline std::uint64_t num_words(std::uint64_t size) noexcept {
    return (size + 63) / 64;
}

inline bool test_bit(std::span<const std::uint64_t> words, std::uint64_t id) noexcept {
    return ((words[id >> 6] >> (id & 63)) & 1U) != 0;
}

inline void set_bit(std::span<std::uint64_t> words, std::uint64_t id) noexcept {
    words[id >> 6] |= std::uint64_t{1} << (id & 63);
}

template <class Visit>
void for_each_bit(std::span<const std::uint64_t> words, Visit&& visit) {
    for (std::uint64_t w = 0; w < words.size(); ++w) {
        for (std::uint64_t rest = words[w]; rest != 0; rest &= rest - 1) {
            visit(static_cast<NodeId>(w * 64 + static_cast<std::uint64_t>(std::countr_zero(rest))));
        }
    }
}

template <class Visit>
void Mask::for_each_run(Visit&& visit) const {
    // Runs of consecutive ids may span words, so the open run is carried along.
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    const auto extend = [&](std::uint64_t from, std::uint64_t to) {
        if (from == end && end != first) {
            end = to;
            return;
        }
        if (end != first) {
            visit(first, end);
        }
        first = from;
        end = to;
    };
    if (is_dense()) {
        for (std::uint64_t w = 0; w < words_.size(); ++w) {
            std::uint64_t rest = words_[w];
            std::uint64_t base = w * 64;
            while (rest != 0) {
                const auto skip = static_cast<unsigned>(std::countr_zero(rest));
                const auto length = static_cast<unsigned>(std::countr_one(rest >> skip));
                extend(base + skip, base + skip + length);
                if (skip + length >= 64) {
                    break;
                }
                rest &= ~std::uint64_t{0} << (skip + length);
            }
        }
    } else {
        for (const NodeId id : sparse_) {
            extend(id, std::uint64_t{id} + 1);
        }
    }
    if (end != first) {
        visit(first, end);
    }
}

}  // namespace memorepair

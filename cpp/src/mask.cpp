// Purpose: the mask's set operations.
// Contract and invariants: memorepair/mask.hpp. Oracle: cpp/tests/test_mask.cpp (std::set).
#include "memorepair/mask.hpp"

#include <algorithm>
#include <iterator>
#include <string>

#include "huge_pages.hpp"
#include "mask_filter.hpp"
#include "memorepair/errors.hpp"

namespace memorepair {

namespace {

void check_size(std::uint64_t size) {
    if (size > kMaxNodes) {
        throw Capacity("mask size: expected at most " + std::to_string(kMaxNodes) + ", got " + std::to_string(size));
    }
}

}  // namespace

Mask::Mask(std::uint64_t size) : size_(size) {
    check_size(size);
}

Mask Mask::from_ids(std::span<const NodeId> ids, std::uint64_t size) {
    check_size(size);
    // Past this share, setting bits and scanning the words is cheaper than sorting.
    if (ids.size() >= size / 256) {
        std::vector<std::uint64_t> words(num_words(size));
        for (const NodeId id : ids) {
            if (id >= size) {
                throw_node_range("mask id", id, size);
            }
            set_bit(words, id);
        }
        return from_words(std::move(words), size);
    }
    std::vector<NodeId> sorted(ids.begin(), ids.end());
    if (!std::is_sorted(sorted.begin(), sorted.end())) {
        std::sort(sorted.begin(), sorted.end());
    }
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    if (!sorted.empty() && sorted.back() >= size) {
        throw_node_range("mask id", sorted.back(), size);
    }
    return from_sorted(std::move(sorted), size);
}

Mask Mask::from_sorted(std::vector<NodeId> ids, std::uint64_t size) {
    Mask mask(size);
    mask.count_ = ids.size();
    if (mask.is_dense()) {
        mask.words_.resize(num_words(size));
        for (const NodeId id : ids) {
            set_bit(mask.words_, id);
        }
    } else {
        mask.sparse_ = std::move(ids);
    }
    return mask;
}

Mask Mask::from_words(std::vector<std::uint64_t> words, std::uint64_t size) {
    Mask mask(size);
    for (const std::uint64_t word : words) {
        mask.count_ += static_cast<std::uint64_t>(std::popcount(word));
    }
    if (mask.is_dense()) {
        mask.words_ = std::move(words);
    } else {
        mask.sparse_.reserve(mask.count_);
        for_each_bit(words, [&](NodeId id) { mask.sparse_.push_back(id); });
    }
    return mask;
}

bool Mask::has(NodeId id) const noexcept {
    return is_dense() ? test_bit(words_, id) : std::binary_search(sparse_.begin(), sparse_.end(), id);
}

bool Mask::contains(std::uint64_t id) const {
    if (id >= size_) {
        throw_node_range("mask id", id, size_);
    }
    return has(static_cast<NodeId>(id));
}

std::vector<NodeId> Mask::ids() const {
    if (!is_dense()) {
        return sparse_;
    }
    std::vector<NodeId> ids;
    ids.reserve(count_);
    for_each_bit(words_, [&](NodeId id) { ids.push_back(id); });
    return ids;
}

// A few ids are looked up in a sparse mask by bisection; for many, setting its bits first is cheaper.
bool Mask::by_words(std::uint64_t num_ids) const noexcept {
    return is_dense() || num_ids * static_cast<std::uint64_t>(std::bit_width(count_)) >= num_words(size_) + count_;
}

void Mask::test(std::span<const NodeId> ids, std::span<std::uint8_t> out) const {
    if (is_dense()) {
        test_words(best_isa(), words_, size_, ids, out.data());
    } else if (by_words(ids.size())) {
        test_words(best_isa(), to_words(size_), size_, ids, out.data());
    } else {
        test_sorted(sparse_, size_, ids, out.data());
    }
}

Array<NodeId> Mask::filter(std::span<const NodeId> ids) const {
    Array<NodeId> kept = fresh_array<NodeId>(ids.size());
    std::uint64_t num_kept = 0;
    if (is_dense()) {
        num_kept = filter_words(best_isa(), words_, size_, ids, kept.data());
    } else if (by_words(ids.size())) {
        num_kept = filter_words(best_isa(), to_words(size_), size_, ids, kept.data());
    } else {
        num_kept = filter_sorted(sparse_, size_, ids, kept.data());
    }
    kept.resize(num_kept);
    // The answer may live long: it must not hold on to the room of ids that were dropped.
    if (num_kept < ids.size() / 2) {
        kept.shrink_to_fit();
    }
    return kept;
}

Mask Mask::resized(std::uint64_t size) const {
    check_size(size);
    if (size >= size_) {
        if (!is_dense()) {
            return from_sorted(sparse_, size);
        }
        return from_words(to_words(size), size);
    }
    std::vector<NodeId> own = ids();
    if (!own.empty() && own.back() >= size) {
        throw_node_range("resized mask", own.back(), size);
    }
    return from_sorted(std::move(own), size);
}

std::vector<std::uint64_t> Mask::to_words(std::uint64_t size) const {
    std::vector<std::uint64_t> words;
    words.reserve(num_words(size));
    if (is_dense()) {
        words = words_;
    }
    words.resize(num_words(size));
    for (const NodeId id : sparse_) {
        set_bit(words, id);
    }
    return words;
}

Mask operator|(const Mask& left, const Mask& right) {
    const std::uint64_t size = std::max(left.size_, right.size_);
    if (!left.is_dense() && !right.is_dense()) {
        std::vector<NodeId> merged;
        merged.reserve(left.sparse_.size() + right.sparse_.size());
        std::set_union(left.sparse_.begin(), left.sparse_.end(), right.sparse_.begin(), right.sparse_.end(),
                       std::back_inserter(merged));
        return Mask::from_sorted(std::move(merged), size);
    }
    const Mask& wide = left.is_dense() ? left : right;
    const Mask& other = left.is_dense() ? right : left;
    std::vector<std::uint64_t> words = wide.to_words(size);
    for (std::size_t w = 0; w < other.words_.size(); ++w) {
        words[w] |= other.words_[w];
    }
    for (const NodeId id : other.sparse_) {
        set_bit(words, id);
    }
    return Mask::from_words(std::move(words), size);
}

Mask operator&(const Mask& left, const Mask& right) {
    const std::uint64_t size = std::max(left.size_, right.size_);
    if (left.is_dense() && right.is_dense()) {
        std::vector<std::uint64_t> words(num_words(size));
        for (std::size_t w = 0; w < std::min(left.words_.size(), right.words_.size()); ++w) {
            words[w] = left.words_[w] & right.words_[w];
        }
        return Mask::from_words(std::move(words), size);
    }
    const Mask& few = left.is_dense() ? right : left;
    const Mask& other = left.is_dense() ? left : right;
    std::vector<NodeId> kept;
    for (const NodeId id : few.sparse_) {
        if (id < other.size_ && other.has(id)) {
            kept.push_back(id);
        }
    }
    return Mask::from_sorted(std::move(kept), size);
}

Mask operator-(const Mask& left, const Mask& right) {
    const std::uint64_t size = std::max(left.size_, right.size_);
    if (!left.is_dense()) {
        std::vector<NodeId> kept;
        kept.reserve(left.sparse_.size());
        for (const NodeId id : left.sparse_) {
            if (id >= right.size_ || !right.has(id)) {
                kept.push_back(id);
            }
        }
        return Mask::from_sorted(std::move(kept), size);
    }
    std::vector<std::uint64_t> words = left.to_words(size);
    for (std::size_t w = 0; w < right.words_.size(); ++w) {
        words[w] &= ~right.words_[w];
    }
    for (const NodeId id : right.sparse_) {
        words[id >> 6] &= ~(std::uint64_t{1} << (id & 63));
    }
    return Mask::from_words(std::move(words), size);
}

}  // namespace memorepair

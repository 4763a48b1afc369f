// Purpose: looking many ids up in a mask: in its words, with the widest instructions the processor has, or in its
// sorted ids, a block of searches in step.
// Contract: `words` holds ceil(size / 64) words; `sorted` is strictly increasing and below `size`. An id past `size`
// throws NodeRange and is never looked up. Every `Isa` gives the same answer; one the processor lacks must not be asked
// for.
#pragma once

#include <cstdint>
#include <span>

#include "memorepair/types.hpp"

namespace memorepair {

enum class Isa : std::uint8_t { kScalar, kAvx2, kAvx512 };

bool is_supported(Isa isa) noexcept;
// The widest that is supported.
Isa best_isa() noexcept;

// Writes the ids whose bit is clear, in order, and returns how many. `out` has room for ids.size().
std::uint64_t filter_words(Isa isa, std::span<const std::uint64_t> words, std::uint64_t size,
                           std::span<const NodeId> ids, NodeId* out);
// Writes 1 for each id whose bit is set, else 0.
void test_words(Isa isa, std::span<const std::uint64_t> words, std::uint64_t size, std::span<const NodeId> ids,
                std::uint8_t* out);

// The same from sorted ids.
std::uint64_t filter_sorted(std::span<const NodeId> sorted, std::uint64_t size, std::span<const NodeId> ids,
                            NodeId* out);
void test_sorted(std::span<const NodeId> sorted, std::uint64_t size, std::span<const NodeId> ids, std::uint8_t* out);

}  // namespace memorepair

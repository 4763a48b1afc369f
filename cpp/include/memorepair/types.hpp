// Purpose: the integer types of the core, and the arrays its kernels fill.
// Contract: node ids are 32 bit, arc offsets 64 bit, weights 64 bit; sums and products of weights go through `Wide`.
// Invariant: kNoNode is never a node, so a graph holds at most kMaxNodes nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace memorepair {

using NodeId = std::uint32_t;
using ArcIndex = std::uint64_t;
using Weight = std::int64_t;
__extension__ typedef __int128 Wide;

inline constexpr NodeId kNoNode = 0xffffffffU;
inline constexpr std::uint64_t kMaxNodes = 0xffffffffU;
inline constexpr Wide kMaxWeightSum = Wide{1} << 62;

// Leaves trivial elements uninitialised on resize: a kernel that writes every element need not pay for zeroes first.
template <class T>
struct DefaultInitAllocator : std::allocator<T> {
    template <class U>
    struct rebind {
        using other = DefaultInitAllocator<U>;
    };
    DefaultInitAllocator() = default;
    template <class U>
    explicit DefaultInitAllocator(const DefaultInitAllocator<U>&) noexcept {}

    template <class U>
    void construct(U* place) noexcept {
        ::new (static_cast<void*>(place)) U;
    }
    template <class U, class First, class... Rest>
    void construct(U* place, First&& first, Rest&&... rest) {
        ::new (static_cast<void*>(place)) U(std::forward<First>(first), std::forward<Rest>(rest)...);
    }
};

template <class T>
using Array = std::vector<T, DefaultInitAllocator<T>>;

}  // namespace memorepair

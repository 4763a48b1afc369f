// Purpose: large arrays on large pages: a kernel that fills fresh memory otherwise spends its time on page faults.
// Contract: a hint. Called after the allocation and before the first write; without the system call it does nothing.
#pragma once

#include <cstdint>
#include <utility>

#include "memorepair/types.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace memorepair {

template <class T>
Array<T> fresh_array(std::uint64_t size) {
    Array<T> array(size);
#if defined(__linux__)
    constexpr std::uintptr_t kPage = 4096;
    constexpr std::uint64_t kLarge = std::uint64_t{4} << 20;
    if (size * sizeof(T) >= kLarge) {
        const std::uintptr_t first = (reinterpret_cast<std::uintptr_t>(array.data()) + kPage - 1) / kPage * kPage;
        const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(array.data() + size) / kPage * kPage;
        // Refusal costs speed only, so the answer is not looked at.
        (void)madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
    }
#endif
    return array;
}

// For an array that is used again and again: what it held is lost, its memory kept while it suffices.
template <class T>
void renew(Array<T>& array, std::uint64_t size) {
    if (size > array.capacity()) {
        array = {};
        array = fresh_array<T>(size);
    } else {
        array.resize(size);
    }
}

}  // namespace memorepair

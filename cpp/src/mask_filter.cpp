// Purpose, contract: mask_filter.hpp.
// How: the vector code takes whole blocks and stops before the first that holds an id out of range; the scalar code
// takes what is left, and so is the only one that throws. Blocks of ids are gathered, tested and compressed; what is
// kept never overtakes what was read, so a whole block may be stored where only a part of it stays.
// Oracle: cpp/tests/test_mask.cpp (every Isa against the scalar one, and that against std::set).
#include "mask_filter.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "memorepair/errors.hpp"
#include "memorepair/mask.hpp"

#if defined(__x86_64__)
// GCC's own header reads an undefined register on purpose, and GCC 12 warns of it when sanitizers are on.
#pragma GCC diagnostic push
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

namespace memorepair {

namespace {

// How far a kernel came.
struct Progress {
    std::uint64_t read = 0;
    std::uint64_t kept = 0;
};

struct Lookup {
    std::span<const std::uint64_t> words;
    std::uint64_t size;
    std::span<const NodeId> ids;
};

#if defined(__x86_64__)

#define MEMOREPAIR_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,popcnt")))
#define MEMOREPAIR_AVX2 __attribute__((target("avx2,popcnt")))

constexpr std::uint64_t kLanes512 = 16;
constexpr std::uint64_t kLanes256 = 8;

// One bit a lane: set where the id's bit is clear. Every id of the block is in range.
MEMOREPAIR_AVX512 inline __mmask16 misses(const void* words, __m512i ids) {
    const __m512i word = _mm512_i32gather_epi32(_mm512_srli_epi32(ids, 5), words, 4);
    // Rotating by the id uses its low five bits only.
    return _mm512_testn_epi32_mask(word, _mm512_rolv_epi32(_mm512_set1_epi32(1), ids));
}

MEMOREPAIR_AVX512 Progress filter_avx512(const Lookup& lookup, NodeId* out) {
    const __m512i size = _mm512_set1_epi32(static_cast<int>(lookup.size));
    const NodeId* const ids = lookup.ids.data();
    Progress done;
    for (; done.read + kLanes512 <= lookup.ids.size(); done.read += kLanes512) {
        const __m512i block = _mm512_loadu_si512(ids + done.read);
        if (_mm512_cmpge_epu32_mask(block, size) != 0) {
            break;
        }
        const __mmask16 keep = misses(lookup.words.data(), block);
        // Compressed in a register: compressing to memory is microcode on some processors.
        _mm512_storeu_si512(out + done.kept, _mm512_maskz_compress_epi32(keep, block));
        done.kept += static_cast<std::uint64_t>(std::popcount(std::uint32_t{keep}));
    }
    return done;
}

MEMOREPAIR_AVX512 Progress test_avx512(const Lookup& lookup, std::uint8_t* out) {
    const __m512i size = _mm512_set1_epi32(static_cast<int>(lookup.size));
    const NodeId* const ids = lookup.ids.data();
    Progress done;
    for (; done.read + kLanes512 <= lookup.ids.size(); done.read += kLanes512) {
        const __m512i block = _mm512_loadu_si512(ids + done.read);
        if (_mm512_cmpge_epu32_mask(block, size) != 0) {
            break;
        }
        const auto hit = static_cast<__mmask16>(~misses(lookup.words.data(), block));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out + done.read), _mm_maskz_set1_epi8(hit, 1));
    }
    return done;
}

// Per set of kept lanes their numbers, a byte each, in order: AVX2 has no compress.
constexpr std::array<std::uint64_t, 256> make_lane_table() {
    std::array<std::uint64_t, 256> table{};
    for (unsigned kept = 0; kept < 256; ++kept) {
        unsigned shift = 0;
        for (unsigned lane = 0; lane < kLanes256; ++lane) {
            if ((kept >> lane & 1U) != 0) {
                table[kept] |= std::uint64_t{lane} << shift;
                shift += 8;
            }
        }
    }
    return table;
}

constexpr std::array<std::uint64_t, 256> kLaneTable = make_lane_table();

MEMOREPAIR_AVX2 inline bool all_below(__m256i ids, __m256i last) {
    return _mm256_movemask_epi8(_mm256_cmpeq_epi32(_mm256_min_epu32(ids, last), ids)) == -1;
}

MEMOREPAIR_AVX2 inline std::uint32_t hits(const void* words, __m256i ids) {
    const __m256i word = _mm256_i32gather_epi32(static_cast<const int*>(words), _mm256_srli_epi32(ids, 5), 4);
    // The bit moves up into the sign, which is what movemask collects: 31 - (id & 31) places.
    const __m256i signs = _mm256_sllv_epi32(word, _mm256_andnot_si256(ids, _mm256_set1_epi32(31)));
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(signs)));
}

MEMOREPAIR_AVX2 Progress filter_avx2(const Lookup& lookup, NodeId* out) {
    const __m256i last = _mm256_set1_epi32(static_cast<int>(lookup.size - 1));
    const NodeId* const ids = lookup.ids.data();
    Progress done;
    for (; done.read + kLanes256 <= lookup.ids.size(); done.read += kLanes256) {
        const __m256i block = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(ids + done.read));
        if (!all_below(block, last)) {
            break;
        }
        const std::uint32_t keep = ~hits(lookup.words.data(), block) & 0xffU;
        const __m128i lanes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kLaneTable.data() + keep));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + done.kept),
                            _mm256_permutevar8x32_epi32(block, _mm256_cvtepu8_epi32(lanes)));
        done.kept += static_cast<std::uint64_t>(std::popcount(keep));
    }
    return done;
}

MEMOREPAIR_AVX2 Progress test_avx2(const Lookup& lookup, std::uint8_t* out) {
    const __m256i last = _mm256_set1_epi32(static_cast<int>(lookup.size - 1));
    const __m128i lane_bits = _mm_set1_epi64x(static_cast<long long>(0x8040201008040201ULL));
    const NodeId* const ids = lookup.ids.data();
    Progress done;
    for (; done.read + kLanes256 <= lookup.ids.size(); done.read += kLanes256) {
        const __m256i block = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(ids + done.read));
        if (!all_below(block, last)) {
            break;
        }
        const __m128i spread = _mm_set1_epi8(static_cast<char>(hits(lookup.words.data(), block)));
        const __m128i chosen = _mm_cmpeq_epi8(_mm_and_si128(spread, lane_bits), lane_bits);
        _mm_storel_epi64(reinterpret_cast<__m128i*>(out + done.read), _mm_and_si128(chosen, _mm_set1_epi8(1)));
    }
    return done;
}

#undef MEMOREPAIR_AVX512
#undef MEMOREPAIR_AVX2

// A mask of size 0 has no last id, and nothing to look up in it: the scalar code refuses.
template <class Out>
Progress whole_blocks(Isa isa, const Lookup& lookup, Out* out, Progress (*avx2)(const Lookup&, Out*),
                      Progress (*avx512)(const Lookup&, Out*)) {
    if (isa == Isa::kScalar || lookup.size == 0) {
        return {};
    }
    return isa == Isa::kAvx512 ? avx512(lookup, out) : avx2(lookup, out);
}

#endif

// Searches of one block go in step: each waits for memory at every turn, and the waits overlap.
constexpr std::size_t kSearches = 16;

using Hits = std::array<std::uint8_t, kSearches>;

Hits search(std::span<const NodeId> sorted, std::uint64_t size, std::span<const NodeId> ids) {
    std::array<NodeId, kSearches> wanted{};
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] >= size) {
            throw_node_range("mask id", ids[i], size);
        }
        wanted[i] = ids[i];
    }
    Hits hit{};
    if (sorted.empty()) {
        return hit;
    }
    std::array<NodeId, kSearches> at{};
    for (std::size_t length = sorted.size(); length > 1;) {
        const auto half = static_cast<NodeId>(length / 2);
        for (std::size_t i = 0; i < kSearches; ++i) {
            // A product, not a choice: a compiler would branch on what cannot be predicted.
            at[i] += half * static_cast<NodeId>(sorted[std::size_t{at[i]} + half] <= wanted[i]);
        }
        length -= half;
    }
    for (std::size_t i = 0; i < kSearches; ++i) {
        hit[i] = static_cast<std::uint8_t>(sorted[at[i]] == wanted[i]);
    }
    return hit;
}

}  // namespace

bool is_supported(Isa isa) noexcept {
#if defined(__x86_64__)
    switch (isa) {
        case Isa::kAvx512:
            return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                   __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("popcnt") != 0;
        case Isa::kAvx2: return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("popcnt") != 0;
        case Isa::kScalar: break;
    }
#endif
    return isa == Isa::kScalar;
}

Isa best_isa() noexcept {
    static const Isa best = is_supported(Isa::kAvx512) ? Isa::kAvx512
                            : is_supported(Isa::kAvx2) ? Isa::kAvx2
                                                       : Isa::kScalar;
    return best;
}

std::uint64_t filter_words([[maybe_unused]] Isa isa, std::span<const std::uint64_t> words, std::uint64_t size,
                           std::span<const NodeId> ids, NodeId* out) {
    Progress done;
#if defined(__x86_64__)
    done = whole_blocks<NodeId>(isa, {words, size, ids}, out, &filter_avx2, &filter_avx512);
#endif
    for (; done.read < ids.size(); ++done.read) {
        const NodeId id = ids[done.read];
        if (id >= size) {
            throw_node_range("mask id", id, size);
        }
        out[done.kept] = id;  // stays only when `kept` moves on: whether a bit is set cannot be predicted
        done.kept += static_cast<std::uint64_t>(!test_bit(words, id));
    }
    return done.kept;
}

void test_words([[maybe_unused]] Isa isa, std::span<const std::uint64_t> words, std::uint64_t size,
                std::span<const NodeId> ids, std::uint8_t* out) {
    Progress done;
#if defined(__x86_64__)
    done = whole_blocks<std::uint8_t>(isa, {words, size, ids}, out, &test_avx2, &test_avx512);
#endif
    for (; done.read < ids.size(); ++done.read) {
        const NodeId id = ids[done.read];
        if (id >= size) {
            throw_node_range("mask id", id, size);
        }
        out[done.read] = static_cast<std::uint8_t>(test_bit(words, id));
    }
}

std::uint64_t filter_sorted(std::span<const NodeId> sorted, std::uint64_t size, std::span<const NodeId> ids,
                            NodeId* out) {
    std::uint64_t kept = 0;
    for (std::size_t first = 0; first < ids.size(); first += kSearches) {
        const std::span<const NodeId> block = ids.subspan(first, std::min(kSearches, ids.size() - first));
        const Hits hit = search(sorted, size, block);
        for (std::size_t i = 0; i < block.size(); ++i) {
            out[kept] = block[i];
            kept += static_cast<std::uint64_t>(hit[i] == 0);
        }
    }
    return kept;
}

void test_sorted(std::span<const NodeId> sorted, std::uint64_t size, std::span<const NodeId> ids, std::uint8_t* out) {
    for (std::size_t first = 0; first < ids.size(); first += kSearches) {
        const std::span<const NodeId> block = ids.subspan(first, std::min(kSearches, ids.size() - first));
        const Hits hit = search(sorted, size, block);
        std::copy_n(hit.begin(), block.size(), out + first);
    }
}

}  // namespace memorepair

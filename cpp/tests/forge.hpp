// Purpose: bytes with the right checksum and anything else inside, so that tests and fuzzers get past the first gate.
// Contract: written from the formats in mask_codec.cpp and graph_codec.cpp, slowly, sharing no code with them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace forge {

using Bytes = std::vector<std::uint8_t>;

inline std::uint64_t number(const Bytes& bytes, std::size_t at, std::size_t width) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i) {
        value |= std::uint64_t{bytes[at + i]} << (8 * i);
    }
    return value;
}

inline void put(Bytes& bytes, std::size_t at, std::size_t width, std::uint64_t value) {
    for (std::size_t i = 0; i < width; ++i) {
        bytes[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
    }
}

// Makes the last four bytes the CRC-32 of all before them.
inline void seal_mask(Bytes& bytes) {
    if (bytes.size() < 4) {
        return;
    }
    std::uint32_t crc = 0xffffffffU;
    for (std::size_t i = 0; i + 4 < bytes.size(); ++i) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; ++bit) {
            crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0xedb88320U : 0U);
        }
    }
    put(bytes, bytes.size() - 4, 4, ~crc);
}

// Makes bytes 24 to 31 the checksum of all others, if the header's numbers fit the length.
inline void seal_graph(Bytes& bytes) {
    if (bytes.size() < 48) {
        return;
    }
    const std::uint64_t nodes = number(bytes, 8, 8);
    const std::uint64_t edges = number(bytes, 16, 8);
    if (nodes > bytes.size() || edges > bytes.size() || 48 + 16 * nodes + 8 * edges != bytes.size()) {
        return;
    }
    std::uint64_t total = 0;
    const auto fold = [&](std::uint64_t word) {
        const std::uint64_t product = (total ^ word) * 0x9e3779b97f4a7c15ULL;
        total = (product << 29) | (product >> 35);
    };
    const auto add = [&](std::size_t first, std::size_t length) {
        for (std::size_t block = 0; block < length; block += 4096) {
            std::array<std::uint64_t, 4> sums{};
            std::array<std::uint64_t, 4> sums_of_sums{};
            for (std::size_t stripe = block; stripe < length && stripe < block + 4096; stripe += 32) {
                for (std::size_t lane = 0; lane < 4; ++lane) {
                    const std::size_t at = stripe + 8 * lane;
                    sums[lane] += at < length ? number(bytes, first + at, 8) : 0;
                    sums_of_sums[lane] += sums[lane];
                }
            }
            for (std::size_t lane = 0; lane < 4; ++lane) {
                fold(sums[lane]);
                fold(sums_of_sums[lane]);
            }
        }
    };
    add(0, 24);
    add(32, 8 * (nodes + 1));
    add(40 + 8 * nodes, 8 * (nodes + 1));
    add(48 + 16 * nodes, 8 * edges);
    put(bytes, 24, 8, total ^ (total >> 29));
}

}  // namespace forge

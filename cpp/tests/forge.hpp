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
    if (bytes.size() < 32) {
        return;
    }
    const std::uint64_t nodes = number(bytes, 8, 8);
    const std::uint64_t edges = number(bytes, 16, 8);
    if (nodes > bytes.size() || edges > bytes.size() || 32 + 8 * (nodes + edges) != bytes.size()) {
        return;
    }
    std::array<std::uint64_t, 8> lanes{1, 2, 3, 4, 5, 6, 7, 8};
    const auto turn = [](std::uint64_t value) { return (value << 29) | (value >> 35); };
    const auto add = [&](std::size_t first, std::size_t length) {
        Bytes section(bytes.begin() + static_cast<std::ptrdiff_t>(first),
                      bytes.begin() + static_cast<std::ptrdiff_t>(first + length));
        section.resize((length + 63) / 64 * 64);
        for (std::size_t at = 0; at < section.size(); at += 8) {
            std::uint64_t& lane = lanes[at / 8 % 8];
            lane = turn((lane ^ number(section, at, 8)) * 0x9e3779b97f4a7c15ULL);
        }
    };
    add(0, 24);
    add(32, 4 * nodes);
    add(32 + 4 * nodes, 4 * nodes);
    add(32 + 8 * nodes, 4 * edges);
    add(32 + 8 * nodes + 4 * edges, 4 * edges);
    std::uint64_t sum = 0;
    for (const std::uint64_t lane : lanes) {
        sum = turn((sum ^ lane ^ (lane >> 32)) * 0x9e3779b97f4a7c15ULL);
    }
    put(bytes, 24, 8, sum ^ (sum >> 29));
}

}  // namespace forge

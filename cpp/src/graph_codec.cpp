// Purpose: the graph as bytes that load without being built again, nor copied: its arrays are views of them.
// Contract: from_bytes reads nothing past the input, allocates at most its length, and throws InvalidGraph for whatever
// has another size, checksum, offsets that run backwards or past the lists, or a node out of range. Bytes that may
// change under its hands are copied first, so what it checks is what it keeps. validate() proves the rest.
// Format, version 1, all numbers little endian:
//   version byte, seven zero bytes, num_nodes (64 bit), num_edges (64 bit), checksum (64 bit) of all other bytes;
//   where the parents of every node begin, and the end (num_nodes + 1 offsets, 64 bit); the same of the children;
//   all lists of parents, all lists of children (32 bit each). Lists stand in the order of their nodes and are sorted.
// Everything is aligned to its size from the beginning of the bytes.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "adjacency.hpp"
#include "arc_set.hpp"
#include "huge_pages.hpp"
#include "memorepair/errors.hpp"
#include "memorepair/graph.hpp"

namespace memorepair {

namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kHeaderBytes = 32;
constexpr std::size_t kChecksumAt = 24;
// A body of no nodes still has the end of its offsets, twice.
constexpr std::size_t kLeastBytes = kHeaderBytes + 2 * sizeof(ArcIndex);
// Summed and checked while they are in the nearest cache.
constexpr std::size_t kBlockBytes = 4096;

template <class T>
T little_endian(T value) noexcept {
    if constexpr (std::endian::native == std::endian::big) {
        return sizeof(T) == 8 ? static_cast<T>(__builtin_bswap64(value)) : static_cast<T>(__builtin_bswap32(value));
    }
    return value;
}

template <class T>
T load(const std::uint8_t* from) noexcept {
    T value;
    std::memcpy(&value, from, sizeof value);
    return little_endian(value);
}

template <class T>
void store(std::uint8_t* to, T value) noexcept {
    value = little_endian(value);
    std::memcpy(to, &value, sizeof value);
}

// Sums, because memory is faster than one multiplication a word. In each block every lane sums its words, and the sums:
// that tells where a word stands (Fletcher 1982). Folding multiplies, so blocks cannot make up for each other. Damage to
// one word always shows in the sums of its block, and passes the folding by a chance of 2^-64.
class Checksum {
public:
    // At most kBlockBytes; the end counts as if filled up with zeroes, for the header says where it was.
    void add(std::span<const std::uint8_t> block) noexcept {
        Lanes sums{};
        Lanes sums_of_sums{};
        const std::size_t whole = block.size() / kStripe * kStripe;
        for (std::size_t at = 0; at < whole; at += kStripe) {
            add_stripe(sums, sums_of_sums, block.data() + at);
        }
        if (whole < block.size()) {
            std::array<std::uint8_t, kStripe> last{};
            std::copy(block.begin() + static_cast<std::ptrdiff_t>(whole), block.end(), last.begin());
            add_stripe(sums, sums_of_sums, last.data());
        }
        for (std::size_t lane = 0; lane < sums.size(); ++lane) {
            total_ = step(step(total_, sums[lane]), sums_of_sums[lane]);
        }
    }

    std::uint64_t value() const noexcept { return total_ ^ (total_ >> 29); }

private:
    using Lanes = std::array<std::uint64_t, 4>;
    static constexpr std::size_t kStripe = sizeof(Lanes);

    // Multiplying carries upwards only; turning brings the high bits down again.
    static std::uint64_t step(std::uint64_t total, std::uint64_t word) noexcept {
        return std::rotl((total ^ word) * 0x9e3779b97f4a7c15ULL, 29);
    }

    static void add_stripe(Lanes& sums, Lanes& sums_of_sums, const std::uint8_t* from) noexcept {
        for (std::size_t lane = 0; lane < sums.size(); ++lane) {
            sums[lane] += load<std::uint64_t>(from + 8 * lane);
            sums_of_sums[lane] += sums[lane];
        }
    }

    std::uint64_t total_ = 0;
};

[[noreturn]] void refuse(const std::string& why) {
    throw InvalidGraph("graph snapshot: " + why);
}

template <class Each>
void for_each_block(std::span<const std::uint8_t> section, Each&& each) {
    for (std::size_t at = 0; at < section.size(); at += kBlockBytes) {
        each(section.subspan(at, std::min(kBlockBytes, section.size() - at)));
    }
}

// Whether the offsets begin at 0, end at `last` and never run backwards. One pass, without a branch.
bool check_offsets(std::span<const std::uint8_t> section, Checksum& checksum, std::uint64_t last) {
    constexpr std::size_t kWidth = sizeof(ArcIndex);
    const std::uint8_t* const end = section.data() + section.size() - kWidth;
    // The sign bit of an offset, or of its distance to the next: with neither, the next is as large or larger.
    std::uint64_t signs = 0;
    for_each_block(section, [&](std::span<const std::uint8_t> block) {
        checksum.add(block);
        const std::uint8_t* const from = block.data();
        const std::size_t num_pairs = std::min(block.size(), static_cast<std::size_t>(end - from)) / kWidth;
        for (std::size_t i = 0; i < num_pairs; ++i) {
            const auto own = load<ArcIndex>(from + i * kWidth);
            signs |= own | (load<ArcIndex>(from + (i + 1) * kWidth) - own);
        }
    });
    return signs >> 63 == 0 && load<ArcIndex>(section.data()) == 0 && load<ArcIndex>(end) == last;
}

// Whether all heads are below `num_nodes`. Compared and gathered, because that is what the narrowest vectors can do.
bool check_heads(std::span<const std::uint8_t> section, Checksum& checksum, std::uint64_t num_nodes) {
    const auto limit = static_cast<NodeId>(num_nodes);
    NodeId past = 0;
    for_each_block(section, [&](std::span<const std::uint8_t> block) {
        checksum.add(block);
        for (std::size_t i = 0; i < block.size() / sizeof(NodeId); ++i) {
            past |= static_cast<NodeId>(load<NodeId>(block.data() + i * sizeof(NodeId)) >= limit);
        }
    });
    return past == 0;
}

template <class T>
std::uint8_t* write(std::span<const T> numbers, std::uint8_t* to) {
    for (const T number : numbers) {
        store(to, number);
        to += sizeof(T);
    }
    return to;
}

// Little-endian bytes as an array. They are aligned, and were checked.
template <class T>
std::span<const T> view(std::span<const std::uint8_t> section) {
    return {reinterpret_cast<const T*>(section.data()), section.size() / sizeof(T)};
}

// Where big-endian machines need arrays of their own.
template <class T>
Array<T> converted(std::span<const std::uint8_t> section) {
    auto numbers = fresh_array<T>(section.size() / sizeof(T));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        numbers[i] = load<T>(section.data() + i * sizeof(T));
    }
    return numbers;
}

Csr csr_of(std::span<const std::uint8_t> offsets, std::span<const std::uint8_t> heads,
           const std::shared_ptr<const void>& owner) {
    if constexpr (std::endian::native == std::endian::big) {
        return make_csr(converted<ArcIndex>(offsets), converted<NodeId>(heads));
    }
    return {view<ArcIndex>(offsets), view<NodeId>(heads), owner};
}

// Base and overlay as one, copied only when there is an overlay.
class Whole {
public:
    Whole(const Adjacency& adjacency, std::uint64_t num_nodes) : base_(adjacency.base()) {
        if (!adjacency.is_flat(num_nodes)) {
            merged_ = adjacency.merged(num_nodes);
        }
    }
    const Csr& csr() const noexcept { return merged_.offsets.empty() ? base_ : merged_; }

private:
    const Csr& base_;
    Csr merged_;
};

void check_lists(const Csr& csr, const char* what) {
    for (std::uint64_t node = 0; node < csr.num_nodes(); ++node) {
        const std::span<const NodeId> list = csr.neighbours(static_cast<NodeId>(node));
        const bool is_sorted = std::ranges::adjacent_find(list, std::greater_equal<>{}) == list.end();
        if (!is_sorted || std::ranges::binary_search(list, static_cast<NodeId>(node))) {
            throw InvalidGraph(std::string("graph: expected the ") + what + " of node " + std::to_string(node) +
                               " sorted, without repeats and without the node, got something else");
        }
    }
}

}  // namespace

Array<std::uint8_t> ProvenanceGraph::to_bytes() const {
    const Whole parents(*parents_, num_nodes_);
    const Whole children(*children_, num_nodes_);
    const std::size_t offsets_bytes = (num_nodes_ + 1) * sizeof(ArcIndex);
    const std::size_t heads_bytes = num_edges() * sizeof(NodeId);
    auto bytes = fresh_array<std::uint8_t>(kHeaderBytes + 2 * (offsets_bytes + heads_bytes));
    std::fill_n(bytes.begin(), kHeaderBytes, std::uint8_t{0});
    bytes[0] = kVersion;
    store(bytes.data() + 8, num_nodes_);
    store(bytes.data() + 16, num_edges());
    std::uint8_t* const lists =
        write(children.csr().offsets, write(parents.csr().offsets, bytes.data() + kHeaderBytes));
    write(children.csr().heads, write(parents.csr().heads, lists));

    Checksum checksum;
    const auto add = [&](std::span<const std::uint8_t> block) { checksum.add(block); };
    const auto body = std::span<const std::uint8_t>(bytes).subspan(kHeaderBytes);
    add(std::span(bytes).first(kChecksumAt));
    for_each_block(body.first(offsets_bytes), add);
    for_each_block(body.subspan(offsets_bytes, offsets_bytes), add);
    for_each_block(body.subspan(2 * offsets_bytes), add);
    store(bytes.data() + kChecksumAt, checksum.value());
    return bytes;
}

ProvenanceGraph ProvenanceGraph::from_bytes(std::span<const std::uint8_t> bytes) {
    auto copy = std::make_shared<Array<std::uint8_t>>(fresh_array<std::uint8_t>(bytes.size()));
    std::copy(bytes.begin(), bytes.end(), copy->begin());
    const std::span<const std::uint8_t> own(*copy);
    return from_bytes(own, std::move(copy));
}

ProvenanceGraph ProvenanceGraph::from_bytes(std::span<const std::uint8_t> bytes, std::shared_ptr<const void> owner) {
    // What new[] and Python hand out is aligned; a slice of it may not be.
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(ArcIndex) != 0) {
        return from_bytes(bytes);
    }
    if (bytes.size() < kLeastBytes) {
        refuse("expected at least " + std::to_string(kLeastBytes) + " bytes, got " + std::to_string(bytes.size()));
    }
    if (bytes[0] != kVersion) {
        refuse("expected format version " + std::to_string(kVersion) + ", got " + std::to_string(bytes[0]));
    }
    const auto num_nodes = load<std::uint64_t>(bytes.data() + 8);
    const auto num_edges = load<std::uint64_t>(bytes.data() + 16);
    const std::uint64_t room = bytes.size() - kLeastBytes;
    // Divided, not multiplied: the numbers may be anything, and a product could wrap around.
    if (num_nodes > kMaxNodes || num_nodes > room / 16 || num_edges > room / 8 ||
        16 * num_nodes + 8 * num_edges != room) {
        refuse("expected " + std::to_string(kLeastBytes) + " bytes, 16 for each of " + std::to_string(num_nodes) +
               " nodes and 8 for each of " + std::to_string(num_edges) + " edges, got " +
               std::to_string(bytes.size()));
    }
    const std::size_t offsets_bytes = (num_nodes + 1) * sizeof(ArcIndex);
    const std::size_t heads_bytes = num_edges * sizeof(NodeId);
    const auto parents = bytes.subspan(kHeaderBytes, offsets_bytes);
    const auto children = bytes.subspan(kHeaderBytes + offsets_bytes, offsets_bytes);
    const auto lists = bytes.subspan(kHeaderBytes + 2 * offsets_bytes);
    Checksum checksum;
    checksum.add(bytes.first(kChecksumAt));
    const bool parents_fit = check_offsets(parents, checksum, num_edges);
    const bool children_fit = check_offsets(children, checksum, num_edges);
    const bool heads_fit = check_heads(lists, checksum, num_nodes);
    if (const auto stored = load<std::uint64_t>(bytes.data() + kChecksumAt); stored != checksum.value()) {
        refuse("expected checksum " + std::to_string(stored) + ", got " + std::to_string(checksum.value()));
    }
    if (!std::all_of(bytes.begin() + 1, bytes.begin() + 8, [](std::uint8_t byte) { return byte == 0; })) {
        refuse("expected seven zero bytes after the version, got others");
    }
    if (!parents_fit || !children_fit) {
        refuse("expected offsets that rise from 0 to " + std::to_string(num_edges) + ", got others");
    }
    if (!heads_fit) {
        refuse("expected nodes below " + std::to_string(num_nodes) + ", got one past them");
    }
    ProvenanceGraph graph;
    graph.parents_ = std::make_unique<Adjacency>(csr_of(parents, lists.first(heads_bytes), owner));
    graph.children_ = std::make_unique<Adjacency>(csr_of(children, lists.subspan(heads_bytes), owner));
    graph.num_nodes_ = num_nodes;
    return graph;
}

void ProvenanceGraph::validate() const {
    const Whole parents(*parents_, num_nodes_);
    const Whole children(*children_, num_nodes_);
    check_lists(parents.csr(), "parents");
    check_lists(children.csr(), "children");
    const Csr turned = transpose(children.csr());
    if (!std::ranges::equal(turned.offsets, parents.csr().offsets) ||
        !std::ranges::equal(turned.heads, parents.csr().heads)) {
        throw InvalidGraph("graph: expected parents and children to hold the same edges, got different ones");
    }
}

}  // namespace memorepair

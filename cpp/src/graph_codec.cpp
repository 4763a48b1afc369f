// Purpose: the graph as bytes that load without being built again.
// Contract: from_bytes reads nothing past the input, allocates at most twice its length, and throws InvalidGraph for
// whatever has another size, checksum, number of edges or a node out of range. It is handed bytes that may change
// under its hands, so what it has copied is what it checks. validate() proves the rest.
// Format, version 1, all numbers little endian:
//   version byte, seven zero bytes, num_nodes (64 bit), num_edges (64 bit), checksum (64 bit) of all other bytes,
//   then 32 bit each: the number of parents of every node, the number of children of every node, all lists of parents,
//   all lists of children. Lists stand in the order of their nodes and are sorted.
// Counts stand where offsets would do because offsets made of counts cannot run backwards, whatever the bytes are.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>

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
// Bytes copied, hashed and checked while they are in the cache.
constexpr std::size_t kBlockBytes = 32768;

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

// Every step is a bijection of its lane, and so is the end of each lane: bytes that differ in a single 64-bit word, and
// so in a single bit, never have the same sum. Eight lanes, so that no multiplication waits for the one before.
class Checksum {
public:
    // The end of what is added counts as if filled up with zeroes; the header says where it was.
    void add(std::span<const std::uint8_t> bytes) noexcept {
        Lanes lanes = lanes_;  // in registers: as members, they could be what `bytes` points at
        for (; bytes.size() >= kStripe; bytes = bytes.subspan(kStripe)) {
            add_stripe(lanes, bytes.data());
        }
        if (!bytes.empty()) {
            std::array<std::uint8_t, kStripe> last{};
            std::copy(bytes.begin(), bytes.end(), last.begin());
            add_stripe(lanes, last.data());
        }
        lanes_ = lanes;
    }

    std::uint64_t value() const noexcept {
        std::uint64_t sum = 0;
        for (const std::uint64_t lane : lanes_) {
            sum = step(sum, lane ^ (lane >> 32));
        }
        return sum ^ (sum >> 29);
    }

private:
    using Lanes = std::array<std::uint64_t, 8>;
    static constexpr std::size_t kStripe = sizeof(Lanes);

    // Multiplying carries upwards only; turning brings the high bits down again.
    static std::uint64_t step(std::uint64_t lane, std::uint64_t word) noexcept {
        return std::rotl((lane ^ word) * 0x9e3779b97f4a7c15ULL, 29);
    }

    static void add_stripe(Lanes& lanes, const std::uint8_t* from) noexcept {
        for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
            lanes[lane] = step(lanes[lane], load<std::uint64_t>(from + 8 * lane));
        }
    }

    Lanes lanes_{1, 2, 3, 4, 5, 6, 7, 8};
};

[[noreturn]] void refuse(const std::string& why) {
    throw InvalidGraph("graph snapshot: " + why);
}

// Calls each(block, first) for the section's blocks, `first` being the number of 32-bit words before the block.
template <class Each>
void for_each_block(std::span<const std::uint8_t> section, Each&& each) {
    for (std::size_t at = 0; at < section.size(); at += kBlockBytes) {
        each(section.subspan(at, std::min(kBlockBytes, section.size() - at)), at / sizeof(NodeId));
    }
}

void read_counts(std::span<const std::uint8_t> section, Checksum& checksum, Array<ArcIndex>& offsets) {
    offsets[0] = 0;
    for_each_block(section, [&](std::span<const std::uint8_t> block, std::size_t first) {
        checksum.add(block);
        ArcIndex* const own = offsets.data() + first;
        ArcIndex total = own[0];
        for (std::size_t i = 0; i < block.size() / sizeof(NodeId); ++i) {
            total += load<NodeId>(block.data() + i * sizeof(NodeId));
            own[i + 1] = total;
        }
    });
}

// Whether all ids are below `limit`. Compared and gathered, because that is what the narrowest vectors can do.
bool all_below(std::span<const NodeId> ids, NodeId limit) noexcept {
    NodeId past = 0;
    for (const NodeId id : ids) {
        past |= static_cast<NodeId>(id >= limit);
    }
    return past == 0;
}

// Whether all heads are below `num_nodes`.
bool read_heads(std::span<const std::uint8_t> section, Checksum& checksum, std::uint64_t num_nodes,
                Array<NodeId>& heads) {
    bool fit = true;
    for_each_block(section, [&](std::span<const std::uint8_t> block, std::size_t first) {
        checksum.add(block);
        const std::span<NodeId> own = std::span(heads).subspan(first, block.size() / sizeof(NodeId));
        for (std::size_t i = 0; i < own.size(); ++i) {
            own[i] = load<NodeId>(block.data() + i * sizeof(NodeId));
        }
        fit = all_below(own, static_cast<NodeId>(num_nodes)) && fit;
    });
    return fit;
}

std::uint8_t* write_counts(const Csr& csr, std::uint8_t* to) {
    for (std::uint64_t node = 0; node < csr.num_nodes(); ++node) {
        store(to, static_cast<NodeId>(csr.offsets[node + 1] - csr.offsets[node]));
        to += sizeof(NodeId);
    }
    return to;
}

std::uint8_t* write_heads(const Csr& csr, std::uint8_t* to) {
    for (const NodeId head : csr.heads) {
        store(to, head);
        to += sizeof(NodeId);
    }
    return to;
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
    const std::uint64_t num_numbers = 2 * (num_nodes_ + num_edges());
    auto bytes = fresh_array<std::uint8_t>(kHeaderBytes + num_numbers * sizeof(NodeId));
    std::fill_n(bytes.begin(), kHeaderBytes, std::uint8_t{0});
    bytes[0] = kVersion;
    store(bytes.data() + 8, num_nodes_);
    store(bytes.data() + 16, num_edges());
    std::uint8_t* const body = bytes.data() + kHeaderBytes;
    std::uint8_t* const lists = write_counts(children.csr(), write_counts(parents.csr(), body));
    write_heads(children.csr(), write_heads(parents.csr(), lists));

    Checksum checksum;
    const std::span<const std::uint8_t> all(bytes);
    checksum.add(all.first(kChecksumAt));
    const std::size_t counts_bytes = num_nodes_ * sizeof(NodeId);
    const std::size_t heads_bytes = num_edges() * sizeof(NodeId);
    std::size_t at = kHeaderBytes;
    for (const std::size_t length : {counts_bytes, counts_bytes, heads_bytes, heads_bytes}) {
        checksum.add(all.subspan(at, length));
        at += length;
    }
    store(bytes.data() + kChecksumAt, checksum.value());
    return bytes;
}

ProvenanceGraph ProvenanceGraph::from_bytes(std::span<const std::uint8_t> bytes) {
    if (bytes.size() < kHeaderBytes) {
        refuse("expected at least " + std::to_string(kHeaderBytes) + " bytes, got " + std::to_string(bytes.size()));
    }
    std::array<std::uint8_t, kHeaderBytes> header{};
    std::copy_n(bytes.begin(), kHeaderBytes, header.begin());
    if (header[0] != kVersion) {
        refuse("expected format version " + std::to_string(kVersion) + ", got " + std::to_string(header[0]));
    }
    const auto num_nodes = load<std::uint64_t>(header.data() + 8);
    const auto num_edges = load<std::uint64_t>(header.data() + 16);
    const std::uint64_t room = bytes.size() - kHeaderBytes;
    // Divided, not multiplied: the numbers may be anything, and a product could wrap around.
    if (num_nodes > kMaxNodes || num_nodes > room / 8 || num_edges > room / 8 || 8 * (num_nodes + num_edges) != room) {
        refuse("expected " + std::to_string(kHeaderBytes) + " bytes and 8 for each of " + std::to_string(num_nodes) +
               " nodes and " + std::to_string(num_edges) + " edges, got " + std::to_string(bytes.size()));
    }
    const std::size_t counts_bytes = num_nodes * sizeof(NodeId);
    const std::size_t heads_bytes = num_edges * sizeof(NodeId);
    const auto body = bytes.subspan(kHeaderBytes);
    const auto lists = body.subspan(2 * counts_bytes);
    Csr parents{fresh_array<ArcIndex>(num_nodes + 1), fresh_array<NodeId>(num_edges)};
    Csr children{fresh_array<ArcIndex>(num_nodes + 1), fresh_array<NodeId>(num_edges)};
    Checksum checksum;
    checksum.add(std::span(header).first(kChecksumAt));
    read_counts(body.first(counts_bytes), checksum, parents.offsets);
    read_counts(body.subspan(counts_bytes, counts_bytes), checksum, children.offsets);
    const bool parents_fit = read_heads(lists.first(heads_bytes), checksum, num_nodes, parents.heads);
    const bool children_fit = read_heads(lists.subspan(heads_bytes), checksum, num_nodes, children.heads);
    if (const auto stored = load<std::uint64_t>(header.data() + kChecksumAt); stored != checksum.value()) {
        refuse("expected checksum " + std::to_string(stored) + ", got " + std::to_string(checksum.value()));
    }
    if (!std::all_of(header.begin() + 1, header.begin() + 8, [](std::uint8_t byte) { return byte == 0; })) {
        refuse("expected seven zero bytes after the version, got others");
    }
    if (parents.offsets.back() != num_edges || children.offsets.back() != num_edges) {
        refuse("expected " + std::to_string(num_edges) + " edges, got " + std::to_string(parents.offsets.back()) +
               " parents and " + std::to_string(children.offsets.back()) + " children");
    }
    if (!parents_fit || !children_fit) {
        refuse("expected nodes below " + std::to_string(num_nodes) + ", got one past them");
    }
    ProvenanceGraph graph;
    graph.children_ = std::make_unique<Adjacency>(std::move(children));
    graph.parents_ = std::make_unique<Adjacency>(std::move(parents));
    graph.num_nodes_ = num_nodes;
    return graph;
}

void ProvenanceGraph::validate() const {
    const Whole parents(*parents_, num_nodes_);
    const Whole children(*children_, num_nodes_);
    check_lists(parents.csr(), "parents");
    check_lists(children.csr(), "children");
    const Csr turned = transpose(children.csr());
    if (turned.offsets != parents.csr().offsets || turned.heads != parents.csr().heads) {
        throw InvalidGraph("graph: expected parents and children to hold the same edges, got different ones");
    }
}

}  // namespace memorepair

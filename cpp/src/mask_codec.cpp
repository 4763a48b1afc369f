// Purpose: the serialised mask.
// Contract: to_bytes is canonical (equal masks, equal bytes); from_bytes accepts exactly what to_bytes writes, reads
// nothing past the input, and throws InvalidMask for all else. Every single flipped bit is noticed by the checksum.
// Format, version 1: version byte, kind byte, size as varint, payload, CRC-32 (IEEE, little endian) of all before it.
//   kind 0, ids:   the first id, then each gap (id - previous - 1), as varints
//   kind 1, runs:  per run the gap since the last run's end (less one, but for the first) and its length less one
//   kind 2, bits:  ceil(size / 8) bytes, bit i of byte b = id 8 b + i
// The shortest payload wins, the lower kind at a tie. varint: 7 bits a byte, low first, high bit = more follows.
#include <algorithm>
#include <array>
#include <string>

#include "memorepair/errors.hpp"
#include "memorepair/mask.hpp"

namespace memorepair {

namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kChecksumBytes = 4;
enum Kind : std::uint8_t { kIds = 0, kRuns = 1, kBits = 2 };

constexpr std::array<std::uint32_t, 256> make_crc_table() {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t value = byte;
        for (int bit = 0; bit < 8; ++bit) {
            value = (value >> 1) ^ ((value & 1U) != 0 ? 0xedb88320U : 0U);
        }
        table[byte] = value;
    }
    return table;
}

constexpr std::array<std::uint32_t, 256> kCrcTable = make_crc_table();

std::uint32_t crc32(std::span<const std::uint8_t> bytes) {
    std::uint32_t crc = 0xffffffffU;
    for (const std::uint8_t byte : bytes) {
        crc = kCrcTable[(crc ^ byte) & 0xffU] ^ (crc >> 8);
    }
    return ~crc;
}

std::uint64_t varint_bytes(std::uint64_t value) {
    return (static_cast<std::uint64_t>(std::bit_width(value | 1U)) + 6) / 7;
}

void put_varint(std::vector<std::uint8_t>& out, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) {
        out.push_back(static_cast<std::uint8_t>(value | 0x80U));
    }
    out.push_back(static_cast<std::uint8_t>(value));
}

[[noreturn]] void refuse(const std::string& why) {
    throw InvalidMask("serialised mask: " + why);
}

class Reader {
public:
    explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

    bool done() const { return next_ == bytes_.size(); }
    std::span<const std::uint8_t> rest() const { return bytes_.subspan(next_); }

    // Five bytes carry 35 bits, enough for every number of the format.
    std::uint64_t varint() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 35; shift += 7) {
            if (done()) {
                refuse("expected more bytes, got the end");
            }
            const std::uint8_t byte = bytes_[next_++];
            value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
            if (byte < 0x80) {
                return value;
            }
        }
        refuse("expected a number of at most 5 bytes, got a longer one");
    }

private:
    std::span<const std::uint8_t> bytes_;
    std::size_t next_ = 0;
};

Mask read_ids(Reader& reader, std::uint64_t size) {
    std::vector<NodeId> ids;
    std::uint64_t next = 0;
    while (!reader.done()) {
        const std::uint64_t id = next + reader.varint();
        if (id >= size) {
            refuse("expected ids below " + std::to_string(size) + ", got " + std::to_string(id));
        }
        ids.push_back(static_cast<NodeId>(id));
        next = id + 1;
    }
    return Mask::from_sorted(std::move(ids), size);
}

Mask read_runs(Reader& reader, std::uint64_t size) {
    struct Run {
        std::uint64_t first;
        std::uint64_t end;
    };
    // All runs are checked before the words are allocated, so that damage cannot ask for memory,
    // and a small set below a huge size never becomes words.
    std::vector<Run> runs;
    std::uint64_t count = 0;
    std::uint64_t next = 0;
    while (!reader.done()) {
        const std::uint64_t first = next + reader.varint();
        const std::uint64_t end = first + reader.varint() + 1;
        if (end > size) {
            refuse("expected runs up to " + std::to_string(size) + ", got " + std::to_string(end));
        }
        runs.push_back({first, end});
        count += end - first;
        next = end + 1;
    }
    if (count * 32 < size) {
        std::vector<NodeId> ids;
        ids.reserve(count);
        for (const Run& run : runs) {
            for (std::uint64_t id = run.first; id < run.end; ++id) {
                ids.push_back(static_cast<NodeId>(id));
            }
        }
        return Mask::from_sorted(std::move(ids), size);
    }
    std::vector<std::uint64_t> words(num_words(size));
    for (const Run& run : runs) {
        for (std::uint64_t id = run.first; id < run.end;) {
            const std::uint64_t stop = std::min(run.end, (id | 63) + 1);
            const std::uint64_t length = stop - id;
            const std::uint64_t ones = length == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << length) - 1;
            words[id >> 6] |= ones << (id & 63);
            id = stop;
        }
    }
    return Mask::from_words(std::move(words), size);
}

Mask read_bits(Reader& reader, std::uint64_t size) {
    const std::span<const std::uint8_t> bits = reader.rest();
    if (bits.size() != (size + 7) / 8) {
        refuse("expected " + std::to_string((size + 7) / 8) + " bytes of bits, got " + std::to_string(bits.size()));
    }
    if ((size & 7) != 0 && (bits.back() >> (size & 7)) != 0) {
        refuse("expected zero bits past the size, got ones");
    }
    std::vector<std::uint64_t> words(num_words(size));
    for (std::size_t b = 0; b < bits.size(); ++b) {
        words[b >> 3] |= static_cast<std::uint64_t>(bits[b]) << ((b & 7) * 8);
    }
    return Mask::from_words(std::move(words), size);
}

}  // namespace

std::vector<std::uint8_t> Mask::to_bytes() const {
    std::uint64_t ids_bytes = 0;
    std::uint64_t runs_bytes = 0;
    std::uint64_t next = 0;
    std::uint64_t run_gap_base = 0;
    for_each_run([&](std::uint64_t first, std::uint64_t end) {
        ids_bytes += varint_bytes(first - next) + (end - first - 1);
        runs_bytes += varint_bytes(first - run_gap_base) + varint_bytes(end - first - 1);
        next = end;
        run_gap_base = end + 1;
    });
    const std::uint64_t bits_bytes = (size_ + 7) / 8;
    const Kind kind = ids_bytes <= runs_bytes && ids_bytes <= bits_bytes ? kIds
                      : runs_bytes <= bits_bytes                         ? kRuns
                                                                         : kBits;

    std::vector<std::uint8_t> out;
    out.reserve(2 + 5 + std::min({ids_bytes, runs_bytes, bits_bytes}) + kChecksumBytes);
    out.push_back(kVersion);
    out.push_back(kind);
    put_varint(out, size_);
    next = 0;
    switch (kind) {
        case kIds:
            for_each_run([&](std::uint64_t first, std::uint64_t end) {
                put_varint(out, first - next);
                out.insert(out.end(), end - first - 1, 0);
                next = end;
            });
            break;
        case kRuns:
            for_each_run([&](std::uint64_t first, std::uint64_t end) {
                put_varint(out, first - next);
                put_varint(out, end - first - 1);
                next = end + 1;
            });
            break;
        case kBits: {
            const std::vector<std::uint64_t> words = to_words(size_);
            for (std::uint64_t b = 0; b < bits_bytes; ++b) {
                out.push_back(static_cast<std::uint8_t>(words[b >> 3] >> ((b & 7) * 8)));
            }
            break;
        }
    }
    const std::uint32_t crc = crc32(out);
    for (unsigned shift = 0; shift < 32; shift += 8) {
        out.push_back(static_cast<std::uint8_t>(crc >> shift));
    }
    return out;
}

Mask Mask::from_bytes(std::span<const std::uint8_t> bytes) {
    if (bytes.size() < 3 + kChecksumBytes) {
        refuse("expected at least " + std::to_string(3 + kChecksumBytes) + " bytes, got " +
               std::to_string(bytes.size()));
    }
    if (bytes[0] != kVersion) {
        refuse("expected format version " + std::to_string(kVersion) + ", got " + std::to_string(bytes[0]));
    }
    const std::span<const std::uint8_t> body = bytes.first(bytes.size() - kChecksumBytes);
    std::uint32_t stored = 0;
    for (std::size_t i = 0; i < kChecksumBytes; ++i) {
        stored |= static_cast<std::uint32_t>(bytes[body.size() + i]) << (8 * i);
    }
    if (stored != crc32(body)) {
        refuse("expected checksum " + std::to_string(stored) + ", got " + std::to_string(crc32(body)));
    }
    Reader reader(body.subspan(2));
    const std::uint64_t size = reader.varint();
    if (size > kMaxNodes) {
        refuse("expected a size of at most " + std::to_string(kMaxNodes) + ", got " + std::to_string(size));
    }
    Mask mask;
    switch (body[1]) {
        case kIds: mask = read_ids(reader, size); break;
        case kRuns: mask = read_runs(reader, size); break;
        case kBits: mask = read_bits(reader, size); break;
        default: refuse("expected kind 0, 1 or 2, got " + std::to_string(body[1]));
    }
    // Writing it again is the whole definition of canonical: no second list of rules to keep in step.
    if (!std::ranges::equal(mask.to_bytes(), bytes)) {
        refuse("expected the canonical form, got another encoding");
    }
    return mask;
}

}  // namespace memorepair

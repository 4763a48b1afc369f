// Purpose: the mask against std::set, and its bytes against every kind of damage.
#include <algorithm>
#include <set>
#include <vector>

#include "check.hpp"
#include "mask_filter.hpp"
#include "memorepair/errors.hpp"
#include "memorepair/mask.hpp"

using memorepair::Isa;
using memorepair::Mask;
using memorepair::NodeId;
using Ids = std::vector<NodeId>;
using Set = std::set<NodeId>;

namespace {

Ids list(const Set& set) {
    return {set.begin(), set.end()};
}

Set random_set(check::Random& random, std::uint64_t size) {
    Set set;
    if (size == 0) {
        return set;
    }
    switch (random.below(4)) {
        case 0: break;
        case 1:  // a few
            for (int i = 0; i < 5; ++i) set.insert(static_cast<NodeId>(random.below(size)));
            break;
        case 2:  // runs
            for (int i = 0; i < 3; ++i) {
                const std::uint64_t first = random.below(size);
                const std::uint64_t end = std::min(size, first + random.below(200));
                for (std::uint64_t id = first; id < end; ++id) set.insert(static_cast<NodeId>(id));
            }
            break;
        default:  // dense noise
            for (std::uint64_t id = 0; id < size; ++id) {
                if (random.below(3) == 0) set.insert(static_cast<NodeId>(id));
            }
    }
    return set;
}

bool holds(const Mask& mask, const Set& set, std::uint64_t size) {
    return mask.size() == size && mask.count() == set.size() && mask.ids() == list(set) &&
           mask == Mask::from_ids(list(set), size);
}

void test_operations() {
    check::Random random(1);
    for (int round = 0; round < 1500; ++round) {
        const std::uint64_t size_a = random.below(700);
        const std::uint64_t size_b = round % 3 == 0 ? size_a : random.below(700);
        const Set a = random_set(random, size_a);
        const Set b = random_set(random, size_b);
        const Mask left = Mask::from_ids(list(a), size_a);
        const Mask right = Mask::from_ids(list(b), size_b);
        const std::uint64_t size = std::max(size_a, size_b);
        CHECK(holds(left, a, size_a));
        Set both;
        Set either = a;
        Set minus;
        either.insert(b.begin(), b.end());
        for (const NodeId id : a) (b.contains(id) ? both : minus).insert(id);
        CHECK(holds(left | right, either, size));
        CHECK(holds(left & right, both, size));
        CHECK(holds(left - right, minus, size));
        CHECK((left == right) == (size_a == size_b && a == b));
        CHECK(holds(left.resized(size_a + 100), a, size_a + 100));
        if (!a.empty()) {
            CHECK(holds(left.resized(std::uint64_t{*a.rbegin()} + 1), a, std::uint64_t{*a.rbegin()} + 1));
            CHECK_THROWS(left.resized(*a.rbegin()), memorepair::NodeRange);
        }
        Ids asked;
        for (std::uint64_t i = 0; size_a > 0 && i < random.below(400); ++i) {
            asked.push_back(static_cast<NodeId>(random.below(size_a)));
        }
        std::vector<std::uint8_t> hit(asked.size());
        left.test(asked, hit);
        Ids kept;
        bool right_answers = true;
        for (std::size_t i = 0; i < asked.size(); ++i) {
            right_answers = right_answers && (hit[i] != 0) == a.contains(asked[i]);
            if (!a.contains(asked[i])) kept.push_back(asked[i]);
        }
        CHECK(right_answers);
        CHECK(std::ranges::equal(left.filter(asked), kept));
        const auto bytes = left.to_bytes();
        CHECK(Mask::from_bytes(bytes) == left);
        CHECK(Mask::from_bytes(bytes).to_bytes() == bytes);
        CHECK(bytes.size() <= 11 + (size_a + 7) / 8);
    }
}

// Every way to look ids up against the scalar words, whatever this processor would choose by itself.
void test_isas() {
    check::Random random(3);
    for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512}) {
        const char* const name = isa == Isa::kScalar ? "scalar" : isa == Isa::kAvx2 ? "AVX2" : "AVX-512";
        if (!memorepair::is_supported(isa)) {
            std::printf("mask: SKIPPED %s, this processor lacks it\n", name);
            continue;
        }
        for (int round = 0; round < 400; ++round) {
            const std::uint64_t size = 1 + random.below(round % 2 == 0 ? 100 : 5000);
            const Set set = random_set(random, size);
            const Ids sorted = list(set);
            const auto words = Mask::from_ids(sorted, size).to_words(size);
            Ids asked(random.below(100));
            for (NodeId& id : asked) id = static_cast<NodeId>(random.below(size));
            Ids kept;
            std::vector<std::uint8_t> expected;
            for (const NodeId id : asked) {
                expected.push_back(static_cast<std::uint8_t>(set.contains(id)));
                if (!set.contains(id)) kept.push_back(id);
            }
            // Exactly the room that the contract asks for, so that AddressSanitizer sees a store past it.
            Ids out(asked.size());
            std::vector<std::uint8_t> hit(asked.size());
            out.resize(memorepair::filter_words(isa, words, size, asked, out.data()));
            memorepair::test_words(isa, words, size, asked, hit.data());
            CHECK(out == kept && hit == expected);
            out.assign(asked.size(), 0);
            hit.assign(asked.size(), 0);
            out.resize(memorepair::filter_sorted(sorted, size, asked, out.data()));
            memorepair::test_sorted(sorted, size, asked, hit.data());
            CHECK(out == kept && hit == expected);
            if (!asked.empty()) {
                // Past the size but inside the last word, and far past every word.
                out.assign(asked.size(), 0);
                hit.assign(asked.size(), 0);
                asked[random.below(asked.size())] = static_cast<NodeId>(round % 3 == 0 ? 0xffffffffU : size);
                CHECK_THROWS(memorepair::filter_words(isa, words, size, asked, out.data()), memorepair::NodeRange);
                CHECK_THROWS((memorepair::test_words(isa, words, size, asked, hit.data()), 0), memorepair::NodeRange);
                CHECK_THROWS(memorepair::filter_sorted(sorted, size, asked, out.data()), memorepair::NodeRange);
                CHECK_THROWS((memorepair::test_sorted(sorted, size, asked, hit.data()), 0), memorepair::NodeRange);
            }
        }
        Ids none(40, 7);
        CHECK_THROWS(memorepair::filter_words(isa, {}, 0, Ids(40, 7), none.data()), memorepair::NodeRange);
        CHECK(memorepair::filter_words(isa, {}, 0, {}, none.data()) == 0);
    }
    // Past 2^31, where a signed comparison would go wrong.
    const std::uint64_t size = (std::uint64_t{1} << 31) + 1000;
    std::vector<std::uint64_t> words(memorepair::num_words(size));
    Ids asked;
    Ids kept;
    for (NodeId id = 0x80000000U - 500; id < size; ++id) {
        asked.push_back(id);
        if (id % 3 == 0) {
            memorepair::set_bit(words, id);
        } else {
            kept.push_back(id);
        }
    }
    for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512}) {
        if (memorepair::is_supported(isa)) {
            Ids out(asked.size());
            out.resize(memorepair::filter_words(isa, words, size, asked, out.data()));
            CHECK(out == kept);
        }
    }
}

// Many ids, so that a sparse mask is looked up by words, and an answer past the size that gets large pages.
void test_many() {
    check::Random random(4);
    for (const std::uint64_t count : {0, 40, 4000, 400000}) {
        Ids members(count);
        for (NodeId& id : members) id = static_cast<NodeId>(random.below(1000000));
        const Mask mask = Mask::from_ids(members, 1000000);
        Ids asked(1500000);
        for (NodeId& id : asked) id = static_cast<NodeId>(random.below(1000000));
        std::vector<std::uint8_t> hit(asked.size());
        mask.test(asked, hit);
        Ids kept;
        bool right = true;
        for (std::size_t i = 0; i < asked.size(); ++i) {
            right = right && (hit[i] != 0) == mask.contains(asked[i]);
            if (hit[i] == 0) kept.push_back(asked[i]);
        }
        CHECK(right);
        CHECK(std::ranges::equal(mask.filter(asked), kept));
        asked.back() = 1000000;
        CHECK_THROWS(mask.filter(asked), memorepair::NodeRange);
        CHECK(mask.filter(Ids(members.begin(), members.end())).empty());
    }
}

void test_ranges() {
    CHECK_THROWS(Mask::from_ids(Ids{5}, 5), memorepair::NodeRange);
    CHECK_THROWS(Mask::from_ids(Ids{5000000}, 5000000), memorepair::NodeRange);
    CHECK_THROWS(Mask(std::uint64_t{1} << 32), memorepair::Capacity);
    CHECK_THROWS(Mask(5).contains(5), memorepair::NodeRange);
    CHECK_THROWS(Mask(5).filter(Ids{5}), memorepair::NodeRange);
    const Mask huge = Mask::from_ids(Ids{0, 1, 2, 0xfffffffeU}, 0xffffffffU);
    CHECK(huge.count() == 4 && huge.contains(0xfffffffeU) && !huge.is_dense());
    CHECK(Mask::from_bytes(huge.to_bytes()) == huge);
    CHECK(huge.to_bytes().size() < 24);
}

template <class Bytes>
bool refused_or_equal(const Bytes& bytes, const Mask& mask) {
    // A copy of the exact length, so that a read past the end is seen by AddressSanitizer.
    const std::vector<std::uint8_t> exact(bytes.begin(), bytes.end());
    try {
        return Mask::from_bytes(exact) == mask;
    } catch (const memorepair::InvalidMask&) {
        return true;
    }
}

void test_damage() {
    check::Random random(2);
    for (int round = 0; round < 60; ++round) {
        const std::uint64_t size = random.below(400);
        const Mask mask = Mask::from_ids(list(random_set(random, size)), size);
        const auto bytes = mask.to_bytes();
        for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
            auto flipped = bytes;
            flipped[bit / 8] = static_cast<std::uint8_t>(flipped[bit / 8] ^ (1U << (bit % 8)));
            CHECK_THROWS(Mask::from_bytes(flipped), memorepair::InvalidMask);
        }
        for (std::size_t length = 0; length < bytes.size(); ++length) {
            const std::vector<std::uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
            CHECK_THROWS(Mask::from_bytes(cut), memorepair::InvalidMask);
        }
        for (int noise = 0; noise < 200; ++noise) {
            auto other = bytes;
            for (std::uint64_t i = 0; i < 1 + random.below(8); ++i) {
                other[random.below(other.size())] = static_cast<std::uint8_t>(random.below(256));
            }
            CHECK(refused_or_equal(other, mask));
        }
    }
}

}  // namespace

int main() {
    test_operations();
    test_isas();
    test_many();
    test_ranges();
    test_damage();
    return check::finish("mask");
}

// Purpose: any bytes as a serialised mask, with their own checksum and with a right one.
// Contract: refused with InvalidMask, or read as a mask that is written as the very same bytes and answers as a set.
#include <cstdlib>
#include <span>

#include "../tests/forge.hpp"
#include "memorepair/errors.hpp"
#include "memorepair/mask.hpp"

namespace {

using memorepair::Mask;
using memorepair::NodeId;

void require(bool holds) {
    if (!holds) {
        std::abort();
    }
}

void read(const forge::Bytes& bytes) {
    Mask mask;
    try {
        mask = Mask::from_bytes(bytes);
    } catch (const memorepair::InvalidMask&) {
        return;
    }
    require(mask.to_bytes() == bytes);
    if (mask.size() > (std::uint64_t{1} << 22)) {  // the rest costs what the size is
        return;
    }
    const std::vector<NodeId> ids = mask.ids();
    require(ids.size() == mask.count());
    require(Mask::from_ids(ids, mask.size()) == mask);
    require(mask.filter(ids).empty());
    std::vector<std::uint8_t> hit(ids.size());
    mask.test(ids, hit);
    for (std::size_t i = 0; i < ids.size(); ++i) {
        require(hit[i] == 1 && ids[i] < mask.size() && mask.contains(ids[i]));
    }
    const Mask few = Mask::from_ids(std::span(ids).first(ids.size() / 2), mask.size());
    require(((mask - few) | few) == mask && (mask & few) == few && ((mask - few) & few).count() == 0);
    require(mask.resized(mask.size() + 100).resized(mask.size()) == mask);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    forge::Bytes bytes(data, data + size);
    read(bytes);
    forge::seal_mask(bytes);
    read(bytes);
    return 0;
}

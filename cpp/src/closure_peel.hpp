// Purpose: decide the nodes that need no flow.
// Contract: every node ends taken, dropped or open. The rules are exact for the SMALLEST optimum and need no
// certificate but zeroes: take (R1) when no requirement is open and the weight is positive; drop (R2) when no dependant
// is open and the weight is not positive. A taken node keeps its weight as excess, a dropped one absorbs nothing.
// Requires: no cycle.
// Source: kernelisation of sparse closures; strictness at zero keeps the optimum smallest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "csr.hpp"
#include "memorepair/types.hpp"

namespace memorepair {

enum class Fate : std::uint8_t { open, taken, dropped };

std::vector<Fate> peel(const Csr& needs, std::span<const Weight> weight);

}  // namespace memorepair

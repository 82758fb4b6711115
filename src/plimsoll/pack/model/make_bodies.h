// From a Problem to the model that the engines see (bodies.h): ties groups and classes together,
// cuts time into sections, chooses the unit, and finds what contradicts itself before any search.
//
// Cost O(n log n), or O(n) when times are dense integers.
#pragma once

#include <cstdint>
#include <span>

#include "plimsoll/pack/model/bodies.h"

namespace plimsoll::pack {

// The bodies of the buffers that live in `memory` under `assignment` (empty: all buffers).
BodyModel make_bodies(const Problem& problem, std::size_t memory,
                      std::span<const std::uint8_t> assignment);

}  // namespace plimsoll::pack

// How much memory a plan of several streams needs whatever its offsets: for check_claims.h.
//
// The most bytes of device memory that can be in use at once when streams run beside each other are
// a bound for every packing, because none of those buffers may share a byte. Two buffers can be in
// use at once unless every step that uses the one is known to be done before any that uses the
// other begins, by the order on each stream and by waits.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/plan/plan.h"

namespace plimsoll::plan {

struct BufferUses {
  std::vector<std::int32_t> steps;  // that read, write or work in it, ascending, each once
  bool source = false;              // there before the first step
  bool held_at_end = false;         // there after the last
};

// Zero with one stream. `uses` has an entry for every buffer.
Bytes bound_of_streams(const Plan& plan, const std::vector<BufferUses>& uses);

}  // namespace plimsoll::plan

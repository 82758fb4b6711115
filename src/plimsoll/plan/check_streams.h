// What each step of a plan knows to be done, and how much memory a plan of several streams needs
// whatever its offsets: for check_plan.h and check_claims.h.
//
// A step knows of those before it on its stream, of those it waits for, and of what they knew.
//
// The most bytes of device memory that can be in use at once when streams run beside each other are
// a bound for every packing, because none of those buffers may share a byte. Two buffers can be in
// use at once unless every step that uses the one is known to be done before any that uses the
// other begins.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plimsoll/plan/check_structure.h"

namespace plimsoll::plan {

struct StepClocks {
  std::vector<std::int32_t> number;  // by step: its number on its own stream, from 1
  // by step: how many steps of each stream are done for certain when it begins
  std::vector<std::array<std::int32_t, kFollowedStreams>> done;
};
StepClocks clocks_of(const Plan& plan);

struct BufferUses {
  std::vector<std::int32_t> steps;  // that read, write or work in it, ascending, each once
  bool source = false;              // there before the first step
  bool held_at_end = false;         // there after the last
};

// Zero with one stream. `uses` has an entry for every buffer.
Bytes bound_of_streams(const Plan& plan, const std::vector<BufferUses>& uses);

}  // namespace plimsoll::plan

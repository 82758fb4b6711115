// Which earlier steps a step must follow, whatever stream each runs on.
//
// Read after write, write after read and write after write, byte by byte within a buffer: steps
// that fill different parts of one buffer are free of each other. When buffers keep their places, a
// step also follows everybody who touched a buffer that lay on the same bytes before.
//
//   step 0   writes a[0,64)              follows -
//   step 1   writes a[64,128)            follows -
//   step 2   reads a[0,128)              follows 0 1
//   step 3   writes b, in a's place      follows 0 1 2 (only if places are kept)
//
// The list order of the plan is taken as right; it has been checked. Cost: n log n in the slots.
#pragma once

#include <cstddef>
#include <vector>

#include "plimsoll/plan/plan.h"

namespace plimsoll::plan {

struct StepOrder {
  // by step: those it follows, perhaps more than once
  std::vector<std::vector<std::size_t>> before;
  // by buffer: the steps that read or write it, ascending
  std::vector<std::vector<std::size_t>> touched;
};

StepOrder order_of_steps(const Plan& plan, bool keep_places);

}  // namespace plimsoll::plan

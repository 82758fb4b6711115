// Whose operators are measured, and who hears of it (measure_operators.h).
#pragma once

#include <cstddef>
#include <functional>

#include "plimsoll/kernels/backend/backend.h"

namespace plimsoll::profile {

struct MeasureOptions {
  int threads = 0;  // of the CPU's kernels
  // Called before each signature: how many are done, of how many.
  std::function<void(std::size_t done, std::size_t all)> on_progress;
  // Whose operators; absent: the CPU's. On a GPU ten runs are one sequence (a graph), so that
  // launching costs what it costs in a step.
  kernels::Backend* backend = nullptr;
  bool only_new = false;  // leave out what the profile knows already
  // On the CPU the fastest of the runs instead of their median: what the machine can do, whatever
  // else it does meanwhile.
  bool fastest = false;
};

}  // namespace plimsoll::profile

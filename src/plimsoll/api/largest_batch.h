// The largest batch for which a plan within the budget is found.
//
// Batches are doubled from 1 until one fails, then the range between is halved. Every trial builds
// the graph at that batch and plans it like any other; all of them share options.deadline_seconds.
// The answer is what was planned, not what a formula says; a larger batch may exist that was not
// found in the time given.
#pragma once

#include <string>

#include "plimsoll/api/pipeline.h"

namespace plimsoll::api {

struct LargestBatch {
  std::int64_t batch = 0;
  PlannedGraph planned;
};

// kUsage for a budget in per cent: it would be of another plan at every batch.
Result<LargestBatch> largest_batch(ModelRequest request, const std::string& device,
                                   const PlanOptions& options);

}  // namespace plimsoll::api

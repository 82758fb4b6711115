// The largest batch for which a plan within the budget is found.
//
// Every trial builds the graph at that batch and plans it like any other. The first two tell how
// the plan that recomputes nothing grows with the batch, so the search begins at the batch that
// fits without recomputing; it is doubled until a trial fails, then the range between is halved.
//
//   budget 4 GiB: 1, 8 (0.9 GiB) ─▶ 46 ─▶ 92 ─▶ 184 ─▶ 368 fails ─▶ 276 ─▶ 322 fails ─▶ ... 277
//
// Whether a plan is found for a batch near the limit is a matter of luck: a longer search may find
// a faster schedule that does not pack. So the trials of a round are short, and the rounds after it
// try the batches above the best again, from other seeds and with more time, until a round gains
// nothing or the time is over. What is left of the time goes into the plan of the batch that was
// found.
//
// The answer is what was planned, not what a formula says, and it says how the search ended.
#pragma once

#include <optional>
#include <string>

#include "plimsoll/api/pipeline.h"

namespace plimsoll::api {

// What is known of the next larger batch.
enum class NextBatch {
  kProven,       // it does not fit, whatever the plan
  kNotFound,     // no plan was found for it
  kNotTried,     // the deadline cut the search
  kInterrupted,  // the user did
};
const char* name(NextBatch next);

struct LargestBatch {
  std::int64_t batch = 0;
  PlannedGraph planned;
  NextBatch next = NextBatch::kNotFound;
  std::optional<std::int64_t> failed;  // the smallest batch for which no plan was found
};

// kUsage for a budget in per cent: it would be of another plan at every batch.
Result<LargestBatch> largest_batch(ModelRequest request, const std::string& device,
                                   const PlanOptions& options);

}  // namespace plimsoll::api

// What is alive at one time step, why, and what it would cost to be rid of it.
//
//   transformer.h.0/softmax   48 MiB   made by step 12, read last by step 81 (softmax_grad)
//     recompute   saves 48 MiB, +3.1 ms     2 operators from what is still in memory
//     swap        saves 48 MiB, +0 s        9.60 ms of copies, hidden behind 120 ms of other work
//     encode      saves 24 MiB, +5 ms       fp16 or bf16 while it waits; lossy
//     encode      saves 36 MiB, +5 ms       int8 while it waits; lossy
//
// A price is an estimate for this one tensor with everything else as planned: recomputing walks
// back from the value its next reader wants to values that are in memory when that reader runs, and
// sums the planned seconds of the operators on the way; swapping asks whether the copies fit beside
// the work between here and the next reader; encoding lists the very forms that the planner may
// choose from (schedule/workload/graph_encodings.h), lossy ones as what `--lossy` would allow.
// Remedies interact, so the prices of two rows do not add up; finding the best combination is what
// `plimsoll plan --budget` does.
//
// A tensor that the step at this time step reads or writes has no price: it must be there.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/plan/plan.h"
#include "plimsoll/report/timeline.h"
#include "plimsoll/schedule/device_profile.h"

namespace plimsoll::report {

struct Price {
  std::string remedy;  // "recompute", "swap", "encode"
  Bytes saves;
  double seconds = 0;  // added to the step
  std::string detail;
  bool lossless = true;  // of an encoding
};

struct AliveRow {
  std::size_t allocation = 0;  // index into the timeline's allocations
  std::string why;
  std::vector<Price> prices;
};

// "encode (lossy)" where bits are lost, else the remedy alone: nobody should have to look it up.
std::string label_of(const Price& price);

// Everything alive in memory 0 at the time step, largest first; without prices.
std::vector<AliveRow> alive_at(const Timeline& timeline, Step time_step);

// The same with prices, for a timeline made of this plan.
std::vector<AliveRow> alive_at(const Timeline& timeline, Step time_step, const plan::Plan& plan,
                               const schedule::DeviceProfile& profile);

}  // namespace plimsoll::report

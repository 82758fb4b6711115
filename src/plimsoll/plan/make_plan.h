// From a schedule to a plan: instances become buffers, buffers get offsets.
//
// Steps are the schedule's actions without its drops. What a step waits for follows from the places
// (step_waits.h): whoever takes over bytes that are still being copied out waits for that copy.
// Buffers are chains of instances that took over each other's memory, plus the scratch of every
// action. Two buffers of one arena may share bytes when their lifetimes do not meet; the packer
// decides where each lies, with persistent buffers at the front of the arena when `two_ended` is
// set.
//
// The drop-in classic strategies for comparison (`sharing` off: every buffer its own bytes) use the
// same path.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/plan/plan.h"
#include "plimsoll/schedule/schedule.h"
#include "plimsoll/schedule/workload/graph_workload.h"

namespace plimsoll::plan {

struct MakePlanOptions {
  bool sharing = true;
  bool two_ended = false;
  bool greedy = false;         // classic best-fit by size instead of the portfolio, for comparison
  double pack_seconds = 0.05;  // counted work, not wall time: the packer runs deterministically
  bool deterministic = true;
  Bytes budget;  // zero: none
  // graph values that must lie side by side, in order
  std::vector<std::vector<ValueId>> contiguous;
  std::vector<ValueId> pinned;  // graph values that results should name as well
  // a plan of the same steps for larger sizes, whose offsets are taken over
  const Plan* like = nullptr;
  // a plan of other steps, whose places are taken where they are free, or there is no plan
  const Plan* near = nullptr;
};

Result<Plan> make_plan(const ir::Graph& graph, const schedule::GraphWorkload& mapped,
                       const schedule::Schedule& schedule, const MakePlanOptions& options);

}  // namespace plimsoll::plan

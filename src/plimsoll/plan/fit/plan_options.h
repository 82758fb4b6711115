// What a plan is asked for, and what is said about it.
//
// Without a budget nothing is recomputed, swapped or encoded: results lie in place where they may,
// buffers share memory, the packer sets the offsets. With a budget the schedule is the fastest one
// found whose packed arena stays inside it; packing closes the loop, because what is alive and what
// the arena needs differ by the packer's gap.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/plan/memories/place_in_memories.h"
#include "plimsoll/plan/plan.h"
#include "plimsoll/schedule/fit.h"
#include "plimsoll/schedule/workload/graph_encodings.h"
#include "plimsoll/schedule/workload/graph_workload.h"

namespace plimsoll::plan {

struct PlanOptions {
  std::string budget;  // "1.5GiB", "40%" of the plan that recomputes nothing; empty: none
  // the least memory for at most this fraction more time, instead of a budget
  std::optional<double> slowdown;
  schedule::Remedies remedies;  // used when there is a budget or a slowdown
  // operators in parts where no plan was found without; remedies.split looks at them at once
  bool split_last = false;
  bool in_place = true;
  bool share = true;
  bool two_ended = false;
  schedule::OrderChoice order = schedule::OrderChoice::kGiven;
  double deadline_seconds = 3;
  bool deterministic = false;
  std::uint64_t seed = 1;
  int threads = 0;
  ops::KernelTable kernels;
  Bytes alignment = schedule::kTensorAlignment;  // what the device's kernels want
  Bytes set_aside;     // of the budget, for what a run takes beside the arena: loading weights
  std::string advice;  // said with a budget that is too small: what else may help
  std::function<double(const ir::Graph&, const ir::Node&)> seconds;
  schedule::CopyRates copies;
  bool swaps_to_file = false;  // copies go to a disk
  double copy_tax = 0;         // seconds that each second of copying costs the computation
  schedule::CodecRates codecs{8e9, 10e9, 0};
  // lossy forms that maps may wait in (schedule/workload/graph_encodings.h); with remedies.lossy
  std::vector<std::string> lossy;
  // lossy forms that weights of a plain file may be kept in (api/encoded_weights.h)
  std::vector<std::string> lossy_weights;
  bool lossy_weights_named = false;  // by a form that activations do not have
  std::vector<std::vector<ValueId>> contiguous;
  // gradients that are reduced together lie side by side; zero: no buckets
  Bytes bucket;
  std::vector<std::string> pinned;  // names of values that must be there after the last step
  int streams = 1;                  // compute streams
  std::function<void(const schedule::FitProgress&)> on_better;
  const std::atomic<bool>* stop = nullptr;
  // On a device with several memories: how it is decided what lies where.
  std::optional<PlacementChoice> placement;  // absent: search
  bool compare = true;                       // fill the table of sharing by other planners
  bool persist = true;   // false: give up soon, without the slow plans that are better than none
  std::string strategy;  // a classic one (schedule/search/strategies.h) instead of searching
  // Told why there is no plan, before the error is returned.
  std::function<void(const struct PlanFailure&)> on_failure;
};

// No plan: below the proven lower bound (kDoesNotFit), or none found above it (kNoAnswer).
struct PlanFailure {
  Error error;
  Bytes budget;
  Bytes no_recompute;
  double no_recompute_seconds = 0;
  Bytes lower_bound;  // proven: no plan needs less
  Bytes smallest;     // the smallest arena that was found
  // where fewer were allowed: the smallest that was found with all techniques; zero: none smaller
  Bytes all_techniques;
  std::vector<std::string> limiting;  // tensors that must be in memory then, largest first
};

// The numbers of the table that `plimsoll plan` prints.
struct PlanSummary {
  Bytes baseline;      // every result its own memory
  Bytes in_place;      // results in place, nothing shared
  Bytes shared;        // shared, nothing in place (greedy best-fit by size)
  Bytes both;          // in place and shared (greedy best-fit by size)
  Bytes no_recompute;  // arena of the default plan
  double no_recompute_seconds = 0;
  double plan_seconds = 0;
  // With a budget:
  std::optional<schedule::MemoryBound> memory_bound;
  std::vector<std::string> limiting;  // tensors that must be in memory then, largest first
  std::vector<Bytes> limiting_bytes;  // and how large each is
  double bound_seconds = 0;
  schedule::ScheduleCounts counts;
  std::optional<double> slowdown;             // that was allowed
  std::int64_t split_operators = 0;           // computed in parts
  std::int64_t split_parts = 0;               // of the one with most
  std::string strategy;                       // the classic one that was asked for
  std::optional<PlacementSummary> placement;  // on a device with several memories
  // Where the times of the model's operators come from.
  std::int64_t measured_operators = 0;
  std::int64_t estimated_operators = 0;
};

struct PlannedGraph {
  Plan plan;
  PlanSummary summary;
};

}  // namespace plimsoll::plan

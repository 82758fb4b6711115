// Plans that were run: the best few, for real, and the fastest is kept.
//
// Every round plans with what is known so far, runs the plan for two steps and times each of its
// steps. What was seen goes into the profile: seconds of every operator by signature, rates of
// copies and of encodings, all as they are while the other streams are busy, which no measurement
// alone can tell. So the next round chooses with better numbers, from another seed.
//
//   round 1   predicted 2.21 s   measured 2.60 s
//   round 2   predicted 2.57 s   measured 2.55 s   kept
//
// The budget holds in every round: all that runs is a plan.
#pragma once

#include <functional>
#include <vector>

#include "plimsoll/api/pipeline.h"

namespace plimsoll::api {

struct TuneRound {
  double predicted_seconds = 0;
  double measured_seconds = 0;
};

struct Tuned {
  PlannedGraph planned;  // the fastest, with what was measured as its predicted_seconds
  std::vector<TuneRound> rounds;
};

// `how` says how to run (threads, seed, swap file, sources); its steps and hooks after steps are
// ours. What was learned is in prepared.profile.
Result<Tuned> tune_model(PreparedModel& prepared, const ModelRequest& request,
                         const PlanOptions& options, const RunOptions& how, int rounds,
                         const std::function<void(const TuneRound&)>& on_round = {});

// Puts what one run of a plan took, step by step, into a profile.
void learn(const plan::Plan& plan, const std::vector<double>& step_seconds, bool swaps_to_file,
           schedule::DeviceProfile& profile);

}  // namespace plimsoll::api

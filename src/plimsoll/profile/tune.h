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
// The budget holds in every round: all that runs is a plan. How to plan and how to run are the
// caller's: this module knows neither.
#pragma once

#include <functional>
#include <vector>

#include "plimsoll/plan/fit/plan_options.h"
#include "plimsoll/schedule/device_profile.h"

namespace plimsoll::profile {

struct TuneRound {
  double predicted_seconds = 0;
  double measured_seconds = 0;
};

struct Tuned {
  plan::PlannedGraph planned;  // the fastest, with what was measured as its predicted_seconds
  std::vector<TuneRound> rounds;
};

// The seconds of one step, and of each step of the plan in it.
struct TimedStep {
  double seconds = 0;
  std::vector<double> by_plan_step;
};

struct TuneOptions {
  int rounds = 1;
  bool swaps_to_file = false;
  const std::atomic<bool>* stop = nullptr;  // after the round under way
  std::function<Result<plan::PlannedGraph>(int round)> plan;
  std::function<Result<TimedStep>(const plan::Plan&)> run;
  std::function<void(const TuneRound&)> on_round;
};

// What was learned is in the profile, which `plan` is to plan with.
Result<Tuned> tune(const TuneOptions& options, schedule::DeviceProfile& profile);

// Puts what one run of a plan took, step by step, into a profile.
void learn(const plan::Plan& plan, const std::vector<double>& step_seconds, bool swaps_to_file,
           schedule::DeviceProfile& profile);

}  // namespace plimsoll::profile

// Executors for a range of sizes in one arena: a program changes its batch size and goes on.
//
//   plans of batch 1..64 ─▶ PlannedSet ─▶ at(batch 64).step(), at(batch 17).step(), ...
//
// Weights and optimizer state of the members of a plan set lie at the same offsets
// (api/plan_set.h), so they are simply there for whichever size comes next. Those of a member with
// offsets of its own are copied on the way in, through host memory. Everything else a step needs is
// written in that step.
//
// An executor is made the first time its size is asked for; nothing is planned, and nothing is
// allocated in a step.
//
// Failures: a plan that is wrong, uses more than one arena, or whose weights or states have other
// types than those of the last plan (as position tables that grow with the length) is refused by
// name.
#pragma once

#include <memory>
#include <vector>

#include "plimsoll/runtime/planned.h"

namespace plimsoll::runtime {

class PlannedSet {
 public:
  // The arena is as large as the largest plan's.
  static Result<PlannedSet> make(std::vector<plan::Plan> plans, const ExecutorOptions& options);

  // The executor of the plan of this number, with the state that the last one left.
  Result<Executor*> at(std::size_t member);
  // Makes every executor now, for who counts what is allocated afterwards.
  Status bind_all();

 private:
  // Where the values that outlive a step lie, in the order of the graph.
  struct Place {
    ValueId value;
    Offset offset;
    bool operator==(const Place&) const = default;
  };
  static std::vector<Place> places_of(const plan::Plan& plan);
  Status bind(std::size_t member);
  Status hand_over(std::size_t from, std::size_t to);

  ExecutorOptions options_;  // with a backend, which outlives its memory
  std::vector<plan::Plan> plans_;
  std::vector<std::vector<Place>> places_;  // by member
  std::vector<std::unique_ptr<Executor>> executors_;
  std::shared_ptr<Arenas> arenas_;
  std::size_t current_ = 0;
};

}  // namespace plimsoll::runtime

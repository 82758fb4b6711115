// ActionList: a schedule in shorthand, and link(), which writes it out.
//
// Everything a search decides can be said as a list of runs, encodes, decodes and copies. Which
// instance a run reads is the newest one; an instance is dropped right after its last reader. So a
// list needs no drops, and two searches that think in different terms (greedy_evictor.h walks
// forward, retention.h thinks in intervals) share one way of becoming a Schedule.
//
//   run a, run b, run a, run c      =>  a b drop(x#0) a' c drop(x#1) ...
//
// An ActionKind (schedule.h) means the same here, with two simplifications: every run is a kCompute
// (link() finds out which are recomputations), and the only kDrop that is listed is that of a value
// that was copied out. It is explicit because when to wait for the copy is a decision of its own.
//
// link() is O(actions + reads). It trusts the list (a wrong one is our bug and ends in CHECK);
// whether the result is right is for verify_schedule() to say.
#pragma once

#include <vector>

#include "plimsoll/schedule/schedule.h"
#include "plimsoll/schedule/search/problem.h"

namespace plimsoll::schedule {

struct ListedAction {
  ActionKind kind = ActionKind::kCompute;
  Index id = kNoIndex;  // a task for kCompute, else a value

  bool operator==(const ListedAction&) const = default;
};

struct ActionList {
  std::vector<ListedAction> actions;
  std::vector<Index> on_host_at_start;  // sources
};

// Every task once, in this order.
ActionList run_in_order(const std::vector<Index>& order);

// What link() made a schedule from; where it starts with sources on the host, without those and
// without listed drops.
ActionList action_list_of(const Schedule& schedule);

// With copies for swaps that are listed as encodings (kSwapForm): a value is sent out as soon as
// its last use before that allows and the copies before it do, and dropped where it was encoded.
ActionList with_copies(const Problem& problem, const ActionList& list);

Schedule link(const Problem& problem, const ActionList& list);

}  // namespace plimsoll::schedule

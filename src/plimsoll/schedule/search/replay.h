// Replay: the schedule in which chosen values of the forward half are dropped and recomputed.
//
// The shape that all segment strategies share. The given order is walked; values marked as dropped
// vanish when the forward half is over, and come back, all of one group together and in the order
// of the forward half, when the backward half first reads one of the group. A group is a segment, a
// block, or -1: then a value comes back alone, with what it needs.
//
//   forward  a b | c d | e     dropped: b, d; kept: a, c (they cross a cut) and e
//   backward e' d (from c) d' c' b (from a) b' a'
//
// O(tasks · log) and never fails, but it knows nothing of updates: what reads a weight must be
// recomputed before the weight changes. respects_updates() says whether it was.
#pragma once

#include <vector>

#include "plimsoll/schedule/search/action_list.h"
#include "plimsoll/schedule/search/problem.h"

namespace plimsoll::schedule {

// `dropped` per value, `group` per task; tasks before `first_backward` are the forward half.
ActionList replay(const Problem& problem, std::vector<char> dropped, std::vector<Index> group,
                  Index first_backward);

// The first task of the backward half: the workload's own, or where the no-recompute plan holds
// most.
Index first_backward_task(const Workload& workload, const Problem& problem);

// Whether no run of the list reads a value that a run before it has written over.
bool respects_updates(const Problem& problem, const ActionList& list);

}  // namespace plimsoll::schedule

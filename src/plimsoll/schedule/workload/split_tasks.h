// Tasks in parts: the workload in which every task that may be split runs so many times, each time
// on its share.
//
// What rewrite/split_rows.h does to operators, for a user's own graph. A region is what hangs
// together by values that a task makes share by share and another reads share by share:
//
//   a ──x──▶ b ──y──▶ c       a and b may be split, b cuts x; c reads all of y
//   in two parts:  a¹ x¹ b¹ y₁   a² x² b² y₂ over y₁   c reads y₂
//
// x is never whole: each of its shares has half of the bytes. y is read from outside, so it has all
// of its bytes from the first part on, and each part writes its share of them: one value over the
// other. So has a value that is summed up. A part takes its share of the seconds and of the
// scratch.
//
// Left whole: a region that something outside both depends on and feeds, and tasks that allow fewer
// parts. Linear in the workload for every region.
#pragma once

#include <cstdint>

#include "plimsoll/base/result.h"
#include "plimsoll/schedule/workload/workload.h"

namespace plimsoll::schedule {

struct WorkloadInParts {
  Workload workload;
  std::int64_t tasks = 0;  // that were split
};

// The most parts that any task allows.
std::int64_t most_parts(const Workload& workload);

WorkloadInParts in_parts(const Workload& workload, std::int64_t parts);

}  // namespace plimsoll::schedule

// pack(): offsets for any set of lifetimes, optimal or with a proven bound.
//
//   Problem problem;
//   problem.buffers.push_back({.lifetime = {0, 3}, .size = 4_bytes});
//   problem.buffers.push_back({.lifetime = {3, 9}, .size = 4_bytes});
//   problem.buffers.push_back({.lifetime = {0, 9}, .size = 8_bytes, .alignment = 4});
//   PLIMSOLL_TRY(Packing packing, pack(problem, {}));   // height 12, status kOptimal
//
// What runs, in this order, each stage only while the answer is not good enough and the budget
// lasts:
//   1. lower bounds (bounds.h);
//   2. the skyline in several orders (skyline.h): n log n, a valid answer within milliseconds;
//      problems with composite bodies, clocks or two ends take the greedy orders instead
//      (greedy.h); large problems that miss the target are repacked where they are highest
//      (window_search.h), then built around the highest moment (peak_stack.h);
//   3. where time falls apart into independent parts, only parts above the target go on;
//   4. the exact point-cover search (point_cover.h) on parts of up to a few thousand buffers, or
//      the ordering search (ordering_search.h) on small problems with composite bodies, clocks or
//      ends.
//
// Budget. `deadline_seconds` is wall time. With `deterministic` no clock is read at all: the
// deadline is turned into a count of elementary work at a fixed rate, one thread runs, and the same
// problem and options give the same offsets on every machine. Stages 1 and 2 run their first pass
// whatever the budget says, so there is always an answer.
//
// Threads. pack() is a pure function and may be called from many threads. With threads > 1 it
// starts that many workers for stage 4 and joins them before it returns.
//
// Failures. kBadInput from verify(problem), kUsage for options that make no sense. "Does not fit"
// and "no time" are not errors but statuses (packing.h). Every answer has passed check_packing().
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/pack/model/packing.h"
#include "plimsoll/pack/model/problem.h"
#include "plimsoll/pack/pack_options.h"

namespace plimsoll::pack {

Result<Packing> pack(const Problem& problem, const PackOptions& options);

}  // namespace plimsoll::pack

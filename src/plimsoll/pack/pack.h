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
//      (greedy.h);
//      large problems that miss the target are repacked where they are highest (window_search.h);
//   3. where time falls apart into independent parts, only parts above the target go on;
//   4. the exact point-cover search (point_cover.h) on parts of up to a few thousand buffers, or
//      the
//      ordering search (ordering_search.h) on small problems with composite bodies, clocks or ends.
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

#include <cstdint>

#include "plimsoll/base/result.h"
#include "plimsoll/pack/model/packing.h"
#include "plimsoll/pack/model/problem.h"

namespace plimsoll::pack {

enum class Goal : std::uint8_t {
  kAuto,      // kFit when memory 0 has a capacity, else kMinimize
  kFit,       // stop at the first packing within the capacity
  kMinimize,  // the smallest height the budget finds; never above the capacity
};

// kAuto is the portfolio above; the others run one method alone, so that users can compare.
enum class Method : std::uint8_t {
  kAuto,
  kSkyline,         // stage 2 only
  kExact,           // stages 2 and 4
  kBySize,          // greedy, largest first, best fit (what TFLite, XLA and IREE do)
  kByLifetime,      // greedy, longest first, best fit
  kByArea,          // greedy, largest size x lifetime first, best fit
  kExecutionOrder,  // greedy, in order of birth, best fit (what an online allocator does)
  kFirstFit,        // greedy, largest first, lowest gap
  kGivenOrder,      // greedy, as listed, best fit
};

struct PackOptions {
  Goal goal = Goal::kAuto;
  Method method = Method::kAuto;
  double deadline_seconds = 10;
  bool deterministic = false;
  int threads = 1;  // 0: as many as the machine has
  std::uint64_t seed = 1;
  bool keep_hints = false;  // incremental: stay within the capacity (or the old height) and move as
                            // few hinted buffers as possible; see repack.h

  // Switches of single ideas, all on. Tests run the combinations; turn one off to see what it
  // gives.
  bool split_parts = true;     // solve independent stretches of time apart
  bool slack_guidance = true;  // skyline: serve the tightest moment of a valley first
  bool snug_fit = true;        // skyline: prefer what leaves little free at the edges of a valley
  bool levelling = true;       // skyline: fill tiny steps before they cut the floor into pieces
  bool window_search = true;   // large problems: pack windows around the highest moments again
  bool memo = true;            // exact: remember failed states
  bool fail_first = true;      // exact: branch where fewest choices are left (else: lowest valley)
  bool decompose = true;       // exact: split the rest in time after every move
  bool backjump = true;        // exact: after a failure skip the steps that have no part in it
  bool snug_cover = true;      // exact: try first what closes with its neighbours
  bool guided_dives = true;    // exact: follow earlier dives that got far
  bool squeaky_wheel = true;   // skyline: repeat with higher priority for what ended too high
};

Result<Packing> pack(const Problem& problem, const PackOptions& options);

}  // namespace plimsoll::pack

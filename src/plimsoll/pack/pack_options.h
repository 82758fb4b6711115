// What pack() is asked for: the goal, the method, the budget, and a switch for every single idea.
#pragma once

#include <atomic>
#include <cstdint>

namespace plimsoll::pack {

enum class Goal : std::uint8_t {
  kAuto,      // kFit when memory 0 has a capacity, else kMinimize
  kFit,       // stop at the first packing within the capacity
  kMinimize,  // the smallest height the budget finds; never above the capacity
};

// kAuto is the portfolio of pack.h; the others run one method alone, so that users can compare.
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
  const std::atomic<bool>* stop = nullptr;  // raised from elsewhere: the best so far is taken
  bool keep_hints = false;  // incremental: stay within the capacity (or the old height) and move as
                            // few hinted buffers as possible; see repack.h

  // Switches of single ideas, all on. Tests run the combinations; turn one off to see what it
  // gives.
  bool split_parts = true;     // solve independent stretches of time apart
  bool slack_guidance = true;  // skyline: serve the tightest moment of a valley first
  bool snug_fit = true;        // skyline: prefer what leaves little free at the edges of a valley
  bool levelling = true;       // skyline: fill tiny steps before they cut the floor into pieces
  bool window_search = true;   // large problems: pack windows around the highest moments again
  bool peak_stack = true;      // large problems: stack the highest moment first, all else around it
  bool memo = true;            // exact: remember failed states
  bool fail_first = true;      // exact: branch where fewest choices are left (else: lowest valley)
  bool decompose = true;       // exact: split the rest in time after every move
  bool backjump = true;        // exact: after a failure skip the steps that have no part in it
  bool snug_cover = true;      // exact: try first what closes with its neighbours
  bool guided_dives = true;    // exact: follow earlier dives that got far
  bool squeaky_wheel = true;   // skyline: repeat with higher priority for what ended too high
};

}  // namespace plimsoll::pack

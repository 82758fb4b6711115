// Prove: the optimum of a small workload for one fixed order, by integer programming.
//
// The Checkmate model (recompute only): stage t first runs task t; R[t,i] says task i runs in stage
// t, S[t,i] that its value is held at its start, F[t,i,k] that it is freed after k, U[t,k] the
// bytes there. O(n²) binaries: seconds at 40 tasks, minutes at 100. The model is written as an LP
// file and solved by the `cbc` program (Debian: coinor-cbc); `relax` drops integrality, which gives
// a bound in less time.
//
// With copies the model knows swapping too: H[t,i] says the value is on the host at the start of
// stage t, O[t,i] how much of it is copied out in stage t, I[t,i] that it comes in. Two ways to
// count time:
//   kPerfect   the longest of compute, copies out and copies in, as if no stream ever waited, and
//              what comes in is there at once: below every plan.
//   kByStage   every stage takes the longest of its three streams, what comes in can be used from
//              the next stage on, what goes out stays until the stage ends: a plan that can be run,
//              so a good search finds one about as fast.
//
// For workloads of single-output tasks without sources, scratch, in-place or kept values: what the
// model knows. Used by `--prove` and by the tests, never by planning.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "plimsoll/base/result.h"
#include "plimsoll/schedule/workload/workload.h"

namespace plimsoll::schedule {

struct Proof {
  double bound_seconds = 0;               // no plan of this order is faster
  std::optional<double> optimum_seconds;  // proven
  std::optional<double> found_seconds;    // of the best plan the solver came to, the optimum or not
};

enum class Overlap : std::uint8_t { kPerfect, kByStage };

struct ProofOptions {
  bool relax = false;               // a bound in less time
  std::optional<CopyRates> copies;  // swapping as well as recomputing
  Overlap overlap = Overlap::kPerfect;
  const std::atomic<bool>* stop = nullptr;  // set it to end the solver early
};

// `seconds` is for all of it: the model is written, solved and given up within them, and the solver
// is ended if it does not end itself. kUsage for what the model does not cover, kDoesNotFit when
// proven impossible, kNoAnswer when the solver said nothing useful in time, kDevice when there is
// no cbc.
Result<Proof> prove(const Workload& workload, const std::vector<TaskId>& order, Bytes budget,
                    double seconds, const ProofOptions& options = {});

}  // namespace plimsoll::schedule

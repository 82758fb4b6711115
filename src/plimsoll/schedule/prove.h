// Prove: the optimum of a small workload for one fixed order, by integer programming.
//
// The Checkmate model (recompute only): stage t first runs task t; R[t,i] says task i runs in stage
// t, S[t,i] that its value is held at its start, F[t,i,k] that it is freed after k, U[t,k] the
// bytes there. O(n²) binaries: seconds at 40 tasks, minutes at 100. The model is written as an LP
// file and solved by the `cbc` program (Debian: coinor-cbc); `relax` drops integrality, which gives
// a bound in less time. For workloads of single-output tasks without sources, scratch, in-place or
// kept values: what the model knows. Used by `--prove` and by the tests, never by planning.
#pragma once

#include <optional>

#include "plimsoll/base/result.h"
#include "plimsoll/schedule/workload.h"

namespace plimsoll::schedule {

struct Proof {
  double bound_seconds = 0;               // no plan of this order is faster
  std::optional<double> optimum_seconds;  // proven
};

// kUsage for what the model does not cover, kDoesNotFit when proven impossible, kNoAnswer when the
// solver said nothing useful in time, kDevice when there is no cbc.
Result<Proof> prove(const Workload& workload, const std::vector<TaskId>& order, Bytes budget,
                    double seconds, bool relax = false);

}  // namespace plimsoll::schedule

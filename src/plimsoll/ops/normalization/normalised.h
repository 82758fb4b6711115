// The parts of a normalisation's derivative that layer, group and batch normalisation share, as
// graph nodes. Internal to the normalisation definitions.
//
// With xhat = (x - mean) * rstd over n elements and g the adjoint of xhat:
//   dx = rstd * (g - mean(g) - xhat * mean(g * xhat))
// and from adjoints of the statistics themselves:
//   dx += dmean / n - drstd * rstd^3 * (x - mean) / n
#pragma once

#include "plimsoll/ops/compose.h"

namespace plimsoll::ops {

// `axes` are those the statistics are taken over, `count` their elements. Where no mean was taken
// off, none is taken off g.
inline Var normalised_gradient(Var g, Var xhat, Var rstd, const ir::Ints& axes, std::int64_t count,
                               bool centred = true) {
  const double share = 1.0 / static_cast<double>(std::max<std::int64_t>(count, 1));
  const Var left = centred ? g - sum_over(g, axes) * share : g;
  return rstd * (left - xhat * (sum_over(g * xhat, axes) * share));
}

// Either adjoint may be absent; the mean is absent for rms_norm. All broadcast against x.
inline Var statistics_gradient(Var x, Var mean, Var rstd, Var dmean, Var drstd,
                               std::int64_t count) {
  const double share = 1.0 / static_cast<double>(std::max<std::int64_t>(count, 1));
  Var out;
  if (dmean) out = expand(dmean * share, x.shape());
  if (drstd) {
    const Var centred = mean ? x - mean : x;
    out = plus(out, centred * (drstd * (rstd * rstd * rstd) * -share));
  }
  return out;
}

}  // namespace plimsoll::ops

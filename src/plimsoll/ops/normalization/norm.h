// Normalisations: batch, layer, root-mean-square, group (instance norm: as many groups as
// channels), and AlexNet's response normalisation over neighbouring channels.
//
// All but the last subtract a mean and divide by a deviation taken over some axes, then scale by
// gamma and shift by beta:
//
//   batch_norm   x[N,C,...]          over N and space, per channel
//   layer_norm   x[..., axis...]     over the axes from `axis` on, per row
//   rms_norm     as layer_norm without the mean
//   group_norm   x[N,C,...]          over C/groups channels and space, per sample and group
//
// Statistics are results of their own (fp32, fp64 for fp64), small beside x, and the gradient reads
// them with x instead of y: y dies as soon as its reader has run. batch_norm with activation "relu"
// applies it in the same pass, and its gradient takes the sign from x again.
//
// A statistic is a differentiable result like any other; that is how second order works: the fused
// gradient is differentiated through its decomposition, and what flows into the statistics flows on
// into x.
//
// gamma and beta have x's dtype or the statistics' one; so have their gradients.
#pragma once

#include "plimsoll/ops/builder.h"

namespace plimsoll::ops {

// What all of them but the last add to a variance, unless told otherwise.
inline constexpr double kNormEpsilon = 1e-5;

struct BatchNormOptions {
  double epsilon = kNormEpsilon;
  bool relu = false;
};
struct BatchNorm {
  Var y;
  Var mean;
  Var var;  // biased
};
BatchNorm batch_norm(Var x, Var gamma, Var beta, const BatchNormOptions& options = {});
Var batch_norm_inference(Var x, Var gamma, Var beta, Var mean, Var var,
                         const BatchNormOptions& options = {});

struct RunningStatistics {
  Var mean;
  Var var;
};
// The next running statistics: a step of `momentum` towards this batch's, with the variance made
// unbiased for `count` elements per channel.
RunningStatistics batch_norm_update(RunningStatistics running, Var mean, Var var,
                                    std::int64_t count, double momentum = 0.1);
// batch_norm_update_group: of so many norms at once, for devices on which starting a kernel takes
// longer than that. Its inputs are the running means, the running variances, and the batch's means
// and variances; its results the next means and variances; `counts` has an entry for each norm.
inline constexpr int kStatisticsGroup = 16;

struct LayerNorm {
  Var y;
  Var mean;
  Var rstd;
};
// An absent beta is not added.
LayerNorm layer_norm(Var x, Var gamma, Var beta, std::int64_t axis = -1,
                     double epsilon = kNormEpsilon);

struct RmsNorm {
  Var y;
  Var rstd;
};
RmsNorm rms_norm(Var x, Var gamma, std::int64_t axis = -1, double epsilon = kNormEpsilon);

LayerNorm group_norm(Var x, Var gamma, Var beta, std::int64_t groups,
                     double epsilon = kNormEpsilon);

struct LrnOptions {
  std::int64_t size = 5;
  double alpha = 1e-4;
  double beta = 0.75;
  double k = 1;
};
// y = x / (k + alpha/size * sum of x^2 over `size` channels around)^beta
Var lrn(Var x, const LrnOptions& options);

}  // namespace plimsoll::ops

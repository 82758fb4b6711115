// Cross-entropy of logits against labels, log-softmax and mean in one.
//
//   loss = mean over rows that count of  lse[row] - logits[row, label[row]],   lse = log sum exp
//
// No array of probabilities is kept: the gradient rebuilds them from the logits and one lse per
// row, and may lie over the logits, which are often the largest activation of a language model. A
// row counts when its label is in [0, V) and not ignore_index; when none counts the loss is NaN (a
// mean of nothing) and the gradient zero. Loss and lse are fp64 for fp64 logits, else fp32.
//
// In parts of rows, `cross_entropy` with per_row=1 gives the loss of every row (0 where it does not
// count), `mean_loss` the mean of all of them, and `cross_entropy_grad` takes the labels of all
// rows as a last input, to divide by how many count. The loss of a row is rounded to the type of
// the loss in either way, so the bits are the same.
#pragma once

#include "plimsoll/ops/builder.h"

namespace plimsoll::ops {

inline constexpr std::int64_t kIgnoredLabel = -100;

struct CrossEntropy {
  Var loss;
  Var lse;
};
CrossEntropy cross_entropy(Var logits, Var labels, std::int64_t ignore_index = kIgnoredLabel);

}  // namespace plimsoll::ops

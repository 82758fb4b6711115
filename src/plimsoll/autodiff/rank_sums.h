// What training on several ranks adds to a graph: a share of the loss, and sums over the ranks.
//
// The loss of n ranks is the mean of theirs, so each differentiates loss / n, and the sum of the
// gradients is the gradient of the mean. Dividing the one number at the top costs nothing; dividing
// gradients would be another pass over all of them.
#pragma once

#include <vector>

#include "plimsoll/autodiff/training_options.h"
#include "plimsoll/ops/builder.h"
#include "plimsoll/ops/collective/collective.h"
#include "plimsoll/ops/elementwise/binary.h"

namespace plimsoll::autodiff {

class RankSums {
 public:
  explicit RankSums(const TrainingOptions& options)
      : how_{options.ranks, true, options.fixed_order} {}

  ops::Var share(ops::Var loss) const {
    return how_.ranks == 1 ? loss : loss * (1.0 / static_cast<double>(how_.ranks));
  }
  ops::Var sum(ops::Var value) const {
    return how_.ranks == 1 || !value ? value : ops::all_reduce(value, how_);
  }
  void sum_all(ops::Builder& builder, std::vector<ops::Var>& gradients) const {
    builder.set_phase(ir::Phase::kBackward);
    for (ops::Var& gradient : gradients) gradient = sum(gradient);
  }

 private:
  ops::CollectiveOptions how_;
};

}  // namespace plimsoll::autodiff

#include "plimsoll/autodiff/training.h"

#include <algorithm>

#include "plimsoll/autodiff/differentiate.h"
#include "plimsoll/autodiff/micro_batch.h"
#include "plimsoll/autodiff/rank_sums.h"
#include "plimsoll/autodiff/update_order.h"
#include "plimsoll/autodiff/weight_updates.h"

namespace plimsoll::autodiff {

Result<ir::Graph> make_training_graph(const ir::Graph& forward, const TrainingOptions& options) {
  if (forward.outputs.empty())
    return bad_input("model '{}': has no output to use as the loss", forward.name);
  const ir::Value& loss_value = forward.value(forward.outputs.front());
  if (loss_value.type.shape.elements() != 1 || !ir::is_float(loss_value.type.dtype)) {
    return bad_input(
        "model '{}': its first output '{}' is {}, a loss is one float; say what to minimise "
        "with --loss cross-entropy, mse or the name of an output",
        forward.name, loss_value.name, ir::to_string(loss_value.type));
  }
  if (options.accumulate < 1)
    return fail(ErrorCode::kUsage, "accumulate {}: expects at least 1", options.accumulate);
  for (const std::string& pattern : options.freeze) {
    const bool matches =
        std::any_of(forward.values.begin(), forward.values.end(), [&](const ir::Value& value) {
          return value.kind == ir::ValueKind::kWeight && matches_glob(pattern, value.name);
        });
    if (!matches)
      return fail(ErrorCode::kUsage, "freeze '{}': no weight of model '{}' has such a name",
                  pattern, forward.name);
  }
  if (options.accumulate > 1) return make_accumulating_graph(forward, options);

  const std::vector<ValueId> weights = trained_weights(forward, options);
  if (weights.empty())
    return bad_input("model '{}': no weight to train (all frozen, or the loss depends on none)",
                     forward.name);
  Builder builder(forward);
  const RankSums ranks(options);
  const Var loss = ranks.share(builder.var(forward.outputs.front()));
  const Var total = ranks.sum(loss);
  std::vector<Var> wrt;
  for (const ValueId id : weights) wrt.push_back(builder.var(id));

  Updates updates(builder, options);
  const bool early = options.clip_norm <= 0 && !options.gradients_as_outputs;
  DifferentiateOptions how;
  if (early)
    how.on_complete = [&](std::size_t i, Var gradient) {
      updates.add(wrt[i], ranks.sum(gradient), {});
    };
  PLIMSOLL_TRY(std::vector<Var> gradients, differentiate(builder, loss, wrt, how));
  if (!early) {
    ranks.sum_all(builder, gradients);
    finish_updates(builder, wrt, gradients, options);
  }

  std::vector<Var> outputs;
  for (const ValueId id : forward.outputs) outputs.push_back(builder.var(id));
  outputs.front() = total;
  if (options.gradients_as_outputs)
    outputs.insert(outputs.end(), gradients.begin(), gradients.end());
  PLIMSOLL_TRY(ir::Graph graph, builder.finish(outputs));
  return updates_behind_readers(std::move(graph));
}

}  // namespace plimsoll::autodiff

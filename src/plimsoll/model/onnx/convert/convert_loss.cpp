// Losses.
#include "plimsoll/model/onnx/convert/building_blocks.h"
#include "plimsoll/model/onnx/convert/operator_table.h"

namespace plimsoll::model::onnx {
namespace {

using ir::DType;

// From log-probabilities [N, C, d...] and labels [N, d...]: the loss as the attributes want it.
Result<Var> negative_log_likelihood(OperatorCall& call, Var log_probabilities, int labels_at) {
  Builder& builder = call.builder();
  if (!call.has(labels_at)) return bad_input("labels (input {}) are missing", labels_at);
  if (log_probabilities.rank() < 2)
    return bad_input("its input has rank {}, expects at least 2", log_probabilities.rank());
  const std::string reduction = call.text("reduction", "mean");
  Var labels = cast_to(call.in(labels_at), DType::kI64);
  const ir::Ints shape = dims_of(labels.shape());
  Var counts;  // true where a label counts
  if (call.has_attribute("ignore_index")) {
    const auto ignore = static_cast<double>(call.integer("ignore_index", 0));
    const Var ignored = builder.call1("equal", {labels, ops::number(labels, ignore)});
    counts = builder.call1("logical_not", {ignored});
    labels = builder.call1("where", {ignored, ops::number(labels, 0), labels});
  }
  ir::Ints column = shape;
  if (column.empty()) return bad_input("its labels have no dimensions");
  column.insert(column.begin() + 1, 1);
  const Var picked =
      builder.call1("gather_elements", {log_probabilities, reshape_to(labels, column)},
                    {{"axis", std::int64_t{1}}});
  Var loss = unary_call("neg", reshape_to(picked, shape));
  Var weight;
  if (call.has(labels_at + 1)) {
    weight = builder.call1("gather", {call.in(labels_at + 1), labels}, {{"axis", std::int64_t{0}}});
  }
  if (counts) {
    const Var zero = ops::number(loss, 0);
    weight =
        weight ? builder.call1("where", {counts, weight, zero}) : cast_to(counts, loss.dtype());
    loss = builder.call1("where", {counts, loss, zero});
  }
  if (weight) loss = loss * weight;
  const ir::Ints all = range(0, loss.rank());
  if (reduction == "none") return loss;
  if (reduction == "sum") return reduce("reduce_sum", loss, all, false);
  if (reduction != "mean") return bad_input("reduction '{}' is unknown", reduction);
  if (!weight) return reduce("reduce_mean", loss, all, false);
  return reduce("reduce_sum", loss, all, false) / reduce("reduce_sum", weight, all, false);
}

Status nll_loss(OperatorCall& call) {
  PLIMSOLL_TRY(const Var loss, negative_log_likelihood(call, call.in(0), 1));
  return call.done(loss);
}

Status softmax_cross_entropy_loss(OperatorCall& call) {
  Builder& builder = call.builder();
  const Var x = call.in(0);
  // The plain form is one operator of ours, whose gradient is one too.
  if (!call.has(2) && call.text("reduction", "mean") == "mean" && x.rank() == 2 && call.has(1) &&
      call.rank(1) == 1 && !call.has_attribute("ignore_index") && !call.wants(1)) {
    // -1 is no label, so nothing is left out.
    return call.done(builder.call1("cross_entropy", {x, cast_to(call.in(1), DType::kI64)},
                                   {{"ignore_index", std::int64_t{-1}}}));
  }
  const Var log_probabilities = builder.call1("log_softmax", {x}, {{"axis", std::int64_t{1}}});
  PLIMSOLL_TRY(const Var loss, negative_log_likelihood(call, log_probabilities, 1));
  call.out(0, loss);
  call.out(1, log_probabilities);
  return {};
}

}  // namespace

std::vector<Operator> loss_operators() {
  return {{"NegativeLogLikelihoodLoss", nll_loss, "ignore_index reduction"},
          {"SoftmaxCrossEntropyLoss", softmax_cross_entropy_loss, "ignore_index reduction"}};
}

}  // namespace plimsoll::model::onnx

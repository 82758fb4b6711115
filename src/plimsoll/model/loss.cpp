#include "plimsoll/model/loss.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/base/nearest_name.h"
#include "plimsoll/ops/functions.h"

namespace plimsoll::model {
namespace {

using ops::Builder;
using ops::Var;

Result<ir::Graph> with_cross_entropy(ir::Graph graph) {
  const ValueId logits_id = graph.outputs.front();
  Builder builder(std::move(graph));
  Var logits = builder.var(logits_id);
  if (logits.rank() == 0) {
    return bad_input("{}: output '{}' is a scalar, cross-entropy needs logits",
                     builder.graph().name, builder.graph().value(logits_id).name);
  }
  // Images of classes, [N, C, H, W], have their classes where channels are.
  if (logits.rank() >= 4) {
    ir::Ints perm{0};
    for (int axis = 2; axis < logits.rank(); ++axis) perm.push_back(axis);
    perm.push_back(1);
    logits = ops::transpose(logits, perm);
  }
  const ir::Shape shape = logits.shape();
  const ir::Shape rows(shape.dims().first(static_cast<std::size_t>(shape.rank() - 1)));
  // Synthetic labels are drawn from this range.
  const ir::Init classes{ir::Init::Kind::kUniform, 0, static_cast<double>(shape[shape.rank() - 1])};
  const Var labels =
      builder.source("labels", ir::ValueKind::kInput, {ir::DType::kI64, rows, {}}, classes);
  return builder.finish({ops::cross_entropy(logits, labels).loss});
}

Result<ir::Graph> with_squared_error(ir::Graph graph) {
  const ValueId output_id = graph.outputs.front();
  Builder builder(std::move(graph));
  const Var output = builder.var(output_id);
  const Var target = builder.input("target", output.type());
  const Var difference = output - target;
  return builder.finish({ops::mean(difference * difference)});
}

// "ce" is too short to be near anything.
std::string meant_instead(const ir::Graph& graph, std::string_view loss) {
  std::vector<std::string> names = {"cross-entropy", "mse"};
  for (const ValueId id : graph.outputs) names.push_back(graph.value(id).name);
  const std::string near =
      loss == "ce" || loss == "xent" ? "cross-entropy" : nearest_name(loss, names);
  return near.empty() ? "" : fmt::format("; did you mean {}?", near);
}

}  // namespace

Result<ir::Graph> with_loss(ir::Graph graph, std::string_view loss) {
  if (graph.outputs.empty())
    return bad_input("{}: has no output to compute a loss from", graph.name);
  if (loss == "cross-entropy") return with_cross_entropy(std::move(graph));
  if (loss == "mse") return with_squared_error(std::move(graph));
  const auto place = std::find_if(graph.outputs.begin(), graph.outputs.end(),
                                  [&](ValueId id) { return graph.value(id).name == loss; });
  if (place == graph.outputs.end()) {
    return fail(ErrorCode::kUsage,
                "{}: --loss {} is neither cross-entropy, mse nor the name of an output{}",
                graph.name, loss, meant_instead(graph, loss));
  }
  std::rotate(graph.outputs.begin(), place, place + 1);
  return graph;
}

}  // namespace plimsoll::model

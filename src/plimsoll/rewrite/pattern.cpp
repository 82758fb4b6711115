#include "plimsoll/rewrite/pattern.h"

#include <cmath>

#include "plimsoll/ops/evaluation/array.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::rewrite {

const ir::Node* made_by(const GraphEditor& edit, ValueId value, std::string_view op) {
  const ir::Node* node = edit.producer(value);
  return node != nullptr && node->op == op ? node : nullptr;
}

std::optional<double> number_of(const GraphEditor& edit, ValueId value) {
  if (!value.valid()) return std::nullopt;
  if (const ir::Node* fill = made_by(edit, value, "fill"))
    return ops::attributes_of(*fill).real("value");
  const ir::Value& v = edit.graph().value(value);
  if (v.kind != ir::ValueKind::kConstant || v.type.shape.elements() != 1) return std::nullopt;
  const auto array = ops::Array::from_bytes(v.type, *edit.graph().data(value));
  return array ? std::optional(array->number(0)) : std::nullopt;
}

bool is_number(const GraphEditor& edit, ValueId value, double expected, double tolerance) {
  const auto number = number_of(edit, value);
  return number && std::abs(*number - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

std::optional<WithNumber> with_number(const GraphEditor& edit, ValueId value, std::string_view op) {
  const ir::Node* node = made_by(edit, value, op);
  if (node == nullptr || node->inputs.size() != 2) return std::nullopt;
  const ir::Shape& shape = edit.graph().value(value).type.shape;
  const auto keeps_shape = [&](ValueId other) {
    return edit.graph().value(other).type.shape == shape;
  };
  if (const auto number = number_of(edit, node->inputs[1]);
      number && keeps_shape(node->inputs[0])) {
    return WithNumber{node->inputs[0], *number};
  }
  if (op == "sub" || op == "div") return std::nullopt;
  if (const auto number = number_of(edit, node->inputs[0]);
      number && keeps_shape(node->inputs[1])) {
    return WithNumber{node->inputs[1], *number};
  }
  return std::nullopt;
}

std::optional<ValueId> square_of(const GraphEditor& edit, ValueId value) {
  if (const ir::Node* mul = made_by(edit, value, "mul");
      mul != nullptr && mul->inputs[0] == mul->inputs[1]) {
    return mul->inputs[0];
  }
  if (const auto power = with_number(edit, value, "pow"); power && power->number == 2)
    return power->other;
  return std::nullopt;
}

std::optional<ValueId> last_mean_of(const GraphEditor& edit, ValueId value) {
  const ir::Node* mean = made_by(edit, value, "reduce_mean");
  if (mean == nullptr || ops::attributes_of(*mean).integer("keepdims") == 0) return std::nullopt;
  const int rank = edit.graph().value(mean->inputs[0]).type.shape.rank();
  const ir::Ints axes = mean->attributes.integers("axes");
  if (axes.size() != 1 || (axes[0] != rank - 1 && axes[0] != -1)) return std::nullopt;
  return mean->inputs[0];
}

}  // namespace plimsoll::rewrite

#include "plimsoll/rewrite/gradient_rows.h"

#include "plimsoll/ops/registry.h"

namespace plimsoll::rewrite {

// The node that makes it, when that can make single rows and nobody else reads the whole.
const ir::Node* GradientRows::rule_for(ValueId gradient) const {
  const NodeId maker = graph_.value(gradient).producer;
  if (!maker.valid() || readers_[gradient.index()].size() != 1 || outputs_[gradient.index()])
    return nullptr;
  const ir::Node& node = graph_.node(maker);
  if (node.outputs.size() != 1) return nullptr;
  if (node.op == "cast") return can_make(node.inputs[0]) ? &node : nullptr;
  if (node.op == "linear_grad_weight") return node.inputs.size() == 2 ? &node : nullptr;
  const bool table = node.op == "gather_grad" && table_rows_ &&
                     ops::attributes_of(node).integer("axis") == 0 &&
                     ops::attributes_of(node).integers("rows", {}).empty();
  return table ? &node : nullptr;
}

bool GradientRows::can_make(ValueId gradient) const {
  return rule_for(gradient) != nullptr;
}

Result<ValueId> GradientRows::slice(ValueId value, int axis, Interval<std::int64_t> range,
                                    std::optional<NodeId> behind, const AddNode& add) const {
  const ir::Shape shape = graph_.value(value).type.shape;
  ir::Ints starts(static_cast<std::size_t>(shape.rank()), 0);
  ir::Ints ends(shape.begin(), shape.end());
  const ir::Ints steps(starts.size(), 1);
  starts[static_cast<std::size_t>(axis)] = range.begin;
  ends[static_cast<std::size_t>(axis)] = range.end;
  return add({behind,
              "slice",
              {value},
              {{"starts", starts}, {"ends", ends}, {"steps", steps}},
              "gradients"});
}

// Rows of dw are columns of dy, or of x where the weight lies the other way round.
Result<ValueId> GradientRows::product(ValueId gradient, const ir::Node& node,
                                      Interval<std::int64_t> rows, const AddNode& add) const {
  const auto bytes = [&](ValueId value) { return ir::bytes_of(graph_.value(value).type).value; };
  const std::size_t cut = ops::attributes_of(node).integer("trans_w") != 0 ? 1 : 0;
  const bool keeps_less = bytes(node.inputs[0]) + bytes(node.inputs[1]) <= bytes(gradient);
  const std::optional<NodeId> behind =
      keeps_less ? std::nullopt : std::optional(graph_.value(gradient).producer);
  const int last = graph_.value(node.inputs[cut]).type.shape.rank() - 1;
  std::vector<ValueId> inputs = node.inputs;
  PLIMSOLL_TRY(inputs[cut], slice(node.inputs[cut], last, rows, behind, add));
  return add({behind, "linear_grad_weight", std::move(inputs), node.attributes, node.layer});
}

Result<ValueId> GradientRows::make(ValueId gradient, Interval<std::int64_t> rows,
                                   const AddNode& add) const {
  const ir::Node* const rule = rule_for(gradient);
  if (rule == nullptr) return slice(gradient, 0, rows, std::nullopt, add);
  const ir::Node node = *rule;  // the graph grows
  if (node.op == "linear_grad_weight") return product(gradient, node, rows, add);
  std::vector<ValueId> inputs = node.inputs;
  ir::Attributes attributes = node.attributes;
  if (node.op == "cast") {
    PLIMSOLL_TRY(inputs[0], make(inputs[0], rows, add));
    return add({std::nullopt, "cast", std::move(inputs), std::move(attributes), node.layer});
  }
  const ir::Shape whole = graph_.value(gradient).type.shape;
  ir::Ints shape(whole.begin(), whole.end());
  shape[0] = rows.end - rows.begin;
  attributes.set("shape", shape);
  attributes.set("rows", ir::Ints{rows.begin, whole[0]});
  if (inputs.size() > 2 && inputs[2].valid()) {
    PLIMSOLL_TRY(inputs[2], make(inputs[2], rows, add));
  }
  return add({std::nullopt, "gather_grad", std::move(inputs), std::move(attributes), node.layer});
}

}  // namespace plimsoll::rewrite

#include "plimsoll/rewrite/pad_rows.h"

#include <algorithm>

#include "plimsoll/ops/registry.h"

namespace plimsoll::rewrite {
namespace {

constexpr std::int64_t kGoodRowBytes = 16;
constexpr std::int64_t kLeastBytes = std::int64_t{1} << 20;
constexpr std::uint16_t kPaddedTo = 64;  // elements

bool makes_rows(const ir::Node& node, ValueId value) {
  return (node.op == "linear" || node.op == "cross_entropy_grad") && node.outputs[0] == value;
}

// Whether the node reads the value as data and nothing else.
bool reads_rows(const ir::Node& node, ValueId value) {
  std::size_t data = 0;
  if (node.op == "cross_entropy_grad" || node.op == "linear_grad_weight") {
    data = 1;
  } else if (node.op != "linear" && node.op != "cross_entropy") {
    return false;
  }
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if ((node.inputs[i] == value) != (i == data)) return false;
  }
  return true;
}

bool has_odd_rows(const ir::TensorType& type) {
  const bool fits = type.dtype == ir::DType::kF32 || type.dtype == ir::DType::kBF16 ||
                    type.dtype == ir::DType::kF16;
  if (!fits || !type.layout.is_row_major() || type.shape.rank() < 2) return false;
  const std::int64_t row = type.shape[type.shape.rank() - 1] * ir::bits(type.dtype) / 8;
  return row % kGoodRowBytes != 0 && ir::bytes_of(type).value >= kLeastBytes;
}

ir::Layout padded_rows(int rank) {
  ir::Layout out;
  out.rank = static_cast<std::uint8_t>(rank);
  for (int axis = 0; axis < rank; ++axis)
    out.order[static_cast<std::size_t>(axis)] = static_cast<std::uint8_t>(axis);
  out.blocks[0] = {static_cast<std::uint8_t>(rank - 1), kPaddedTo};
  out.block_count = 1;
  return out;
}

}  // namespace

Result<ir::Graph> pad_rows(ir::Graph graph) {
  const std::vector<std::vector<NodeId>> readers = ir::readers(graph);
  std::vector<bool> kept(graph.values.size(), false);
  for (const ValueId output : graph.outputs) kept[output.index()] = true;
  for (const ir::Update& update : graph.updates) kept[update.next.index()] = true;
  const auto may_be_padded = [&](ValueId value) {
    const ir::Value& it = graph.value(value);
    return it.producer.valid() && !kept[value.index()] && has_odd_rows(it.type) &&
           makes_rows(graph.node(it.producer), value) &&
           std::ranges::all_of(readers[value.index()], [&](NodeId reader) {
             return reads_rows(graph.node(reader), value);
           });
  };
  std::vector<bool> padded(graph.values.size(), false);
  bool any = false;
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    padded[v] = may_be_padded(ValueId(v));
    any |= padded[v];
  }
  if (!any) return graph;
  // A gradient of logits lies as they do: both padded or neither.
  for (bool again = true; again;) {
    again = false;
    for (const ir::Node& node : graph.nodes) {
      if (node.op != "cross_entropy_grad") continue;
      const std::size_t logits = node.inputs[1].index();
      const std::size_t slopes = node.outputs[0].index();
      if (padded[logits] == padded[slopes]) continue;
      padded[logits] = padded[slopes] = false;
      again = true;
    }
  }
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    ir::TensorType& type = graph.values[v].type;
    if (padded[v]) type.layout = padded_rows(type.shape.rank());
  }
  PLIMSOLL_RETURN_IF_ERROR(ops::verify(graph));
  return graph;
}

ir::Graph without_padded_rows(ir::Graph graph) {
  for (ir::Value& value : graph.values) {
    ir::TensorType& type = value.type;
    if (type.layout == padded_rows(type.shape.rank())) type.layout = {};
  }
  return graph;
}

}  // namespace plimsoll::rewrite

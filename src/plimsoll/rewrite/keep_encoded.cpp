#include "plimsoll/rewrite/keep_encoded.h"

#include <algorithm>

#include "plimsoll/ops/products/encoded_weight.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/graph_editor.h"

namespace plimsoll::rewrite {
namespace {

// Above, tiles of a weight [K,N] would be added up over and over: it is decoded whole instead.
constexpr std::int64_t kFewInputRows = 8;

struct Kept {
  ValueId bytes;
  ir::Attributes attributes;
  bool has_int8_codes = false;
};
struct AllKept : std::map<ValueId, Kept> {
  KeepEncodedOptions options;
};

bool is_linear_of(const GraphEditor& edit, const ir::Node& node, const AllKept& kept) {
  if (node.op != "linear" || !kept.contains(node.inputs[1]) || kept.contains(node.inputs[0]))
    return false;
  const ir::Shape& x = edit.graph().value(node.inputs[0]).type.shape;
  if (x.elements(0, x.rank() - 1) <= kFewInputRows) return true;
  return ops::attributes_of(node).integer("trans_w") != 0 && !kept.options.differentiated;
}
bool is_row_gather_of(const GraphEditor& edit, const ir::Node& node, const AllKept& kept) {
  if (node.op != "gather" || !kept.contains(node.inputs[0])) return false;
  const std::int64_t axis = ops::attributes_of(node).integer("axis");
  const int rank = edit.graph().value(node.inputs[0]).type.shape.rank();
  return rank == 2 && (axis == 0 || axis == -2);
}

Result<std::vector<ValueId>> read_encoded(GraphEditor& edit, NodeId at, const ir::Node& node,
                                          const AllKept& kept) {
  if (is_linear_of(edit, node, kept)) {
    const Kept& weight = kept.at(node.inputs[1]);
    ir::Attributes attributes = weight.attributes;
    const std::int64_t turned = ops::attributes_of(node).integer("trans_w");
    attributes.set("trans_w", turned);
    if (kept.options.int8_activations && turned != 0 && weight.has_int8_codes)
      attributes.set("int8_activations", std::int64_t{1});
    std::vector<ValueId> inputs = node.inputs;
    inputs[1] = weight.bytes;
    return edit.insert(at, "encoded_linear", std::move(inputs), std::move(attributes));
  }
  if (is_row_gather_of(edit, node, kept)) {
    const Kept& weight = kept.at(node.inputs[0]);
    return edit.insert(at, "encoded_gather", {weight.bytes, node.inputs[1]}, weight.attributes);
  }
  std::vector<ValueId> inputs = node.inputs;
  for (ValueId& input : inputs) {
    const auto weight = kept.find(input);
    if (weight == kept.end()) continue;
    PLIMSOLL_TRY(
        const std::vector<ValueId> decoded,
        edit.insert(at, "decode_weight", {weight->second.bytes}, weight->second.attributes));
    input = decoded[0];
  }
  return edit.insert(at, node.op, std::move(inputs), node.attributes);
}

}  // namespace

bool may_stay_encoded(const ir::Value& value) {
  return value.kind == ir::ValueKind::kWeight && value.type.dtype == ir::DType::kF32 &&
         value.type.shape.rank() >= 2 && value.type.layout.is_row_major() &&
         value.type.shape.elements() > 0;
}

Result<ir::Graph> keep_encoded(const ir::Graph& graph,
                               const std::map<std::string, EncodedWeight>& weights,
                               const KeepEncodedOptions& options) {
  GraphEditor edit(graph);
  AllKept kept;
  kept.options = options;
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const ir::Value& value = graph.values[v];
    const auto found = weights.find(value.name);
    if (found == weights.end() || !may_stay_encoded(value) || edit.is_output(ValueId(v))) continue;
    const EncodedWeight& weight = found->second;
    const ir::TensorType bytes{ir::DType::kU8, {weight.bytes.value}, {}};
    kept[ValueId(v)] = {edit.insert_weight(value.name, bytes),
                        ops::encoded_attributes(value.type.shape, weight.dtype, weight.form),
                        weight.form == "int8" || weight.form == "q8_0"};
  }
  if (kept.empty()) return graph;
  for (std::size_t n = 0; n < edit.original_nodes(); ++n) {
    const ir::Node node = edit.graph().node(NodeId(n));
    if (std::none_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId input) { return input.valid() && kept.contains(input); }))
      continue;
    PLIMSOLL_TRY(const std::vector<ValueId> made, read_encoded(edit, NodeId(n), node, kept));
    for (std::size_t i = 0; i < made.size(); ++i) edit.replace(node.outputs[i], made[i]);
  }
  return edit.finish();
}

}  // namespace plimsoll::rewrite

#include "plimsoll/rewrite/patch_product.h"

#include <algorithm>

#include "plimsoll/ops/elementwise/fused_relu.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/graph_editor.h"

namespace plimsoll::rewrite {
namespace {

constexpr std::int64_t kMostChannels = 8;
constexpr std::int64_t kWidestFilter = 7;  // that stays a convolution

struct Patches {
  std::int64_t batch, channels, filters;
  std::int64_t rows, columns;  // of patches
  std::int64_t height, width;  // of one
};

// The sizes of a convolution that cuts its image into patches, nothing left over; else nothing.
std::optional<Patches> patches_of(const ir::Graph& graph, const ir::Node& node) {
  if (node.op != "conv") return std::nullopt;
  const ir::Shape& x = graph.value(node.inputs[0]).type.shape;
  const ir::Shape& w = graph.value(node.inputs[1]).type.shape;
  const ops::AttributeReader attributes = ops::attributes_of(node);
  if (x.rank() != 4 || x[1] >= kMostChannels || std::max(w[2], w[3]) <= kWidestFilter ||
      attributes.integer("group") != 1 || ops::has_relu(attributes) ||
      !graph.value(node.inputs[0]).type.layout.is_row_major() ||
      !graph.value(node.inputs[1]).type.layout.is_row_major())
    return std::nullopt;
  const auto all = [](const ir::Ints& numbers, std::int64_t number) {
    return std::all_of(numbers.begin(), numbers.end(), [=](std::int64_t n) { return n == number; });
  };
  if (attributes.integers("strides", {1, 1}) != ir::Ints{w[2], w[3]} ||
      !all(attributes.integers("pads", {0, 0, 0, 0}), 0) ||
      !all(attributes.integers("dilations", {1, 1}), 1) || x[2] % w[2] != 0 || x[3] % w[3] != 0 ||
      x.elements() == 0 || w.elements() == 0)
    return std::nullopt;
  return Patches{x[0], x[1], w[0], x[2] / w[2], x[3] / w[3], w[2], w[3]};
}

// Readers that flatten the places and put the channels last: transpose(reshape(y)).
std::vector<ValueId> turned_places(const GraphEditor& edit, ValueId y, const Patches& p) {
  std::vector<ValueId> out;
  for (const NodeId reader : edit.readers(y)) {
    const ir::Node& flat = edit.graph().node(reader);
    if (flat.op != "reshape" || edit.graph().value(flat.outputs[0]).type.shape !=
                                    ir::Shape{p.batch, p.filters, p.rows * p.columns})
      continue;
    for (const NodeId next : edit.readers(flat.outputs[0])) {
      const ir::Node& turn = edit.graph().node(next);
      if (turn.op == "transpose" && turn.attributes.integers("perm") == ir::Ints{0, 2, 1})
        out.push_back(turn.outputs[0]);
    }
  }
  return out;
}

}  // namespace

Result<ir::Graph> multiply_patches(const ir::Graph& graph) {
  GraphEditor edit(graph);
  for (std::size_t n = 0; n < edit.original_nodes(); ++n) {
    const NodeId at(n);
    const ir::Node conv = edit.graph().node(at);
    const auto patches = patches_of(edit.graph(), conv);
    if (!patches) continue;
    const Patches& p = *patches;
    const std::int64_t elements = p.channels * p.height * p.width;
    const auto insert = [&](std::string_view op, std::vector<ValueId> inputs,
                            ir::Attributes attributes) -> Result<ValueId> {
      PLIMSOLL_TRY(const auto made, edit.insert(at, op, std::move(inputs), std::move(attributes)));
      return made[0];
    };
    PLIMSOLL_TRY(
        const ValueId cut,
        insert("reshape", {conv.inputs[0]},
               {{"shape", ir::Ints{p.batch, p.channels, p.rows, p.height, p.columns, p.width}}}));
    PLIMSOLL_TRY(const ValueId apart,
                 insert("transpose", {cut}, {{"perm", ir::Ints{0, 2, 4, 1, 3, 5}}}));
    PLIMSOLL_TRY(
        const ValueId rows,
        insert("reshape", {apart}, {{"shape", ir::Ints{p.batch, p.rows * p.columns, elements}}}));
    PLIMSOLL_TRY(const ValueId filters,
                 insert("reshape", {conv.inputs[1]}, {{"shape", ir::Ints{p.filters, elements}}}));
    std::vector<ValueId> operands{rows, filters};
    if (conv.inputs.size() > 2 && conv.inputs[2].valid()) operands.push_back(conv.inputs[2]);
    PLIMSOLL_TRY(const ValueId product,
                 insert("linear", std::move(operands), {{"trans_w", std::int64_t{1}}}));
    for (const ValueId turned : turned_places(edit, conv.outputs[0], p)) {
      if (!edit.is_output(turned)) edit.replace(turned, product);
    }
    PLIMSOLL_TRY(const ValueId turned,
                 insert("transpose", {product}, {{"perm", ir::Ints{0, 2, 1}}}));
    PLIMSOLL_TRY(
        const ValueId result,
        insert("reshape", {turned}, {{"shape", ir::Ints{p.batch, p.filters, p.rows, p.columns}}}));
    edit.replace(conv.outputs[0], result);
  }
  return edit.finish();
}

}  // namespace plimsoll::rewrite

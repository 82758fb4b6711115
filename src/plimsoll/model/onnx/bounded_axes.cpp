#include "plimsoll/model/onnx/bounded_axes.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "plimsoll/ops/registry.h"

namespace plimsoll::model::onnx {
namespace {

constexpr int kMixed = -2;  // rows are not each by itself any more

// Follows axes through one node after the other.
class AxisWalk {
 public:
  AxisWalk(const ir::Graph& graph, std::span<const Found> found)
      : graph_(graph), axes_(graph.values.size()) {
    for (std::size_t f = 0; f < found.size(); ++f)
      axes_[found[f].places.index()] = {1, static_cast<int>(f)};
  }

  Result<std::vector<BoundedAxis>> run() {
    for (const ir::Node& node : graph_.nodes) {
      const auto from = origin_of(node);
      if (!from) continue;
      const int axis = *from == kMixed ? kMixed : axis_behind(node);
      if (axis == kMixed) {
        return bad_input(
            "{} '{}': mixes rows that NonZero finds, whose number is not a constant; such rows may "
            "only be computed with each by itself, and scattered",
            node.op, node.layer);
      }
      for (const ValueId output : node.outputs) {
        BoundedAxis& at = axes_[output.index()];
        if (at.origin < 0 && axis >= 0) at = {axis, *from};
      }
    }
    return std::move(axes_);
  }

 private:
  int axis_of(const ir::Node& node, std::size_t input) const {
    const bool there = input < node.inputs.size() && node.inputs[input].valid();
    return there ? axes_[node.inputs[input].index()].axis : -1;
  }
  const ir::Shape& shape_of(ValueId value) const { return graph_.value(value).type.shape; }

  // Which list the node's inputs come from; nothing where from none.
  std::optional<int> origin_of(const ir::Node& node) const {
    std::optional<int> out;
    for (const ValueId input : node.inputs) {
      if (!input.valid() || axes_[input.index()].origin < 0) continue;
      const int origin = axes_[input.index()].origin;
      out = !out || *out == origin ? origin : kMixed;
    }
    return out;
  }

  // The axis in the results: -1 where it has ended, kMixed where it may not be.
  int axis_behind(const ir::Node& node) const {
    const ops::AttributeReader attributes = ops::attributes_of(node);
    const int first = axis_of(node, 0);
    const int rank = shape_of(node.inputs[0]).rank();
    if (node.op == "gather")
      return behind_gather(node, static_cast<int>(attributes.integer("axis")));
    if (node.op == "gather_nd")
      return first < 0 && axis_of(node, 1) + 1 < shape_of(node.inputs[1]).rank() &&
                     attributes.integer("batch_dims") == 0
                 ? axis_of(node, 1)
                 : kMixed;
    if (node.op == "scatter_nd" || node.op == "scatter_elements")
      return first < 0 && axis_of(node, 1) == 0 ? -1 : kMixed;
    if (node.op == "expand") return broadcast(node);
    if (ops::definition_of(node).layout == ops::LayoutRule::kAny) return broadcast(node);
    if (first < 0) return kMixed;
    if (node.op == "reshape") return behind_reshape(node, first);
    if (node.op == "transpose") {
      const ir::Ints perm = attributes.integers("perm");
      return static_cast<int>(std::ranges::find(perm, first) - perm.begin());
    }
    if (node.op == "split") return behind_split(first, attributes.integer("axis"), rank);
    if (node.op == "concat" || node.op == "softmax")
      return kept(first, attributes.integer("axis"), rank);
    if (node.op == "slice") return behind_slice(node, first);
    if (node.op == "linear") return axis_of(node, 1) < 0 && first < rank - 1 ? first : kMixed;
    if (node.op == "matmul") {
      const bool rows = axis_of(node, 1) < 0 && attributes.integer("trans_a") == 0 &&
                        shape_of(node.inputs[1]).rank() == 2 && first < rank - 1;
      return rows ? first : kMixed;
    }
    if (node.op.starts_with("reduce_")) return behind_reduction(attributes, first, rank);
    return kMixed;
  }

  static int kept(int bounded, std::int64_t axis, int rank) {
    return (axis < 0 ? axis + rank : axis) == bounded ? kMixed : bounded;
  }

  // In parts of lengths that the file says: so many must be found (Split's converter sees to it).
  static int behind_split(int bounded, std::int64_t axis, int rank) {
    return (axis < 0 ? axis + rank : axis) == bounded ? -1 : bounded;
  }

  int behind_gather(const ir::Node& node, int axis) const {
    const int data = axis_of(node, 0);
    const int indices = axis_of(node, 1);
    if (data >= 0 && indices >= 0) return kMixed;
    if (indices >= 0) return axis + indices;
    const int more = shape_of(node.inputs[1]).rank() - 1;
    return data == axis ? kMixed : data < axis ? data : data + more;
  }

  // Element by element: axes are counted from the last.
  int broadcast(const ir::Node& node) const {
    const int rank = shape_of(node.outputs[0]).rank();
    int out = -1;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (axis_of(node, i) < 0) continue;
      const int axis = axis_of(node, i) + rank - shape_of(node.inputs[i]).rank();
      if (out >= 0 && out != axis) return kMixed;
      out = axis;
    }
    return out;
  }

  // The axis of the same length with as many elements behind it.
  int behind_reshape(const ir::Node& node, int bounded) const {
    const ir::Shape& from = shape_of(node.inputs[0]);
    const ir::Shape& to = shape_of(node.outputs[0]);
    const std::int64_t inner = from.elements(bounded + 1, from.rank());
    for (int axis = 0; axis < to.rank(); ++axis) {
      if (to[axis] == from[bounded] && to.elements(axis + 1, to.rank()) == inner) return axis;
    }
    return kMixed;
  }

  int behind_slice(const ir::Node& node, int bounded) const {
    const bool whole = shape_of(node.inputs[0])[bounded] == shape_of(node.outputs[0])[bounded];
    return whole ? bounded : kMixed;
  }

  static int behind_reduction(const ops::AttributeReader& attributes, int bounded, int rank) {
    int gone = 0;
    for (std::int64_t axis : attributes.integers("axes")) {
      if (axis < 0) axis += rank;
      if (axis == bounded) return kMixed;
      if (axis < bounded) ++gone;
    }
    return attributes.integer("keepdims") != 0 ? bounded : bounded - gone;
  }

  const ir::Graph& graph_;
  std::vector<BoundedAxis> axes_;
};

}  // namespace

std::unordered_set<std::string_view> lists_in_parts(const std::vector<WireBytes>& nodes) {
  std::unordered_set<std::string_view> out;
  std::unordered_map<std::string_view, std::int64_t> cut;  // along which of its two axes
  for (auto bytes = nodes.rbegin(); bytes != nodes.rend(); ++bytes) {
    const auto node = read_node(*bytes);
    if (!node || node->inputs.empty() || node->outputs.empty()) continue;
    if (node->op == "Split") {
      const auto axis = std::ranges::find(node->attributes, "axis", &AttributeFile::name);
      const std::int64_t along = axis == node->attributes.end() ? 0 : axis->i;
      cut[node->inputs[0]] = along < 0 ? along + 2 : along;
    }
    const auto found = cut.find(node->outputs[0]);
    if (found == cut.end()) continue;
    const std::int64_t along = found->second;
    if (node->op == "Transpose") cut[node->inputs[0]] = 1 - along;
    if (node->op == "NonZero" && along == 1) out.insert(node->outputs[0]);
  }
  return out;
}

Result<std::vector<BoundedAxis>> bounded_axes(const ir::Graph& graph,
                                              std::span<const Found> found) {
  return AxisWalk(graph, found).run();
}

Status check_bounded_axes(const ir::Graph& graph, std::span<const ValueId> outputs,
                          std::span<const Found> found) {
  if (found.empty()) return {};
  PLIMSOLL_TRY(const std::vector<BoundedAxis> axes, bounded_axes(graph, found));
  for (const ValueId output : outputs) {
    if (axes[output.index()].origin >= 0)
      return bad_input(
          "output '{}' is as long as what NonZero finds, and that is not a constant: shapes that "
          "depend on data are not supported",
          graph.value(output).name);
  }
  return {};
}

}  // namespace plimsoll::model::onnx

#include "plimsoll/plan/check_views.h"

#include <optional>

namespace plimsoll::plan {
namespace {

// Elements lie in the order of their indices: axes of one element may stand anywhere.
bool is_row_major(const ir::TensorType& type) {
  int before = -1;
  for (int k = 0; k < type.layout.rank; ++k) {
    const int axis = type.layout.order[static_cast<std::size_t>(k)];
    if (type.shape[axis] == 1) continue;
    if (axis < before) return false;
    before = axis;
  }
  return type.layout.block_count == 0;
}

// The byte of `whole` at which the part begins, if it is one run of bytes.
std::optional<std::int64_t> place_in(const ir::TensorType& whole, const ir::TensorType& part,
                                     const ir::Ints& starts, const ir::Ints& steps) {
  if (!is_row_major(whole) || !is_row_major(part) || part.shape.rank() != whole.shape.rank())
    return std::nullopt;
  std::int64_t first = 0, apart_in_whole = 1, apart_in_part = 1;
  for (int axis = whole.shape.rank() - 1; axis >= 0; --axis) {
    const auto k = static_cast<std::size_t>(axis);
    if (part.shape[axis] > 1 && steps[k] * apart_in_whole != apart_in_part) return std::nullopt;
    first += starts[k] * apart_in_whole;
    apart_in_whole *= whole.shape[axis];
    apart_in_part *= part.shape[axis];
  }
  const std::int64_t bits = first * ir::bits(whole.dtype);
  return bits % 8 == 0 ? std::optional(bits / 8) : std::nullopt;
}

// The same for a part that begins at `first` along one axis and is whole along the others.
std::optional<std::int64_t> place_along(const ir::TensorType& whole, const ir::TensorType& part,
                                        std::size_t axis, std::int64_t first) {
  const auto rank = static_cast<std::size_t>(whole.shape.rank());
  ir::Ints starts(rank, 0);
  starts[axis] = first;
  return place_in(whole, part, starts, ir::Ints(rank, 1));
}

}  // namespace

std::vector<ViewPiece> pieces_of_view(const ir::Graph& graph, const ir::Node& node,
                                      std::size_t output) {
  const auto type = [&](ValueId id) -> const ir::TensorType& { return graph.value(id).type; };
  const ir::TensorType& result = type(node.outputs[output]);
  const std::int64_t bytes = ir::bytes_of(result).value;
  if (bytes == 0 || node.inputs.empty() || !node.inputs[0].valid()) return {};
  const ir::TensorType& input = type(node.inputs[0]);
  const auto inside = [&](std::optional<std::int64_t> from) -> std::vector<ViewPiece> {
    if (!from) return {};
    return {{0, node.inputs[0], *from, bytes}};
  };
  if (node.op == "identity") return inside(input == result ? std::optional(0) : std::nullopt);
  if (node.op == "reshape")
    return inside(is_row_major(input) && is_row_major(result) ? std::optional(0) : std::nullopt);
  if (node.op == "slice")
    return inside(place_in(input, result, node.attributes.integers("starts"),
                           node.attributes.integers("steps")));
  if (node.op != "split" && node.op != "concat") return {};
  const std::int64_t said = node.attributes.integer("axis", 0);
  const auto axis = static_cast<std::size_t>(said < 0 ? said + input.shape.rank() : said);
  std::int64_t first = 0;  // along the axis
  if (node.op == "split") {
    for (std::size_t i = 0; i < output; ++i)
      first += type(node.outputs[i]).shape[static_cast<int>(axis)];
    return inside(place_along(input, result, axis, first));
  }
  std::vector<ViewPiece> out;
  std::int64_t end = 0;
  for (const ValueId part : node.inputs) {
    if (!part.valid()) return {};
    const std::int64_t part_bytes = ir::bytes_of(type(part)).value;
    const auto at = place_along(result, type(part), axis, first);
    first += type(part).shape[static_cast<int>(axis)];
    if (part_bytes == 0) continue;
    if (at != end) return {};
    out.push_back({end, part, 0, part_bytes});
    end += part_bytes;
  }
  return end == bytes ? out : std::vector<ViewPiece>{};
}

}  // namespace plimsoll::plan

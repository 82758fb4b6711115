#include "plimsoll/plan/check_views.h"

#include <array>
#include <numeric>
#include <optional>

namespace plimsoll::plan {
namespace {

// Elements that follow each other by their indices, and how far apart they lie in memory.
struct Run {
  std::int64_t elements = 0;
  std::int64_t apart = 0;
  bool operator==(const Run&) const = default;
};

// How far apart the neighbours along each axis lie in memory. Not for blocks.
std::array<std::int64_t, ir::kMaxRank> steps_of(const ir::TensorType& type) {
  std::array<std::int64_t, ir::kMaxRank> apart{};
  std::int64_t next = 1;
  for (int k = type.shape.rank() - 1; k >= 0; --k) {
    const int axis = type.layout.rank == 0 ? k : type.layout.order[static_cast<std::size_t>(k)];
    apart[static_cast<std::size_t>(axis)] = next;
    next *= type.shape[axis];
  }
  return apart;
}

// Whether every element stays where it is when axis `i` of the result is axis perm[i] of the input.
bool stays(const ir::TensorType& input, const ir::TensorType& result, const ir::Ints& perm) {
  if (input.layout.block_count > 0 || result.layout.block_count > 0) return false;
  const auto from = steps_of(input);
  const auto to = steps_of(result);
  for (int axis = 0; axis < result.shape.rank(); ++axis) {
    const auto k = static_cast<std::size_t>(axis);
    if (result.shape[axis] > 1 && to[k] != from[static_cast<std::size_t>(perm[k])]) return false;
  }
  return true;
}

// How a tensor lies in memory, as the fewest runs, outermost first: where two types of as many
// elements have the same runs, the n-th element lies at the same place in both. [2,3,5] in
// row-major order is 30 elements 1 apart; channels last, [2,4,5,5]@0231 is 2 elements 100 apart, of
// 4 that are 1 apart, of 25 that are 4 apart. Nothing for blocks.
std::optional<std::vector<Run>> runs_of(const ir::TensorType& type) {
  if (type.layout.block_count > 0) return std::nullopt;
  const auto apart = steps_of(type);
  std::vector<Run> out;
  for (int axis = 0; axis < type.shape.rank(); ++axis) {
    const Run run{type.shape[axis], apart[static_cast<std::size_t>(axis)]};
    if (run.elements == 1) continue;
    if (!out.empty() && out.back().apart == run.apart * run.elements) {
      out.back() = {out.back().elements * run.elements, run.apart};
    } else {
      out.push_back(run);
    }
  }
  return out;
}

bool is_row_major(const ir::TensorType& type) {
  const auto runs = runs_of(type);
  return runs && (runs->empty() || (runs->size() == 1 && runs->front().apart == 1));
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
  if (node.op == "reshape") {
    const auto runs = runs_of(input);
    return inside(runs && runs == runs_of(result) ? std::optional(0) : std::nullopt);
  }
  if (node.op == "transpose" || node.op == "reorder") {
    ir::Ints perm = node.attributes.integers("perm");
    if (node.op == "reorder") {
      perm.resize(static_cast<std::size_t>(input.shape.rank()));
      std::iota(perm.begin(), perm.end(), 0);
    }
    return inside(stays(input, result, perm) ? std::optional(0) : std::nullopt);
  }
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

#include "plimsoll/runtime/index_ranges.h"

#include <cstring>

#include "plimsoll/ops/registry.h"
#include "plimsoll/runtime/executor.h"

namespace plimsoll::runtime {
namespace {

constexpr std::size_t kNoMaker = static_cast<std::size_t>(-1);

// An input and which part of it, or nothing.
struct Origin {
  ValueId input;
  std::int64_t first = 0;
  std::int64_t end = 0;
};

class IndexOrigins {
 public:
  explicit IndexOrigins(const ir::Graph& graph)
      : graph_(graph), makers_(graph.values.size(), kNoMaker) {
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      for (const ValueId output : graph.nodes[n].outputs) makers_[output.index()] = n;
    }
  }

  std::optional<Origin> of(ValueId value) const {
    const std::int64_t elements = graph_.value(value).type.shape.elements();
    std::optional<Origin> part;
    while (makers_[value.index()] != kNoMaker) {
      const ir::Node& node = graph_.nodes[makers_[value.index()]];
      const ValueId from = node.inputs.front();
      const bool same = node.op == "reshape" || node.op == "transpose" || node.op == "identity" ||
                        node.op == "cast" || node.op == "reorder";
      if (node.op == "slice" && !part) {
        part = rows_of(node, from);
        if (!part) return std::nullopt;
      } else if (!same || ir::is_float(graph_.value(from).type.dtype)) {
        return std::nullopt;
      }
      // Which rows these are is known in the input itself only.
      if (part && node.op != "slice") return std::nullopt;
      value = from;
    }
    const ir::Value& input = graph_.value(value);
    if (input.kind != ir::ValueKind::kInput || !input.type.layout.is_row_major())
      return std::nullopt;
    return part ? Origin{value, part->first, part->end} : Origin{value, 0, elements};
  }

 private:
  // A slice of whole rows.
  std::optional<Origin> rows_of(const ir::Node& node, ValueId from) const {
    const ir::Shape& shape = graph_.value(from).type.shape;
    const auto attributes = ops::attributes_of(node);
    const ir::Ints starts = attributes.integers("starts");
    const ir::Ints ends = attributes.integers("ends");
    const ir::Ints steps = attributes.integers("steps");
    if (starts.empty() || starts.size() != static_cast<std::size_t>(shape.rank()))
      return std::nullopt;
    for (std::size_t axis = 0; axis < starts.size(); ++axis) {
      const bool whole = starts[axis] == 0 && ends[axis] == shape[static_cast<int>(axis)];
      if (steps[axis] != 1 || (axis > 0 && !whole)) return std::nullopt;
    }
    if (starts[0] < 0 || ends[0] < starts[0] || ends[0] > shape[0]) return std::nullopt;
    const std::int64_t row = shape.elements(1, shape.rank());
    return Origin{from, starts[0] * row, ends[0] * row};
  }

  const ir::Graph& graph_;
  std::vector<std::size_t> makers_;  // by value
};

template <typename Index>
std::optional<BadIndex> scan(std::span<const std::byte> content, const IndexRange& range) {
  for (std::int64_t i = range.first; i < range.end; ++i) {
    Index index = 0;
    std::memcpy(&index, content.data() + static_cast<std::size_t>(i) * sizeof(Index),
                sizeof(Index));
    if (!range.allows(index)) return BadIndex{i, index};
  }
  return std::nullopt;
}

}  // namespace

std::vector<IndexRange> index_ranges(const ir::Graph& graph) {
  const IndexOrigins origins(graph);
  std::vector<IndexRange> out;
  for (const ir::Node& node : graph.nodes) {
    const bool labels = node.op == "cross_entropy";
    if (!labels && node.op != "gather") continue;
    const auto origin = origins.of(node.inputs[1]);
    if (!origin) continue;
    const ir::Shape& data = graph.value(node.inputs[0]).type.shape;
    const auto attributes = ops::attributes_of(node);
    IndexRange range{origin->input, origin->first, origin->end, 0, 0, {}, display_name(node)};
    if (labels) {
      range.high = data[data.rank() - 1];
      range.ignored = attributes.integer("ignore_index");
    } else {
      const auto axis = static_cast<int>(attributes.integer("axis"));
      range.high = data[axis < 0 ? axis + data.rank() : axis];
      range.low = -range.high;
    }
    out.push_back(std::move(range));
  }
  return out;
}

std::optional<BadIndex> find_bad_index(const ir::Value& input, std::span<const std::byte> content,
                                       const IndexRange& range) {
  if (input.type.dtype == ir::DType::kI64) return scan<std::int64_t>(content, range);
  if (input.type.dtype == ir::DType::kI32) return scan<std::int32_t>(content, range);
  return std::nullopt;
}

std::string describe(const ir::Value& input, const IndexRange& range, const BadIndex& bad) {
  const ir::Shape& shape = input.type.shape;
  std::string place;
  std::int64_t rest = bad.element;
  for (int axis = shape.rank(); axis-- > 0;) {
    place = fmt::format("{}{}{}", rest % shape[axis], place.empty() ? "" : ", ", place);
    rest /= shape[axis];
  }
  std::string out = fmt::format("input '{}': element [{}] is {}; {} takes 0 to {}", input.name,
                                place, bad.value, range.reader, range.high - 1);
  if (range.low < 0) out += fmt::format(", or {} to -1 from the end", range.low);
  if (range.ignored) out += fmt::format(", or {} for none", *range.ignored);
  return out;
}

}  // namespace plimsoll::runtime

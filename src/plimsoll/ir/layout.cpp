#include "plimsoll/ir/layout.h"

#include <bitset>
#include <charconv>

#include "plimsoll/base/checked.h"

namespace plimsoll::ir {

Layout Layout::channels_last(int rank) {
  Layout out;
  if (rank < 3) return out;
  out.rank = static_cast<std::uint8_t>(rank);
  out.order[0] = 0;
  for (int axis = 2; axis < rank; ++axis) {
    out.order[static_cast<std::size_t>(axis - 1)] = static_cast<std::uint8_t>(axis);
  }
  out.order[static_cast<std::size_t>(rank - 1)] = 1;
  return out;
}

std::optional<Shape> padded(const Shape& shape, const Layout& layout) {
  Shape out = shape;
  std::array<std::int64_t, kMaxRank> block{};
  block.fill(1);
  for (int i = 0; i < layout.block_count; ++i) {
    const Block& inner = layout.blocks[static_cast<std::size_t>(i)];
    const auto product = checked_multiply(block[inner.dim], inner.size);
    if (!product) return std::nullopt;
    block[inner.dim] = *product;
  }
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto extent = checked_round_up(shape[axis], block[static_cast<std::size_t>(axis)]);
    if (!extent) return std::nullopt;
    out[axis] = *extent;
  }
  return out;
}

bool fits(const Layout& layout, const Shape& shape) {
  if (layout.is_row_major()) return layout.block_count == 0;
  if (layout.rank != shape.rank()) return false;
  std::bitset<kMaxRank> seen;
  for (int i = 0; i < layout.rank; ++i) {
    const std::uint8_t axis = layout.order[static_cast<std::size_t>(i)];
    if (axis >= layout.rank || seen[axis]) return false;
    seen.set(axis);
  }
  for (int i = 0; i < layout.block_count; ++i) {
    const Block& block = layout.blocks[static_cast<std::size_t>(i)];
    if (block.dim >= layout.rank || block.size == 0) return false;
  }
  return true;
}

std::string to_string(const Layout& layout) {
  if (layout.is_row_major()) return {};
  std::string out = "@";
  for (int i = 0; i < layout.rank; ++i)
    out += static_cast<char>('0' + layout.order[static_cast<std::size_t>(i)]);
  for (int i = 0; i < layout.block_count; ++i) {
    const Block& block = layout.blocks[static_cast<std::size_t>(i)];
    out += fmt::format(":{}b{}", block.size, block.dim);
  }
  return out;
}

std::optional<Layout> parse_layout(std::string_view text) {
  if (text.empty()) return Layout{};
  if (text.front() != '@') return std::nullopt;
  text.remove_prefix(1);
  Layout out;
  while (!text.empty() && text.front() >= '0' && text.front() < '0' + kMaxRank &&
         out.rank < kMaxRank) {
    out.order[out.rank++] = static_cast<std::uint8_t>(text.front() - '0');
    text.remove_prefix(1);
  }
  while (!text.empty()) {
    if (text.front() != ':' || out.block_count == Layout::kMaxBlocks) return std::nullopt;
    Block block;
    auto [rest, problem] = std::from_chars(text.data() + 1, text.data() + text.size(), block.size);
    if (problem != std::errc() || text.data() + text.size() - rest < 2 || *rest != 'b')
      return std::nullopt;
    block.dim = static_cast<std::uint8_t>(rest[1] - '0');
    out.blocks[out.block_count++] = block;
    text.remove_prefix(static_cast<std::size_t>(rest + 2 - text.data()));
  }
  if (out.rank == 0) return std::nullopt;
  return out;
}

}  // namespace plimsoll::ir

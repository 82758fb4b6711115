#include "plimsoll/runtime/layout_copy.h"

#include <array>
#include <cstring>

namespace plimsoll::runtime {
namespace {

// Calls visit(row-major index - first, physical index) for `count` elements from the row-major
// index `first` on.
template <typename Visit>
void for_each_element(const ir::TensorType& type, std::int64_t first, std::int64_t count,
                      Visit visit) {
  if (count == 0) return;
  const ir::Layout& layout = type.layout;
  const ir::Shape extents = *ir::padded(type.shape, layout);
  const int rank = type.shape.rank();
  std::array<std::int64_t, ir::kMaxRank> block{};
  block.fill(1);
  std::int64_t block_elements = 1;
  for (int b = 0; b < layout.block_count; ++b) {
    block[layout.blocks[static_cast<std::size_t>(b)].dim] *=
        layout.blocks[static_cast<std::size_t>(b)].size;
    block_elements *= layout.blocks[static_cast<std::size_t>(b)].size;
  }
  // Strides of the outer dimensions, in elements.
  std::array<std::int64_t, ir::kMaxRank> outer{};
  std::int64_t stride = block_elements;
  for (int i = rank - 1; i >= 0; --i) {
    const std::uint8_t axis = layout.order[static_cast<std::size_t>(i)];
    outer[axis] = stride;
    stride *= extents[axis] / block[axis];
  }
  std::array<std::int64_t, ir::kMaxRank> index{};
  for (int axis = rank - 1; axis >= 0; --axis) {
    index[static_cast<std::size_t>(axis)] = first % type.shape[axis];
    first /= type.shape[axis];
  }
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t place = 0;
    std::array<std::int64_t, ir::kMaxRank> inside{};
    for (int axis = 0; axis < rank; ++axis) {
      const auto a = static_cast<std::size_t>(axis);
      place += index[a] / block[a] * outer[a];
      inside[a] = index[a] % block[a];
    }
    // Innermost block last: peel from the inside out.
    std::int64_t inner_stride = 1;
    for (int b = layout.block_count - 1; b >= 0; --b) {
      const ir::Block& one = layout.blocks[static_cast<std::size_t>(b)];
      place += inside[one.dim] % one.size * inner_stride;
      inside[one.dim] /= one.size;
      inner_stride *= one.size;
    }
    visit(i, place);
    for (int axis = rank - 1; axis >= 0; --axis) {
      if (++index[static_cast<std::size_t>(axis)] < type.shape[axis]) break;
      index[static_cast<std::size_t>(axis)] = 0;
    }
  }
}

}  // namespace

void copy_from_row_major(const ir::TensorType& type, std::span<const std::byte> from,
                         std::span<std::byte> to) {
  if (from.empty()) return;
  if (type.layout.is_row_major()) {
    std::memcpy(to.data(), from.data(), from.size());
    return;
  }
  std::memset(to.data(), 0, to.size());
  place_row_major(type, 0, from, to);
}

void place_row_major(const ir::TensorType& type, std::int64_t first,
                     std::span<const std::byte> piece, std::span<std::byte> to) {
  const auto width = static_cast<std::size_t>(ir::bits(type.dtype) / 8);
  if (type.layout.is_row_major()) {
    std::memcpy(to.data() + static_cast<std::size_t>(first * ir::bits(type.dtype) / 8),
                piece.data(), piece.size());
    return;
  }
  for_each_element(type, first, static_cast<std::int64_t>(piece.size() / width),
                   [&](std::int64_t i, std::int64_t place) {
                     std::memcpy(to.data() + static_cast<std::size_t>(place) * width,
                                 piece.data() + static_cast<std::size_t>(i) * width, width);
                   });
}

std::vector<std::byte> copy_to_row_major(const ir::TensorType& type,
                                         std::span<const std::byte> from) {
  if (type.layout.is_row_major()) return {from.begin(), from.end()};
  const auto width = static_cast<std::size_t>(ir::bits(type.dtype) / 8);
  std::vector<std::byte> out(static_cast<std::size_t>(type.shape.elements()) * width);
  for_each_element(type, 0, type.shape.elements(), [&](std::int64_t i, std::int64_t place) {
    std::memcpy(out.data() + static_cast<std::size_t>(i) * width,
                from.data() + static_cast<std::size_t>(place) * width, width);
  });
  return out;
}

}  // namespace plimsoll::runtime

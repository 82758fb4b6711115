#include "plimsoll/kernels/cpu/packed_bytes.h"

#include <array>
#include <cstring>

#include "plimsoll/base/check.h"

namespace plimsoll::kernels {
namespace {

// Calls body(row-major index, index in memory) for every element.
template <typename Body>
void for_each_element(const ir::TensorType& type, const Body& body) {
  const ir::Layout& layout = type.layout;
  const int rank = type.shape.rank();
  const ir::Shape outer = *ir::padded(type.shape, layout);
  std::array<std::int64_t, ir::kMaxRank> index{};
  const std::int64_t count = type.shape.elements();
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t rest = i;
    for (int axis = rank - 1; axis >= 0; --axis) {
      index[static_cast<std::size_t>(axis)] = rest % type.shape[axis];
      rest /= type.shape[axis];
    }
    auto left = index;
    ir::Shape extents = outer;
    std::int64_t place = 0;
    std::int64_t stride = 1;
    for (int b = layout.block_count - 1; b >= 0; --b) {
      const ir::Block& block = layout.blocks[static_cast<std::size_t>(b)];
      place += left[block.dim] % block.size * stride;
      left[block.dim] /= block.size;
      extents[block.dim] /= block.size;
      stride *= block.size;
    }
    for (int at = rank - 1; at >= 0; --at) {
      const int axis = layout.is_row_major() ? at : layout.order[static_cast<std::size_t>(at)];
      place += left[static_cast<std::size_t>(axis)] * stride;
      stride *= extents[axis];
    }
    body(i, place);
  }
}

}  // namespace

std::vector<std::byte> to_row_major(const ir::TensorType& type, std::span<const std::byte> bytes) {
  if (type.layout.is_row_major()) return {bytes.begin(), bytes.end()};
  const int bits = ir::bits(type.dtype);
  PLIMSOLL_CHECK(bits % 8 == 0, "{} has no layouts", ir::name(type.dtype));
  const auto width = static_cast<std::size_t>(bits / 8);
  std::vector<std::byte> out(static_cast<std::size_t>(type.shape.elements()) * width);
  for_each_element(type, [&](std::int64_t i, std::int64_t place) {
    std::memcpy(out.data() + static_cast<std::size_t>(i) * width,
                bytes.data() + static_cast<std::size_t>(place) * width, width);
  });
  return out;
}

std::vector<std::byte> from_row_major(const ir::TensorType& type,
                                      std::span<const std::byte> bytes) {
  if (type.layout.is_row_major()) return {bytes.begin(), bytes.end()};
  const int bits = ir::bits(type.dtype);
  PLIMSOLL_CHECK(bits % 8 == 0, "{} has no layouts", ir::name(type.dtype));
  const auto width = static_cast<std::size_t>(bits / 8);
  std::vector<std::byte> out(static_cast<std::size_t>(ir::bytes_of(type).value));
  for_each_element(type, [&](std::int64_t i, std::int64_t place) {
    std::memcpy(out.data() + static_cast<std::size_t>(place) * width,
                bytes.data() + static_cast<std::size_t>(i) * width, width);
  });
  return out;
}

}  // namespace plimsoll::kernels

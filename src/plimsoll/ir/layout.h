// How the elements of a shape lie in memory: an order of the dimensions, outermost first, then
// inner blocks. The default (nothing said) is row-major.
//
//   channels-last of NCHW      order 0,2,3,1                 text: @0231
//   oneDNN's nChw16c           order 0,1,2,3, block 16 of 1  text: @0123:16b1
//   oneDNN's OIhw4i16o4i       order 0,1,2,3, blocks 4 of 1, 16 of 0, 4 of 1
//
// A blocked dimension is padded to a multiple of the product of its blocks; padding counts as
// bytes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plimsoll/ir/shape.h"

namespace plimsoll::ir {

struct Block {
  std::uint8_t dim = 0;
  std::uint16_t size = 1;
  bool operator==(const Block&) const = default;
};

struct Layout {
  static constexpr int kMaxBlocks = 4;

  std::array<std::uint8_t, kMaxRank> order{};
  std::array<Block, kMaxBlocks> blocks{};
  std::uint8_t rank = 0;  // 0: row-major of any rank
  std::uint8_t block_count = 0;

  static Layout row_major() { return {}; }
  // N, spatial dims, C for a tensor of this rank; without spatial dims that is row-major.
  static Layout channels_last(int rank);

  bool is_row_major() const { return rank == 0; }
  bool operator==(const Layout&) const = default;
};

// The extents with blocked dimensions padded up; nothing on overflow.
std::optional<Shape> padded(const Shape& shape, const Layout& layout);
// False when the order is no permutation of the shape's axes or a block names no axis.
bool fits(const Layout& layout, const Shape& shape);

std::string to_string(const Layout& layout);
std::optional<Layout> parse_layout(std::string_view text);

}  // namespace plimsoll::ir

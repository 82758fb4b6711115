// Rows that may end in padding: a layout of blocks along the last axis alone is row-major with rows
// that begin at multiples of the block (rewrite/pad_rows.h).
#pragma once

#include <optional>

#include "plimsoll/ir/tensor_type.h"

namespace plimsoll::kernels::cuda {

// Elements from one row to the next; nothing where elements lie otherwise.
inline std::optional<std::int64_t> row_step(const ir::TensorType& type) {
  const int rank = type.shape.rank();
  if (rank == 0) return 1;
  const std::int64_t last = type.shape[rank - 1];
  const ir::Layout& layout = type.layout;
  if (layout.is_row_major() || rank < 2) return last;
  for (int axis = 0; axis < rank; ++axis) {
    if (layout.order[static_cast<std::size_t>(axis)] != axis) return std::nullopt;
  }
  if (layout.block_count > 1 || (layout.block_count == 1 && layout.blocks[0].dim != rank - 1))
    return std::nullopt;
  const std::int64_t block = layout.block_count == 0 ? 1 : layout.blocks[0].size;
  return (last + block - 1) / block * block;
}

}  // namespace plimsoll::kernels::cuda

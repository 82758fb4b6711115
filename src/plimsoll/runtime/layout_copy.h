// Moves tensor content between row-major order, which files and users speak, and the layout a graph
// chose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plimsoll/ir/tensor_type.h"

namespace plimsoll::runtime {

// `from` holds the type's elements row-major; `to` is memory of the type in its own layout. Padding
// of blocked layouts becomes zero. Element types of whole bytes only may have a layout of their
// own.
void copy_from_row_major(const ir::TensorType& type, std::span<const std::byte> from,
                         std::span<std::byte> to);
// The same for a piece: the elements from the row-major index `first` on. Padding is left as it is.
void place_row_major(const ir::TensorType& type, std::int64_t first,
                     std::span<const std::byte> piece, std::span<std::byte> to);
std::vector<std::byte> copy_to_row_major(const ir::TensorType& type,
                                         std::span<const std::byte> from);

}  // namespace plimsoll::runtime

// Bytes of a tensor in its layout to and from row-major order, element by element. Slow; the
// reference kernel and the tests use it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "plimsoll/ir/tensor_type.h"

namespace plimsoll::kernels {

// Elements below a byte are taken row-major only.
std::vector<std::byte> to_row_major(const ir::TensorType& type, std::span<const std::byte> bytes);
// Padding of blocked layouts becomes zero.
std::vector<std::byte> from_row_major(const ir::TensorType& type, std::span<const std::byte> bytes);

}  // namespace plimsoll::kernels

// An activation and its compressed buffer as the kernels of coded_blocks.cuh take them: plain
// arguments, C++17.
#pragma once

#include <cstdint>

namespace plimsoll::kernels::cuda {

struct CodedActivation {
  std::uint8_t* plain;
  std::int64_t count;  // elements
  std::uint8_t* buffer;
  std::int64_t buffer_bytes;
  // In host memory, which the card writes and reads: what does not compress, as large as the
  // activation; by block, what it takes of the buffer (0: it waits there); and where errors are
  // measured, three numbers a block, else null.
  std::uint8_t* overflow;
  std::uint32_t* stored;
  double* errors;
  // Of the step: its seed, and whether errors are measured in it.
  const std::uint64_t* step;
  std::uint64_t seed;
};

enum class CodedForm : int { kSparse, kCrumbs, kNibbles, kFp16, kBf16, kE4m3, kE5m2, kInt8 };

}  // namespace plimsoll::kernels::cuda

// GGUF, the file format of llama.cpp: read, versions 2 and 3, little-endian.
//
//   "GGUF", u32 version, u64 tensors, u64 pairs
//   pairs     string key, u32 type, value; arrays nest
//   tensors   string name, u32 rank, u64 extents (the fastest first), u32 type, u64 offset
//   data      at the next multiple of general.alignment (default 32), which offsets count from
//
// Every count and length stands in the file before anything says that it can be true: each is
// compared with the bytes that are left before memory is taken for it, products are checked, an
// alignment is a power of two. Refused are also names that are there twice and tensors that share
// bytes or reach beyond the file. Values of pairs are skipped but for the alignment.
//
// Tensors of F32, F16, BF16, F64 and integers are as they are. Of those in blocks, the kinds of
// codec/weights/block_weights.h become fp32; of other kinds only the sizes are known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/store/element.h"

namespace plimsoll::store {

struct GgufTensor {
  std::string name;
  std::string_view kind;            // "Q4_K"
  Element element = Element::kF32;  // when decoded
  std::vector<std::uint64_t> dims;  // row-major: the fastest last
  std::span<const std::byte> bytes;
  bool in_blocks = false;
  std::uint64_t elements() const;
};

Result<std::vector<GgufTensor>> read_gguf(std::span<const std::byte> file);
// The values as its element type; `out` has the bytes of that.
Status decode_gguf(const GgufTensor& tensor, std::span<std::byte> out);

}  // namespace plimsoll::store

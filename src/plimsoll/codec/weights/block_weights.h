// Blocks of GGUF, byte by byte, and NF4.
//
//   q8_0   32 values: fp16 d, 32 int8                               34 bytes   value = d q
//   q4_0   32 values: fp16 d, 16 bytes; low nibbles are the first half
//                                                                   18 bytes   value = d (q - 8)
//   q4_k   256 values: fp16 d, fp16 m, 8 x (6-bit scale, 6-bit offset) in 12 bytes, 128 bytes
//                                                                  144 bytes   value = d s q - m o
//   nf4    64 values: fp32 largest, 32 bytes; the high nibble is the first of two
//                                                         36 bytes   value = largest x level[q]
//
// A chunk holds whole blocks unless it is the tensor's last: a tensor's q chunks, one behind the
// other, are the tensor of a GGUF file, and the last block is filled with zeros. q8_0 and q4_0 are
// encoded to the same bytes as ggml's reference; for q4_k, where there is no one answer, scale and
// offset of each 32 values are searched for the least squared error.
//
// More kinds are decoded, for files that others wrote: q4_1, q5_0, q5_1, q5_k, q6_k.
#pragma once

#include "plimsoll/codec/weights/weight_codec.h"

namespace plimsoll::codec {

extern const WeightCodec kQ8_0Weights;
extern const WeightCodec kQ4_0Weights;
extern const WeightCodec kQ4KWeights;
extern const WeightCodec kNf4Weights;

// How blocks of one kind become values. `name` in GGUF's spelling.
struct BlockKind {
  std::string_view name;
  std::size_t values;  // in a block
  std::size_t bytes;
  void (*decode)(const std::uint8_t* block, float* values);
};
std::span<const BlockKind> block_kinds();
const BlockKind* find_block_kind(std::string_view name);

// Of exactly as many blocks as the values need; false otherwise. Only whole rows of blocks.
bool decode_blocks(const BlockKind& kind, std::span<const std::uint8_t> bytes,
                   std::span<float> values);

}  // namespace plimsoll::codec

// WeightCodec: a smaller form for a chunk of a weight, at rest. Pure functions on spans; the table
// of them is in weight_codecs.h.
//
// A weight in a .plim file (store/plim_file.h) is cut into chunks of 256 KiB that know nothing of
// each other, so that any thread may decode any of them, and a damaged one is one damaged chunk. A
// codec sees one chunk, and of the tensor only what ChunkShape says.
//
// Every codec promises the same, and one suite tests it on all of them (weight_codecs_test.cpp):
//   1. encode() writes at most largest_bytes() and says how much; `false` means that the output is
//      too small or the values cannot be represented, and the caller stores them as they are;
//   2. decode(encode(x)) is x bit by bit if the codec is lossless, else within its error; the error
//      is for the caller to measure;
//   3. the same input gives the same bytes, on every machine (archive: with the same libzstd);
//   4. decode() of any bytes whatever returns false or some values, and touches nothing else;
//   5. multiply(), where there is one, is the product with what decode() gives, up to the order of
//      sums. It may refuse a shape (rows that do not begin with a block): then decode and multiply.
//      The same of multiply_whole().
//
//   fp16, bf16       16 bits, to nearest, ties to even
//   fp8              e4m3, one fp32 scale for each row of the chunk
//   int8             one fp32 scale for each row of the chunk; its largest value is 127
//   q8_0, q4_0, q4_k the blocks of GGUF, byte by byte: 32 values and a scale; q4_k 256 with 8
//                    scales and offsets of 6 bits
//   nf4              64 values: the 16 quantiles of a normal distribution times the largest value
//   coo, csr, bitmask  values that are not zero and where they are; lossless (sparse_weights.h)
//   2:4              of each four values the two largest
//   bf16-lossless    three bits for the exponent of a bf16 value (exponent_code.h)
//   archive          byte planes through zstd's Huffman stage; lossless, for disks
//   ternary          -s, 0, +s for each row, runs of them as 16-bit words (ternary.h)
//
// Lossy forms of finite values only: a chunk with a value that has no code stays as it is. Values
// of fp16, bf16 and fp64 tensors pass through fp32 there. `raw` is not in the table: it needs no
// code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace plimsoll::codec {

enum class WeightKind : std::uint8_t { kF32, kF16, kBF16, kF64, kOther };

struct ChunkShape {
  WeightKind kind = WeightKind::kF32;
  std::size_t element_bytes = 4;
  std::size_t columns = 1;  // elements in a row of the tensor, as row_elements() has them
  std::size_t begin = 0;    // place of the chunk's first element in the tensor
};

// What counts as a row: the last extent, or where that is short as many of the last as make a row
// of 32, but never the first. A kernel of a convolution [480, 240, 1, 1] has rows of 240, one
// [60, 960, 1, 3] of 2,880: with a scale for every three weights, int8 would take 19 bits each.
std::size_t row_elements(std::span<const std::uint64_t> dims);

// A chunk holds at most so many decoded bytes.
inline constexpr std::size_t kChunkBytes = 256 << 10;

// A chunk as a part of a matrix of rows of `columns`, times a vector.
enum class Product : std::uint8_t {
  kRows,     // out[r] += row r times in[its columns]; rows counted from the chunk's first
  kColumns,  // out[its columns] += in[row] times the row; rows counted from the tensor's first
};

struct WeightCodec {
  std::string_view name;
  bool lossless;
  // Whether elements of this kind have this form at all.
  bool (*takes)(const ChunkShape& shape);
  std::size_t (*largest_bytes)(std::size_t count, const ChunkShape& shape);
  bool (*encode)(std::span<const std::byte> values, const ChunkShape& shape,
                 std::span<std::uint8_t> out, std::size_t& used);
  bool (*decode)(std::span<const std::uint8_t> bytes, const ChunkShape& shape,
                 std::span<std::byte> values);
  // Straight from the encoded form, of `count` elements; null: decode first. Not for fp64.
  bool (*multiply)(std::span<const std::uint8_t> bytes, const ChunkShape& shape, std::size_t count,
                   Product product, const float* in, float* out) = nullptr;
  // Of a form whose every so many values are so many bytes, by themselves; 0: there are none.
  std::size_t block_values = 0;
  std::size_t block_bytes = 0;
  // Elements [skip, skip + length) of a chunk of `count`, all of one row and from its first on,
  // times vectors of whole numbers (product_loops.h): out[v] += the product. Null: decode first.
  struct Whole {
    std::size_t skip = 0;
    std::size_t length = 0;
    const std::int16_t* in = nullptr;
    std::size_t step = 0;  // from one vector to the next
    std::size_t vectors = 1;
    float* out = nullptr;
  };
  static constexpr std::size_t kMostWhole = 8;  // vectors
  bool (*multiply_whole)(std::span<const std::uint8_t> bytes, const ChunkShape& shape,
                         std::size_t count, const Whole& whole) = nullptr;
};

}  // namespace plimsoll::codec

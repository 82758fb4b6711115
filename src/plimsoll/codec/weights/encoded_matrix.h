// A weight in encoded form, as it stands in memory while a model runs on it: the stored chunks of a
// .plim file behind a table of where they are. One run of bytes, so that a plan has it as an
// ordinary tensor of bytes.
//
//   u64 x (chunks + 1)   where a chunk begins, counted from the first, x 256 + its form: 0 raw, n
//                        the n-th of weight_codecs(); the last says where they end
//   zeros up to 64
//   the chunks
//
// A weight of three chunks of q8_0, of 69,632 bytes each:   table 64 bytes, all 208,960.
//
// decode() and multiply() of any bytes whatever return false or some values, and touch nothing
// else; nothing is allocated. Values are fp32; of an fp16 or bf16 tensor, forms that lose something
// anyway are not rounded to it once more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plimsoll/codec/weights/weight_codec.h"

namespace plimsoll::codec {

struct EncodedType {
  WeightKind kind = WeightKind::kF32;  // of the tensor in the file: fp32, fp16 or bf16
  std::size_t elements = 0;
  std::size_t columns = 1;  // in a row: of a matrix its last extent (row_elements())

  std::size_t element_bytes() const { return kind == WeightKind::kF32 ? 4 : 2; }
  std::size_t chunk_elements() const { return kChunkBytes / element_bytes(); }
  std::size_t chunks() const { return (elements + chunk_elements() - 1) / chunk_elements(); }
  std::size_t rows() const { return columns == 0 ? 0 : elements / columns; }
};

// Whether weights are kept in memory in this form: archive is for disks.
bool stays_in_memory(const WeightCodec& codec);

// Before the first chunk.
std::size_t encoded_table_bytes(std::size_t chunks);
// The forms and sizes of all chunks, in order. `out` has encoded_table_bytes() bytes.
struct EncodedChunk {
  std::uint8_t form = 0;
  std::uint32_t bytes = 0;
};
void write_encoded_table(std::span<const EncodedChunk> chunks, std::span<std::uint8_t> out);

// A weight of zeros in a form whose size does not depend on its values, for whoever wants to time
// one; false: the form is not of that kind, or the bytes are fewer.
bool write_encoded_zeros(const WeightCodec& codec, const EncodedType& type,
                         std::span<std::uint8_t> out);

class EncodedMatrix {
 public:
  // Nothing where the table does not fit the bytes or the type.
  static std::optional<EncodedMatrix> view(std::span<const std::uint8_t> bytes,
                                           const EncodedType& type);

  const EncodedType& type() const { return type_; }
  std::uint8_t form(std::size_t chunk) const;
  // Elements of a chunk.
  std::size_t count(std::size_t chunk) const;

  // What decode() wants for itself: the elements of one chunk, as they are in the file and as
  // floats.
  static constexpr std::size_t kScratchBytes = kChunkBytes + 2 * kChunkBytes;
  // A chunk; out[i] is its i-th element. `scratch`: kChunkBytes, for types that are not fp32.
  bool decode_chunk(std::size_t chunk, float* out, std::byte* scratch) const;
  // Elements [first, first + count) of the tensor. `scratch`: kScratchBytes, aligned to 64.
  bool decode(std::size_t first, std::size_t count, float* out, std::byte* scratch) const;

  // The chunk times some vectors (weight_codec.h): one straight from its form, several after
  // decoding it once. `scratch`: kScratchBytes, aligned to 64.
  struct Vectors {
    std::size_t count = 1;
    const float* in = nullptr;
    std::size_t in_step = 0;  // from one to the next
    float* out = nullptr;
    std::size_t out_step = 0;
  };
  bool multiply(std::size_t chunk, Product product, const Vectors& vectors,
                std::byte* scratch) const;
  // A row of the weight times one to WeightCodec::kMostWhole vectors of whole numbers
  // (product_loops.h), `step` apart: out[v] is the product. `scratch`: kScratchBytes, aligned to
  // 64.
  bool multiply_row(std::size_t row, const std::int16_t* in, std::size_t step, std::size_t vectors,
                    float* out, std::byte* scratch) const;

 private:
  EncodedMatrix() = default;
  std::uint64_t entry(std::size_t index) const;
  std::span<const std::uint8_t> stored(std::size_t chunk) const;
  ChunkShape shape(std::size_t chunk) const;
  bool decode_blocks_of(std::size_t chunk, std::size_t skip, std::size_t taken, float* out) const;

  EncodedType type_;
  const std::uint8_t* table_ = nullptr;
  std::span<const std::uint8_t> data_;
};

}  // namespace plimsoll::codec

#include "plimsoll/codec/weights/encoded_matrix.h"

#include <algorithm>
#include <cstring>

#include "plimsoll/codec/weights/float_values.h"
#include "plimsoll/codec/weights/row_products.h"
#include "plimsoll/codec/weights/weight_codecs.h"

namespace plimsoll::codec {
namespace {

constexpr std::size_t kTableAlignment = 64;

}  // namespace

bool stays_in_memory(const WeightCodec& codec) {
  return codec.name != "archive";
}

std::size_t encoded_table_bytes(std::size_t chunks) {
  return (8 * (chunks + 1) + kTableAlignment - 1) / kTableAlignment * kTableAlignment;
}

void write_encoded_table(std::span<const EncodedChunk> chunks, std::span<std::uint8_t> out) {
  std::fill(out.begin(), out.end(), std::uint8_t{0});
  std::uint64_t at = 0;
  std::uint8_t* to = out.data();
  for (const EncodedChunk& chunk : chunks) {
    const std::uint64_t entry = at * 256 + chunk.form;
    std::memcpy(to, &entry, 8);
    to += 8;
    at += chunk.bytes;
  }
  const std::uint64_t end = at * 256;
  std::memcpy(to, &end, 8);
}

bool write_encoded_zeros(const WeightCodec& codec, const EncodedType& type,
                         std::span<std::uint8_t> out) {
  if (codec.block_values == 0) return false;
  const auto form =
      static_cast<std::uint8_t>(find_weight_codec(codec.name) - weight_codecs().data() + 1);
  std::vector<EncodedChunk> chunks;
  std::size_t bytes = encoded_table_bytes(type.chunks());
  for (std::size_t i = 0; i < type.chunks(); ++i) {
    const std::size_t count =
        std::min(type.chunk_elements(), type.elements - i * type.chunk_elements());
    const std::size_t blocks = (count + codec.block_values - 1) / codec.block_values;
    chunks.push_back({form, static_cast<std::uint32_t>(blocks * codec.block_bytes)});
    bytes += chunks.back().bytes;
  }
  if (bytes > out.size()) return false;
  std::fill(out.begin(), out.end(), std::uint8_t{0});
  write_encoded_table(chunks, out.first(encoded_table_bytes(chunks.size())));
  return true;
}

std::optional<EncodedMatrix> EncodedMatrix::view(std::span<const std::uint8_t> bytes,
                                                 const EncodedType& type) {
  if (type.columns == 0 || type.elements % type.columns != 0) return std::nullopt;
  const std::size_t chunks = type.chunks();
  if (bytes.size() / 8 < chunks + 1 || bytes.size() < encoded_table_bytes(chunks))
    return std::nullopt;
  EncodedMatrix out;
  out.type_ = type;
  out.table_ = bytes.data();
  out.data_ = bytes.subspan(encoded_table_bytes(chunks));
  const std::size_t forms = weight_codecs().size();
  for (std::size_t i = 0; i <= chunks; ++i) {
    const std::uint64_t begin = out.entry(i) / 256;
    if (begin > out.data_.size() || (i == 0 && begin != 0)) return std::nullopt;
    if (i == chunks) break;
    const std::uint64_t end = out.entry(i + 1) / 256;
    if (end < begin || out.form(i) > forms) return std::nullopt;
    if (out.form(i) == 0 && end - begin != out.count(i) * type.element_bytes()) return std::nullopt;
  }
  return out;
}

std::uint64_t EncodedMatrix::entry(std::size_t index) const {
  std::uint64_t out;
  std::memcpy(&out, table_ + 8 * index, 8);
  return out;
}
std::uint8_t EncodedMatrix::form(std::size_t chunk) const {
  return static_cast<std::uint8_t>(entry(chunk) % 256);
}
std::size_t EncodedMatrix::count(std::size_t chunk) const {
  return std::min(type_.chunk_elements(), type_.elements - chunk * type_.chunk_elements());
}
std::span<const std::uint8_t> EncodedMatrix::stored(std::size_t chunk) const {
  const std::uint64_t begin = entry(chunk) / 256;
  return data_.subspan(begin, entry(chunk + 1) / 256 - begin);
}
ChunkShape EncodedMatrix::shape(std::size_t chunk) const {
  return {type_.kind, type_.element_bytes(), type_.columns, chunk * type_.chunk_elements()};
}

bool EncodedMatrix::decode_chunk(std::size_t chunk, float* out, std::byte* scratch) const {
  const std::size_t elements = count(chunk);
  const auto bytes = stored(chunk);
  ChunkShape how = shape(chunk);
  if (form(chunk) == 0) {
    to_floats(std::as_bytes(bytes), type_.kind, {out, elements});
    return true;
  }
  const WeightCodec& codec = weight_codecs()[form(chunk) - 1u];
  const std::span<std::byte> floats(reinterpret_cast<std::byte*>(out), elements * 4);
  if (type_.kind == WeightKind::kF32) return codec.decode(bytes, how, floats);
  if (!codec.lossless && codec.name != "2:4") {
    how.kind = WeightKind::kF32;
    how.element_bytes = 4;
    return codec.decode(bytes, how, floats);
  }
  const std::span<std::byte> narrow(scratch, elements * 2);
  if (!codec.decode(bytes, how, narrow)) return false;
  to_floats(narrow, type_.kind, {out, elements});
  return true;
}

// A part of a chunk whose blocks stand by themselves; false where it is no such part.
bool EncodedMatrix::decode_blocks_of(std::size_t chunk, std::size_t skip, std::size_t taken,
                                     float* out) const {
  if (form(chunk) == 0) {
    const std::size_t width = type_.element_bytes();
    to_floats(std::as_bytes(stored(chunk)).subspan(skip * width, taken * width), type_.kind,
              {out, taken});
    return true;
  }
  const WeightCodec& codec = weight_codecs()[form(chunk) - 1u];
  const std::size_t values = codec.block_values;
  if (values == 0 || skip % values != 0 || taken % values != 0) return false;
  const auto bytes = stored(chunk);
  const std::size_t begin = skip / values * codec.block_bytes;
  const std::size_t length = taken / values * codec.block_bytes;
  if (begin + length > bytes.size()) return false;
  const ChunkShape how{WeightKind::kF32, 4, type_.columns, 0};
  return codec.decode(bytes.subspan(begin, length), how,
                      {reinterpret_cast<std::byte*>(out), taken * 4});
}

bool EncodedMatrix::decode(std::size_t first, std::size_t count_of, float* out,
                           std::byte* scratch) const {
  if (first > type_.elements || count_of > type_.elements - first) return false;
  const std::size_t in_chunk = type_.chunk_elements();
  auto* values = reinterpret_cast<float*>(scratch + kChunkBytes);
  while (count_of > 0) {
    const std::size_t chunk = first / in_chunk;
    const std::size_t skip = first % in_chunk;
    const std::size_t taken = std::min(count_of, count(chunk) - skip);
    if (taken == count(chunk)) {
      if (!decode_chunk(chunk, out, scratch)) return false;
    } else if (!decode_blocks_of(chunk, skip, taken, out)) {
      if (!decode_chunk(chunk, values, scratch)) return false;
      std::copy_n(values + skip, taken, out);
    }
    first += taken;
    out += taken;
    count_of -= taken;
  }
  return true;
}

bool EncodedMatrix::multiply(std::size_t chunk, Product product, const Vectors& vectors,
                             std::byte* scratch) const {
  const ChunkShape how = shape(chunk);
  if (form(chunk) != 0 && vectors.count == 1) {
    const WeightCodec& codec = weight_codecs()[form(chunk) - 1u];
    if (codec.multiply != nullptr &&
        codec.multiply(stored(chunk), how, count(chunk), product, vectors.in, vectors.out))
      return true;
  }
  auto* values = reinterpret_cast<float*>(scratch + kChunkBytes);
  if (!decode_chunk(chunk, values, scratch)) return false;
  for (std::size_t i = 0; i < vectors.count; ++i)
    multiply_floats(values, how, count(chunk), product, vectors.in + i * vectors.in_step,
                    vectors.out + i * vectors.out_step);
  return true;
}

bool EncodedMatrix::multiply_row(std::size_t row, const std::int16_t* in, std::size_t step,
                                 std::size_t vectors, float* out, std::byte* scratch) const {
  if (row >= type_.rows() || vectors > WeightCodec::kMostWhole) return false;
  std::fill_n(out, vectors, 0.0f);
  const std::size_t in_chunk = type_.chunk_elements();
  const std::size_t begin = row * type_.columns;
  const std::size_t end = begin + type_.columns;
  for (std::size_t at = begin; at < end;) {
    const std::size_t chunk = at / in_chunk;
    const std::size_t skip = at % in_chunk;
    const std::size_t taken = std::min(end - at, count(chunk) - skip);
    const std::int16_t* from = in + (at - begin);
    auto* const multiply =
        form(chunk) == 0 ? nullptr : weight_codecs()[form(chunk) - 1u].multiply_whole;
    if (multiply == nullptr || !multiply(stored(chunk), shape(chunk), count(chunk),
                                         {skip, taken, from, step, vectors, out})) {
      auto* values = reinterpret_cast<float*>(scratch + kChunkBytes);
      if (!decode_blocks_of(chunk, skip, taken, values)) {
        if (!decode_chunk(chunk, values, scratch)) return false;
        values += skip;
      }
      for (std::size_t v = 0; v < vectors; ++v) {
        float sum = 0;
        for (std::size_t i = 0; i < taken; ++i)
          sum += values[i] * static_cast<float>(from[v * step + i]);
        out[v] += sum;
      }
    }
    at += taken;
  }
  return true;
}

}  // namespace plimsoll::codec

// fp16, bf16, fp8 with scales, int8 with scales.
#include "plimsoll/codec/weights/narrow_weights.h"

#include <cmath>
#include <cstring>

#include "plimsoll/codec/rounding_loops.h"
#include "plimsoll/codec/weights/chunk_rows.h"
#include "plimsoll/codec/weights/float_values.h"
#include "plimsoll/codec/weights/product_loops.h"
#include "plimsoll/codec/weights/row_products.h"

namespace plimsoll::codec {
namespace {

using Out = std::span<std::uint8_t>;
using In = std::span<const std::uint8_t>;

template <SmallFloat F>
bool encode_two_bytes(std::span<const float> values, const ChunkShape&, Out out,
                      std::size_t& used) {
  used = values.size() * 2;
  if (out.size() < used) return false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t code = nearest_small<F>(values[i]);
    if (code == kTooLarge) return false;
    const auto two = static_cast<std::uint16_t>(code);
    std::memcpy(out.data() + 2 * i, &two, 2);
  }
  return true;
}
template <SmallFloat F, WeightKind kKind>
bool decode_two_bytes(In bytes, const ChunkShape&, std::span<float> values) {
  if (bytes.size() != values.size() * 2) return false;
  to_floats(std::as_bytes(bytes), kKind, values);
  return true;
}

template <RowForm kForm>
bool multiply_two_bytes(In bytes, const ChunkShape& shape, std::size_t count, Product product,
                        const float* in, float* out) {
  return multiply_blocks(kForm, 1, 2, bytes, shape, count, product, in, out);
}

// The factor that makes the largest value `top`, and its inverse; both 0 where the values are
// zeros, or smaller than a factor can say (block_weights.cpp has the same).
struct RowScale {
  float scale = 0;
  float inverse = 0;
  bool usable = true;
};
RowScale row_scale(std::span<const float> values, float top) {
  float largest = 0;
  bool finite = true;
  for (const float value : values) {
    finite = finite && std::isfinite(value);
    largest = std::max(largest, std::fabs(value));
  }
  if (!finite) return {0, 0, false};
  if (largest == 0) return {};
  const float scale = largest / top;
  const float inverse = top / largest;
  if (scale == 0 || !std::isfinite(inverse)) return {};
  return {scale, inverse, std::isfinite(scale * top)};
}

template <typename Code>
bool encode_rows(std::span<const float> values, const ChunkShape& shape, float top, Out out,
                 std::size_t& used, Code code) {
  used = values.size() + 4 * rows_of(values.size(), shape);
  if (out.size() < used) return false;
  std::uint8_t* to = out.data();
  return for_rows(values.size(), shape, [&](std::size_t first, std::size_t length) {
    const auto row = values.subspan(first, length);
    const RowScale scale = row_scale(row, top);
    if (!scale.usable) return false;
    std::memcpy(to, &scale.scale, 4);
    to += 4;
    for (const float value : row) *to++ = code(value * scale.inverse);
    return true;
  });
}
template <typename Decode>
bool decode_rows(In bytes, const ChunkShape& shape, std::span<float> values, Decode decode) {
  if (bytes.size() != values.size() + 4 * rows_of(values.size(), shape)) return false;
  const std::uint8_t* from = bytes.data();
  return for_rows(values.size(), shape, [&](std::size_t first, std::size_t length) {
    float scale;
    std::memcpy(&scale, from, 4);
    decode(from + 4, length, scale, values.data() + first);
    from += 4 + length;
    return true;
  });
}

bool encode_fp8_rows(std::span<const float> values, const ChunkShape& shape, Out out,
                     std::size_t& used) {
  return encode_rows(values, shape, 448.0f, out, used, [](float value) {
    const std::uint32_t code = nearest_small<kE4m3>(value);
    // 448 times a rounded inverse may be a little more.
    return static_cast<std::uint8_t>(code == kTooLarge ? (value < 0 ? 0xfe : 0x7e) : code);
  });
}
bool decode_fp8_rows(In bytes, const ChunkShape& shape, std::span<float> values) {
  return decode_rows(bytes, shape, values,
                     [](const std::uint8_t* codes, std::size_t count, float scale, float* out) {
                       std::size_t i = vector_widen(SmallForm::kE4m3Form, codes, count, out);
                       for (; i < count; ++i) out[i] = from_small<kE4m3>(codes[i]);
                       for (i = 0; i < count; ++i) out[i] *= scale;
                     });
}

bool encode_int8_rows(std::span<const float> values, const ChunkShape& shape, Out out,
                      std::size_t& used) {
  return encode_rows(values, shape, 127.0f, out, used, [](float value) {
    return static_cast<std::uint8_t>(static_cast<std::int8_t>(std::nearbyint(value)));
  });
}
bool decode_int8_rows(In bytes, const ChunkShape& shape, std::span<float> values) {
  return decode_rows(bytes, shape, values,
                     [](const std::uint8_t* codes, std::size_t count, float scale, float* out) {
                       const auto* whole = reinterpret_cast<const std::int8_t*>(codes);
                       std::size_t i = vector_from_int8(whole, count, scale, out);
                       for (; i < count; ++i) out[i] = static_cast<float>(whole[i]) * scale;
                     });
}

template <RowForm kForm>
bool multiply_scaled_rows(In bytes, const ChunkShape& shape, std::size_t count, Product product,
                          const float* in, float* out) {
  if (bytes.size() != count + 4 * rows_of(count, shape)) return false;
  const std::size_t first_row = shape.begin / shape.columns;
  const std::uint8_t* from = bytes.data();
  return for_rows(count, shape, [&](std::size_t first, std::size_t length) {
    float scale;
    std::memcpy(&scale, from, 4);
    const std::size_t row = (shape.begin + first) / shape.columns;
    const std::size_t column = (shape.begin + first) % shape.columns;
    if (product == Product::kRows) {
      out[row - first_row] += scale * vector_dot(kForm, from + 4, length, in + column);
    } else {
      vector_axpy(kForm, from + 4, length, scale * in[row], out + column);
    }
    from += 4 + length;
    return true;
  });
}

bool multiply_int8_whole(In bytes, const ChunkShape& shape, std::size_t count,
                         const WeightCodec::Whole& whole) {
  if (shape.columns > kLongestRow) return false;  // several scales
  const std::size_t rows = rows_of(count, shape);
  if (bytes.size() != count + 4 * rows || whole.skip + whole.length > count) return false;
  const std::size_t row = (shape.begin + whole.skip) / shape.columns - shape.begin / shape.columns;
  const bool begins = whole.skip == 0 || (shape.begin + whole.skip) % shape.columns == 0;
  if (!begins || row >= rows || whole.vectors > WeightCodec::kMostWhole) return false;
  const std::uint8_t* at = bytes.data() + whole.skip + 4 * row;
  float scale;
  std::memcpy(&scale, at, 4);
  float sums[WeightCodec::kMostWhole];
  vector_dot_whole(RowForm::kInt8, at + 4, whole.length, whole.in, whole.step, whole.vectors, sums);
  for (std::size_t v = 0; v < whole.vectors; ++v) whole.out[v] += scale * sums[v];
  return true;
}

std::size_t two_bytes_each(std::size_t count, const ChunkShape&) {
  return count * 2;
}
std::size_t byte_each_and_scales(std::size_t count, const ChunkShape& shape) {
  return count + 4 * rows_of(count, shape);
}

}  // namespace

const WeightCodec kFp16Weights{"fp16",
                               false,
                               is_floating,
                               two_bytes_each,
                               encode_through_floats<encode_two_bytes<kFp16>>,
                               decode_through_floats<decode_two_bytes<kFp16, WeightKind::kF16>>,
                               multiply_two_bytes<RowForm::kFloat16>,
                               1,
                               2};
const WeightCodec kBf16Weights{"bf16",
                               false,
                               is_floating,
                               two_bytes_each,
                               encode_through_floats<encode_two_bytes<kBf16>>,
                               decode_through_floats<decode_two_bytes<kBf16, WeightKind::kBF16>>,
                               multiply_two_bytes<RowForm::kBfloat16>,
                               1,
                               2};
const WeightCodec kFp8Weights{"fp8",
                              false,
                              is_floating,
                              byte_each_and_scales,
                              encode_through_floats<encode_fp8_rows>,
                              decode_through_floats<decode_fp8_rows>,
                              multiply_scaled_rows<RowForm::kFloat8>};
const WeightCodec kInt8Weights{"int8",
                               false,
                               is_floating,
                               byte_each_and_scales,
                               encode_through_floats<encode_int8_rows>,
                               decode_through_floats<decode_int8_rows>,
                               multiply_scaled_rows<RowForm::kInt8>,
                               0,
                               0,
                               multiply_int8_whole};

}  // namespace plimsoll::codec

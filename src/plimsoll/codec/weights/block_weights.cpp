#include "plimsoll/codec/weights/block_weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "plimsoll/codec/weights/block_codes.h"
#include "plimsoll/codec/weights/float_values.h"
#include "plimsoll/codec/weights/row_products.h"
#include "plimsoll/codec/weights/weight_loops.h"

namespace plimsoll::codec {
namespace {

constexpr std::size_t kSmall = 32;
constexpr std::size_t kLarge = 256;

float half_at(const std::uint8_t* bytes) {
  std::uint16_t code;
  std::memcpy(&code, bytes, 2);
  return from_small<kFp16>(code);
}
// False where it is too large for fp16.
bool put_half(float value, std::uint8_t* bytes) {
  const std::uint32_t code = nearest_small<kFp16>(value);
  const auto two = static_cast<std::uint16_t>(code);
  std::memcpy(bytes, &two, 2);
  return code != kTooLarge;
}
bool all_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

// Trained networks have channels that died: their values are smaller than any scale can say, and
// count as zeros, or the whole chunk would have to stay as it is for them.
float inverse_of(float scale) {
  const float inverse = 1.0f / scale;
  return std::isfinite(inverse) ? inverse : 0.0f;
}

// ---- q8_0, q4_0

bool encode_q8_0_block(const float* values, std::uint8_t* block) {
  float largest = 0;
  for (std::size_t j = 0; j < kSmall; ++j) largest = std::max(largest, std::fabs(values[j]));
  const float d = largest / 127.0f;
  const float inverse = inverse_of(d);
  for (std::size_t j = 0; j < kSmall; ++j)
    block[2 + j] = static_cast<std::uint8_t>(static_cast<int>(std::round(values[j] * inverse)));
  return put_half(d, block);
}
void decode_q8_0_block(const std::uint8_t* block, float* values) {
  const float d = half_at(block);
  for (std::size_t j = 0; j < kSmall; ++j)
    values[j] = d * static_cast<float>(static_cast<std::int8_t>(block[2 + j]));
}

bool encode_q4_0_block(const float* values, std::uint8_t* block) {
  float largest = 0;
  for (std::size_t j = 0; j < kSmall; ++j)
    if (std::fabs(values[j]) > std::fabs(largest)) largest = values[j];
  const float d = largest / -8.0f;
  const float inverse = inverse_of(d);
  // With one rounding, as a fused multiply-add has: the bytes do not depend on the machine.
  const auto code = [&](float value) {
    const auto scaled =
        static_cast<float>(static_cast<double>(value) * static_cast<double>(inverse) + 8.5);
    return static_cast<std::uint8_t>(std::clamp(static_cast<int>(scaled), 0, 15));
  };
  for (std::size_t j = 0; j < kSmall / 2; ++j)
    block[2 + j] = static_cast<std::uint8_t>(code(values[j]) | (code(values[j + kSmall / 2]) << 4));
  return put_half(d, block);
}
void decode_q4_0_block(const std::uint8_t* block, float* values) {
  const float d = half_at(block);
  for (std::size_t j = 0; j < kSmall / 2; ++j) {
    values[j] = d * static_cast<float>((block[2 + j] & 15) - 8);
    values[j + kSmall / 2] = d * static_cast<float>((block[2 + j] >> 4) - 8);
  }
}

// ---- those that are only decoded

void decode_q4_1_block(const std::uint8_t* block, float* values) {
  const float d = half_at(block);
  const float m = half_at(block + 2);
  for (std::size_t j = 0; j < kSmall / 2; ++j) {
    values[j] = d * static_cast<float>(block[4 + j] & 15) + m;
    values[j + kSmall / 2] = d * static_cast<float>(block[4 + j] >> 4) + m;
  }
}
// Nibbles at `low`, the fifth bits of all 32 at `high`.
void five_bits(const std::uint8_t* high, const std::uint8_t* low, int* codes) {
  std::uint32_t bits;
  std::memcpy(&bits, high, 4);
  for (std::size_t j = 0; j < kSmall / 2; ++j) {
    codes[j] = static_cast<int>((low[j] & 15u) | ((bits >> j) & 1) << 4);
    codes[j + 16] = static_cast<int>((low[j] >> 4u) | ((bits >> (j + 16)) & 1) << 4);
  }
}
void decode_q5_0_block(const std::uint8_t* block, float* values) {
  const float d = half_at(block);
  int codes[kSmall];
  five_bits(block + 2, block + 6, codes);
  for (std::size_t j = 0; j < kSmall; ++j) values[j] = d * static_cast<float>(codes[j] - 16);
}
void decode_q5_1_block(const std::uint8_t* block, float* values) {
  const float d = half_at(block);
  const float m = half_at(block + 2);
  int codes[kSmall];
  five_bits(block + 4, block + 8, codes);
  for (std::size_t j = 0; j < kSmall; ++j) values[j] = d * static_cast<float>(codes[j]) + m;
}

// ---- q4_k, q5_k

void pack_six(const SixBits& from, std::uint8_t* q) {
  for (int j = 0; j < 4; ++j) {
    q[j] = static_cast<std::uint8_t>(from.scale[j] | ((from.scale[j + 4] >> 4) << 6));
    q[j + 4] = static_cast<std::uint8_t>(from.offset[j] | ((from.offset[j + 4] >> 4) << 6));
    q[j + 8] = static_cast<std::uint8_t>((from.scale[j + 4] & 15) | (from.offset[j + 4] & 15) << 4);
  }
}

void decode_q4_k_block(const std::uint8_t* block, float* values) {
  const float d = half_at(block);
  const float m = half_at(block + 2);
  const SixBits six = unpack_six(block + 4);
  for (std::ptrdiff_t pair = 0; pair < 4; ++pair) {
    const std::uint8_t* q = block + 16 + 32 * pair;
    for (std::ptrdiff_t half = 0; half < 2; ++half) {
      const std::ptrdiff_t sub = 2 * pair + half;
      const float scale = d * six.scale[sub];
      const float offset = m * six.offset[sub];
      for (int j = 0; j < 32; ++j) {
        const int code = half == 0 ? q[j] & 15 : q[j] >> 4;
        values[32 * sub + j] = scale * static_cast<float>(code) - offset;
      }
    }
  }
}
void decode_q5_k_block(const std::uint8_t* block, float* values) {
  const float d = half_at(block);
  const float m = half_at(block + 2);
  const SixBits six = unpack_six(block + 4);
  const std::uint8_t* high = block + 16;
  for (int sub = 0; sub < 8; ++sub) {
    const std::uint8_t* q = block + 48 + 32 * static_cast<std::ptrdiff_t>(sub / 2);
    const float scale = d * six.scale[sub];
    const float offset = m * six.offset[sub];
    for (int j = 0; j < 32; ++j) {
      const int low = sub % 2 == 0 ? q[j] & 15 : q[j] >> 4;
      const int code = low + (((high[j] >> sub) & 1) << 4);
      values[32 * sub + j] = scale * static_cast<float>(code) - offset;
    }
  }
}
// 128 bytes of low nibbles, 64 of high pairs of bits, 16 int8 scales, fp16 d.
void decode_q6_k_block(const std::uint8_t* block, float* values) {
  const auto* scales = reinterpret_cast<const std::int8_t*>(block + 192);
  const float d = half_at(block + 208);
  for (std::ptrdiff_t half = 0; half < 2; ++half) {
    const std::uint8_t* low = block + 64 * half;
    const std::uint8_t* high = block + 128 + 32 * half;
    for (std::ptrdiff_t quarter = 0; quarter < 4; ++quarter) {
      for (std::ptrdiff_t j = 0; j < 32; ++j) {
        const std::uint8_t byte = low[j + 32 * (quarter % 2)];
        const int nibble = quarter < 2 ? byte & 15 : byte >> 4;
        const int code = (nibble | (((high[j] >> (2 * quarter)) & 3) << 4)) - 32;
        const std::ptrdiff_t group = j / 16;
        const float scale = d * scales[8 * half + 2 * quarter + group];
        values[128 * half + 32 * quarter + j] = scale * static_cast<float>(code);
      }
    }
  }
}

// value = scale q - offset with q in 0..15 and offset >= 0.
struct Line {
  float scale = 0;
  float offset = 0;
};

int q4_code(float value, const Line& line) {
  if (line.scale <= 0) return 0;
  return std::clamp(static_cast<int>(std::nearbyint((value + line.offset) / line.scale)), 0, 15);
}
double squared_error(const float* values, const Line& line) {
  double out = 0;
  for (int j = 0; j < 32; ++j) {
    const double error =
        line.scale * static_cast<float>(q4_code(values[j], line)) - line.offset - values[j];
    out += error * error;
  }
  return out;
}
// The line through the codes that a given line chose, by least squares.
Line refit(const float* values, const Line& line) {
  double q_sum = 0, qq = 0, v_sum = 0, qv = 0;
  for (int j = 0; j < 32; ++j) {
    const double q = q4_code(values[j], line);
    q_sum += q;
    qq += q * q;
    v_sum += values[j];
    qv += q * values[j];
  }
  const double determinant = 32 * qq - q_sum * q_sum;
  if (determinant <= 0) return line;
  const double scale = (32 * qv - q_sum * v_sum) / determinant;
  const double offset = (scale * q_sum - v_sum) / 32;
  if (scale <= 0) return line;
  if (offset < 0) return {static_cast<float>(qq > 0 ? qv / qq : scale), 0};
  return {static_cast<float>(scale), static_cast<float>(offset)};
}
Line best_line(const float* values) {
  const auto [low, high] = std::minmax_element(values, values + 32);
  const float offset = std::max(0.0f, -*low);
  const float span = *high + offset;
  if (span <= 0) return {0, offset};
  Line best{span / 15, offset};
  double least = squared_error(values, best);
  // Clipping the ends a little often pays: as if there were 14 to 16 steps.
  for (int attempt = -4; attempt <= 4; ++attempt) {
    const Line line = refit(values, {span / (15.0f + 0.25f * static_cast<float>(attempt)), offset});
    if (!(line.scale > 0) || line.offset < 0) continue;
    const double error = squared_error(values, line);
    if (error < least) {
      least = error;
      best = line;
    }
  }
  return best;
}

bool encode_q4_k_block(const float* values, std::uint8_t* block) {
  std::array<Line, 8> lines;
  float scale_top = 0;
  float offset_top = 0;
  for (std::size_t sub = 0; sub < 8; ++sub) {
    lines[sub] = best_line(values + 32 * sub);
    scale_top = std::max(scale_top, lines[sub].scale);
    offset_top = std::max(offset_top, lines[sub].offset);
  }
  if (!put_half(scale_top / 63, block) || !put_half(offset_top / 63, block + 2)) return false;
  const float d = half_at(block);
  const float m = half_at(block + 2);
  const auto six_bits = [](float value, float unit) {
    return static_cast<std::uint8_t>(
        unit > 0 ? std::clamp(static_cast<int>(std::nearbyint(value / unit)), 0, 63) : 0);
  };
  SixBits six{};
  std::array<std::uint8_t, kLarge> codes{};
  for (std::size_t sub = 0; sub < 8; ++sub) {
    six.scale[sub] = six_bits(lines[sub].scale, d);
    six.offset[sub] = six_bits(lines[sub].offset, m);
    const Line line{d * six.scale[sub], m * six.offset[sub]};
    for (std::size_t j = 0; j < 32; ++j)
      codes[32 * sub + j] = static_cast<std::uint8_t>(q4_code(values[32 * sub + j], line));
  }
  pack_six(six, block + 4);
  for (std::size_t pair = 0; pair < 4; ++pair) {
    for (std::size_t j = 0; j < 32; ++j)
      block[16 + 32 * pair + j] =
          static_cast<std::uint8_t>(codes[64 * pair + j] | (codes[64 * pair + 32 + j] << 4));
  }
  return true;
}

// ---- nf4

unsigned nearest_level(float value) {
  const auto above = std::lower_bound(kNf4Levels.begin(), kNf4Levels.end(), value);
  if (above == kNf4Levels.begin()) return 0;
  if (above == kNf4Levels.end()) return 15;
  const auto index = static_cast<unsigned>(above - kNf4Levels.begin());
  const float middle = (kNf4Levels[index - 1] + kNf4Levels[index]) / 2;
  return value > middle ? index : index - 1;
}
constexpr std::size_t kNf4Values = 64;
bool encode_nf4_block(const float* values, std::uint8_t* block) {
  float largest = 0;
  for (std::size_t j = 0; j < kNf4Values; ++j) largest = std::max(largest, std::fabs(values[j]));
  const float inverse = inverse_of(largest);
  if (inverse == 0) largest = 0;
  std::memcpy(block, &largest, 4);
  for (std::size_t j = 0; j < kNf4Values; j += 2)
    block[4 + j / 2] = static_cast<std::uint8_t>((nearest_level(values[j] * inverse) << 4) |
                                                 nearest_level(values[j + 1] * inverse));
  return true;
}
void decode_nf4_block(const std::uint8_t* block, float* values) {
  float largest;
  std::memcpy(&largest, block, 4);
  for (std::size_t j = 0; j < kNf4Values; j += 2) {
    values[j] = kNf4Levels[block[4 + j / 2] >> 4] * largest;
    values[j + 1] = kNf4Levels[block[4 + j / 2] & 15] * largest;
  }
}

// ---- all of them as codecs

template <std::size_t kValues, std::size_t kBytes>
std::size_t block_bytes(std::size_t count, const ChunkShape&) {
  return (count + kValues - 1) / kValues * kBytes;
}
template <std::size_t kValues, std::size_t kBytes, auto kEncodeBlock>
bool encode_all(std::span<const float> values, const ChunkShape& shape, std::span<std::uint8_t> out,
                std::size_t& used) {
  used = block_bytes<kValues, kBytes>(values.size(), shape);
  if (out.size() < used || !all_finite(values)) return false;
  std::uint8_t* to = out.data();
  for (std::size_t at = 0; at < values.size(); at += kValues, to += kBytes) {
    if (values.size() - at >= kValues) {
      if (!kEncodeBlock(values.data() + at, to)) return false;
      continue;
    }
    std::array<float, kValues> last{};
    std::copy(values.begin() + static_cast<std::ptrdiff_t>(at), values.end(), last.begin());
    if (!kEncodeBlock(last.data(), to)) return false;
  }
  return true;
}
template <std::size_t kValues, std::size_t kBytes, auto kDecodeBlock>
bool decode_all(std::span<const std::uint8_t> bytes, const ChunkShape& shape,
                std::span<float> values) {
  if (bytes.size() != block_bytes<kValues, kBytes>(values.size(), shape)) return false;
  std::size_t at = 0;
  const std::uint8_t* from = bytes.data();
  if constexpr (kDecodeBlock == decode_q8_0_block)
    at = vector_q8_0(from, values.size(), values.data());
  if constexpr (kDecodeBlock == decode_q4_0_block)
    at = vector_q4_0(from, values.size(), values.data());
  from += at / kValues * kBytes;
  for (; at < values.size(); at += kValues, from += kBytes) {
    if (values.size() - at >= kValues) {
      kDecodeBlock(from, values.data() + at);
      continue;
    }
    std::array<float, kValues> last;
    kDecodeBlock(from, last.data());
    std::copy_n(last.begin(), values.size() - at, values.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return true;
}
template <std::size_t kValues, std::size_t kBytes, RowForm kForm>
bool multiply_all(std::span<const std::uint8_t> bytes, const ChunkShape& shape, std::size_t count,
                  Product product, const float* in, float* out) {
  return multiply_blocks(kForm, kValues, kBytes, bytes, shape, count, product, in, out);
}
template <std::size_t kValues, std::size_t kBytes, auto kEncodeBlock, auto kDecodeBlock,
          RowForm kForm>
constexpr WeightCodec block_codec(std::string_view name) {
  return {name,
          false,
          is_floating,
          block_bytes<kValues, kBytes>,
          encode_through_floats<encode_all<kValues, kBytes, kEncodeBlock>>,
          decode_through_floats<decode_all<kValues, kBytes, kDecodeBlock>>,
          multiply_all<kValues, kBytes, kForm>,
          kValues,
          kBytes};
}

constexpr std::array<BlockKind, 8> kKinds = {{
    {"Q4_0", kSmall, 18, decode_q4_0_block},
    {"Q4_1", kSmall, 20, decode_q4_1_block},
    {"Q5_0", kSmall, 22, decode_q5_0_block},
    {"Q5_1", kSmall, 24, decode_q5_1_block},
    {"Q8_0", kSmall, 34, decode_q8_0_block},
    {"Q4_K", kLarge, 144, decode_q4_k_block},
    {"Q5_K", kLarge, 176, decode_q5_k_block},
    {"Q6_K", kLarge, 210, decode_q6_k_block},
}};

bool multiply_q8_0_whole(std::span<const std::uint8_t> bytes, const ChunkShape&, std::size_t count,
                         const WeightCodec::Whole& whole) {
  constexpr std::size_t kBlock = 34;
  if (count % kSmall != 0 || bytes.size() != count / kSmall * kBlock || whole.skip % kSmall != 0 ||
      whole.length % kSmall != 0 || whole.skip + whole.length > count ||
      whole.vectors > WeightCodec::kMostWhole)
    return false;
  float sums[WeightCodec::kMostWhole];
  vector_dot_whole(RowForm::kQ8_0, bytes.data() + whole.skip / kSmall * kBlock, whole.length,
                   whole.in, whole.step, whole.vectors, sums);
  for (std::size_t v = 0; v < whole.vectors; ++v) whole.out[v] += sums[v];
  return true;
}
constexpr WeightCodec with_whole(WeightCodec codec,
                                 decltype(WeightCodec::multiply_whole) multiply) {
  codec.multiply_whole = multiply;
  return codec;
}

}  // namespace

const WeightCodec kQ8_0Weights = with_whole(
    block_codec<kSmall, 34, encode_q8_0_block, decode_q8_0_block, RowForm::kQ8_0>("q8_0"),
    multiply_q8_0_whole);
const WeightCodec kQ4_0Weights =
    block_codec<kSmall, 18, encode_q4_0_block, decode_q4_0_block, RowForm::kQ4_0>("q4_0");
const WeightCodec kQ4KWeights =
    block_codec<kLarge, 144, encode_q4_k_block, decode_q4_k_block, RowForm::kQ4K>("q4_k");
const WeightCodec kNf4Weights =
    block_codec<kNf4Values, 36, encode_nf4_block, decode_nf4_block, RowForm::kNf4>("nf4");

std::span<const BlockKind> block_kinds() {
  return kKinds;
}
const BlockKind* find_block_kind(std::string_view name) {
  for (const BlockKind& kind : kKinds)
    if (kind.name == name) return &kind;
  return nullptr;
}

bool decode_blocks(const BlockKind& kind, std::span<const std::uint8_t> bytes,
                   std::span<float> values) {
  if (values.size() % kind.values != 0 || bytes.size() != values.size() / kind.values * kind.bytes)
    return false;
  for (std::size_t i = 0; i < values.size() / kind.values; ++i)
    kind.decode(bytes.data() + i * kind.bytes, values.data() + i * kind.values);
  return true;
}

}  // namespace plimsoll::codec

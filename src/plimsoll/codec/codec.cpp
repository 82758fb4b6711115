#include "plimsoll/codec/codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "plimsoll/base/random.h"
#include "plimsoll/codec/narrow_index.h"
#include "plimsoll/codec/small_float.h"
#include "plimsoll/codec/sparse.h"
#include "plimsoll/codec/vector_loops.h"

namespace plimsoll::codec {
namespace {

constexpr std::size_t kGroup = 256;

std::size_t two_bytes(std::size_t count) {
  return 2 * count;
}
std::size_t one_byte(std::size_t count) {
  return count;
}

template <SmallFloat F>
bool encode_small(std::span<const float> values, std::uint64_t, std::span<std::uint8_t> out,
                  std::size_t& used) {
  constexpr std::size_t kWidth = (1 + F.exponent_bits + F.fraction_bits) / 8;
  used = values.size() * kWidth;
  if (out.size() < used) return false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t code = to_small<F>(values[i]);
    for (std::size_t k = 0; k < kWidth; ++k)
      out[i * kWidth + k] = static_cast<std::uint8_t>(code >> (8 * k));
  }
  return true;
}

template <SmallFloat F>
bool decode_small(std::span<const std::uint8_t> bytes, std::span<float> values) {
  constexpr std::size_t kWidth = (1 + F.exponent_bits + F.fraction_bits) / 8;
  if (bytes.size() != values.size() * kWidth) return false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint32_t code = 0;
    for (std::size_t k = 0; k < kWidth; ++k)
      code |= static_cast<std::uint32_t>(bytes[i * kWidth + k]) << (8 * k);
    values[i] = from_small<F>(code);
  }
  return true;
}

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits | 0x400000u) >> 16);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

bool encode_bf16(std::span<const float> values, std::uint64_t, std::span<std::uint8_t> out,
                 std::size_t& used) {
  used = 2 * values.size();
  if (out.size() < used) return false;
  // Through a small aligned buffer: the output may start at any byte.
  std::array<std::uint16_t, 1024> buffer;
  for (std::size_t begin = 0; begin < values.size(); begin += buffer.size()) {
    const std::size_t count = std::min(buffer.size(), values.size() - begin);
    for (std::size_t i = vector_to_bf16(values.data() + begin, count, buffer.data()); i < count;
         ++i) {
      buffer[i] = to_bf16(values[begin + i]);
    }
    std::memcpy(out.data() + 2 * begin, buffer.data(), 2 * count);
  }
  return true;
}

bool decode_bf16(std::span<const std::uint8_t> bytes, std::span<float> values) {
  if (bytes.size() != 2 * values.size()) return false;
  std::array<std::uint16_t, 1024> buffer;
  for (std::size_t begin = 0; begin < values.size(); begin += buffer.size()) {
    const std::size_t count = std::min(buffer.size(), values.size() - begin);
    std::memcpy(buffer.data(), bytes.data() + 2 * begin, 2 * count);
    for (std::size_t i = vector_from_bf16(buffer.data(), count, values.data() + begin); i < count;
         ++i) {
      values[begin + i] = std::bit_cast<float>(static_cast<std::uint32_t>(buffer[i]) << 16);
    }
  }
  return true;
}

std::size_t int8_bytes(std::size_t count) {
  return count + (count + kGroup - 1) / kGroup * sizeof(float);
}

// Chance in [0, 1) that depends on the seed and the place only, so that groups can be done in any
// order.
double chance_of(std::uint64_t seed, std::size_t place) {
  std::uint64_t state = seed ^ (static_cast<std::uint64_t>(place) * 0x9e3779b97f4a7c15ULL);
  return static_cast<double>(splitmix64(state) >> 11) * 0x1.0p-53;
}

bool encode_int8(std::span<const float> values, std::uint64_t seed, std::span<std::uint8_t> out,
                 std::size_t& used) {
  used = int8_bytes(values.size());
  if (out.size() < used) return false;
  std::size_t at = 0;
  for (std::size_t begin = 0; begin < values.size(); begin += kGroup) {
    const std::size_t count = std::min(kGroup, values.size() - begin);
    float largest = 0;
    for (std::size_t i = begin; i < begin + count; ++i) {
      if (!std::isfinite(values[i])) return false;
      largest = std::max(largest, std::fabs(values[i]));
    }
    const float scale = largest / 127.0f;
    std::memcpy(out.data() + at, &scale, sizeof(scale));
    at += sizeof(scale);
    for (std::size_t i = begin; i < begin + count; ++i, ++at) {
      const double exact = scale > 0 ? static_cast<double>(values[i]) / scale : 0.0;
      const double low = std::floor(exact);
      const double step = chance_of(seed, i) < exact - low ? 1 : 0;
      out[at] = static_cast<std::uint8_t>(
          static_cast<std::int8_t>(std::clamp(low + step, -127.0, 127.0)));
    }
  }
  return true;
}

bool decode_int8(std::span<const std::uint8_t> bytes, std::span<float> values) {
  if (bytes.size() != int8_bytes(values.size())) return false;
  std::size_t at = 0;
  for (std::size_t begin = 0; begin < values.size(); begin += kGroup) {
    float scale = 0;
    std::memcpy(&scale, bytes.data() + at, sizeof(scale));
    at += sizeof(scale);
    const std::size_t end = std::min(values.size(), begin + kGroup);
    for (std::size_t i = begin; i < end; ++i, ++at)
      values[i] = scale * static_cast<float>(static_cast<std::int8_t>(bytes[at]));
  }
  return true;
}

bool encode_sparse_map(std::span<const float> values, std::uint64_t, std::span<std::uint8_t> out,
                       std::size_t& used) {
  return encode_sparse(values, out, used);
}

// A codec of floats as one of bytes.
template <auto kEncode, auto kDecode>
constexpr Codec of_floats(std::string_view name, bool lossless,
                          std::size_t (*largest)(std::size_t)) {
  return {name, lossless, sizeof(float), largest,
          [](std::span<const std::byte> values, std::uint64_t seed, std::span<std::uint8_t> out,
             std::size_t& used) {
            return kEncode({reinterpret_cast<const float*>(values.data()),
                            values.size() / sizeof(float)},
                           seed, out, used);
          },
          [](std::span<const std::uint8_t> bytes, std::span<std::byte> values) {
            return kDecode(bytes, {reinterpret_cast<float*>(values.data()),
                                   values.size() / sizeof(float)});
          }};
}

template <int kBits>
constexpr Codec of_indices(std::string_view name) {
  return {name, true, 1, narrow_bytes<kBits>,
          [](std::span<const std::byte> values, std::uint64_t, std::span<std::uint8_t> out,
             std::size_t& used) {
            used = narrow_bytes<kBits>(values.size());
            return out.size() >= used &&
                   encode_narrow<kBits>({reinterpret_cast<const std::uint8_t*>(values.data()),
                                         values.size()},
                                        out.first(used));
          },
          [](std::span<const std::uint8_t> bytes, std::span<std::byte> values) {
            if (bytes.size() != narrow_bytes<kBits>(values.size())) return false;
            decode_narrow<kBits>(bytes, {reinterpret_cast<std::uint8_t*>(values.data()),
                                         values.size()});
            return true;
          }};
}

constexpr std::array<Codec, 8> kCodecs = {{
    of_floats<encode_sparse_map, decode_sparse>("sparse", true, sparse_largest_bytes),
    of_indices<2>("crumbs"),
    of_indices<4>("nibbles"),
    of_floats<encode_small<kFp16>, decode_small<kFp16>>("fp16", false, two_bytes),
    of_floats<encode_bf16, decode_bf16>("bf16", false, two_bytes),
    of_floats<encode_small<kE4m3>, decode_small<kE4m3>>("fp8-e4m3", false, one_byte),
    of_floats<encode_small<kE5m2>, decode_small<kE5m2>>("fp8-e5m2", false, one_byte),
    of_floats<encode_int8, decode_int8>("int8", false, int8_bytes),
}};

}  // namespace

std::span<const Codec> codecs() {
  return kCodecs;
}

const Codec* find_codec(std::string_view name) {
  const auto found = std::find_if(kCodecs.begin(), kCodecs.end(),
                                  [&](const Codec& codec) { return codec.name == name; });
  return found == kCodecs.end() ? nullptr : &*found;
}

}  // namespace plimsoll::codec

#include "plimsoll/codec/codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "plimsoll/base/random.h"
#include "plimsoll/codec/narrow_index.h"
#include "plimsoll/codec/rounding_loops.h"
#include "plimsoll/codec/small_float.h"
#include "plimsoll/codec/sparse.h"

namespace plimsoll::codec {
namespace {

constexpr std::size_t kGroup = 256;

std::size_t two_bytes(std::size_t count) {
  return 2 * count;
}
std::size_t one_byte(std::size_t count) {
  return count;
}

std::uint32_t seed_of(std::uint64_t seed) {
  return static_cast<std::uint32_t>(mix64(seed));
}

template <SmallFloat F>
using CodeOf =
    std::conditional_t<(F.exponent_bits + F.fraction_bits > 7), std::uint16_t, std::uint8_t>;

// Through a small aligned buffer: encoded activations may start at any byte.
inline constexpr std::size_t kBuffer = 1024;

template <SmallFloat F, SmallForm kForm>
bool encode_small(std::span<const float> values, std::uint64_t seed, std::span<std::uint8_t> out,
                  std::size_t& used) {
  using Code = CodeOf<F>;
  used = values.size() * sizeof(Code);
  if (out.size() < used) return false;
  std::array<Code, kBuffer> codes;
  bool too_large = false;
  for (std::size_t begin = 0; begin < values.size(); begin += kBuffer) {
    const std::size_t count = std::min(kBuffer, values.size() - begin);
    const std::uint32_t part = seed_of(seed + begin);
    const float* from = values.data() + begin;
    for (std::size_t i = vector_round(kForm, from, count, part, codes.data(), too_large); i < count;
         ++i) {
      const std::uint32_t code =
          to_small<F>(from[i], chance_at(part, static_cast<std::uint32_t>(i)));
      too_large = too_large || code == kTooLarge;
      codes[i] = static_cast<Code>(code);
    }
    if (too_large) return false;
    std::memcpy(out.data() + begin * sizeof(Code), codes.data(), count * sizeof(Code));
  }
  return true;
}

template <SmallFloat F, SmallForm kForm>
bool decode_small(std::span<const std::uint8_t> bytes, std::span<float> values) {
  using Code = CodeOf<F>;
  if (bytes.size() != values.size() * sizeof(Code)) return false;
  std::array<Code, kBuffer> codes;
  for (std::size_t begin = 0; begin < values.size(); begin += kBuffer) {
    const std::size_t count = std::min(kBuffer, values.size() - begin);
    std::memcpy(codes.data(), bytes.data() + begin * sizeof(Code), count * sizeof(Code));
    float* to = values.data() + begin;
    for (std::size_t i = vector_widen(kForm, codes.data(), count, to); i < count; ++i) {
      to[i] = from_small<F>(codes[i]);
    }
  }
  return true;
}

std::size_t int8_bytes(std::size_t count) {
  return count + (count + kGroup - 1) / kGroup * sizeof(float);
}

// x · factor has 16 bits behind the point; 16 bits of chance carry over it or not.
std::int8_t round_to_int8(float value, float factor, std::uint32_t chance) {
  const auto fixed = static_cast<std::int32_t>(std::lrint(value * factor));
  const std::int32_t rounded = (fixed + static_cast<std::int32_t>(chance >> 16)) >> 16;
  return static_cast<std::int8_t>(std::clamp(rounded, -127, 127));
}

bool encode_int8(std::span<const float> values, std::uint64_t seed, std::span<std::uint8_t> out,
                 std::size_t& used) {
  used = int8_bytes(values.size());
  if (out.size() < used) return false;
  const std::uint32_t all = seed_of(seed);
  std::size_t at = 0;
  for (std::size_t begin = 0; begin < values.size(); begin += kGroup) {
    const std::span<const float> group =
        values.subspan(begin, std::min(kGroup, values.size() - begin));
    std::uint32_t magnitude = 0;
    for (std::size_t i = vector_largest(group.data(), group.size(), magnitude); i < group.size();
         ++i) {
      magnitude = std::max(magnitude, std::bit_cast<std::uint32_t>(group[i]) & 0x7fffffffu);
    }
    if (magnitude >= 0x7f800000u) return false;
    const auto largest = std::bit_cast<float>(magnitude);
    // Below that the factor would be infinite; what is lost is less than 1e-30.
    const bool any = largest >= 0x1p-100f;
    const float scale = any ? largest / 127.0f : 0.0f;
    const float factor = any ? kFixed * 127.0f / largest : 0.0f;
    std::memcpy(out.data() + at, &scale, sizeof(scale));
    at += sizeof(scale);
    const auto place = static_cast<std::uint32_t>(begin);
    auto* codes = reinterpret_cast<std::int8_t*>(out.data() + at);
    for (std::size_t i = vector_to_int8(group.data(), group.size(), factor, all, place, codes);
         i < group.size(); ++i) {
      codes[i] =
          round_to_int8(group[i], factor, chance_at(all, place + static_cast<std::uint32_t>(i)));
    }
    at += group.size();
  }
  return true;
}

bool decode_int8(std::span<const std::uint8_t> bytes, std::span<float> values) {
  if (bytes.size() != int8_bytes(values.size())) return false;
  std::size_t at = 0;
  for (std::size_t begin = 0; begin < values.size(); begin += kGroup) {
    const std::span<float> group = values.subspan(begin, std::min(kGroup, values.size() - begin));
    float scale = 0;
    std::memcpy(&scale, bytes.data() + at, sizeof(scale));
    at += sizeof(scale);
    const auto* codes = reinterpret_cast<const std::int8_t*>(bytes.data() + at);
    for (std::size_t i = vector_from_int8(codes, group.size(), scale, group.data());
         i < group.size(); ++i) {
      group[i] = scale * static_cast<float>(codes[i]);
    }
    at += group.size();
  }
  return true;
}

bool encode_sparse_activation(std::span<const float> values, std::uint64_t,
                              std::span<std::uint8_t> out, std::size_t& used) {
  return encode_sparse(values, out, used);
}

// A codec of floats as one of bytes.
template <auto kEncode, auto kDecode>
constexpr Codec of_floats(std::string_view name, bool lossless,
                          std::size_t (*largest)(std::size_t)) {
  return {name,
          lossless,
          sizeof(float),
          largest,
          [](std::span<const std::byte> values, std::uint64_t seed, std::span<std::uint8_t> out,
             std::size_t& used) {
            return kEncode(
                {reinterpret_cast<const float*>(values.data()), values.size() / sizeof(float)},
                seed, out, used);
          },
          [](std::span<const std::uint8_t> bytes, std::span<std::byte> values) {
            return kDecode(
                bytes, {reinterpret_cast<float*>(values.data()), values.size() / sizeof(float)});
          }};
}

template <int kBits>
constexpr Codec of_indices(std::string_view name) {
  return {name,
          true,
          1,
          narrow_bytes<kBits>,
          [](std::span<const std::byte> values, std::uint64_t, std::span<std::uint8_t> out,
             std::size_t& used) {
            used = narrow_bytes<kBits>(values.size());
            return out.size() >= used &&
                   encode_narrow<kBits>(
                       {reinterpret_cast<const std::uint8_t*>(values.data()), values.size()},
                       out.first(used));
          },
          [](std::span<const std::uint8_t> bytes, std::span<std::byte> values) {
            if (bytes.size() != narrow_bytes<kBits>(values.size())) return false;
            decode_narrow<kBits>(bytes,
                                 {reinterpret_cast<std::uint8_t*>(values.data()), values.size()});
            return true;
          }};
}

constexpr std::array<Codec, 8> kCodecs = {{
    of_floats<encode_sparse_activation, decode_sparse>("sparse", true, sparse_largest_bytes),
    of_indices<2>("crumbs"),
    of_indices<4>("nibbles"),
    of_floats<encode_small<kFp16, SmallForm::kFp16Form>, decode_small<kFp16, SmallForm::kFp16Form>>(
        "fp16", false, two_bytes),
    of_floats<encode_small<kBf16, SmallForm::kBf16Form>, decode_small<kBf16, SmallForm::kBf16Form>>(
        "bf16", false, two_bytes),
    of_floats<encode_small<kE4m3, SmallForm::kE4m3Form>, decode_small<kE4m3, SmallForm::kE4m3Form>>(
        "fp8-e4m3", false, one_byte),
    of_floats<encode_small<kE5m2, SmallForm::kE5m2Form>, decode_small<kE5m2, SmallForm::kE5m2Form>>(
        "fp8-e5m2", false, one_byte),
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

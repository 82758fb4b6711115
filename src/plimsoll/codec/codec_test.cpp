#include "plimsoll/codec/codec.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "plimsoll/base/random.h"
#include "plimsoll/codec/bit_mask.h"
#include "plimsoll/codec/narrow_index.h"
#include "plimsoll/codec/small_float.h"

namespace plimsoll::codec {
namespace {

std::vector<float> half_zero(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = std::max(0.0f, static_cast<float>(random.normal()));
  return values;
}

std::span<const std::byte> bytes_of(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

// An activation for a codec of floats, or of indices that it can hold.
std::vector<std::byte> map_for(const Codec& codec, std::size_t count, std::uint64_t seed) {
  if (codec.element_bytes == sizeof(float)) {
    const auto values = half_zero(count, seed);
    return {bytes_of(values).begin(), bytes_of(values).end()};
  }
  Random random(seed);
  std::vector<std::byte> out(count);
  for (std::byte& value : out) value = static_cast<std::byte>(random.below(4));
  return out;
}

// How far apart the two values are that chance decides between; an activation's largest value is
// below 6.
float step_of(std::string_view codec, float value) {
  if (codec == "int8") return 6.0f / 127;
  const float step = codec == "fp16"       ? 0x1p-10f
                     : codec == "bf16"     ? 0x1p-7f
                     : codec == "fp8-e4m3" ? 0x1p-3f
                                           : 0x1p-2f;
  return step * std::max(0x1p-6f, value);
}

// The contract of codec.h, on every codec.
class CodecContract : public ::testing::TestWithParam<Codec> {
 protected:
  std::vector<std::uint8_t> encode(std::span<const std::byte> values, std::uint64_t seed = 1) {
    std::vector<std::uint8_t> bytes(
        GetParam().largest_bytes(values.size() / GetParam().element_bytes), 0xab);
    std::size_t used = 0;
    encoded_ = GetParam().encode(values, seed, bytes, used);
    EXPECT_LE(used, bytes.size());
    bytes.resize(used);
    return bytes;
  }
  bool encoded_ = false;
};

TEST_P(CodecContract, GivesBackWhatItPromises) {
  for (std::size_t count : {0, 1, 2, 7, 8, 9, 63, 64, 65, 255, 256, 257, 1000, 4096, 5000, 20000}) {
    const auto values = map_for(GetParam(), count, count + 1);
    const auto bytes = encode(values);
    ASSERT_TRUE(encoded_) << count;
    std::vector<std::byte> back(values.size(), std::byte{0x55});
    ASSERT_TRUE(GetParam().decode(bytes, back)) << count;
    if (GetParam().lossless) {
      EXPECT_EQ(back, values) << count;
      continue;
    }
    for (std::size_t i = 0; i < count; ++i) {
      float was = 0, is = 0;
      std::memcpy(&was, values.data() + 4 * i, 4);
      std::memcpy(&is, back.data() + 4 * i, 4);
      EXPECT_LT(std::fabs(is - was), step_of(GetParam().name, was)) << was;
    }
  }
}

TEST_P(CodecContract, IsTheSameForTheSameSeed) {
  const auto values = map_for(GetParam(), 1000, 3);
  EXPECT_EQ(encode(values, 5), encode(values, 5));
}

TEST_P(CodecContract, RefusesAnOutputThatIsTooSmall) {
  const auto values = map_for(GetParam(), 1000, 4);
  std::vector<std::uint8_t> bytes(100);
  std::size_t used = 0;
  EXPECT_FALSE(GetParam().encode(values, 1, bytes, used));
}

TEST_P(CodecContract, SurvivesStrangeValues) {
  const std::vector<float> values = {std::numeric_limits<float>::quiet_NaN(),
                                     std::numeric_limits<float>::infinity(),
                                     -std::numeric_limits<float>::infinity(),
                                     -0.0f,
                                     1e-45f,
                                     3.4e38f,
                                     -3.4e38f};
  const auto bytes = encode(bytes_of(values));
  // Only a codec of indices, or one that scales by the largest value, may refuse them; then the
  // bytes stay as they are.
  EXPECT_TRUE(encoded_ || GetParam().element_bytes == 1 || !GetParam().lossless);
  if (!encoded_) return;
  std::vector<float> back(values.size());
  ASSERT_TRUE(GetParam().decode(bytes, std::as_writable_bytes(std::span(back))));
  EXPECT_TRUE(std::isnan(back[0]));
  if (!GetParam().lossless) return;
  for (std::size_t i = 1; i < values.size(); ++i)
    EXPECT_EQ(std::bit_cast<std::uint32_t>(back[i]), std::bit_cast<std::uint32_t>(values[i]));
}

TEST_P(CodecContract, DecodesAnyBytesWithoutHarm) {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(random.below(600)));
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random.next());
    std::vector<float> values(static_cast<std::size_t>(random.below(300)));
    GetParam().decode(bytes, std::as_writable_bytes(std::span(values)));
  }
}

INSTANTIATE_TEST_SUITE_P(All, CodecContract, ::testing::ValuesIn(codecs().begin(), codecs().end()),
                         [](const auto& tested) {
                           std::string name(tested.param.name);
                           std::erase(name, '-');
                           return name;
                         });

constexpr std::uint32_t kChances[] = {0,          1,          0x12345678, 0x7fffffff,
                                      0x80000000, 0xfffffffe, 0xffffffff};

TEST(SmallFloat, WhatAFormRepresentsIsRoundedByNoChance) {
  const auto check = [](auto to, auto from, std::uint32_t codes) {
    for (std::uint32_t code = 0; code < codes; ++code) {
      const float value = from(code);
      for (const std::uint32_t chance : kChances) {
        if (!std::isnan(value))
          EXPECT_EQ(to(value, chance), code);
        else
          EXPECT_TRUE(std::isnan(from(to(value, chance))));
      }
    }
  };
  check(to_small<kFp16>, from_small<kFp16>, 65536);
  check(to_small<kBf16>, from_small<kBf16>, 65536);
  check(to_small<kE5m2>, from_small<kE5m2>, 256);
  check(to_small<kE4m3>, from_small<kE4m3>, 256);
}

TEST(SmallFloat, ChanceDecidesBetweenTheTwoNeighbours) {
  // A quarter of the way from 1 to the next: a quarter of all chances carry.
  const float value = 1.0f + 0x1p-12f;
  EXPECT_EQ(to_small<kFp16>(value, 0xbfffffffu), 0x3c00u);
  EXPECT_EQ(to_small<kFp16>(value, 0xc0000000u), 0x3c01u);
  EXPECT_EQ(to_small<kFp16>(-value, 0xc0000000u), 0xbc01u);
  // The same among subnormals: a quarter of the smallest.
  EXPECT_EQ(to_small<kFp16>(0x1p-26f, 0xbfffffffu), 0u);
  EXPECT_EQ(to_small<kFp16>(0x1p-26f, 0xc0000000u), 1u);
  EXPECT_EQ(to_small<kE4m3>(0.3f, 0u), to_small<kE4m3>(0.28125f, 0u));
  EXPECT_EQ(to_small<kE4m3>(0.3f, ~0u), to_small<kE4m3>(0.3125f, 0u));
}

TEST(SmallFloat, AFiniteValueNeverBecomesInfinite) {
  EXPECT_EQ(to_small<kFp16>(65504.0f, ~0u), 0x7bffu);
  EXPECT_EQ(to_small<kFp16>(65520.0f, 0u), 0x7bffu);
  EXPECT_EQ(to_small<kFp16>(65520.0f, ~0u), kTooLarge);
  EXPECT_EQ(to_small<kFp16>(65536.0f, 0u), kTooLarge);
  EXPECT_EQ(to_small<kBf16>(3.4028235e38f, ~0u), kTooLarge);
  EXPECT_EQ(to_small<kE4m3>(448.0f, ~0u), 0x7eu);
  EXPECT_EQ(to_small<kE4m3>(480.0f, 0u), kTooLarge);
  EXPECT_EQ(to_small<kE4m3>(std::numeric_limits<float>::infinity(), 0u), kTooLarge);
  EXPECT_EQ(to_small<kE5m2>(1e9f, 0u), kTooLarge);
  EXPECT_EQ(to_small<kE5m2>(std::numeric_limits<float>::infinity(), 7u), 0x7cu);
}

// The mean of many roundings is the value, for every lossy form: its error is that of chance alone.
TEST(Rounding, KeepsTheMean) {
  for (const Codec& codec : codecs()) {
    if (codec.lossless) continue;
    for (const float value : {0.3f, -1.7f, 0.0123f}) {
      std::vector<float> values(100'000, value);
      for (std::size_t i = 0; i < values.size(); i += 256) values[i] = 4.0f;
      std::vector<std::uint8_t> bytes(codec.largest_bytes(values.size()));
      std::size_t used = 0;
      ASSERT_TRUE(codec.encode(bytes_of(values), 11, bytes, used));
      std::vector<float> back(values.size());
      ASSERT_TRUE(codec.decode(bytes, std::as_writable_bytes(std::span(back))));
      double sum = 0, largest = 0;
      for (std::size_t i = 0; i < back.size(); ++i) {
        if (i % 256 == 0) continue;
        sum += back[i] - value;
        largest = std::max(largest, std::fabs(static_cast<double>(back[i]) - value));
      }
      const auto count = static_cast<double>(values.size() - values.size() / 256 - 1);
      // Five standard deviations of a two-point distribution as wide as the largest error allows.
      EXPECT_LT(std::fabs(sum / count), 5 * 2 * largest / std::sqrt(count))
          << codec.name << " " << value;
      EXPECT_GT(largest, 0) << codec.name;
    }
  }
}

TEST(Rounding, DependsOnTheSeed) {
  const auto values = half_zero(4096, 5);
  for (const Codec& codec : codecs()) {
    if (codec.lossless) continue;
    std::vector<std::uint8_t> one(codec.largest_bytes(values.size())), two(one.size());
    std::size_t used = 0;
    ASSERT_TRUE(codec.encode(bytes_of(values), 1, one, used));
    ASSERT_TRUE(codec.encode(bytes_of(values), 2, two, used));
    EXPECT_NE(one, two) << codec.name;
  }
}

// Vectors do most of an activation, the scalar functions its end: whichever does a value, the bits
// are the same.
TEST(Rounding, VectorsRoundAsTheScalarDoes) {
  Random random(9);
  std::vector<float> values(1024);
  for (float& value : values)
    value = static_cast<float>(random.normal() * std::exp(random.normal() * 4));
  for (float& value : values) value = std::clamp(value, -400.0f, 400.0f);
  values[3] = 0x1p-133f, values[4] = std::nanf(""), values[5] = -0.0f;
  const std::uint32_t seed = static_cast<std::uint32_t>(mix64(7));
  const auto check = [&](std::string_view name, auto to, auto from) {
    const Codec& codec = *find_codec(name);
    std::vector<std::uint8_t> bytes(codec.largest_bytes(values.size()));
    std::size_t used = 0;
    ASSERT_TRUE(codec.encode(bytes_of(values), 7, bytes, used));
    std::vector<float> back(values.size());
    ASSERT_TRUE(codec.decode(bytes, std::as_writable_bytes(std::span(back))));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float expected = from(to(values[i], chance_at(seed, static_cast<std::uint32_t>(i))));
      EXPECT_EQ(std::bit_cast<std::uint32_t>(back[i]), std::bit_cast<std::uint32_t>(expected))
          << name << " " << values[i];
    }
  };
  check("fp16", to_small<kFp16>, from_small<kFp16>);
  check("bf16", to_small<kBf16>, from_small<kBf16>);
  check("fp8-e4m3", to_small<kE4m3>, from_small<kE4m3>);
  check("fp8-e5m2", to_small<kE5m2>, from_small<kE5m2>);
}

TEST(Rounding, RefusesAMapWithAValueThatHasNoCode) {
  for (const std::size_t at : {0, 500, 4095}) {
    std::vector<float> values(4096, 1.0f);
    values[at] = 1e9f;
    for (const std::string_view name : {"fp16", "fp8-e4m3", "fp8-e5m2"}) {
      std::vector<std::uint8_t> bytes(find_codec(name)->largest_bytes(values.size()));
      std::size_t used = 0;
      EXPECT_FALSE(find_codec(name)->encode(bytes_of(values), 1, bytes, used)) << name << " " << at;
    }
  }
}

TEST(Int8, KeepsTheMeanByRoundingByChance) {
  std::vector<float> values(100'000, 0.3f);
  for (std::size_t i = 0; i < values.size(); i += 256) values[i] = 127.0f;
  std::vector<std::uint8_t> bytes(find_codec("int8")->largest_bytes(values.size()));
  std::size_t used = 0;
  ASSERT_TRUE(find_codec("int8")->encode(bytes_of(values), 11, bytes, used));
  std::vector<float> back(values.size());
  ASSERT_TRUE(find_codec("int8")->decode(bytes, std::as_writable_bytes(std::span(back))));
  double sum = 0;
  for (std::size_t i = 0; i < back.size(); ++i) sum += i % 256 == 0 ? 0 : back[i];
  EXPECT_NEAR(sum / static_cast<double>(values.size() - values.size() / 256), 0.3, 0.01);
}

TEST(BitMask, SelectsAsReluAndClipDo) {
  for (std::size_t count : {0, 1, 7, 8, 9, 16, 17, 100, 1001}) {
    Random random(count);
    std::vector<float> values(count), gradient(count), out(count);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = random.chance(0.2) ? (random.chance(0.5) ? -0.0f : std::nanf(""))
                                     : static_cast<float>(random.normal());
      gradient[i] = static_cast<float>(random.normal());
    }
    std::vector<std::uint8_t> mask(mask_bytes(count), 0xff);
    encode_positive(values, mask);
    select_by_mask(gradient, mask, out);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(out[i], values[i] > 0 ? gradient[i] : 0.0f);
    encode_inside(values, -0.5f, 0.25f, mask);
    select_by_mask(gradient, mask, out);
    for (std::size_t i = 0; i < count; ++i)
      EXPECT_EQ(out[i], values[i] >= -0.5f && values[i] <= 0.25f ? gradient[i] : 0.0f);
  }
}

TEST(NarrowIndex, RefusesWhatDoesNotFit) {
  std::vector<std::uint8_t> out(1);
  EXPECT_TRUE(encode_narrow<4>(std::vector<std::uint8_t>{15, 15}, out));
  EXPECT_FALSE(encode_narrow<4>(std::vector<std::uint8_t>{0, 16}, out));
  EXPECT_TRUE(encode_narrow<2>(std::vector<std::uint8_t>{3, 3, 3, 3}, out));
  EXPECT_FALSE(encode_narrow<2>(std::vector<std::uint8_t>{4}, out));
}

TEST(NarrowIndex, ByteOfANibbleAndOfACrumb) {
  std::vector<std::uint8_t> out(1);
  ASSERT_TRUE(encode_narrow<4>(std::vector<std::uint8_t>{3, 9}, out));
  EXPECT_EQ(out[0], 0x93);
  ASSERT_TRUE(encode_narrow<2>(std::vector<std::uint8_t>{1, 2, 3}, out));
  EXPECT_EQ(out[0], 0b00'11'10'01);
}

}  // namespace
}  // namespace plimsoll::codec

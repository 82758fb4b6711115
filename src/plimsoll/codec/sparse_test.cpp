#include "plimsoll/codec/sparse.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "plimsoll/base/random.h"

namespace plimsoll::codec {
namespace {

void expect_same_bits(const std::vector<float>& values) {
  std::vector<std::uint8_t> bytes(sparse_largest_bytes(values.size()));
  std::size_t used = 0;
  ASSERT_TRUE(encode_sparse(values, bytes, used));
  bytes.resize(used);
  std::vector<float> back(values.size(), -7.0f);
  ASSERT_TRUE(decode_sparse(bytes, back));
  EXPECT_EQ(std::memcmp(back.data(), values.data(), values.size() * sizeof(float)), 0);
}

TEST(Sparse, AMapThatIsHalfZeroTakesLessThanHalf) {
  Random random(1);
  std::vector<float> values(100'000);
  for (float& value : values) value = std::max(0.0f, static_cast<float>(random.normal()));
  std::vector<std::uint8_t> bytes(sparse_largest_bytes(values.size()));
  std::size_t used = 0;
  ASSERT_TRUE(encode_sparse(values, bytes, used));
  EXPECT_LT(used, values.size() * 4 * 46 / 100);
  EXPECT_LE(used, sparse_bytes(values.size(), 0.49));
}

// Every mixture of zeros, signs, scales, counts and oddities comes back bit by bit.
TEST(Sparse, RandomMapsComeBackBitByBit) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<float> values(static_cast<std::size_t>(random.below(10'000)));
    const double zeros = random.uniform();
    const double odd = seed % 3 == 0 ? 0.01 : 0;
    const double spread = static_cast<double>(random.below(30));
    for (float& value : values) {
      if (random.chance(zeros)) continue;
      const double magnitude = std::exp2(-spread * random.uniform());
      value = static_cast<float>(random.normal() * magnitude);
      if (seed % 2 == 0) value = std::fabs(value);
      if (random.chance(odd))
        value = std::bit_cast<float>(static_cast<std::uint32_t>(random.next()));
    }
    expect_same_bits(values);
  }
}

TEST(Sparse, ScalesAtBothEndsOfTheRange) {
  const float least = std::numeric_limits<float>::denorm_min();
  expect_same_bits(std::vector<float>(5000, least));
  expect_same_bits(std::vector<float>(5000, std::numeric_limits<float>::max()));
  expect_same_bits(std::vector<float>(33, std::numeric_limits<float>::infinity()));
  std::vector<float> mixed(1000, 0.0f);
  for (std::size_t i = 0; i < mixed.size(); i += 3) mixed[i] = i % 2 == 0 ? least : 1e30f;
  mixed[1] = -0.0f;
  expect_same_bits(mixed);
}

TEST(Sparse, SpoiledBytesDecodeToSomethingOrNothing) {
  Random random(3);
  std::vector<float> values(5000);
  for (float& value : values)
    value = random.chance(0.5) ? 0.0f : static_cast<float>(random.normal());
  std::vector<std::uint8_t> bytes(sparse_largest_bytes(values.size()));
  std::size_t used = 0;
  ASSERT_TRUE(encode_sparse(values, bytes, used));
  bytes.resize(used);
  for (int round = 0; round < 500; ++round) {
    std::vector<std::uint8_t> spoiled = bytes;
    for (int flips = 0; flips < 3; ++flips) {
      const auto range = random.chance(0.5) ? std::size_t{16} : spoiled.size();
      spoiled[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(range)))] ^=
          static_cast<std::uint8_t>(random.next());
    }
    spoiled.resize(static_cast<std::size_t>(random.below(static_cast<std::int64_t>(used)) + 1));
    decode_sparse(spoiled, values);
  }
}

}  // namespace
}  // namespace plimsoll::codec

#include "plimsoll/codec/vector_loops.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <vector>

#include "plimsoll/base/random.h"
#include "plimsoll/codec/codec.h"

namespace plimsoll::codec {
namespace {

// Floats with zeros, signs and a few far out of range; for codecs of indices, small numbers.
std::vector<std::byte> mixed_map(const Codec& codec, std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::byte> out;
  for (std::size_t i = 0; i < count; ++i) {
    if (codec.element_bytes == 1) {
      out.push_back(static_cast<std::byte>(random.below(4)));
      continue;
    }
    float value = random.chance(0.5) ? 0.0f : static_cast<float>(random.normal());
    if (random.chance(0.002)) value *= std::ldexp(1.0f, -40);
    const auto bytes = std::as_bytes(std::span(&value, 1));
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  return out;
}

class VectorLoops : public ::testing::Test {
 protected:
  ~VectorLoops() override { use(0); }
  // Only this kind of vectors from now on; 0: the best there is.
  static void use(std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

// What the longest vectors of this machine write, shorter ones write and read as well.
TEST_F(VectorLoops, OfEveryKindGiveTheSameBytes) {
  const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  ASSERT_FALSE(targets.empty());
  for (const Codec& codec : codecs()) {
    for (const std::size_t count : {1, 15, 16, 17, 100, 4096, 10'001}) {
      const std::vector<std::byte> map = mixed_map(codec, count, count);
      std::vector<std::uint8_t> expected;
      std::vector<std::byte> expected_back;
      for (const std::int64_t target : targets) {
        SCOPED_TRACE(fmt::format("{} values, {}, {}", count, codec.name, hwy::TargetName(target)));
        use(target);
        std::vector<std::uint8_t> bytes(codec.largest_bytes(count), 0xab);
        std::size_t used = 0;
        ASSERT_TRUE(codec.encode(map, 1, bytes, used));
        bytes.resize(used);
        std::vector<std::byte> back(map.size(), std::byte{0x55});
        ASSERT_TRUE(codec.decode(bytes, back));
        if (codec.lossless) {
          EXPECT_EQ(back, map);
        }
        if (expected.empty()) expected = bytes, expected_back = back;
        EXPECT_EQ(bytes, expected);
        EXPECT_EQ(back, expected_back);
      }
    }
  }
}

}  // namespace
}  // namespace plimsoll::codec

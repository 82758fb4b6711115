#include "plimsoll/codec/box.h"

#include <vector>

#include <gtest/gtest.h>

#include "plimsoll/base/random.h"

namespace plimsoll::codec {
namespace {

std::vector<float> map_with_zeros(std::size_t count, double zeros) {
  Random random(7);
  std::vector<float> out(count);
  for (float& value : out) value = random.chance(zeros) ? 0.0f : static_cast<float>(random.uniform()) + 0.5f;
  return out;
}

TEST(Box, HalfZeroMapsComeBackBitByBit) {
  const Codec& sparse = *find_codec("sparse");
  const std::vector<float> map = map_with_zeros(10'000, 0.5);
  std::vector<std::uint8_t> box(box_bytes(sparse, map.size()));
  EXPECT_LT(box.size(), map.size() * sizeof(float) * 6 / 10);
  ASSERT_TRUE(pack_box(sparse, map, 1, box));
  std::vector<float> back(map.size(), -1.0f);
  ASSERT_EQ(open_box(sparse, box, back), Opened::kValues);
  EXPECT_EQ(back, map);
}

TEST(Box, FullMapsAreRefusedAndTheBoxSaysSo) {
  const Codec& sparse = *find_codec("sparse");
  const std::vector<float> map = map_with_zeros(10'000, 0.1);
  std::vector<std::uint8_t> box(box_bytes(sparse, map.size()));
  EXPECT_FALSE(pack_box(sparse, map, 1, box));
  std::vector<float> back(map.size());
  EXPECT_EQ(open_box(sparse, box, back), Opened::kRefused);
}

TEST(Box, DamagedBoxesAreNoticed) {
  const Codec& sparse = *find_codec("sparse");
  std::vector<std::uint8_t> box(box_bytes(sparse, 100), 0x55);
  std::vector<float> back(100);
  EXPECT_EQ(open_box(sparse, box, back), Opened::kDamaged);
  EXPECT_EQ(open_box(sparse, {}, back), Opened::kDamaged);
}

}  // namespace
}  // namespace plimsoll::codec

#include "plimsoll/codec/box.h"

#include <gtest/gtest.h>

#include <vector>

#include "plimsoll/base/random.h"

namespace plimsoll::codec {
namespace {

constexpr double kZeros = 0.45;

std::vector<float> map_with_zeros(std::size_t count, double zeros) {
  Random random(7);
  std::vector<float> out(count);
  for (float& value : out) value = random.chance(zeros) ? 0.0f : static_cast<float>(random.uniform()) + 0.5f;
  return out;
}

// Blocks from the last to the first: any order will do.
bool pack(const Codec& codec, const std::vector<float>& map, std::vector<std::uint8_t>& box) {
  BoxWriter writer(codec, map.size(), box);
  for (std::size_t block = box_blocks(map.size()); block-- > 0;)
    writer.put(block, box_part(codec, std::as_bytes(std::span(map)), block));
  return writer.close();
}

Opened open(const Codec& codec, const std::vector<std::uint8_t>& box, std::vector<float>& map) {
  for (std::size_t block = 0; block < box_blocks(map.size()); ++block) {
    const Opened one = open_block(codec, map.size(), box, block,
                                  box_part(codec, std::as_writable_bytes(std::span(map)), block));
    if (one != Opened::kValues) return one;
  }
  return Opened::kValues;
}

TEST(Box, MapsOfEveryCodecComeBack) {
  for (const Codec& codec : codecs()) {
    if (codec.element_bytes != sizeof(float)) continue;
    for (const std::size_t count : {1u, 1000u, 16384u, 16385u, 50000u}) {
      const std::vector<float> map = map_with_zeros(count, 0.5);
      std::vector<std::uint8_t> box(box_bytes(codec, count, kZeros));
      ASSERT_TRUE(pack(codec, map, box)) << codec.name << ' ' << count;
      std::vector<float> back(count, -1.0f);
      ASSERT_EQ(open(codec, box, back), Opened::kValues) << codec.name << ' ' << count;
      if (codec.lossless) {
        EXPECT_EQ(back, map);
      }
      EXPECT_LE(box_used(box), box.size());
    }
  }
}

TEST(Box, RoomForAHalfZeroMapIsHalfOfIt) {
  const Codec& sparse = *find_codec("sparse");
  EXPECT_LT(box_bytes(sparse, 1'000'000, kZeros), 4'000'000u / 2);
}

TEST(Box, FullMapsAreRefusedAndTheBoxSaysSo) {
  const Codec& sparse = *find_codec("sparse");
  const std::vector<float> map = map_with_zeros(100'000, 0.1);
  std::vector<std::uint8_t> box(box_bytes(sparse, map.size(), kZeros));
  EXPECT_FALSE(pack(sparse, map, box));
  std::vector<float> back(map.size());
  EXPECT_EQ(open(sparse, box, back), Opened::kRefused);
  EXPECT_EQ(box_used(box), 0u);
}

TEST(Box, DamagedBoxesAreNoticed) {
  const Codec& sparse = *find_codec("sparse");
  std::vector<std::uint8_t> box(box_bytes(sparse, 100, kZeros), 0x55);
  std::vector<float> back(100);
  EXPECT_EQ(open(sparse, box, back), Opened::kDamaged);
  EXPECT_EQ(open(sparse, {}, back), Opened::kDamaged);
}

}  // namespace
}  // namespace plimsoll::codec

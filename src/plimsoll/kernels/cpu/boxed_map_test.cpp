#include "plimsoll/kernels/cpu/boxed_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "plimsoll/base/random.h"

namespace plimsoll::kernels {
namespace {

constexpr std::size_t kBlocks = 12;
constexpr std::size_t kValues = kBlocks * codec::kBoxBlock - 100;

std::vector<float> map_with_zeros(double zeros) {
  Random random(5);
  std::vector<float> out(kValues);
  for (float& value : out) value = random.chance(zeros) ? 0.0F : static_cast<float>(random.uniform()) + 0.5F;
  return out;
}

class BoxedMap : public ::testing::Test {
 protected:
  void SetUp() override { EXPECT_TRUE(overflow_.take_room(room_).empty()); }

  // How many blocks did not fit; whether the map came back is expected.
  std::size_t round_trip(const std::vector<float>& map) {
    pack_map(sparse_, std::as_bytes(std::span(map)), box_, overflow_);
    std::vector<float> back(map.size(), -1.0F);
    EXPECT_TRUE(unpack_map(sparse_, box_, overflow_, std::as_writable_bytes(std::span(back))));
    EXPECT_EQ(back, map);
    constexpr std::size_t kBlockBytes = codec::kBoxBlock * sizeof(float);
    return (static_cast<std::size_t>(overflow_.bytes().value) + kBlockBytes - 1) / kBlockBytes;  // the last block is shorter
  }

  const codec::Codec& sparse_ = *codec::find_codec("sparse");
  std::vector<std::uint8_t> box_ = std::vector<std::uint8_t>(codec::box_bytes(sparse_, kBlocks * codec::kBoxBlock, 0.45));
  Overflow overflow_{sparse_, kValues * sizeof(float)};
  std::vector<std::byte> room_ = std::vector<std::byte>(kValues * sizeof(float));
};

TEST_F(BoxedMap, ComesBackWholeHoweverFewOfItsValuesAreZero) {
  EXPECT_EQ(round_trip(map_with_zeros(0.5)), 0U);
  const std::size_t few = round_trip(map_with_zeros(0.35));
  EXPECT_GT(few, 0U);
  EXPECT_LE(few, kBlocks / 3);
  EXPECT_LT(round_trip(map_with_zeros(0)), kBlocks);
  // What overflowed in the last step is gone in the next.
  EXPECT_EQ(round_trip(map_with_zeros(0.6)), 0U);
}

TEST_F(BoxedMap, NoticesThatTheBoxWasOverwritten) {
  std::vector<float> map = map_with_zeros(0.5);
  pack_map(sparse_, std::as_bytes(std::span(map)), box_, overflow_);
  std::fill(box_.begin(), box_.end(), std::uint8_t{0x55});
  EXPECT_FALSE(unpack_map(sparse_, box_, overflow_, std::as_writable_bytes(std::span(map))));
  std::fill(box_.begin(), box_.end(), std::uint8_t{0});
  EXPECT_FALSE(unpack_map(sparse_, box_, overflow_, std::as_writable_bytes(std::span(map))));
}

}  // namespace
}  // namespace plimsoll::kernels

#include "plimsoll/codec/compressed_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "plimsoll/base/random.h"

namespace plimsoll::codec {
namespace {

constexpr double kZeros = 0.45;

std::vector<float> activation_with_zeros(std::size_t count, double zeros) {
  Random random(7);
  std::vector<float> out(count);
  for (float& value : out)
    value = random.chance(zeros) ? 0.0f : static_cast<float>(random.uniform()) + 0.5f;
  return out;
}

// Blocks from the last to the first: any order will do.
bool pack(const Codec& codec, const std::vector<float>& activation,
          std::vector<std::uint8_t>& compressed) {
  CompressedWriter writer(codec, activation.size(), compressed, 1);
  bool all = true;
  for (std::size_t block = compressed_blocks(activation.size()); block-- > 0;)
    all =
        writer.put(block, uncompressed_part(codec, std::as_bytes(std::span(activation)), block)) &&
        all;
  return all;
}

Opened open(const Codec& codec, const std::vector<std::uint8_t>& compressed,
            std::vector<float>& activation) {
  for (std::size_t block = 0; block < compressed_blocks(activation.size()); ++block) {
    const Opened one =
        open_block(codec, activation.size(), compressed, block,
                   uncompressed_part(codec, std::as_writable_bytes(std::span(activation)), block));
    if (one != Opened::kValues) return one;
  }
  return Opened::kValues;
}

TEST(CompressedBuffer, ActivationsOfEveryCodecComeBack) {
  int tried = 0;
  for (const Codec& codec : codecs()) {
    if (codec.element_bytes != sizeof(float)) continue;
    ++tried;
    for (const std::size_t count : {1u, 1000u, 16384u, 16385u, 50000u}) {
      const std::vector<float> activation = activation_with_zeros(count, 0.5);
      std::vector<std::uint8_t> compressed(compressed_bytes(codec, count, kZeros));
      ASSERT_TRUE(pack(codec, activation, compressed)) << codec.name << ' ' << count;
      std::vector<float> back(count, -1.0f);
      ASSERT_EQ(open(codec, compressed, back), Opened::kValues) << codec.name << ' ' << count;
      if (codec.lossless) {
        EXPECT_EQ(back, activation);
      }
    }
  }
  EXPECT_GE(tried, 4);
}

TEST(CompressedBuffer, ForAHalfZeroActivationIsHalfOfIt) {
  const Codec& sparse = *find_codec("sparse");
  EXPECT_LT(compressed_bytes(sparse, 1'000'000, kZeros), 4'000'000u / 2);
}

TEST(CompressedBuffer, BlocksThatDoNotFitAreIncompressibleAndItSaysSo) {
  const Codec& sparse = *find_codec("sparse");
  const std::vector<float> activation = activation_with_zeros(20 * kCompressedBlock, 0.3);
  std::vector<std::uint8_t> compressed(compressed_bytes(sparse, activation.size(), kZeros));
  CompressedWriter writer(sparse, activation.size(), compressed, 1);
  std::vector<bool> kept;
  for (std::size_t block = 0; block < compressed_blocks(activation.size()); ++block)
    kept.push_back(
        writer.put(block, uncompressed_part(sparse, std::as_bytes(std::span(activation)), block)));
  // 0.62 of a plain block each, space for 0.50 of all: 15 of 20 fit.
  EXPECT_EQ(std::count(kept.begin(), kept.end(), true), 15);
  for (std::size_t block = 0; block < kept.size(); ++block) {
    std::vector<float> back(kCompressedBlock);
    const Opened opened = open_block(sparse, activation.size(), compressed, block,
                                     std::as_writable_bytes(std::span(back)));
    ASSERT_EQ(opened, kept[block] ? Opened::kValues : Opened::kIncompressible) << block;
    if (kept[block]) {
      EXPECT_TRUE(
          std::equal(back.begin(), back.end(),
                     activation.begin() + static_cast<std::ptrdiff_t>(block * kCompressedBlock)));
    }
  }
}

TEST(CompressedBuffer, DamageIsNoticed) {
  const Codec& sparse = *find_codec("sparse");
  std::vector<std::uint8_t> compressed(compressed_bytes(sparse, 100, kZeros), 0x55);
  std::vector<float> back(100);
  EXPECT_EQ(open(sparse, compressed, back), Opened::kDamaged);
  EXPECT_EQ(open(sparse, {}, back), Opened::kDamaged);
}

}  // namespace
}  // namespace plimsoll::codec

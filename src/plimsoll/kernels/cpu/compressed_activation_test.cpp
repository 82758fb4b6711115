#include "plimsoll/kernels/cpu/compressed_activation.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "plimsoll/base/random.h"

namespace plimsoll::kernels {
namespace {

constexpr std::size_t kBlocks = 12;
constexpr std::size_t kValues = kBlocks * codec::kCompressedBlock - 100;

std::vector<float> activation_with_zeros(double zeros) {
  Random random(5);
  std::vector<float> out(kValues);
  for (float& value : out)
    value = random.chance(zeros) ? 0.0F : static_cast<float>(random.uniform()) + 0.5F;
  return out;
}

class CompressedActivation : public ::testing::Test {
 protected:
  void SetUp() override { EXPECT_TRUE(overflow_.take_memory(memory_).empty()); }

  // How many blocks did not fit; whether the activation came back is expected.
  std::size_t round_trip(const std::vector<float>& activation) {
    compress_activation(sparse_, std::as_bytes(std::span(activation)), compressed_, overflow_);
    std::vector<float> back(activation.size(), -1.0F);
    EXPECT_TRUE(decompress_activation(sparse_, compressed_, overflow_,
                                      std::as_writable_bytes(std::span(back))));
    EXPECT_EQ(back, activation);
    constexpr std::size_t kBlockBytes = codec::kCompressedBlock * sizeof(float);
    // the last block is shorter
    return (static_cast<std::size_t>(overflow_.bytes().value) + kBlockBytes - 1) / kBlockBytes;
  }

  const codec::Codec& sparse_ = *codec::find_codec("sparse");
  std::vector<std::uint8_t> compressed_ = std::vector<std::uint8_t>(
      codec::compressed_bytes(sparse_, kBlocks* codec::kCompressedBlock, 0.45));
  Overflow overflow_{sparse_, kValues * sizeof(float)};
  std::vector<std::byte> memory_ =
      std::vector<std::byte>(static_cast<std::size_t>(overflow_.memory_wanted().value));
};

TEST_F(CompressedActivation, ComesBackWholeHoweverFewOfItsValuesAreZero) {
  EXPECT_EQ(round_trip(activation_with_zeros(0.5)), 0U);
  const std::size_t few = round_trip(activation_with_zeros(0.35));
  EXPECT_GT(few, 0U);
  EXPECT_LE(few, kBlocks / 3);
  EXPECT_LT(round_trip(activation_with_zeros(0)), kBlocks);
  // What overflowed in the last step is gone in the next.
  EXPECT_EQ(round_trip(activation_with_zeros(0.6)), 0U);
}

TEST_F(CompressedActivation, NoticesThatTheBufferWasOverwritten) {
  std::vector<float> activation = activation_with_zeros(0.5);
  compress_activation(sparse_, std::as_bytes(std::span(activation)), compressed_, overflow_);
  std::fill(compressed_.begin(), compressed_.end(), std::uint8_t{0x55});
  EXPECT_FALSE(decompress_activation(sparse_, compressed_, overflow_,
                                     std::as_writable_bytes(std::span(activation))));
  std::fill(compressed_.begin(), compressed_.end(), std::uint8_t{0});
  EXPECT_FALSE(decompress_activation(sparse_, compressed_, overflow_,
                                     std::as_writable_bytes(std::span(activation))));
}

// Blocks may be done by any thread, in any order: what comes back is the same, bit by bit, and so
// is what was lost.
TEST(LossyActivation, IsTheSameForAnyNumberOfThreads) {
  std::vector<float> activation = activation_with_zeros(0.2);
  const int before = omp_get_max_threads();
  for (const codec::Codec& codec : codec::codecs()) {
    if (codec.lossless) continue;
    std::vector<float> expected;
    ActivationError expected_error;
    for (const int threads : {1, 2, 5}) {
      omp_set_num_threads(threads);
      std::vector<std::uint8_t> compressed(codec::compressed_bytes(codec, activation.size(), 0));
      Overflow overflow(codec, activation.size() * sizeof(float));
      std::vector<std::byte> memory(static_cast<std::size_t>(overflow.memory_wanted().value));
      overflow.take_memory(memory);
      EXPECT_LE(compress_activation(codec, std::as_bytes(std::span(activation)), compressed,
                                    overflow, 42),
                compressed.size());
      std::vector<float> back(activation.size(), -1.0F);
      ASSERT_TRUE(decompress_activation(codec, compressed, overflow,
                                        std::as_writable_bytes(std::span(back))));
      std::vector<ActivationError> by_block(overflow.blocks());
      const ActivationError error =
          error_of(codec, std::as_bytes(std::span(activation)), compressed, overflow, by_block);
      if (threads == 1) expected = back, expected_error = error;
      EXPECT_EQ(back, expected) << codec.name << " " << threads;
      EXPECT_EQ(error.squares, expected_error.squares) << codec.name << " " << threads;
      EXPECT_GT(error.largest, 0) << codec.name;
    }
  }
  omp_set_num_threads(before);
}

// The error is that of what the buffer gives back, summed here without blocks or threads.
TEST(LossyActivation, ItsErrorIsWhatTheBufferLost) {
  std::vector<float> activation = activation_with_zeros(0.2);
  activation[20'000] =
      1e9F;  // fp8 has no code for it: its block is incompressible, and loses nothing
  const codec::Codec& codec = *codec::find_codec("fp8-e4m3");
  std::vector<std::uint8_t> compressed(codec::compressed_bytes(codec, activation.size(), 0));
  Overflow overflow(codec, activation.size() * sizeof(float));
  std::vector<std::byte> memory(static_cast<std::size_t>(overflow.memory_wanted().value));
  overflow.take_memory(memory);
  compress_activation(codec, std::as_bytes(std::span(activation)), compressed, overflow, 3);
  EXPECT_TRUE(overflow.holds(20'000 / codec::kCompressedBlock));
  EXPECT_EQ(overflow.bytes(), Bytes(codec::kCompressedBlock * sizeof(float)));
  std::vector<float> back(activation.size());
  ASSERT_TRUE(
      decompress_activation(codec, compressed, overflow, std::as_writable_bytes(std::span(back))));
  double largest = 0, squares = 0;
  for (std::size_t i = 0; i < activation.size(); ++i) {
    const double error = std::fabs(static_cast<double>(back[i]) - activation[i]);
    largest = std::max(largest, error);
    squares += error * error;
  }
  std::vector<ActivationError> by_block(overflow.blocks());
  const ActivationError error =
      error_of(codec, std::as_bytes(std::span(activation)), compressed, overflow, by_block);
  EXPECT_EQ(error.largest, largest);
  EXPECT_NEAR(error.squares, squares, 1e-9 * squares);
}

}  // namespace
}  // namespace plimsoll::kernels

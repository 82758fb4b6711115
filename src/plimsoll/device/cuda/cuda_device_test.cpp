#include "plimsoll/device/cuda/cuda_device.h"

#include <gtest/gtest.h>

#include "plimsoll/device/cuda/cuda_sequence.h"
#include "plimsoll/device/testing/device_contract.h"

namespace plimsoll::device::cuda {
namespace {

struct CudaFill final : Work {
  CudaFill(std::byte* at, std::byte with, std::size_t count) : to(at), value(with), bytes(count) {}
  Status run(void* queue) override {
    return check(
        cudaMemsetAsync(to, static_cast<int>(value), bytes, static_cast<cudaStream_t>(queue)),
        "a fill");
  }
  std::byte* to;
  std::byte value;
  std::size_t bytes;
};

DeviceUnderTest first_card() {
  return {"cuda",
          []() -> Result<std::unique_ptr<Device>> {
            PLIMSOLL_TRY(std::unique_ptr<CudaCard> card, open_cuda_card(0));
            return card;
          },
          [](std::byte* to, std::byte value, std::size_t bytes) -> std::unique_ptr<Work> {
            return std::make_unique<CudaFill>(to, value, bytes);
          }};
}

TEST(CudaDeviceContract, MemoryIsAlignedAndHoldsWhatIsWritten) {
  expect_memory_as_promised(first_card());
}
TEST(CudaDeviceContract, PoolCountsWhatIsInUse) {
  expect_pool_as_promised(first_card());
}
TEST(CudaDeviceContract, StreamWorksInOrder) {
  expect_stream_in_order(first_card());
}
TEST(CudaDeviceContract, SequenceKeepsItsWaits) {
  expect_waits_kept(first_card());
}
TEST(CudaDeviceContract, StreamsWaitForMarks) {
  expect_marks_kept(first_card());
}
TEST(CudaDeviceContract, TimesFollowTheWaits) {
  expect_times_in_order(first_card());
}
TEST(CudaDeviceContract, RefusesCommandsThatCannotRun) {
  expect_bad_commands_refused(first_card());
}

// Large enough that it is mapped here and not by the driver (pinned_arena.h).
TEST(CudaPinnedArena, LargeOnesAreCopiedFromEndToEnd) {
  constexpr std::size_t kBytes = (std::size_t{300} << 20) + 5;
  const auto card = open_cuda_card(0);
  ASSERT_TRUE(card) << card.error().message;
  const auto host = (*card)->make_host_arena(Bytes(kBytes)).value();
  const auto arena = (*card)->make_arena(Bytes(kBytes)).value();
  EXPECT_EQ(host->size(), Bytes(kBytes));
  for (const std::size_t at : {std::size_t{0}, kBytes / 2, kBytes - 1}) {
    host->data()[at] = std::byte{0x5a};
    ASSERT_TRUE((*card)->write(arena->data() + at, {host->data() + at, 1}));
    host->data()[at] = std::byte{0};
  }
  ASSERT_TRUE((*card)->read({host->data(), kBytes}, arena->data()));
  for (const std::size_t at : {std::size_t{0}, kBytes / 2, kBytes - 1})
    EXPECT_EQ(host->data()[at], std::byte{0x5a}) << at;
}

// Without a card this is what a user reads; with one, what a wrong number says.
TEST(OpenCard, WhatIsMissingIsSaidInOneLine) {
  const auto card = open_cuda_card(99);
  ASSERT_FALSE(card);
  EXPECT_EQ(card.error().code, ErrorCode::kDevice);
  EXPECT_TRUE(card.error().message.starts_with("CUDA: ")) << card.error().message;
  EXPECT_EQ(card.error().message.find('\n'), std::string::npos);
}

// Runs last in its own process: the context is lost afterwards.
TEST(CudaArenaDeathTest, WritingBehindTheArenaFaults) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const auto card = open_cuda_card(0).value().release();
        const auto arena = card->make_arena(Bytes(1000)).value().release();
        // 1000 bytes are rounded up to 1024; the fill goes on behind the edge.
        const Status wrote = check(cudaMemset(arena->data(), 1, 4096), "a fill");
        const Status seen = check(cudaDeviceSynchronize(), "a fill");
        std::_Exit(wrote && seen ? 0 : 7);
      },
      ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace plimsoll::device::cuda

#include "plimsoll/device/cpu/arena.h"

#include <cstring>

#include <gtest/gtest.h>

namespace plimsoll::device {
namespace {

TEST(CpuArena, IsAlignedAndWritableToItsLastByte) {
  for (const std::int64_t size : {1, 64, 4096, 1000000, 2 << 20, (2 << 20) + 64}) {
    const auto arena = CpuArena::make(Bytes(size));
    ASSERT_TRUE(arena);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena->data()) % 64, 0u);
    std::memset(arena->data(), 1, static_cast<std::size_t>(size));
  }
}

TEST(CpuArenaDeathTest, FaultsBehindItsEnd) {
  const auto arena = CpuArena::make(Bytes(640));
  ASSERT_TRUE(arena);
  volatile std::byte* end = arena->data() + 640;
  EXPECT_DEATH(*end = std::byte{1}, "");
}

TEST(CpuArena, RefusesWhatNoMachineHas) {
  const auto arena = CpuArena::make(Bytes(std::int64_t{1} << 62));
  ASSERT_FALSE(arena);
  EXPECT_EQ(arena.error().code, ErrorCode::kDoesNotFit);
}

TEST(CpuArena, MovesItsMapping) {
  auto arena = CpuArena::make(Bytes(100));
  CpuArena other = std::move(*arena);
  other.data()[0] = std::byte{7};
  EXPECT_EQ(other.bytes().size(), 100u);
}

}  // namespace
}  // namespace plimsoll::device

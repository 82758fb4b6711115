#include "plimsoll/device/cpu/touched_bytes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "plimsoll/base/random.h"
#include "plimsoll/device/cpu/arena.h"

namespace plimsoll::device {
namespace {

constexpr std::int64_t kPage = 4096;

TouchedBytes pages(const CpuArena& arena) {
  auto watch = TouchedBytes::watch_pages(arena.bytes());
  EXPECT_TRUE(watch) << watch.error().message;
  return *std::move(watch);
}

std::int64_t highest(const TouchedBytes& watch) {
  const auto bytes = watch.highest();
  EXPECT_TRUE(bytes) << bytes.error().message;
  return bytes->value;
}

// One past the highest written byte, where the page that holds it ends, or the arena does.
std::int64_t end_of_page(const CpuArena& arena, std::int64_t written) {
  const auto base = reinterpret_cast<std::int64_t>(arena.data());
  return std::min((base + written + kPage - 1) / kPage * kPage - base, arena.size().value);
}

TEST(TouchedBytes, PatternsSeeTheHighestByteWritten) {
  const auto arena = CpuArena::make(Bytes(3 << 20));
  for (const std::byte pattern : TouchedBytes::kPatterns) {
    const TouchedBytes watch = TouchedBytes::watch_pattern(arena->bytes(), pattern);
    EXPECT_EQ(highest(watch), 0);
    arena->data()[77] = std::byte{1};
    arena->data()[1 << 20] = std::byte{2};
    EXPECT_EQ(highest(watch), (1 << 20) + 1);
  }
}

TEST(TouchedBytes, NoByteEqualsBothPatterns) {
  const auto arena = CpuArena::make(Bytes(kPage));
  for (int value = 0; value < 256; ++value) {
    std::int64_t most = 0;
    for (const std::byte pattern : TouchedBytes::kPatterns) {
      const TouchedBytes watch = TouchedBytes::watch_pattern(arena->bytes(), pattern);
      arena->data()[1000] = static_cast<std::byte>(value);
      most = std::max(most, highest(watch));
    }
    EXPECT_EQ(most, 1001) << value;
  }
}

TEST(TouchedBytes, PagesSeeWritesOfTheSameValueAndOfSystemCallsButNoReads) {
  if (!TouchedBytes::can_watch_pages())
    GTEST_SKIP() << "no userfaultfd with asynchronous write protection here";
  const auto arena = CpuArena::make(Bytes(8 << 20));
  {
    const TouchedBytes watch = pages(*arena);
    EXPECT_EQ(highest(watch), 0);
    const volatile std::byte read = arena->data()[7 << 20];
    static_cast<void>(read);
    EXPECT_EQ(highest(watch), 0);
    arena->data()[5] = std::byte{0};  // what was there
    EXPECT_EQ(highest(watch), end_of_page(*arena, 6));
    const int zeros = ::open("/dev/zero", O_RDONLY);
    ASSERT_EQ(::read(zeros, arena->data() + (3 << 20), 10), 10);
    ::close(zeros);
    EXPECT_EQ(highest(watch), end_of_page(*arena, (3 << 20) + 10));
  }
  // A watch that begins anew forgets what was written before, huge page or not.
  std::memset(arena->data(), 1, 8 << 20);
  const TouchedBytes again = pages(*arena);
  EXPECT_EQ(highest(again), 0);
  arena->data()[kPage] = std::byte{1};
  EXPECT_EQ(highest(again), end_of_page(*arena, kPage + 1));
}

// Random writes; both methods, the second exact to the byte, the first to the page that holds it.
TEST(TouchedBytes, BothMethodsAgree) {
  if (!TouchedBytes::can_watch_pages())
    GTEST_SKIP() << "no userfaultfd with asynchronous write protection here";
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    const auto write = [seed](const CpuArena& arena) {
      Random random(seed);
      for (int i = 0; i < 5; ++i) {
        const std::int64_t at = random.below(arena.size().value - 300);
        std::memset(arena.data() + at, static_cast<int>(random.below(256)),
                    static_cast<std::size_t>(1 + random.below(300)));
      }
    };
    const Bytes size(64 * (100 + static_cast<std::int64_t>(seed) * 1111));
    const auto watched = CpuArena::make(size);
    const TouchedBytes watch = pages(*watched);
    write(*watched);
    std::int64_t exact = 0;
    for (const std::byte pattern : TouchedBytes::kPatterns) {
      const auto arena = CpuArena::make(size);
      const TouchedBytes by_pattern = TouchedBytes::watch_pattern(arena->bytes(), pattern);
      write(*arena);
      exact = std::max(exact, highest(by_pattern));
    }
    EXPECT_EQ(highest(watch), end_of_page(*watched, exact));
  }
}

TEST(TouchedBytes, AnEmptyArenaIsNeverTouched) {
  EXPECT_EQ(highest(TouchedBytes::watch_pattern({}, TouchedBytes::kPatterns[0])), 0);
  const auto watch = TouchedBytes::watch_pages({});
  ASSERT_TRUE(watch);
  EXPECT_EQ(highest(*watch), 0);
}

}  // namespace
}  // namespace plimsoll::device

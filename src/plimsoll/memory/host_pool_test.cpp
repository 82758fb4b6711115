#include "plimsoll/memory/host_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <thread>

#include "plimsoll/base/random.h"

namespace plimsoll::memory {
namespace {

TEST(HostPool, RecyclesABlockOfTheSameBucket) {
  HostPool pool;
  void* a = pool.allocate(5000_bytes);
  pool.free(a);
  EXPECT_EQ(pool.allocate(5100_bytes), a);
  EXPECT_EQ(pool.statistics().recycled, 1);
}

TEST(HostPool, CountsWhatWasRequested) {
  HostPool pool;
  void* a = pool.allocate(100_bytes);
  void* b = pool.allocate(3_MiB);
  EXPECT_EQ(pool.statistics().in_use, 3_MiB + 100_bytes);
  pool.free(b);
  EXPECT_EQ(pool.statistics().in_use, 100_bytes);
  EXPECT_EQ(pool.statistics().peak_in_use, 3_MiB + 100_bytes);
  EXPECT_GE(pool.trim(), 3_MiB);
  EXPECT_EQ(pool.statistics().held, 1_MiB);
  pool.free(a);
  pool.free(nullptr);
}

TEST(HostPool, RefusesWhatNoMachineHas) {
  HostPool pool;
  EXPECT_EQ(pool.allocate(Bytes(std::int64_t{1} << 62)), nullptr);
  EXPECT_EQ(pool.allocate(Bytes(-1)), nullptr);
  EXPECT_NE(pool.allocate(0_bytes), nullptr);
}

TEST(HostPool, BlocksAreAlignedAndNeverOverlap) {
  constexpr std::uint64_t kSeed = 7;
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  HostPool pool;
  std::map<std::byte*, std::int64_t> live;
  for (int i = 0; i < 20000; ++i) {
    if (live.size() < 200 && random.chance(0.6)) {
      const std::int64_t size = random.below(std::int64_t{1} << random.below(22));
      auto* block = static_cast<std::byte*>(pool.allocate(Bytes(size)));
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0u);
      const auto next = live.lower_bound(block);
      if (next != live.end()) {
        ASSERT_LE(block + size, next->first);
      }
      if (next != live.begin()) {
        ASSERT_LE(std::prev(next)->first + std::prev(next)->second, block);
      }
      live[block] = size;
      if (size > 0) std::memset(block, 1, static_cast<std::size_t>(size));
    } else if (!live.empty()) {
      auto it = std::next(live.begin(), random.below(static_cast<std::int64_t>(live.size())));
      pool.free(it->first);
      live.erase(it);
    }
  }
  for (const auto& [block, size] : live) pool.free(block);
  EXPECT_EQ(pool.statistics().in_use, 0_bytes);
}

TEST(HostPool, ServesSeveralThreads) {
  HostPool pool;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      Random random(t);
      for (int i = 0; i < 5000; ++i) {
        const std::int64_t size = random.below(1 << 16) + 1;
        auto* block = static_cast<char*>(pool.allocate(Bytes(size)));
        block[0] = block[size - 1] = 1;
        pool.free(block);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(pool.statistics().in_use, 0_bytes);
}

TEST(HostPoolDeathTest, EndsTheProgramOnADoubleFree) {
  HostPool pool;
  void* a = pool.allocate(100_bytes);
  pool.free(a);
  EXPECT_DEATH(pool.free(a), "freed twice");
}

}  // namespace
}  // namespace plimsoll::memory

#include "plimsoll/memory/caching_allocator.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <thread>
#include <vector>

#include "plimsoll/base/random.h"
#include "plimsoll/memory/fake_device.h"

namespace plimsoll::memory {
namespace {

constexpr StreamId kMain{0};
constexpr StreamId kSide{7};

FakeDeviceOptions device_of(Bytes capacity, bool mapping = true) {
  FakeDeviceOptions options;
  options.capacity = capacity;
  options.mapping = mapping;
  return options;
}

TEST(CachingAllocator, MovesFreeSlabsInsteadOfGrowing) {
  FakeDevice device;
  CachingAllocator allocator(device, device);
  const Address a = allocator.allocate(30_MiB, kMain);
  const Address b = allocator.allocate(30_MiB, kMain);
  const Address c = allocator.allocate(30_MiB, kMain);
  ASSERT_TRUE(allocator.free(a));
  ASSERT_TRUE(allocator.free(c));
  EXPECT_NE(allocator.allocate(50_MiB, kMain), 0u);
  EXPECT_EQ(allocator.statistics().reserved_bytes.peak, (90_MiB).value);
  EXPECT_EQ(allocator.statistics().bytes_remapped, 20_MiB);
  EXPECT_EQ(allocator.verify(), "");
  EXPECT_TRUE(allocator.free(b));
}

TEST(CachingAllocator, AsksAStreamOnceHoweverManyFreesWaitForIt) {
  FakeDeviceOptions options;
  options.patience = 1000;
  FakeDevice device(options);
  CachingAllocator allocator(device, device);
  for (int i = 0; i < 100; ++i) {
    const Address at = allocator.allocate(1_MiB, kMain);
    ASSERT_TRUE(allocator.record_stream(at, kSide));
    ASSERT_TRUE(allocator.free(at));
  }
  const std::int64_t before = device.counts().asked;
  EXPECT_NE(allocator.allocate(30_MiB, kMain), 0u);
  EXPECT_EQ(device.counts().asked - before, 1);
  device.settle();
  EXPECT_NE(allocator.allocate(80_MiB, kMain), 0u) << "fits what the other stream has passed";
  EXPECT_EQ(allocator.statistics().reserved_bytes.current, (130_MiB).value);
  EXPECT_EQ(allocator.verify(), "");
}

// |a 3|1 free| has no room to grow behind it: the slab of the free MiB is mapped a second time, in
// front
// of three new ones.
TEST(CachingAllocator, BeginsANewStretchWithTheFreeEndOfASlab) {
  FakeDevice device;
  CachingOptions options;
  options.largest_slab = 2_MiB;
  options.address_space = 12_MiB;
  CachingAllocator allocator(device, device, options);
  EXPECT_TRUE(allocator.free(allocator.allocate(7_MiB, kMain))) << "a size that will come back";
  EXPECT_EQ(allocator.trim(), 8_MiB);
  const auto mapped_before = device.counts().mapped;
  const Address a = allocator.allocate(3_MiB, kMain);
  const Address b = allocator.allocate(7_MiB, kMain);
  EXPECT_EQ(allocator.statistics().reserved_bytes.current, (10_MiB).value);
  EXPECT_EQ(device.counts().mapped - mapped_before, 6)
      << "two slabs, three more, one of the five twice";
  EXPECT_EQ(allocator.verify(), "");
  EXPECT_TRUE(allocator.free(b));
  EXPECT_EQ(allocator.trim(), 6_MiB) << "a still holds a part of the shared slab";
  EXPECT_EQ(allocator.verify(), "");
  EXPECT_TRUE(allocator.free(a));
  EXPECT_EQ(allocator.trim(), 4_MiB);
  EXPECT_EQ(device.counts().held, 0_bytes);
}

TEST(CachingAllocator, RefusesAndStaysIntact) {
  FakeDevice device(device_of(100_MiB));
  CachingAllocator allocator(device, device);
  const Address a = allocator.allocate(60_MiB, kMain);
  EXPECT_EQ(allocator.allocate(60_MiB, kMain), 0u);
  EXPECT_NE(allocator.out_of_memory_report(60_MiB, kMain).find("tried to allocate 60.00 MiB"),
            std::string::npos);
  EXPECT_EQ(allocator.verify(), "");
  EXPECT_TRUE(allocator.free(a));
  EXPECT_NE(allocator.allocate(100_MiB, kMain), 0u);
  EXPECT_EQ(allocator.allocate(Bytes(-1), kMain), 0u);
  EXPECT_EQ(allocator.allocate(Bytes(std::int64_t{1} << 62), kMain), 0u);
}

TEST(CachingAllocator, KnowsPointersThatAreNotLive) {
  FakeDevice device;
  CachingAllocator allocator(device, device);
  const Address a = allocator.allocate(1000_bytes, kMain);
  EXPECT_FALSE(allocator.free(a + 512));
  EXPECT_FALSE(allocator.free(12345));
  EXPECT_FALSE(allocator.free(~Address{0}));
  EXPECT_TRUE(allocator.free(a));
  EXPECT_FALSE(allocator.free(a));
}

TEST(CachingAllocator, LendsToAnotherStreamWithOneWait) {
  FakeDevice device(device_of(64_MiB));
  CachingAllocator allocator(device, device);
  const Address a = allocator.allocate(40_MiB, kMain);
  allocator.free(a);
  const FakeDevice::Stamp last_use = device.work_on(kMain);
  const Address b = allocator.allocate(16_MiB, kSide);
  EXPECT_NE(b, 0u);
  EXPECT_EQ(allocator.statistics().stream_waits, 1);
  EXPECT_TRUE(device.is_behind(kSide, last_use));
  EXPECT_NE(allocator.allocate(16_MiB, kSide), 0u);
  EXPECT_EQ(allocator.statistics().stream_waits, 1) << "the same epoch needs no second wait";
  EXPECT_EQ(allocator.verify(), "");
}

TEST(CachingAllocator, KeepsABlockUntilRecordedStreamsHavePassed) {
  FakeDeviceOptions options = device_of(64_MiB);
  options.patience = 1000;
  FakeDevice device(options);
  CachingAllocator allocator(device, device);
  const Address a = allocator.allocate(40_MiB, kMain);
  EXPECT_TRUE(allocator.record_stream(a, kSide));
  EXPECT_TRUE(allocator.free(a));
  EXPECT_EQ(allocator.statistics().pending_bytes.current, (40_MiB).value);
  EXPECT_NE(allocator.allocate(20_MiB, kMain), a);
  EXPECT_NE(allocator.allocate(40_MiB, kMain), 0u) << "waits rather than refuse";
  EXPECT_GT(device.counts().synchronized, 0);
  EXPECT_EQ(allocator.verify(), "");
}

TEST(CachingAllocator, PrivatePoolsNeitherLendNorBorrow) {
  FakeDevice device;
  CachingAllocator allocator(device, device);
  allocator.free(allocator.allocate(40_MiB, kMain));
  allocator.begin_pool({1, 2}, [](StreamId stream) { return stream == kSide; });
  device.set_capturing(kSide, true);
  const Address inside = allocator.allocate(20_MiB, kSide);
  EXPECT_EQ(allocator.statistics().reserved_bytes.current, (60_MiB).value);
  allocator.free(inside);
  allocator.end_pool({1, 2});
  device.set_capturing(kSide, false);
  const Address outside = allocator.allocate(50_MiB, kMain);
  EXPECT_EQ(allocator.statistics().reserved_bytes.current, (70_MiB).value);
  allocator.free(outside);
  allocator.release_pool({1, 2});
  EXPECT_NE(allocator.allocate(70_MiB, kMain), 0u);
  EXPECT_EQ(allocator.statistics().reserved_bytes.current, (70_MiB).value);
  EXPECT_EQ(allocator.verify(), "");
}

TEST(CachingAllocator, TrimsAndKeepsALimit) {
  FakeDevice device;
  CachingAllocator allocator(device, device);
  const Address a = allocator.allocate(100_MiB, kMain);
  const Address b = allocator.allocate(1_MiB, kMain);
  allocator.free(a);
  EXPECT_EQ(allocator.trim(), 100_MiB);
  EXPECT_EQ(device.counts().held, 2_MiB);
  allocator.set_limit(50_MiB);
  EXPECT_EQ(allocator.allocate(60_MiB, kMain), 0u);
  EXPECT_NE(allocator.allocate(40_MiB, kMain), 0u);
  EXPECT_EQ(allocator.verify(), "");
  EXPECT_TRUE(allocator.free(b));
}

TEST(CachingAllocator, AsksForHelpBeforeItRefuses) {
  FakeDevice device(device_of(64_MiB));
  CachingAllocator allocator(device, device);
  const Address victim = allocator.allocate(60_MiB, kMain);
  allocator.set_pressure_callback([&](Bytes) { return allocator.free(victim); });
  EXPECT_NE(allocator.allocate(50_MiB, kMain), 0u);
}

// The naive allocator: who owns which physical bytes, in one ordered map. Every operation is held
// against it, so a byte given away twice is seen at once, through whatever window.
class Shadow {
 public:
  explicit Shadow(const FakeDevice& device) : device_(device) {}

  void take(Address at, std::int64_t size) {
    ASSERT_EQ(at % 512, 0u);
    Block block{at, {}};
    const Address end = at + static_cast<Address>(std::max<std::int64_t>(size, 1));
    for (Address from = at; from < end;) {
      const Address stop = std::min(end, (from / kPage + 1) * kPage);
      const std::uint64_t begin = device_.physical(from);
      const auto next = owned_.lower_bound(begin);
      ASSERT_TRUE(next == owned_.end() || next->first >= begin + (stop - from));
      ASSERT_TRUE(next == owned_.begin() || std::prev(next)->second <= begin);
      owned_.emplace_hint(next, begin, begin + (stop - from));
      block.pieces.push_back(begin);
      from = stop;
    }
    blocks_.push_back(std::move(block));
  }
  Address give(std::size_t index) {
    const Block gone = std::exchange(blocks_[index], blocks_.back());
    blocks_.pop_back();
    for (const std::uint64_t piece : gone.pieces) owned_.erase(piece);
    return gone.at;
  }
  std::size_t size() const { return blocks_.size(); }

 private:
  struct Block {
    Address at;
    std::vector<std::uint64_t> pieces;
  };
  const FakeDevice& device_;
  std::vector<Block> blocks_;
  std::map<std::uint64_t, std::uint64_t> owned_;
};

// Random work against the shadow; the device may refuse at any moment.
struct StormOptions {
  std::uint64_t seed = 1;
  std::int64_t turns = 20000;
  int streams = 1;
  bool mapping = true;
  double refusals = 0;
};

constexpr int kTurnsBetweenChecks = 500;

void storm(const StormOptions& storm_options) {
  SCOPED_TRACE(storm_options.seed);
  Random random(storm_options.seed);
  FakeDevice device(device_of(256_MiB, storm_options.mapping));
  Random refusal(storm_options.seed + 1);
  device.set_refusal([&] { return refusal.chance(storm_options.refusals); });
  {
    CachingAllocator allocator(device, device);
    Shadow shadow(device);
    for (std::int64_t turn = 0; turn < storm_options.turns; ++turn) {
      const StreamId stream{static_cast<std::uint64_t>(random.below(storm_options.streams))};
      if (random.chance(0.52)) {
        const std::int64_t size = random.below(std::int64_t{1} << random.between(1, 25));
        const Address at = allocator.allocate(Bytes(size), stream);
        if (at == 0) continue;
        ASSERT_NO_FATAL_FAILURE(shadow.take(at, size));
        if (random.chance(0.05)) allocator.record_stream(at, {3});
      } else if (shadow.size() > 0) {
        const auto index = random.below(static_cast<std::int64_t>(shadow.size()));
        ASSERT_TRUE(allocator.free(shadow.give(static_cast<std::size_t>(index))));
      }
      if (turn % kTurnsBetweenChecks == 0) {
        ASSERT_EQ(allocator.verify(), "");
      }
      if (turn % 3000 == 2999) allocator.trim();
    }
    while (shadow.size() > 0) ASSERT_TRUE(allocator.free(shadow.give(0)));
    allocator.trim();
    EXPECT_EQ(allocator.statistics().reserved_bytes.current, 0);
    EXPECT_EQ(allocator.verify(), "");
  }
  EXPECT_EQ(device.counts().held, 0_bytes);
  EXPECT_EQ(device.counts().marks, 0) << "every mark is given back";
}

TEST(CachingAllocatorStorm, OneStream) {
  storm({});
}
TEST(CachingAllocatorStorm, FiveStreams) {
  storm({2, 20000, 5});
}
TEST(CachingAllocatorStorm, WithoutMapping) {
  storm({3, 20000, 3, false});
}
TEST(CachingAllocatorStorm, TheDeviceRefusesAtRandom) {
  for (std::uint64_t seed = 10; seed < 20; ++seed) storm({seed, 5000, 3, true, 0.3});
}

TEST(CachingAllocatorStress, EightThreads) {
  FakeDevice device;
  CachingAllocator allocator(device, device);
  std::vector<std::thread> threads;
  for (std::uint64_t id = 0; id < 8; ++id) {
    threads.emplace_back([&allocator, id] {
      Random random(id);
      std::vector<Address> live;
      for (int turn = 0; turn < 3000; ++turn) {
        if (live.size() < 32 && random.chance(0.6)) {
          live.push_back(allocator.allocate(Bytes(random.below(1 << 22)), {id % 3}));
        } else if (!live.empty()) {
          allocator.free(live.back());
          live.pop_back();
        }
      }
      for (const Address at : live) allocator.free(at);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(allocator.statistics().all.bytes.current, 0);
  EXPECT_EQ(allocator.verify(), "");
}

// Ten million operations, or as many as PLIMSOLL_STORM says.
TEST(SlowCachingAllocator, RandomOperationsAgainstAShadow) {
  const char* count = std::getenv("PLIMSOLL_STORM");
  storm({99, count != nullptr ? std::atoll(count) : 10'000'000, 4});
}

// A fixed piece of work; what the device refuses of it decides `refuse`, asked before every call.
void work_through_refusals(FakeDevice& device) {
  CachingAllocator allocator(device, device);
  std::vector<Address> live;
  const auto take = [&](Bytes size, StreamId stream) {
    const Address at = allocator.allocate(size, stream);
    if (at != 0) live.push_back(at);
    ASSERT_EQ(allocator.verify(), "");
  };
  const auto give = [&](std::size_t index) {
    if (index >= live.size()) return;
    ASSERT_TRUE(allocator.free(live[index]));
    live.erase(live.begin() + static_cast<std::ptrdiff_t>(index));
    ASSERT_EQ(allocator.verify(), "");
  };
  for (const Bytes size : {30_MiB, 6_MiB, 30_MiB, 1_MiB, 50_MiB}) take(size, kMain);
  if (!live.empty()) allocator.record_stream(live[0], kSide);
  give(0);
  give(1);
  for (const Bytes size : {40_MiB, 20_MiB, 3_MiB}) take(size, kSide);
  give(0);
  for (const Bytes size : {64_MiB, 10_MiB}) take(size, kMain);
  allocator.trim();
  take(34_MiB, kSide);
  device.set_refusal({});
  EXPECT_NE(allocator.allocate(1_MiB, kMain), 0u) << "the next call works";
  while (!live.empty()) give(0);
}

TEST(CachingAllocatorFaults, TheDeviceRefusesAtEveryMoment) {
  for (const bool mapping : {true, false}) {
    std::int64_t calls = 0;
    {
      FakeDevice device(device_of(192_MiB, mapping));
      device.set_refusal([&] { return ++calls, false; });
      work_through_refusals(device);
    }
    ASSERT_GT(calls, mapping ? 30 : 5);
    for (const std::int64_t length : {std::int64_t{1}, std::int64_t{7}, calls}) {
      for (std::int64_t first = 0; first < calls; ++first) {
        SCOPED_TRACE(first);
        FakeDevice device(device_of(192_MiB, mapping));
        std::int64_t now = 0;
        device.set_refusal([&] { return ++now > first && now <= first + length; });
        work_through_refusals(device);
        ASSERT_EQ(device.counts().held, 0_bytes);
        ASSERT_EQ(device.counts().marks, 0);
      }
    }
  }
}

}  // namespace
}  // namespace plimsoll::memory

// Slabs that change places between the device and the host, on the fake device: what is read at an
// address never changes, whatever lies behind it.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <optional>
#include <vector>

#include "plimsoll/base/random.h"
#include "plimsoll/memory/caching_allocator.h"
#include "plimsoll/memory/fake_device.h"

namespace plimsoll::memory {
namespace {

class Spill : public ::testing::Test {
 protected:
  static constexpr StreamId kMain{0};
  static constexpr StreamId kSide{7};

  static FakeDeviceOptions device_of(Bytes capacity) {
    FakeDeviceOptions options;
    options.capacity = capacity;
    options.host_slabs = true;
    return options;
  }
  static CachingOptions small_slabs() {
    CachingOptions options;
    options.largest_slab = 2_MiB;
    return options;
  }
  // A block with a word in each of its pages.
  Address written(Bytes size) {
    const Address at = allocator.allocate(size, kMain);
    EXPECT_NE(at, 0u);
    for (std::int64_t page = 0; page < size.value; page += 2 << 20) {
      device.write(at + static_cast<Address>(page), at + static_cast<Address>(page));
    }
    return at;
  }
  bool intact(Address at, Bytes size) const {
    for (std::int64_t page = 0; page < size.value; page += 2 << 20) {
      const Address word = at + static_cast<Address>(page);
      if (device.read(word) != word) return false;
    }
    return true;
  }
  std::int64_t reserved() const { return allocator.counts().reserved_bytes.current; }

  FakeDevice device{device_of(64_MiB)};
  CachingAllocator allocator{device, device, small_slabs()};
};

TEST_F(Spill, KeepsBytesAndAddressAndFreesTheDevice) {
  const Address a = written(40_MiB);
  const SpillOutcome there = allocator.spill(std::array{a});
  EXPECT_EQ(there.problem, "");
  EXPECT_EQ(there.moved, 40_MiB);
  EXPECT_EQ(there.stays, 0_bytes);
  EXPECT_EQ(reserved(), 0);
  EXPECT_EQ(device.counts().held, 0_bytes);
  EXPECT_TRUE(device.on_host(a));
  EXPECT_TRUE(intact(a, 40_MiB)) << "a stray read is slow, not wrong";
  EXPECT_EQ(allocator.verify(), "");

  const Address b = written(60_MiB);  // does not fit beside a
  EXPECT_TRUE(allocator.free(b));
  const SpillOutcome back = allocator.restore(std::array{a});
  EXPECT_EQ(back.problem, "");
  EXPECT_EQ(back.moved, 40_MiB) << "what lies idle is given back to make room";
  EXPECT_FALSE(device.on_host(a));
  EXPECT_TRUE(intact(a, 40_MiB));
  EXPECT_EQ(device.counts().held_on_host, 40_MiB) << "stays pinned for the next time";
  EXPECT_EQ(allocator.verify(), "");
  EXPECT_TRUE(allocator.free(a));
  allocator.trim();
  EXPECT_EQ(device.counts().held_on_host, 0_bytes);
  EXPECT_EQ(device.counts().held, 0_bytes);
}

// Slabs of 2 MiB: |aa|a b|bb|b .|
TEST_F(Spill, MovesASlabOnlyWhenAllOfItIsSpilled) {
  const Address a = written(3_MiB);
  const Address b = written(4_MiB);
  const SpillOutcome first = allocator.spill(std::array{a});
  EXPECT_EQ(first.moved, 2_MiB);
  EXPECT_EQ(first.stays, 1_MiB);
  const SpillOutcome second = allocator.spill(std::array{b});
  EXPECT_EQ(second.moved, 4_MiB) << "the shared slab and its own; the last has a free part";
  EXPECT_TRUE(intact(a, 3_MiB));
  EXPECT_EQ(allocator.verify(), "");
  EXPECT_TRUE(allocator.free(a));
  EXPECT_EQ(allocator.verify(), "");
  EXPECT_TRUE(device.on_host(b)) << "b still uses the shared slab";
  const Address c = allocator.allocate(1_MiB, kMain);
  EXPECT_FALSE(device.on_host(c)) << "what was freed on the host is not handed out";
  EXPECT_TRUE(allocator.free(b));
  EXPECT_EQ(allocator.counts().spilled_bytes.current, 0);
  EXPECT_EQ(allocator.verify(), "");
  EXPECT_TRUE(allocator.free(c));
}

TEST_F(Spill, RestoringANeighbourFreesWhatWasFreedMeanwhile) {
  const Address a = written(3_MiB);
  const Address b = written(3_MiB);
  EXPECT_EQ(allocator.spill(std::array{a, b}).moved, 6_MiB);
  EXPECT_TRUE(allocator.free(a));
  EXPECT_EQ(allocator.restore(std::array{b}).moved, 4_MiB);
  EXPECT_TRUE(intact(b, 3_MiB));
  EXPECT_EQ(allocator.verify(), "");
  EXPECT_EQ(reserved(), (4_MiB).value);
  EXPECT_NE(allocator.allocate(1_MiB, kMain), 0u);
  EXPECT_EQ(reserved(), (4_MiB).value) << "the MiB that a left behind is used";
}

TEST_F(Spill, SaysWhyItCannot) {
  FakeDevice plain;
  CachingAllocator other(plain, plain);
  const Address a = other.allocate(4_MiB, kMain);
  EXPECT_NE(other.spill(std::array{a}).problem.find("host memory cannot be mapped"),
            std::string::npos);
  EXPECT_EQ(allocator.spill(std::array{a}).problem.find("no live block begins at 0x"), 0u);
  const Address own = written(4_MiB);
  allocator.begin_pool({1, 1}, [](StreamId stream) { return stream == kSide; });
  EXPECT_NE(allocator.spill(std::array{own}).problem.find("captured"), std::string::npos);
  allocator.end_pool({1, 1});
  EXPECT_EQ(allocator.spill(std::array{own}).problem, "");
  EXPECT_TRUE(other.free(a));
}

TEST_F(Spill, LeavesWhatDoesNotFitOnTheHost) {
  const Address a = written(40_MiB);
  ASSERT_EQ(allocator.spill(std::array{a}).moved, 40_MiB);
  const Address b = written(50_MiB);
  const SpillOutcome back = allocator.restore(std::array{a});
  EXPECT_EQ(back.moved, 14_MiB);
  EXPECT_EQ(back.stays, 26_MiB);
  EXPECT_EQ(back.problem, "2.00 MiB of device memory could not be had; 14.00 MiB moved before");
  EXPECT_TRUE(intact(a, 40_MiB));
  EXPECT_TRUE(intact(b, 50_MiB));
  EXPECT_EQ(allocator.verify(), "");
}

TEST_F(Spill, HoldsTheLimitWhenItRestores) {
  const Address a = written(20_MiB);
  ASSERT_EQ(allocator.spill(std::array{a}).moved, 20_MiB);
  allocator.set_limit(10_MiB);
  EXPECT_EQ(allocator.restore(std::array{a}).moved, 10_MiB);
  EXPECT_EQ(reserved(), (10_MiB).value);
}

TEST_F(Spill, WaitsForOtherStreamsBeforeItLetsGo) {
  const Address a = written(8_MiB);
  EXPECT_TRUE(allocator.record_stream(a, kSide));
  ASSERT_EQ(allocator.spill(std::array{a}).moved, 8_MiB);
  device.work_on(kSide);
  EXPECT_TRUE(allocator.free(a));
  EXPECT_TRUE(device.on_host(a)) << "still mapped: the other stream may read it";
  EXPECT_EQ(allocator.verify(), "");
  allocator.trim();
  EXPECT_EQ(device.counts().held_on_host, 0_bytes);
}

TEST_F(Spill, ABlockFreedWhileItsStreamIsCapturedWaits) {
  const Address a = written(8_MiB);
  ASSERT_EQ(allocator.spill(std::array{a}).moved, 8_MiB);
  device.set_capturing(kMain, true);
  EXPECT_TRUE(allocator.free(a));
  EXPECT_EQ(allocator.verify(), "");
  device.set_capturing(kMain, false);
  EXPECT_NE(allocator.allocate(30_MiB, kMain), 0u) << "marks the stream";
  device.settle();
  EXPECT_NE(allocator.allocate(20_MiB, kMain), 0u);
  EXPECT_EQ(allocator.counts().spilled_bytes.current, 0);
  EXPECT_EQ(allocator.verify(), "");
}

// The device refuses the n-th call, for every n until none is refused.
TEST_F(Spill, ARefusalAtAnyMomentLosesNothing) {
  for (int refused = 0;; ++refused) {
    const Address a = written(6_MiB);
    int calls = 0;
    bool happened = false;
    device.set_refusal([&] { return !happened && calls++ == refused && (happened = true); });
    const SpillOutcome there = allocator.spill(std::array{a});
    EXPECT_EQ(there.problem.empty(), !happened);
    EXPECT_TRUE(intact(a, 6_MiB));
    EXPECT_EQ(allocator.verify(), "");
    device.set_refusal(nullptr);
    EXPECT_EQ(allocator.restore(std::array{a}).moved, there.moved);
    EXPECT_TRUE(intact(a, 6_MiB));
    EXPECT_TRUE(allocator.free(a));
    allocator.trim();
    EXPECT_EQ(device.counts().held_on_host, 0_bytes);
    if (!happened) break;
    ASSERT_LT(refused, 100);
  }
}

// Blocks come, go, are spilled and restored in any order; every one keeps its words.
TEST_F(Spill, NothingIsLostInAnyOrderOfCalls) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::map<Address, Bytes> live;
    const auto some = [&] {
      std::vector<Address> chosen;
      for (const auto& [at, size] : live) {
        if (random.below(3) == 0) chosen.push_back(at);
      }
      return chosen;
    };
    for (int turn = 0; turn < 200; ++turn) {
      const auto what = random.below(8);
      if (what < 4) {
        const Bytes size((random.below(5) + 1) << (random.below(3) + 19));
        if (const Address at = allocator.allocate(size, random.below(4) == 0 ? kSide : kMain)) {
          live[at] = size;
          ASSERT_FALSE(device.on_host(at));
          for (std::int64_t page = 0; page < size.value; page += 2 << 20) {
            device.write(at + static_cast<Address>(page), at + static_cast<Address>(page));
          }
        }
      } else if (what < 6 && !live.empty()) {
        const auto gone =
            std::next(live.begin(), random.below(static_cast<std::int64_t>(live.size())));
        ASSERT_TRUE(allocator.free(gone->first));
        live.erase(gone);
      } else {
        what == 6 ? allocator.spill(some()) : allocator.restore(some());
      }
      for (const auto& [at, size] : live) ASSERT_TRUE(intact(at, size)) << "turn " << turn;
      ASSERT_EQ(allocator.verify(), "") << "turn " << turn;
      ASSERT_EQ(device.counts().held.value, reserved());
    }
    for (const auto& [at, size] : live) ASSERT_TRUE(allocator.free(at));
    allocator.trim();
    ASSERT_EQ(device.counts().held, 0_bytes);
    ASSERT_EQ(device.counts().held_on_host, 0_bytes);
  }
}

}  // namespace
}  // namespace plimsoll::memory

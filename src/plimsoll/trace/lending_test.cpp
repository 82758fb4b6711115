// Lending between streams, every order of the host's calls: the checker of orders must pass them
// all.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "plimsoll/memory/caching_allocator.h"
#include "plimsoll/memory/fake_device.h"
#include "plimsoll/trace/order_checker.h"

namespace plimsoll::trace {
namespace {

using memory::Address;
using memory::CachingAllocator;
using memory::FakeDevice;
using memory::FakeDeviceOptions;

// One stream's calls: allocate sizes[0], free it, allocate sizes[1], free it, ...
struct Script {
  StreamId stream;
  std::vector<Bytes> sizes;
  StreamId also_used_on;  // by every block, when it is another stream
  std::size_t calls() const { return 2 * sizes.size(); }
};

struct Case {
  std::vector<Script> scripts;
  Bytes capacity = 24_MiB;
  int patience = 1;
};

class Interleaving {
 public:
  explicit Interleaving(const Case& what)
      : case_(what),
        device_(options_of(what)),
        allocator_(device_, device_),
        checker_(device_),
        live_(what.scripts.size(), 0),
        done_(what.scripts.size(), 0) {}

  void call(std::size_t which) {
    const Script& script = case_.scripts[which];
    const std::size_t number = done_[which]++;
    if (number % 2 == 0) {
      const Bytes size = script.sizes[number / 2];
      live_[which] = allocator_.allocate(size, script.stream);
      if (live_[which] == 0) return;
      checker_.allocated(live_[which], size, script.stream);
      if (script.also_used_on == script.stream) return;
      allocator_.record_stream(live_[which], script.also_used_on);
      checker_.used(live_[which], script.also_used_on);
    } else if (live_[which] != 0) {
      checker_.freed(live_[which]);
      EXPECT_TRUE(allocator_.free(live_[which]));
      live_[which] = 0;
    }
  }
  std::string problem() const {
    return checker_.violation().empty() ? allocator_.verify() : checker_.violation();
  }
  std::int64_t lent() const { return allocator_.counts().stream_waits; }

 private:
  static FakeDeviceOptions options_of(const Case& what) {
    FakeDeviceOptions options;
    options.capacity = what.capacity;
    options.patience = what.patience;
    return options;
  }
  const Case& case_;
  FakeDevice device_;
  CachingAllocator allocator_;
  OrderChecker checker_;
  std::vector<Address> live_;
  std::vector<std::size_t> done_;
};

// Runs every interleaving of the scripts; returns how many there were.
struct Exhaustion {
  const Case& what;
  std::vector<std::size_t> order;
  std::vector<std::size_t> left;
  std::int64_t runs = 0;
  std::int64_t lent = 0;

  explicit Exhaustion(const Case& all) : what(all) {
    for (const Script& script : all.scripts) left.push_back(script.calls());
  }
  void run() {
    bool complete = true;
    for (std::size_t which = 0; which < left.size(); ++which) {
      if (left[which] == 0) continue;
      complete = false;
      --left[which];
      order.push_back(which);
      run();
      order.pop_back();
      ++left[which];
    }
    if (!complete) return;
    Interleaving one(what);
    for (const std::size_t which : order) one.call(which);
    ++runs;
    lent += one.lent();
    if (one.problem().empty()) return;
    std::string text;
    for (const std::size_t which : order) text += std::to_string(which);
    ADD_FAILURE() << one.problem() << " in the order " << text;
  }
};

constexpr StreamId kA{1};
constexpr StreamId kB{2};
constexpr StreamId kC{3};

TEST(Lending, EveryOrderOfThreeStreamsIsSafe) {
  for (const int patience : {1, 1000}) {
    const Case what{{{kA, {14_MiB, 3_MiB}, kA}, {kB, {9_MiB, 20_MiB}, kB}, {kC, {16_MiB}, kC}},
                    24_MiB,
                    patience};
    Exhaustion all(what);
    all.run();
    EXPECT_EQ(all.runs, 3150);
    EXPECT_GT(all.lent, 3150) << "the case must make streams borrow";
  }
}

TEST(Lending, EveryOrderIsSafeWhenBlocksAreUsedOnOtherStreams) {
  for (const int patience : {1, 1000}) {
    const Case what{{{kA, {14_MiB, 3_MiB}, kB}, {kB, {9_MiB, 20_MiB}, kC}, {kC, {16_MiB}, kA}},
                    24_MiB,
                    patience};
    Exhaustion all(what);
    all.run();
    EXPECT_EQ(all.runs, 3150);
  }
}

TEST(Lending, EveryOrderIsSafeWhenSlabsMove) {
  const Case what{{{kA, {10_MiB, 22_MiB}, kA}, {kB, {12_MiB, 24_MiB}, kB}}, 24_MiB, 1};
  Exhaustion all(what);
  all.run();
  EXPECT_EQ(all.runs, 70);
}

TEST(OrderChecker, SeesAReuseWithoutAWait) {
  FakeDevice device;
  const Address at = device.reserve(2_MiB).value();
  const memory::PhysicalHandle handle = device.create(2_MiB).value();
  ASSERT_TRUE(device.map(at, handle, 2_MiB));
  const auto reuse = [&](bool wait) {
    OrderChecker checker(device);
    checker.allocated(at, 1_MiB, kA);
    checker.freed(at);
    if (wait) checker.waits(kB, kA);
    checker.allocated(at, 1_MiB, kB);
    return checker.violation();
  };
  EXPECT_NE(reuse(false), "");
  EXPECT_EQ(reuse(true), "");
}

}  // namespace
}  // namespace plimsoll::trace

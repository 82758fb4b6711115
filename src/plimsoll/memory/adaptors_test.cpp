#include "plimsoll/memory/adaptors.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "plimsoll/memory/caching_allocator.h"
#include "plimsoll/memory/fake_device.h"

namespace plimsoll::memory {
namespace {

class Recorder final : public EventSink {
 public:
  void on_event(const MemoryEvent& event) override { actions.push_back(event.action); }
  std::vector<MemoryAction> actions;
};

struct Stack {
  FakeDevice device;
  CachingAllocator inner{device, device};
};

TEST(Adaptors, ALimitCountsWhatIsLive) {
  Stack stack;
  Limited limited(stack.inner, 10_MiB);
  const Address a = limited.allocate(6_MiB, {});
  EXPECT_NE(a, 0u);
  EXPECT_EQ(limited.allocate(6_MiB, {}), 0u);
  EXPECT_TRUE(limited.free(a));
  EXPECT_FALSE(limited.free(a));
  EXPECT_NE(limited.allocate(10_MiB, {}), 0u);
}

TEST(Adaptors, TheyStandOnTopOfEachOther) {
  Stack stack;
  Recorder recorder;
  bool fail = false;
  Failing failing(stack.inner, [&](Bytes) { return fail; });
  Traced traced(failing, recorder);
  Counted counted(traced);
  const Address a = counted.allocate(100_bytes, {});
  fail = true;
  EXPECT_EQ(counted.allocate(100_bytes, {}), 0u);
  EXPECT_TRUE(counted.free(a));
  EXPECT_EQ(counted.bytes().peak, 100);
  EXPECT_EQ(counted.bytes().current, 0);
  EXPECT_EQ(counted.refused(), 1);
  EXPECT_EQ(recorder.actions, (std::vector{MemoryAction::kAllocate, MemoryAction::kOutOfMemory,
                                           MemoryAction::kFree}));
}

TEST(Adaptors, ALockMakesCountingSafe) {
  Stack stack;
  Counted counted(stack.inner);
  Locked locked(counted);
  std::vector<std::thread> threads;
  for (int id = 0; id < 4; ++id) {
    threads.emplace_back([&locked] {
      for (int i = 0; i < 2000; ++i) locked.free(locked.allocate(1_KiB, {}));
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counted.blocks().allocated, 8000);
  EXPECT_EQ(counted.blocks().current, 0);
}

}  // namespace
}  // namespace plimsoll::memory

#include "plimsoll/device/device.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "plimsoll/device/cpu/cpu_device.h"
#include "plimsoll/device/fake/fake_device.h"
#include "plimsoll/device/testing/device_contract.h"

namespace plimsoll::device {
namespace {

struct HostFill final : Work {
  HostFill(std::byte* at, std::byte with, std::size_t count) : to(at), value(with), bytes(count) {}
  Status run(void*) override {
    std::memset(to, static_cast<int>(value), bytes);
    return {};
  }
  std::byte* to;
  std::byte value;
  std::size_t bytes;
};

std::unique_ptr<Work> host_fill(std::byte* to, std::byte value, std::size_t bytes) {
  return std::make_unique<HostFill>(to, value, bytes);
}

using Made = Result<std::unique_ptr<Device>>;

class DeviceContract : public ::testing::TestWithParam<DeviceUnderTest> {};

TEST_P(DeviceContract, MemoryIsAlignedAndHoldsWhatIsWritten) {
  expect_memory_as_promised(GetParam());
}
TEST_P(DeviceContract, PoolCountsWhatIsInUse) {
  expect_pool_as_promised(GetParam());
}
TEST_P(DeviceContract, StreamWorksInOrder) {
  expect_stream_in_order(GetParam());
}
TEST_P(DeviceContract, SequenceKeepsItsWaits) {
  expect_waits_kept(GetParam());
}
TEST_P(DeviceContract, StreamsWaitForMarks) {
  expect_marks_kept(GetParam());
}
TEST_P(DeviceContract, TimesFollowTheWaits) {
  expect_times_in_order(GetParam());
}
TEST_P(DeviceContract, RefusesCommandsThatCannotRun) {
  expect_bad_commands_refused(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    All, DeviceContract,
    ::testing::Values(DeviceUnderTest{"cpu", [] { return Made(make_cpu_device()); }, host_fill},
                      DeviceUnderTest{"fake", [] { return Made(make_fake_device({})); },
                                      host_fill}),
    [](const auto& subject) { return subject.param.name; });

struct Mark final : Work {
  Mark(std::atomic<int>& who, int mine) : last(who), number(mine) {}
  Status run(void*) override {
    last.store(number, std::memory_order_relaxed);
    return {};
  }
  std::atomic<int>& last;
  int number;
};

// How often, in 200 runs of two pieces of work on two streams, the first was the last.
int times_overtaken(bool waits) {
  const auto device = make_fake_device({.seed = 3});
  std::atomic<int> last{0};
  Mark first(last, 1);
  Mark second(last, 2);
  std::vector<Command> commands(2);
  commands[0].kind = commands[1].kind = Command::Kind::kWork;
  commands[0].work = &first;
  commands[1].work = &second;
  commands[1].stream = 1;
  if (waits) commands[1].waits = {0};
  auto sequence = device->make_sequence(commands);
  EXPECT_TRUE(sequence);
  int out = 0;
  for (int run = 0; run < 200; ++run) {
    EXPECT_TRUE((*sequence)->run());
    out += last.load() == 1 ? 1 : 0;
  }
  return out;
}

TEST(FakeDevice, StreamsOvertakeEachOtherUnlessTheyWait) {
  EXPECT_GT(times_overtaken(false), 0);
  EXPECT_EQ(times_overtaken(true), 0);
}

struct Fails final : Work {
  Status run(void*) override { return fail(ErrorCode::kDevice, "it broke"); }
};
struct Counts final : Work {
  explicit Counts(int& number) : count(number) {}
  Status run(void*) override {
    ++count;
    return {};
  }
  int& count;
};

TEST(CpuDevice, AFailureEndsTheSequenceAndTheNextOneStartsAfresh) {
  const auto device = make_cpu_device();
  int count = 0;
  Fails fails;
  Counts counts(count);
  std::vector<Command> commands(3);
  for (Command& command : commands) command.kind = Command::Kind::kWork;
  commands[0].work = &counts;
  commands[1].work = &fails;
  commands[2].work = &counts;
  commands[2].stream = 1;
  commands[2].waits = {1};
  const auto sequence = device->make_sequence(commands);
  ASSERT_TRUE(sequence);
  for (int run = 1; run <= 2; ++run) {
    const Status status = (*sequence)->run();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().message, "it broke");
    EXPECT_EQ(count, run);
  }
}

}  // namespace
}  // namespace plimsoll::device

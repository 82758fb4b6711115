#include "plimsoll/device/cpu/free_memory.h"

#include <gtest/gtest.h>

#include <fstream>

namespace plimsoll::device {
namespace {

namespace fs = std::filesystem;

// A machine with /proc and /sys of its own.
class FreeMemoryOf : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) /
            testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(root_);
    write("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n");
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const fs::path& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::int64_t bytes() const {
    const auto found = free_memory(root_);
    return found ? found->bytes.value : -static_cast<std::int64_t>(found.error().code);
  }
  fs::path root_;
};

TEST_F(FreeMemoryOf, AMachineWithoutLimitsIsWhatTheKernelCanGive) {
  EXPECT_EQ(bytes(), 8000 << 10);
  write("proc/self/cgroup", "0::/user/one\n");
  write("sys/fs/cgroup/user/one/memory.max", "max\n");
  write("sys/fs/cgroup/user/one/memory.current", "123\n");
  EXPECT_EQ(bytes(), 8000 << 10);
  EXPECT_NE(free_memory(root_)->source.find("MemAvailable"), std::string::npos);
}

TEST_F(FreeMemoryOf, AGroupIsItsLimitLessWhatItUsesAndCannotDrop) {
  write("proc/self/cgroup", "0::/user/one\n");
  write("sys/fs/cgroup/user/one/memory.max", "5000000\n");
  write("sys/fs/cgroup/user/one/memory.current", "2000000\n");
  write("sys/fs/cgroup/user/one/memory.stat", "anon 5\ninactive_file 500000\n");
  EXPECT_EQ(bytes(), 3500000);
  EXPECT_NE(free_memory(root_)->source.find("control group"), std::string::npos);
  // The parent is tighter.
  write("sys/fs/cgroup/user/memory.max", "3000000\n");
  write("sys/fs/cgroup/user/memory.current", "2500000\n");
  EXPECT_EQ(bytes(), 500000);
  // A group that is over its limit has nothing left.
  write("sys/fs/cgroup/user/memory.current", "3500000\n");
  EXPECT_EQ(bytes(), 0);
}

TEST_F(FreeMemoryOf, AContainerSeesOnlyTheEndOfItsPath) {
  write("proc/self/cgroup", "0::/docker/0123\n");
  write("sys/fs/cgroup/memory.max", "1000000\n");
  write("sys/fs/cgroup/memory.current", "200000\n");
  EXPECT_EQ(bytes(), 800000);
}

TEST_F(FreeMemoryOf, TheFirstVersionOfControlGroupsCounts) {
  write("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/job\n0::/\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "4000000\n");
  write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1500000\n");
  write("sys/fs/cgroup/memory/job/memory.stat", "total_inactive_file 500000\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "1500000\n");
  EXPECT_EQ(bytes(), 3000000);
}

TEST_F(FreeMemoryOf, AMachineThatSaysNothingIsAnError) {
  fs::remove_all(root_ / "proc");
  EXPECT_EQ(bytes(), -static_cast<std::int64_t>(ErrorCode::kDevice));
  write("proc/meminfo", "MemAvailable: lots\n");
  write("proc/self/cgroup", "no colons\n:\n0:\n");
  EXPECT_EQ(bytes(), -static_cast<std::int64_t>(ErrorCode::kDevice));
}

TEST(FreeMemory, ThisMachineHasSome) {
  const auto found = free_memory();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_GT(found->bytes, Bytes(1 << 20));
}

}  // namespace
}  // namespace plimsoll::device

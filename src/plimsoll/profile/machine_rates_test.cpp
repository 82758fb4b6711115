#include "plimsoll/profile/machine_rates.h"

#include <atomic>
#include <fstream>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plimsoll/base/testing/scratch_folder.h"
#include "plimsoll/base/threads.h"

namespace plimsoll::profile {
namespace {

schedule::DeviceProfile rates_for_test() {
  schedule::DeviceProfile out;
  out.name = "cpu3";
  out.note = "measured";
  out.memory_bytes = 5_GiB;
  out.operations_per_second = {{"fp32", 438e9}};
  out.memory_bytes_per_second = 7e9;
  out.cache = {Bytes(1 << 20), 9e9};
  out.launch_seconds = 1e-6;
  return out;
}

TEST(MachineRates, MoveTheRoofAndLeaveTheEfficiencies) {
  const schedule::DeviceProfile shipped = *schedule::shipped_profile("cpu");
  const schedule::DeviceProfile rates = rates_for_test();
  const schedule::DeviceProfile here = at_rates(shipped, rates);
  EXPECT_EQ(here.efficiency, shipped.efficiency);
  EXPECT_EQ(here.operations_per_second.at("fp32"), 438e9);
  // without a rate of its own: as much faster as fp32 is
  EXPECT_NEAR(here.operations_per_second.at("int8"),
              shipped.operations_per_second.at("int8") * 438 / 219, 1e3);
  EXPECT_EQ(here.memory_bytes_per_second, 7e9);
  EXPECT_EQ(here.cache, rates.cache);
  EXPECT_EQ(here.disk, shipped.disk);
  EXPECT_EQ(here.name, "cpu3");
}

TEST(MachineRates, AreTakenFromTheFileWhileTheyAreFresh) {
  const ScratchFolder folder("machine_rates");
  const RatesOptions options{3, folder / "deep/below"};
  keep_rates(options, rates_for_test());
  const auto kept = machine_rates(options);
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(*kept, rates_for_test());
  EXPECT_NE(rates_file(options), rates_file({2, options.folder}));
}

TEST(MachineRates, LeaveOutWhatIsOfOneModel) {
  const ScratchFolder folder("machine_rates");
  schedule::DeviceProfile of_a_model = rates_for_test();
  of_a_model.measured["conv(x)"] = 1;
  of_a_model.efficiency["conv"] = 0.5;
  keep_rates({3, folder / "rates"}, of_a_model);
  EXPECT_EQ(*machine_rates({3, folder / "rates"}), rates_for_test());
}

TEST(MachineRates, AreMeasuredWhereNothingCanBeReadOrKept) {
  const ScratchFolder folder("machine_rates");
  const RatesOptions options{1, folder / "."};
  std::ofstream(rates_file(options)) << "{\"schema\": 1}";
  for (const RatesOptions& one : {options, RatesOptions{1, {}}, RatesOptions{1, "/proc/none"}}) {
    const auto measured = machine_rates(one);
    ASSERT_TRUE(measured) << measured.error().message;
    EXPECT_GT(measured->operations_per_second.at("fp32"), 0);
    EXPECT_GT(measured->memory_bytes_per_second, 0);
    EXPECT_TRUE(schedule::read_profile(schedule::to_json(*measured)).has_value());
  }
}

// Threads of ours that spin on every core are as good as another program's: ours wait for a core.
TEST(MachineRates, AreNotKeptWhereOthersHadTheCores) {
  const ScratchFolder folder("machine_rates");
  std::atomic<bool> done = false;
  std::vector<std::thread> others;
  for (int i = 0; i < 2 * resolve_threads(0); ++i)
    others.emplace_back([&] {
      while (!done) {
      }
    });
  ProfileOptions how;
  how.threads = 1;
  how.quick = true;
  const auto measured = profile_and_keep(how, folder / "rates");
  done = true;
  for (std::thread& other : others) other.join();
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_THAT(measured->note, testing::EndsWith(", beside other programs"));
  EXPECT_FALSE(std::filesystem::exists(rates_file({1, folder / "rates"})));
}

}  // namespace
}  // namespace plimsoll::profile

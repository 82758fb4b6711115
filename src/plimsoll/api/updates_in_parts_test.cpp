// Optimizer updates in parts, run for real: a budget below one whole update, the bits of a run that
// has all the memory it wants, and checkpoints that know nothing of parts.
#include <gtest/gtest.h>

#include <filesystem>

#include "plimsoll/api/run_model.h"
#include "plimsoll/store/npz.h"

namespace plimsoll::api {
namespace {

class UpdatesInParts : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              (std::string("plimsoll_updates_in_parts_") +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }

  // One weight of 8.6 MiB: with AdamW its update takes 35 MiB of 36 in all.
  static RunRequest request(const std::string& budget) {
    RunRequest out;
    out.model.model = "mlp";
    out.model.sizes.batch = 2;
    out.model.sizes.width = 1504;
    out.model.sizes.layers = 2;
    out.model.sizes.image = 8;
    out.model.optimizer = "adamw";
    out.model.threads = 1;
    out.planning.device = "cpu";
    out.planning.deadline = "300ms";  // whatever is found: what counts is that it runs
    out.planning.budget = budget;
    if (!budget.empty()) out.planning.techniques = "recompute,swap";
    out.steps = 2;
    return out;
  }

  static void expect_same_arrays(const std::string& a, const std::string& b) {
    const auto first = store::NpzFile::open(a);
    const auto second = store::NpzFile::open(b);
    ASSERT_TRUE(first && second);
    ASSERT_EQ(first->entries().size(), second->entries().size());
    for (const store::NpzEntry& entry : first->entries()) {
      const store::NpzEntry* other = second->find(entry.name);
      ASSERT_NE(other, nullptr) << entry.name;
      EXPECT_EQ(first->read(entry)->bytes, second->read(*other)->bytes) << entry.name;
    }
  }

  std::filesystem::path folder_;
};

TEST_F(UpdatesInParts, KeepLossesAndCheckpointsToTheBit) {
  RunRequest whole = request("");
  whole.files.save = at("whole.npz");
  const auto expected = run_model(whole);
  ASSERT_TRUE(expected) << expected.error().message;
  RunRequest parts = request("26MiB");
  parts.files.save = at("parts.npz");
  const auto report = run_model(parts);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_LE(report->peak, 26_MiB);
  EXPECT_EQ(report->losses, expected->losses);
  expect_same_arrays(at("whole.npz"), at("parts.npz"));
}

TEST_F(UpdatesInParts, GoOnFromCheckpointsOfEachOther) {
  RunRequest straight = request("");
  straight.steps = 3;
  straight.files.save = at("straight.npz");
  ASSERT_TRUE(run_model(straight));
  for (const bool parts_first : {false, true}) {
    RunRequest first = request(parts_first ? "26MiB" : "");
    first.files.save = at("first.npz");
    ASSERT_TRUE(run_model(first));
    RunRequest second = request(parts_first ? "" : "26MiB");
    second.steps = 1;
    second.files.resume = at("first.npz");
    second.files.save = at("second.npz");
    const auto report = run_model(second);
    ASSERT_TRUE(report) << report.error().message;
    expect_same_arrays(at("straight.npz"), at("second.npz"));
  }
}

TEST_F(UpdatesInParts, TakeOverFromAStepThatPages) {
  const auto expected = run_model(request(""));
  ASSERT_TRUE(expected) << expected.error().message;
  RunRequest paged = request("");
  paged.planning.techniques = "recompute,swap";
  paged.paging.policy = "planned";
  paged.paging.capacity = std::to_string((26_MiB).value);
  const auto report = run_model(paged);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->losses, expected->losses);
}

}  // namespace
}  // namespace plimsoll::api

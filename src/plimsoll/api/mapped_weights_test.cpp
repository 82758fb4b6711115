// Plain weights of a .plim file, whose pages lie in the arena instead of a copy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "plimsoll/api/run_model.h"
#include "plimsoll/api/weights.h"
#include "plimsoll/base/file.h"
#include "plimsoll/base/testing/scratch_folder.h"

namespace plimsoll::api {
namespace {

using ::testing::HasSubstr;

class MappedWeights : public ::testing::Test {
 protected:
  MappedWeights() {
    RunRequest saves = request("auto");
    saves.files.weights.clear();
    saves.files.outputs.clear();
    saves.files.save = at("plain.npz");
    EXPECT_TRUE(run_model(saves));
    for (const char* output : {"plain.plim", "plain.safetensors"}) {
      WeightsRequest convert;
      convert.file = at("plain.npz");
      convert.output = at(output);
      EXPECT_TRUE(weights_of_file(convert));
    }
  }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }

  // 6 million weights.
  RunRequest request(const std::string& load, const std::string& file = "plain.plim") const {
    RunRequest out;
    out.model.model = "mlp";
    out.model.train = false;
    out.model.threads = 1;
    out.model.sizes.batch = 1;
    out.model.sizes.width = 2048;
    out.steps = 1;
    out.random = true;
    out.files.weights = at(file);
    out.files.load = load;
    out.files.outputs = at("out.npz");
    return out;
  }
  static std::int64_t bytes_by(const RunReport& report, const char* method) {
    const auto found = report.loaded->by_method.find(method);
    return found == report.loaded->by_method.end() ? 0 : found->second.value;
  }

  ScratchFolder folder_{"mapped_weights"};
};

TEST_F(MappedWeights, GiveTheOutputsOfCopiedOnes) {
  const auto copied = run_model(request("cached"));
  ASSERT_TRUE(copied) << copied.error().message;
  EXPECT_EQ(bytes_by(*copied, "mapped"), 0);
  const auto expected = read_file(at("out.npz"));
  ASSERT_TRUE(expected);
  for (const char* load : {"auto", "mapped"}) {
    const auto mapped = run_model(request(load));
    ASSERT_TRUE(mapped) << mapped.error().message;
    // All but biases, which are less than a page or end in one.
    EXPECT_GT(bytes_by(*mapped, "mapped"), 20'000'000) << load;
    EXPECT_EQ(*read_file(at("out.npz")), *expected);
  }
  const auto direct = run_model(request("direct"));
  ASSERT_TRUE(direct) << direct.error().message;
  EXPECT_GT(bytes_by(*direct, "direct"), 20'000'000);
  EXPECT_EQ(*read_file(at("out.npz")), *expected);
}

// Tensors of a safetensors file begin anywhere in its pages: most are copied, whatever was asked.
TEST_F(MappedWeights, AreRightWhereTheFileHasThemElsewhereInItsPages) {
  ASSERT_TRUE(run_model(request("cached")));
  const auto expected = read_file(at("out.npz"));
  const auto ran = run_model(request("mapped", "plain.safetensors"));
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_GT(bytes_by(*ran, "mapped") + bytes_by(*ran, "cached"), 20'000'000);
  EXPECT_EQ(*read_file(at("out.npz")), *expected);
}

// They pass through the page cache in pieces, whatever was asked.
TEST_F(MappedWeights, OnesOfAnotherTypeSayHowTheyWereRead) {
  WeightsRequest convert;
  convert.file = at("plain.npz");
  convert.form = "fp16";
  convert.output = at("half.safetensors");
  ASSERT_TRUE(weights_of_file(convert));
  const auto ran = run_model(request("direct", "half.safetensors"));
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_GT(bytes_by(*ran, "cached"), 10'000'000);
  EXPECT_LT(bytes_by(*ran, "direct"), 100'000);
}

TEST_F(MappedWeights, AreNotMappedWhereTheyAreTrained) {
  RunRequest trains = request("auto");
  trains.model.train = true;
  trains.files.outputs.clear();
  const auto ran = run_model(trains);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(bytes_by(*ran, "mapped"), 0);
}

TEST_F(MappedWeights, AFileThatIsCutMeanwhileIsAnError) {
  RunRequest cut = request("auto");
  cut.steps = 3;
  cut.steps_given = true;
  cut.on_step = [&](int step, std::optional<double>, double) {
    if (step == 0) std::filesystem::resize_file(at("plain.plim"), 8192);
  };
  const auto ran = run_model(cut);
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, ErrorCode::kBadInput);
  EXPECT_THAT(ran.error().message, HasSubstr("became shorter"));
}

TEST_F(MappedWeights, AnUnknownWayIsRefused) {
  const auto ran = run_model(request("teleport"));
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace plimsoll::api

#include "plimsoll/api/load_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "plimsoll/api/pipeline.h"
#include "plimsoll/api/show_graph.h"
#include "plimsoll/base/file.h"
#include "plimsoll/base/testing/test_paths.h"
#include "plimsoll/ir/text.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::api {
namespace {

using ::testing::HasSubstr;

ModelRequest load_request(std::string model) {
  ModelRequest out;
  out.model = std::move(model);
  return out;
}

// A file in a folder that goes when the test ends.
class LoadModel : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = test_binary_dir() / "load_model_test" /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string file(const char* name, std::string_view content) {
    const std::filesystem::path path = folder_ / name;
    EXPECT_TRUE(write_file(path, content));
    return path.string();
  }

  std::filesystem::path folder_;
};

TEST_F(LoadModel, BuiltInModelsTrainUnlessToldOtherwise) {
  ModelRequest request = load_request("mlp");
  const auto training = load_model(request);
  ASSERT_TRUE(training) << training.error().message;
  EXPECT_TRUE(training->training);
  EXPECT_FALSE(training->graph.updates.empty());
  request.train = false;
  const auto inference = load_model(request);
  ASSERT_TRUE(inference) << inference.error().message;
  EXPECT_TRUE(inference->graph.updates.empty());
}

TEST_F(LoadModel, AGraphFileIsUsedAsItIs) {
  const auto text = show_graph(load_request("mlp"), GraphFormat::kText);
  ASSERT_TRUE(text);
  const auto again = show_graph(load_request(file("step.graph", *text)), GraphFormat::kText);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, *text);
}

TEST_F(LoadModel, AFileThatPredictsTrainsWithALoss) {
  ModelRequest request = load_request("mlp");
  request.train = false;
  const auto text = show_graph(request, GraphFormat::kText);
  ASSERT_TRUE(text);
  request.model = file("mlp.graph", *text);
  request.train = true;
  EXPECT_THAT(load_model(request).error().message, HasSubstr("say what to minimise with --loss"));
  for (const char* loss : {"cross-entropy", "mse"}) {
    request.loss = loss;
    const auto loaded = load_model(request);
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_TRUE(ops::verify(loaded->graph));
  }
  request.loss = "accuracy";
  EXPECT_THAT(load_model(request).error().message,
              HasSubstr("neither cross-entropy, mse nor the name of an output"));
}

TEST_F(LoadModel, HostileFilesAreOneClearLine) {
  const auto refusal = [&](std::string_view content) {
    const auto loaded = load_model(load_request(file("bad.graph", content)));
    EXPECT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, ErrorCode::kBadInput);
    return loaded.error().message;
  };
  EXPECT_THAT(refusal(""), HasSubstr("bad.graph: line 1, column 1"));
  EXPECT_THAT(refusal("plimsoll graph 1 \"g\"\n%0 input \"x\" fp32[2]\n"
                      "%1 activation \"y\" fp32[2] = warp(%0) forward\noutput %1\nend\n"),
              HasSubstr("bad.graph: node 0: warp: unknown operator"));
  EXPECT_THAT(refusal("plimsoll graph 1 \"g\"\n%0 input \"x\" fp32[2]\n"
                      "%1 activation \"y\" fp32[3] = relu(%0) forward\noutput %1\nend\n"),
              HasSubstr("output 0 is said to be fp32[3], is fp32[2]"));
}

TEST_F(LoadModel, OptionsThatAFileCannotTakeAreRefused) {
  ModelRequest request = load_request(
      file("fixed.graph", "plimsoll graph 1 \"g\"\n%0 input \"x\" fp32[2]\noutput %0\nend\n"));
  request.sizes.batch = 3;
  EXPECT_THAT(load_model(request).error().message, HasSubstr("no size 'batch' to choose"));
  request.sizes = {.image = 3};
  EXPECT_THAT(load_model(request).error().message, HasSubstr("--image is for built-in models"));
  request = load_request("mlp");
  request.dtype = "int8";
  EXPECT_THAT(load_model(request).error().message, HasSubstr("--dtype int8 is no float type"));
  request = load_request("mlp");
  request.optimizer = "adagrad";
  EXPECT_EQ(load_model(request).error().code, ErrorCode::kUsage);
}

TEST(ListModels, NamesEveryOptionWithItsDefault) {
  const auto models = list_models();
  ASSERT_TRUE(models) << models.error().message;
  for (const ModelSummary& model : *models) {
    EXPECT_GT(model.parameters, 0) << model.name;
    EXPECT_FALSE(model.options.empty()) << model.name;
  }
}

}  // namespace
}  // namespace plimsoll::api

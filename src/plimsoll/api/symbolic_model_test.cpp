#include "plimsoll/api/symbolic_model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plimsoll/api/pipeline.h"
#include "plimsoll/base/file.h"
#include "plimsoll/ir/text.h"
#include "plimsoll/model/zoo.h"

namespace plimsoll::api {
namespace {

ModelRequest symbolic_request(const std::string& model) {
  ModelRequest out;
  out.model = model;
  const model::ModelInfo* info = model::find_model(model);
  const auto has = [&](const char* option) {
    return std::find(info->options.begin(), info->options.end(), option) != info->options.end();
  };
  if (has("seq")) out.sizes.seq = 12;
  if (has("layers")) out.sizes.layers = 2;
  if (has("image") && model != "alexnet") out.sizes.image = 64;
  return out;
}

TEST(SymbolicModel, BindsToTheGraphThatWouldHaveBeenBuilt) {
  for (const model::ModelInfo& info : model::models()) {
    for (const bool train : {true, false}) {
      SCOPED_TRACE(info.name + (train ? ", training" : ", inference"));
      ModelRequest request = symbolic_request(info.name);
      request.train = train;
      request.sizes.batch = 8;
      const auto symbolic = symbolic_model(request, {"batch"});
      ASSERT_TRUE(symbolic) << symbolic.error().message;
      EXPECT_EQ(symbolic->graph, load_model(request)->graph);
      for (const std::int64_t batch : {2, 17, 128}) {
        request.sizes.batch = batch;
        const auto bound = at_sizes(*symbolic, {{"batch", batch}});
        ASSERT_TRUE(bound) << bound.error().message;
        EXPECT_EQ(*bound, load_model(request)->graph) << batch;
      }
    }
  }
}

TEST(SymbolicModel, BatchAndLengthTogether) {
  for (const char* model : {"gpt2", "bert"}) {
    SCOPED_TRACE(model);
    ModelRequest request = symbolic_request(model);
    request.sizes.batch = 4;
    const auto symbolic = symbolic_model(request, {"batch", "seq"});
    ASSERT_TRUE(symbolic) << symbolic.error().message;
    request.sizes.batch = 3;
    request.sizes.seq = 50;
    EXPECT_EQ(*at_sizes(*symbolic, {{"seq", 50}, {"batch", 3}}), load_model(request)->graph);
  }
}

TEST(SymbolicModel, ALargestSizeThatIsACaseOfItsOwnIsCovered) {
  ModelRequest request = symbolic_request("gpt2");
  request.sizes.seq = 1024;  // its table has 1024 positions: no slice
  const auto symbolic = symbolic_model(request, {"seq"});
  ASSERT_TRUE(symbolic) << symbolic.error().message;
  request.sizes.seq = 300;
  EXPECT_EQ(*at_sizes(*symbolic, {{"seq", 300}}), load_model(request)->graph);
  EXPECT_TRUE(at_sizes(*symbolic, {{"seq", 1024}}));
  EXPECT_FALSE(at_sizes(*symbolic, {{"seq", 1025}})) << "more than the table has";
}

TEST(SymbolicModel, AFileWithSymbolsIsReadAtAnySize) {
  ModelRequest request = symbolic_request("resnet18");
  request.sizes.batch = 8;
  const std::string file = testing::TempDir() + "symbolic_model_test.graph";
  ASSERT_TRUE(write_file(file, ir::to_text(*symbolic_model(request, {"batch"}))));
  ModelRequest from_file;
  from_file.model = file;
  EXPECT_EQ(load_model(from_file)->graph, load_model(request)->graph) << "as it was written";
  request.sizes.batch = 3;
  from_file.sizes.batch = 3;
  EXPECT_EQ(load_model(from_file)->graph, load_model(request)->graph);
  from_file.sizes = {};
  from_file.dims = {"batch=3"};
  EXPECT_EQ(load_model(from_file)->graph, load_model(request)->graph);
  from_file.dims = {"seq=3"};
  EXPECT_EQ(load_model(from_file).error().code, ErrorCode::kUsage);
}

TEST(SymbolicModel, SaysWhyThereIsNone) {
  EXPECT_EQ(symbolic_model(symbolic_request("mlp"), {"width"}).error().code, ErrorCode::kUsage);
  EXPECT_EQ(symbolic_model(symbolic_request("mlp"), {"batch", "batch"}).error().code,
            ErrorCode::kUsage);
  const auto unrolled = symbolic_model(symbolic_request("lstm"), {"seq"});
  ASSERT_FALSE(unrolled);
  EXPECT_NE(unrolled.error().message.find("no one graph for all sizes"), std::string::npos)
      << unrolled.error().message;
  // Rows of an expert are a share of the tokens, rounded up.
  ModelRequest experts = symbolic_request("moe");
  experts.sizes.seq = 512;
  const auto rounded = symbolic_model(experts, {"seq"});
  ASSERT_FALSE(rounded);
  EXPECT_NE(rounded.error().message.find("no one graph for all sizes"), std::string::npos)
      << rounded.error().message;
}

}  // namespace
}  // namespace plimsoll::api

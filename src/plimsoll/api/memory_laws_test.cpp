// Laws of memory against graphs of sizes that they have not seen, to the byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "plimsoll/api/memory_of_model.h"
#include "plimsoll/api/pipeline.h"
#include "plimsoll/api/testing/small_sizes.h"
#include "plimsoll/base/testing/test_paths.h"
#include "plimsoll/model/zoo.h"
#include "plimsoll/report/find_law.h"

namespace plimsoll::api {
namespace {

constexpr std::size_t kScratch = report::kScratchUse;

// Counts of uses: predicted, and without a law.
struct Score {
  int predicted = 0;
  int without = 0;
  int sizes = 0;
};

// No size that a law is found from or checked at: see find_law.cpp.
std::vector<std::int64_t> unseen(const report::Law& law) {
  std::vector<std::int64_t> out;
  for (const std::int64_t k : {9, 13, 19, 29}) out.push_back(law.here + k * law.period);
  if (law.variable == "heads") out = {4 * law.here};
  return out;
}

using GraphAt = std::function<Result<ir::Graph>(const std::string& variable, std::int64_t size)>;

void predict(const report::MemoryReport& memory, const GraphAt& build, Score& score) {
  for (const report::Law& law : memory.laws) {
    for (std::size_t use = 0; use < plan::kUseCount; ++use) {
      if (use == kScratch || memory.by_use[use].value == 0) continue;
      ++(law.by_use[use] && law.jumping[use].tensors == 0 ? score.predicted : score.without);
    }
    for (const std::int64_t size : unseen(law)) {
      const auto graph = build(law.variable, size);
      if (!graph) continue;  // no such model
      ++score.sizes;
      const report::Sample sample = report::sample_of(*graph, {});
      for (std::size_t use = 0; use < plan::kUseCount; ++use) {
        if (use == kScratch || !law.by_use[use] || law.jumping[use].tensors > 0) continue;
        EXPECT_EQ(law.by_use[use]->at(size), sample.by_use[use])
            << report::use_name(use) << " at " << law.variable << " " << size;
      }
    }
  }
}

GraphAt graphs_of(const ModelRequest& request) {
  return [request](const std::string& variable, std::int64_t size) -> Result<ir::Graph> {
    ModelRequest at = request;
    at.quiet = true;
    const bool file = at.model.ends_with(".onnx");
    if (file || !set_size(at, variable, size))
      at.dims.push_back(fmt::format("{}={}", variable, size));
    PLIMSOLL_TRY(const LoadedModel model, load_model(at));
    return assign_layouts(model.graph, 1);
  };
}

void predict_every_option(const std::string& model) {
  ModelRequest request;
  request.model = model;
  request.threads = 1;
  request.sizes = small_sizes(model);
  const auto memory = memory_of_model(request);
  ASSERT_TRUE(memory) << memory.error().message;
  std::size_t options = 0;
  for (const std::string& option : model::find_model(model)->options)
    options += option == "dropout" ? 0 : 1;
  EXPECT_EQ(memory->laws.size(), options);
  Score score;
  predict(*memory, graphs_of(request), score);
  EXPECT_GE(score.sizes, 3 * static_cast<int>(options) - 3);
  // What kernels choose by size has no law: weights in blocks, layouts of small images and widths.
  EXPECT_LE(score.without * 3, score.predicted) << score.without << " of " << score.predicted;
}

// One of each family; all of them in the slow suite.
const std::vector<std::string> kFamilies = {
    "exp-example", "mlp", "alexnet", "resnet18", "lstm", "gpt2", "bert", "moe", "whisper-small"};

class MemoryLaws : public testing::TestWithParam<std::string> {};
class SlowMemoryLaws : public testing::TestWithParam<std::string> {};
TEST_P(MemoryLaws, PredictUnseenSizesOfEveryOptionToTheByte) {
  predict_every_option(GetParam());
}
TEST_P(SlowMemoryLaws, PredictUnseenSizesOfEveryOptionToTheByte) {
  predict_every_option(GetParam());
}

std::vector<std::string> other_models() {
  std::vector<std::string> out;
  for (const model::ModelInfo& info : model::models()) {
    if (std::ranges::find(kFamilies, info.name) == kFamilies.end()) out.push_back(info.name);
  }
  return out;
}

std::string family_name(const testing::TestParamInfo<std::string>& of) {
  std::string out = of.param;
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

INSTANTIATE_TEST_SUITE_P(Models, MemoryLaws, testing::ValuesIn(kFamilies), family_name);
INSTANTIATE_TEST_SUITE_P(Models, SlowMemoryLaws, testing::ValuesIn(other_models()), family_name);

TEST(MemoryLawsOfFiles, PredictUnseenSizesOfSymbolicDimensions) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> files = {
      {"sizes.script", {"batch=2", "height=10", "width=15"}},
      {"lengths.script", {"batch=3", "seq=8"}},
      {"lengths.dynamo", {"s23=3", "s27=8"}}};
  Score score;
  for (const bool train : {false, true}) {
    for (const auto& [file, dims] : files) {
      SCOPED_TRACE(file);
      ModelRequest request;
      request.model = (test_source_dir() / "tests/onnx/exports" / (file + ".onnx")).string();
      request.threads = 1;
      request.train = train;
      if (train) request.loss = "mse";
      request.dims = dims;
      const auto memory = memory_of_model(request);
      ASSERT_TRUE(memory) << memory.error().message;
      EXPECT_EQ(memory->laws.size(), dims.size());
      predict(*memory, graphs_of(request), score);
    }
  }
  EXPECT_GE(score.sizes, 36);
  EXPECT_EQ(score.without, 0) << "of " << score.predicted;
}

TEST(MemoryReports, TheTableIsToldBeforeLawsAreLookedFor) {
  ModelRequest request;
  request.model = "mlp";
  request.threads = 1;
  std::vector<std::string> told;
  MemoryReportOptions how;
  how.on_table = [&](const report::MemoryReport& table) {
    EXPECT_GT(table.total, Bytes(0));
    EXPECT_TRUE(table.laws.empty());
    told.push_back("table");
  };
  how.on_law = [&](const report::Law& law, const report::MemoryReport&) {
    told.push_back(law.variable);
  };
  how.on_rank_law = [&](const report::Law& law) { told.push_back(law.variable); };
  const auto memory = memory_of_model(request, how);
  ASSERT_TRUE(memory) << memory.error().message;
  EXPECT_EQ(told, (std::vector<std::string>{"table", "batch", "image", "width", "layers", "classes",
                                            "copies", "shards"}));
  EXPECT_TRUE(memory->left_out.empty());
}

TEST(MemoryReports, WhatTakesGraphsOfTooManyOperatorsIsLeftOutByName) {
  ModelRequest request;
  request.model = "mlp";
  request.threads = 1;
  MemoryReportOptions how;
  how.most_operators = 1'000;
  const auto memory = memory_of_model(request, how);
  ASSERT_TRUE(memory) << memory.error().message;
  EXPECT_GT(memory->total, Bytes(0));
  ASSERT_FALSE(memory->laws.empty());
  EXPECT_EQ(memory->laws.front().variable, "batch");
  EXPECT_EQ(memory->laws.size() + memory->rank_laws.size() + memory->left_out.size(), 7u);
  EXPECT_EQ(memory->left_out.back(), "shards");
  EXPECT_EQ(memory->scratch.size(), 1u);  // of the size that was asked for
}

// What one of n ranks holds, from the graphs of numbers of ranks that the law has not seen.
TEST(MemoryLawsOfRanks, PredictUnseenNumbersOfRanksToTheByte) {
  for (const char* model : {"mlp", "gpt2", "moe"}) {
    SCOPED_TRACE(model);
    ModelRequest request;
    request.model = model;
    request.threads = 1;
    request.sizes = small_sizes(model);
    const auto memory = memory_of_model(request);
    ASSERT_TRUE(memory) << memory.error().message;
    ASSERT_EQ(memory->rank_laws.size(), 2u);
    for (const report::Law& law : memory->rank_laws) {
      SCOPED_TRACE(law.variable);
      for (const std::int64_t ranks : {4, 7, 16, 37}) {
        const auto graph = graph_of_rank(request, ranks, law.variable == "copies" ? "" : kShards);
        ASSERT_TRUE(graph) << graph.error().message;
        const report::Sample sample = report::sample_of(*graph, {});
        for (std::size_t use = 0; use < plan::kUseCount; ++use) {
          if (use == kScratch) continue;
          ASSERT_TRUE(law.by_use[use]) << report::use_name(use);
          EXPECT_EQ(law.by_use[use]->at(ranks), sample.by_use[use])
              << report::use_name(use) << " of " << ranks;
        }
      }
    }
  }
}

TEST(MemoryLawsOfRanks, AModelThatIsOnlyUsedHasNone) {
  ModelRequest request;
  request.model = "mlp";
  request.train = false;
  const auto memory = memory_of_model(request);
  ASSERT_TRUE(memory) << memory.error().message;
  EXPECT_TRUE(memory->rank_laws.empty());
}

}  // namespace
}  // namespace plimsoll::api

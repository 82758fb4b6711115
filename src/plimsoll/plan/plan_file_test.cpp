#include "plimsoll/plan/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "plimsoll/base/random.h"
#include "plimsoll/plan/check_plan.h"
#include "plimsoll/plan/make_plan.h"
#include "plimsoll/plan/testing/random_graph.h"
#include "plimsoll/schedule/fit.h"

namespace plimsoll::plan {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

Plan sample_plan(std::uint64_t seed = 1) {
  const ir::Graph graph = random_graph(seed);
  const auto mapped = schedule::make_graph_workload(graph, {});
  Plan plan = *make_plan(graph, *mapped, schedule::keep_all(mapped->workload), {});
  plan.environment = {"cpu", 2, "avx2", "library 1"};
  return plan;
}

TEST(PlanFile, WhatIsWrittenReadsBackEqual) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Plan plan = sample_plan(seed);
    plan.budget = plan.arena_bytes() + Bytes(5);
    plan.predicted_seconds = 0.1;
    plan.steps.back().waits = {0};
    plan.steps.back().stream = 1;
    plan.steps.front().seconds = 1.0 / 3;
    plan.contiguous = {{BufferId(0u), BufferId(1u)}, {BufferId(2u)}};
    if (seed % 3 == 0)
      plan.engines = {{"conv(fp32[1,2]){}", "cudnn:38/2=11"}, {"linear()", "direct"}};
    if (seed % 2 == 0) {
      plan.weights = WeightsOrigin{.model = "nets/m.onnx",
                                   .files = {{"", Bytes(7), "00ab"}, {"m.data", Bytes(9), "cd"}},
                                   .training = true,
                                   .untied = seed % 4 == 0,
                                   .batch = 8,
                                   .seq = std::nullopt,
                                   .dims = {{"past", 0}, {"x:1", 5}}};
    }
    const std::string text = to_json(plan);
    EXPECT_TRUE(looks_like_plan(text));
    const auto again = parse_plan(text);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_TRUE(*again == plan) << "seed " << seed;
    EXPECT_EQ(to_json(*again), text);
  }
}

TEST(PlanFile, TruncatedFilesAreRefusedAtEveryLength) {
  const std::string text = to_json(sample_plan());
  for (std::size_t length = 0; length + 2 < text.size(); length += 13) {
    const auto plan = parse_plan(std::string_view(text).substr(0, length));
    ASSERT_FALSE(plan) << length;
    EXPECT_EQ(plan.error().code, ErrorCode::kBadInput);
  }
}

// Replaces one field and returns the refusal.
std::string refusal(const json::json_pointer& where, json what) {
  json root = json::parse(to_json(sample_plan()));
  root[where] = std::move(what);
  const auto plan = parse_plan(root.dump());
  EXPECT_FALSE(plan) << where.to_string();
  return plan ? "" : plan.error().message;
}

TEST(PlanFile, WrongTypesAndRangesAreNamed) {
  using namespace nlohmann::literals;
  EXPECT_THAT(refusal("/kind"_json_pointer, "soup"), HasSubstr("not a plan file"));
  EXPECT_THAT(refusal("/schema"_json_pointer, 99), HasSubstr("schema 99, this program reads 1"));
  EXPECT_THAT(refusal("/graph"_json_pointer, "rubbish"), HasSubstr("graph: line 1"));
  EXPECT_THAT(refusal("/graph"_json_pointer, 3), HasSubstr("graph"));
  EXPECT_THAT(refusal("/arenas"_json_pointer, "none"), HasSubstr("'arenas' should be a list"));
  EXPECT_THAT(refusal("/arenas/0/bytes"_json_pointer, -1),
              HasSubstr("'bytes' should be an integer from 0"));
  EXPECT_THAT(refusal("/arenas/0/bytes"_json_pointer, 1e300),
              HasSubstr("'bytes' should be an integer"));
  EXPECT_THAT(refusal("/arenas/0/bytes"_json_pointer, 18446744073709551615u),
              HasSubstr("'bytes' is out of range"));
  EXPECT_THAT(refusal("/buffers/0/use"_json_pointer, "decoration"),
              HasSubstr("'decoration' is no use of a buffer"));
  EXPECT_THAT(refusal("/buffers/0/value"_json_pointer, 100000),
              HasSubstr("'value' should be an integer from 0"));
  EXPECT_THAT(refusal("/buffers/0"_json_pointer, 7), HasSubstr("should stand in an object"));
  EXPECT_THAT(refusal("/steps/0/do"_json_pointer, "dance"),
              HasSubstr("'dance' is no kind of step"));
  EXPECT_THAT(refusal("/steps/0/node"_json_pointer, -3),
              HasSubstr("'node' should be an integer from 0"));
  EXPECT_THAT(refusal("/steps/0/stream"_json_pointer, 8),
              HasSubstr("'stream' should be an integer from 0 to 7"));
  EXPECT_THAT(refusal("/steps/0/in/0"_json_pointer, json::array({100000, 0})),
              HasSubstr("'buffer' should be an integer from 0"));
  EXPECT_THAT(refusal("/steps/0/in/0"_json_pointer, json::array({1, 2, 3})),
              HasSubstr("a slot should be [buffer, offset]"));
  EXPECT_THAT(refusal("/steps/0/waits"_json_pointer, json::array({-1})),
              HasSubstr("'waits' should be an integer from 0"));
  EXPECT_THAT(refusal("/steps/0/seconds"_json_pointer, "soon"),
              HasSubstr("'seconds' should be a number, 0 or more"));
  EXPECT_THAT(refusal("/sources/0"_json_pointer, json::array({0})),
              HasSubstr("a place should be [value, buffer, offset]"));
  EXPECT_THAT(refusal("/results/0/0"_json_pointer, 100000),
              HasSubstr("'value' should be an integer"));
  EXPECT_THAT(refusal("/buffers/0/end"_json_pointer, 1'000'000),
              HasSubstr("is alive in steps [0, 1000000), the plan has"));
  EXPECT_THAT(refusal("/steps/0/seconds"_json_pointer, -1),
              HasSubstr("'seconds' should be a number, 0 or more"));
  EXPECT_THAT(refusal("/proof/optimal"_json_pointer, 1),
              HasSubstr("'optimal' should be true or false"));
  EXPECT_THAT(refusal("/engines"_json_pointer, json::array()),
              HasSubstr("'engines' should be an object"));
  EXPECT_THAT(refusal("/engines"_json_pointer, {{"conv()", 7}}),
              HasSubstr("the engine of 'conv()' should be a string"));
  EXPECT_THAT(refusal("/proof"_json_pointer, json::array()),
              HasSubstr("should stand in an object"));
}

TEST(PlanFile, WrongOriginsOfWeightsAreNamed) {
  const auto refused = [](const char* where, json what) {
    Plan plan = sample_plan();
    plan.weights = WeightsOrigin{};
    plan.weights->files.push_back({"", Bytes(7), "00ab"});
    json root = json::parse(to_json(plan));
    root[json::json_pointer(where)] = std::move(what);
    const auto read = parse_plan(root.dump());
    EXPECT_FALSE(read) << where;
    return read ? "" : read.error().message;
  };
  EXPECT_THAT(refused("/weights", 3), HasSubstr("should stand in an object"));
  EXPECT_THAT(refused("/weights/model", 3), HasSubstr("'model' should be a string"));
  EXPECT_THAT(refused("/weights/files", json::object()), HasSubstr("'files' should be a list"));
  EXPECT_THAT(refused("/weights/files/0/bytes", -1), HasSubstr("'bytes' should be an integer"));
  EXPECT_THAT(refused("/weights/files/0/hash", 5), HasSubstr("'hash' should be a string"));
  EXPECT_THAT(refused("/weights/import/train", 1), HasSubstr("'train' should be true or false"));
  EXPECT_THAT(refused("/weights/import/batch", "x"), HasSubstr("'batch' should be an integer"));
  EXPECT_THAT(refused("/weights/import/dims", 1), HasSubstr("'dims' should be an object"));
}

// Whatever a damaged file says, reading and checking it end with an answer.
TEST(PlanFile, DamagedBytesNeverCrashTheReaderOrTheChecker) {
  const std::string text = to_json(sample_plan(3));
  Random random(11);
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = text;
    for (std::int64_t i = random.between(1, 4); i > 0; --i) {
      damaged[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(damaged.size())))] =
          "0123456789-,[]{}\"e. n"[random.below(21)];
    }
    const auto plan = parse_plan(damaged);
    if (plan) check_plan(*plan);
  }
}

TEST(PlanFile, APlanForAnotherMachineIsRefused) {
  const Plan plan = sample_plan();
  EXPECT_TRUE(require_environment(plan, plan.environment));
  Environment other = plan.environment;
  other.threads = 7;
  EXPECT_THAT(require_environment(plan, other).error().message,
              HasSubstr("made for threads '2', here it is '7'"));
  other = plan.environment;
  other.instruction_set = "sse";
  EXPECT_THAT(require_environment(plan, other).error().message,
              HasSubstr("instruction set 'avx2'"));
  other = plan.environment;
  other.kernel_library = "library 2";
  EXPECT_EQ(require_environment(plan, other).error().code, ErrorCode::kBadInput);
}

}  // namespace
}  // namespace plimsoll::plan

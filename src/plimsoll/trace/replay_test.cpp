#include "plimsoll/trace/replay.h"
#include "plimsoll/base/testing/test_paths.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "plimsoll/trace/pipeline_trace.h"
#include "plimsoll/trace/replay_file.h"
#include "plimsoll/trace/snapshot.h"

namespace plimsoll::trace {
namespace {

Trace recorded(const std::string& name) {
  const std::filesystem::path folder = test_source_dir() / "src/plimsoll/trace/testdata";
  auto trace = read_any_trace(folder / (name + ".pickle.gz"));
  EXPECT_TRUE(trace) << (trace ? "" : trace.error().message);
  return std::move(*trace);
}

ReplayOutcome run(const Trace& trace, Policy policy, Bytes capacity = 0_bytes) {
  ReplayOptions options;
  options.capacity = capacity;
  return replay(trace, compile_replay(trace).value(), policy, options);
}

TEST(Replay, ExpandableModelReachesPytorchsPeakToTheByte) {
  EXPECT_EQ(run(recorded("gpt2_varlen"), Policy::kPytorchExpandable).peak_reserved, 20662_MiB);
}

TEST(Replay, DefaultModelReachesPytorchsPeakToTheByte) {
  EXPECT_EQ(run(recorded("alexnet"), Policy::kPytorch).peak_reserved, Bytes(2155872256));
  EXPECT_EQ(run(recorded("resnet50"), Policy::kPytorch).peak_reserved, Bytes(3732930560));
  EXPECT_EQ(run(recorded("gpt2"), Policy::kPytorch).peak_reserved, Bytes(15766388736));
  EXPECT_EQ(run(recorded("gpt2_varlen"), Policy::kPytorch).peak_reserved, Bytes(33860616192));
}

TEST(Replay, OursStaysCloseToWhatIsAlive) {
  const auto limit = [](const Trace& trace, double share) {
    const Bytes live = compile_replay(trace)->peak_live;
    const auto more = static_cast<std::int64_t>(static_cast<double>(live.value) * share);
    return live + std::max(16_MiB, Bytes(more));
  };
  for (const char* name : {"alexnet", "resnet50", "gpt2"}) {
    const Trace trace = recorded(name);
    const ReplayOutcome outcome = run(trace, Policy::kPlimsoll);
    EXPECT_LE(outcome.peak_reserved, limit(trace, 0.01)) << name;
    EXPECT_EQ(outcome.order_violation, "") << name;
  }
  const Trace varlen = recorded("gpt2_varlen");
  const ReplayOutcome outcome = run(varlen, Policy::kPlimsoll);
  EXPECT_LE(outcome.peak_reserved, limit(varlen, 0.005));
  EXPECT_EQ(outcome.order_violation, "");
}

TEST(Replay, LendsBetweenTenStreamsInOrder) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    PipelineOptions options;
    options.seed = seed;
    const Trace trace = make_pipeline_trace(options);
    const ReplayOutcome ours = run(trace, Policy::kPlimsoll);
    EXPECT_EQ(ours.order_violation, "");
    EXPECT_GT(ours.stream_waits, 0);
    EXPECT_LE(ours.overhead, 0.02);
    EXPECT_GE(run(trace, Policy::kPytorch).overhead, 1.0);
  }
}

TEST(Replay, CountsWhatDoesNotFitAndSaysWhy) {
  const ReplayOutcome outcome = run(recorded("alexnet"), Policy::kPlimsoll, 1_GiB);
  EXPECT_GT(outcome.out_of_memory, 0);
  EXPECT_NE(outcome.first_failure.find("tried to allocate"), std::string::npos);
  EXPECT_LE(outcome.peak_reserved, 1_GiB);
}

// 64 MiB were there before the recording; the recording adds 1 MiB. In 16 MiB not even the first
// fit.
std::string file_with_a_block_from_before(const std::string& name) {
  std::string path = (test_binary_dir() / name).string();
  std::ofstream out(path);
  out << R"({"plimsoll_trace":1,"source":"pytorch"}
{"kind":"initial_segment","address":1048576,"size":67108864,)"
      << R"("blocks":[{"address":1048576,"bytes":67108864,"size":67108864}]}
{"kind":"allocation","address":268435456,"bytes":1048576,"start":1}
)";
  return path;
}

TEST(ReplayFile, ComparesARefusedRunByWhatItWouldNeed) {
  ReplayRequest request;
  request.trace = file_with_a_block_from_before("replay_before.jsonl");
  request.allocators = "all";
  request.capacity = 16_MiB;
  const auto report = replay_trace(request);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->events, 1);
  int refused = 0;
  for (const ReplayRow& row : report->rows) {
    EXPECT_GE(row.overhead, 0) << row.name;
    EXPECT_GE(row.needed, 65_MiB) << row.name;
    if (row.out_of_memory > 0) ++refused;
  }
  EXPECT_GE(refused, 3);
  const auto json = to_json(*report);
  EXPECT_TRUE(json["allocators"][0]["first_failed_event"].is_null());
}

TEST(Replay, StopsWhenItsTimeIsUpAndSaysSo) {
  const Trace trace = recorded("gpt2_varlen");
  const ReplayProgram program = compile_replay(trace).value();
  for (const Policy policy : all_policies()) {
    ReplayOptions options;
    options.timed = false;
    options.most_seconds = 1e-9;
    EXPECT_FALSE(replay(trace, program, policy, options).finished) << to_string(policy);
  }
  EXPECT_TRUE(run(recorded("alexnet"), Policy::kPlimsoll).finished);
}

TEST(Replay, EveryPolicyHasANameThatReadsBack) {
  for (const Policy policy : all_policies())
    EXPECT_EQ(policy_from(to_string(policy)).value(), policy);
  EXPECT_EQ(policy_from("malloc").error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace plimsoll::trace

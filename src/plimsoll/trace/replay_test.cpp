#include "plimsoll/trace/replay.h"
#include "plimsoll/base/testing/test_paths.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "plimsoll/trace/pipeline_trace.h"
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

TEST(Replay, EveryPolicyHasANameThatReadsBack) {
  for (const Policy policy : all_policies())
    EXPECT_EQ(policy_from(to_string(policy)).value(), policy);
  EXPECT_EQ(policy_from("malloc").error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace plimsoll::trace

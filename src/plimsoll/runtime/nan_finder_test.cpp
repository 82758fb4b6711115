#include "plimsoll/runtime/nan_finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "plimsoll/ops/functions.h"
#include "plimsoll/runtime/run.h"

namespace plimsoll::runtime {
namespace {

using ops::Builder;
using ops::Var;
using ::testing::HasSubstr;

// mean(log(x - 1) / x) and what happens to it with x everywhere the same.
std::string found_with(float x, bool find = true,
                       std::shared_ptr<kernels::Backend> backend = nullptr) {
  Builder b("net");
  const Var in = b.input("x", {ir::DType::kF32, {2, 3}, {}});
  Var logarithm;
  {
    const auto scope = b.scope("inner");
    logarithm = b.call1("log", {in - 1.0});
  }
  const Var ratio = logarithm / in;
  const ir::Graph graph = *b.finish({ops::mean(ratio * ratio)});
  RunOptions how;
  how.steps = 2;
  how.threads = 1;
  how.find_nan = find;
  how.backend = std::move(backend);
  how.feed = [&](Executor& executor, int) -> Status {
    std::vector<float> numbers(6, x);
    return executor.write(ValueId(0u), std::as_bytes(std::span(numbers)));
  };
  const auto report = run_on_demand(graph, how);
  if (!report) return report.error().message;
  return report->first_bad_step ? fmt::format("bad step {}", *report->first_bad_step) : "fine";
}

TEST(NanFinder, NamesTheFirstOperatorThatMadeOne) {
  EXPECT_EQ(found_with(2), "fine");
  EXPECT_EQ(found_with(0.5),
            "step 1: 'inner' (log) of the forward pass made the first NaN, 6 of 6 elements of "
            "'inner/log'");
  EXPECT_THAT(found_with(1),
              HasSubstr("'inner' (log) of the forward pass made the first infinity"));
  EXPECT_EQ(found_with(std::numeric_limits<float>::quiet_NaN()),
            "step 1: input 'x' holds 6 NaNs before it begins");
}

TEST(NanFinder, LooksIntoTheMemoryOfADevice) {
  const auto gpu_like = [] {
    return kernels::make_fake_backend({.seed = 3, .longest_delay = 200});
  };
  EXPECT_EQ(found_with(2, true, gpu_like()), "fine");
  EXPECT_EQ(found_with(0.5, true, gpu_like()), found_with(0.5));
  EXPECT_EQ(found_with(1, true, gpu_like()), found_with(1));
}

TEST(NanFinder, WithoutItTheStepIsReported) {
  EXPECT_EQ(found_with(0.5, false), "bad step 0");
  EXPECT_EQ(found_with(2, false), "fine");
}

// An infinity that is given and goes away again is nobody's fault.
TEST(NanFinder, MasksOfInfinitiesAreNotBlamed) {
  Builder b("net");
  const Var in = b.input("x", {ir::DType::kF32, {1, 2}, {}});
  const Var mask = b.constant(
      "mask",
      ops::Array::of_reals({1, 2}, {0, -std::numeric_limits<double>::infinity()}, ir::DType::kF32));
  const ir::Graph graph = *b.finish({b.call1("softmax", {in + mask})});
  RunOptions how;
  how.steps = 1;
  how.threads = 1;
  how.find_nan = true;
  const auto report = run_on_demand(graph, how);
  EXPECT_TRUE(report) << report.error().message;
}

}  // namespace
}  // namespace plimsoll::runtime

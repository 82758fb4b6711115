#include "plimsoll/plan/check_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "plimsoll/ops/builder.h"
#include "plimsoll/ops/functions.h"
#include "plimsoll/plan/make_plan.h"
#include "plimsoll/plan/testing/random_graph.h"
#include "plimsoll/schedule/fit.h"

namespace plimsoll::plan {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Plan plan_of(const ir::Graph& graph, const MakePlanOptions& options = {}) {
  const auto mapped = schedule::make_graph_workload(graph, {});
  EXPECT_TRUE(mapped) << mapped.error().message;
  auto plan = make_plan(graph, *mapped, schedule::keep_all(mapped->workload), options);
  EXPECT_TRUE(plan) << plan.error().message;
  return *std::move(plan);
}

// h = x w;  r = relu(h), in place;  v = a view of r;  s = softmax(v);  g = r^T x;  w updated by g.
Plan sample() {
  ops::Builder b("sample");
  const ops::Var x = b.input("x", {ir::DType::kF32, {4, 16}});
  const ops::Var w = b.weight("w", {ir::DType::kF32, {16, 16}}, {ir::Init::Kind::kNormal, 0, 1});
  const ops::Var r = relu(matmul(x, w));
  const ops::Var v = slice(r, 0, 1, 3);
  const ops::Var s = softmax(v);
  const ops::Var g = matmul(r, x, {.trans_a = true});
  b.set_phase(ir::Phase::kUpdate);
  b.update(w, sgd(w, g, {}).w);
  b.set_phase(ir::Phase::kForward);
  const ops::Var y = tanh(s);
  return plan_of(*b.finish({y}));
}

std::size_t step_of(const Plan& plan, std::string_view op) {
  const auto place = std::find_if(plan.steps.begin(), plan.steps.end(), [&](const PlanStep& step) {
    return plan.graph.node(step.node).op == op;
  });
  EXPECT_NE(place, plan.steps.end()) << op;
  return static_cast<std::size_t>(place - plan.steps.begin());
}

PlanStep& step(Plan& plan, std::string_view op) {
  return plan.steps[step_of(plan, op)];
}

std::vector<std::string> problems(const Plan& plan) {
  return check_plan(plan).problems;
}

TEST(CheckPlan, ARightPlanHasNoProblemsAndItsPeakIsTheArena) {
  const Plan plan = sample();
  const PlanCheck check = check_plan(plan);
  EXPECT_THAT(check.problems, IsEmpty());
  EXPECT_EQ(check.peak_bytes, plan.arena_bytes());
}

// Buffers of which some step or result wants only a part, and inputs nobody wants: such bytes may
// be dead.
std::vector<bool> seen_in_parts(const Plan& plan) {
  std::vector<bool> out(plan.buffers.size(), false);
  // until a reader is found
  for (const ValueSlot& source : plan.sources) out[source.slot.buffer.index()] = true;
  const auto found = [&](const Slot& slot) {
    if (slot.buffer.valid()) out[slot.buffer.index()] = false;
  };
  for (const PlanStep& step : plan.steps)
    std::for_each(step.inputs.begin(), step.inputs.end(), found);
  for (const ValueSlot& result : plan.results) found(result.slot);
  const auto look = [&](ValueId value, const Slot& slot) {
    if (!slot.buffer.valid()) return;
    const Bytes bytes = ir::bytes_of(plan.graph.value(value).type);
    if (slot.offset.value > 0 || bytes + Bytes(63) < plan.buffer(slot.buffer).bytes)
      out[slot.buffer.index()] = true;
  };
  for (const PlanStep& step : plan.steps) {
    const ir::Node& node = plan.graph.node(step.node);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) look(node.inputs[i], step.inputs[i]);
  }
  for (const ValueSlot& result : plan.results) look(result.value, result.slot);
  return out;
}

TEST(CheckPlan, AnOffsetMovedOntoLivingBytesIsFoundWhereverItIs) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Plan plan = plan_of(random_graph(seed));
    const std::vector<bool> partial = seen_in_parts(plan);
    for (std::size_t a = 0; a < plan.buffers.size(); ++a) {
      for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
        const Interval<Step>& one = plan.buffers[a].lifetime;
        const Interval<Step>& other = plan.buffers[b].lifetime;
        // A result over an input that ends in the same step may be a legal in-place one.
        const bool handed_over = one.begin + 1 == other.end || other.begin + 1 == one.end;
        if (a == b || partial[a] || partial[b] || handed_over || !one.meets(other)) continue;
        Plan spoiled = plan;
        spoiled.buffers[a].offset = plan.buffers[b].offset;
        spoiled.arenas[0].bytes += plan.arenas[0].bytes;
        EXPECT_THAT(problems(spoiled), Not(IsEmpty()))
            << "seed " << seed << ": '" << plan.buffers[a].name << "' over '"
            << plan.buffers[b].name << "'";
      }
    }
  }
}

TEST(CheckPlan, ALifetimeCutShortByAnotherWriterIsFoundAtTheRead) {
  Plan plan = sample();
  // The gradient's memory is given to the softmax, which still has a reader behind the gradient.
  step(plan, "softmax").outputs[0] = {plan.steps[step_of(plan, "sgd")].inputs[1].buffer, Bytes(0)};
  step(plan, "tanh").inputs[0] = step(plan, "softmax").outputs[0];
  EXPECT_THAT(problems(plan), Contains(HasSubstr("input 0 should be")));
}

TEST(CheckPlan, SwappedStepsAreFound) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Plan plan = plan_of(random_graph(seed));
    for (std::size_t s = 0; s + 1 < plan.steps.size(); ++s) {
      const auto& made = plan.graph.node(plan.steps[s].node).outputs;
      const auto& read = plan.graph.node(plan.steps[s + 1].node).inputs;
      if (std::find_first_of(read.begin(), read.end(), made.begin(), made.end()) == read.end())
        continue;
      Plan spoiled = plan;
      std::swap(spoiled.steps[s], spoiled.steps[s + 1]);
      EXPECT_THAT(problems(spoiled), Contains(HasSubstr("other bytes lie there")))
          << "seed " << seed << " step " << s;
    }
  }
}

TEST(CheckPlan, AMissingWaitIsFoundFromEitherSide) {
  Plan plan = sample();
  const std::size_t product = step_of(plan, "sgd") - 1;  // the gradient, on a stream of its own
  plan.steps[product].stream = 1;
  plan.steps[product].waits = {static_cast<std::uint32_t>(product - 1)};
  plan.steps[product + 1].waits = {static_cast<std::uint32_t>(product)};
  EXPECT_THAT(problems(plan), IsEmpty());
  Plan reads_early = plan;
  reads_early.steps[product].waits.clear();
  EXPECT_THAT(problems(reads_early), Contains(HasSubstr("on another stream without waiting")));
  Plan overtaken = plan;
  overtaken.steps[product + 1].waits.clear();
  EXPECT_THAT(problems(overtaken), Contains(HasSubstr("without waiting")));
}

TEST(CheckPlan, AWriteThatDoesNotWaitForAReaderIsFound) {
  ops::Builder b("race");
  const ops::Var x = b.input("x", {ir::DType::kF32, {4, 16}});
  const ops::Var h = softmax(x);
  const ops::Var y = softmax(h);
  const ops::Var z = tanh(h);
  Plan plan = plan_of(*b.finish({y, z}));
  ASSERT_EQ(plan.steps[2].outputs[0], plan.steps[2].inputs[0]);  // in place: the last reader
  plan.steps[1].stream = 1;
  plan.steps[1].waits = {0};
  EXPECT_THAT(problems(plan), Contains(HasSubstr("step 2: overwrites what step 1 still reads")));
  plan.steps[2].waits = {1};
  EXPECT_THAT(problems(plan), IsEmpty());
}

TEST(CheckPlan, AWaitForWhatComesLaterIsFound) {
  Plan plan = sample();
  plan.steps[1].waits = {2};
  EXPECT_THAT(problems(plan),
              Contains(HasSubstr("step 1: waits for step 2, which does not come before it")));
  plan = sample();
  plan.steps[1].stream = 200;
  EXPECT_THAT(problems(plan), Contains(HasSubstr("step 1: stream 200 is above")));
}

TEST(CheckPlan, AResultOverAnInputIsFoundWhereTheDefinitionForbidsIt) {
  ops::Builder b("alias");
  const ops::Var x = b.input("x", {ir::DType::kF32, {16, 16}});
  Plan plan = plan_of(*b.finish({matmul(tanh(x), tanh(neg(x)))}));
  PlanStep& product = step(plan, "matmul");
  product.outputs[0] = product.inputs[1];
  plan.results[0].slot = product.outputs[0];
  EXPECT_THAT(problems(plan),
              Contains(HasSubstr("result 0 lies over input 1, which the operator does not allow")));
}

TEST(CheckPlan, AnInPlaceResultThatBeginsElsewhereInItsInputIsFound) {
  Plan plan = sample();
  PlanStep& relu = step(plan, "relu");
  ASSERT_EQ(relu.inputs[0], relu.outputs[0]);
  plan.buffers[relu.outputs[0].buffer.index()].bytes += Bytes(64);
  plan.arenas[0].bytes += Bytes(1024);
  relu.outputs[0].offset = Bytes(64);
  EXPECT_THAT(problems(plan),
              Contains(HasSubstr("result 0 lies over input 0, which the operator does not allow")));
}

TEST(CheckPlan, AnUpdateThatLeavesTheOldVersionInPlaceIsFound) {
  Plan plan = sample();
  PlanStep& update = step(plan, "sgd");
  update.outputs[0] = update.inputs[1];
  EXPECT_THAT(problems(plan), Contains(HasSubstr("result 0 must lie over its old version")));
}

TEST(CheckPlan, MisalignedAndOutsideAreFound) {
  Plan plan = sample();
  plan.arenas[0].bytes += Bytes(64);
  plan.buffers[1].offset = plan.buffers[1].offset + Bytes(4);
  EXPECT_THAT(problems(plan), Contains(HasSubstr("is not aligned to 64")));
  plan = sample();
  plan.buffers[1].offset = Offset(0) + plan.arenas[0].bytes;
  EXPECT_THAT(problems(plan), Contains(HasSubstr("is outside its arena")));
  plan = sample();
  plan.buffers[1].arena = 3;
  EXPECT_THAT(problems(plan), Contains(HasSubstr("is outside its arena")));
  plan = sample();
  plan.arenas[0].bytes -= Bytes(64);
  EXPECT_THAT(problems(plan), Contains(HasSubstr("is outside its arena")));
  plan = sample();
  step(plan, "softmax").inputs[0].offset = Bytes(1 << 20);
  EXPECT_THAT(problems(plan), Contains(HasSubstr("does not fit buffer")));
  plan = sample();
  plan.arenas.clear();
  EXPECT_THAT(problems(plan), Contains(HasSubstr("there is no arena")));
}

TEST(CheckPlan, AViewAtTheWrongPlaceIsFound) {
  Plan plan = sample();
  ASSERT_EQ(step(plan, "softmax").inputs[0].offset, Bytes(64));
  step(plan, "softmax").inputs[0].offset = Bytes(128);
  EXPECT_THAT(problems(plan), Contains(HasSubstr("(softmax, ): input 0 should be")));
}

TEST(CheckPlan, AStaleOrEarlyVersionOfAWeightIsFound) {
  Plan plan = sample();
  // The weight is updated at the very start: whoever reads it then gets the next version.
  const std::size_t update = step_of(plan, "sgd");
  std::rotate(plan.steps.begin(), plan.steps.begin() + static_cast<std::ptrdiff_t>(update),
              plan.steps.begin() + static_cast<std::ptrdiff_t>(update) + 1);
  EXPECT_THAT(problems(plan),
              Contains(HasSubstr("(matmul, ): input 1 should be 'w', other bytes lie there")));
}

TEST(CheckPlan, AnUpdateRunTwiceIsFound) {
  Plan plan = sample();
  const auto update = plan.steps.begin() + static_cast<std::ptrdiff_t>(step_of(plan, "sgd"));
  const PlanStep copy = *update;
  plan.steps.insert(update, copy);
  EXPECT_THAT(problems(plan), Contains(HasSubstr("must run once only")));
}

TEST(CheckPlan, WhatIsMissingIsNamed) {
  Plan plan = sample();
  plan.results.erase(plan.results.begin());
  EXPECT_THAT(problems(plan), Contains(HasSubstr("has no place")));
  plan = sample();
  plan.sources.erase(plan.sources.begin());
  EXPECT_THAT(problems(plan), Contains(HasSubstr("source 'x' has no place")));
  plan = sample();
  plan.steps.erase(plan.steps.begin() + static_cast<std::ptrdiff_t>(step_of(plan, "softmax")));
  EXPECT_THAT(problems(plan), Contains(HasSubstr("(softmax, ) is never computed")));
  plan = sample();
  plan.steps[0].inputs[0] = {};
  EXPECT_THAT(problems(plan), Contains(HasSubstr("step 0: x has no place")));
  plan = sample();
  plan.steps[0].inputs.pop_back();
  EXPECT_THAT(problems(plan),
              Contains(HasSubstr("step 0 (matmul): has 1 inputs and 1 outputs, the node 2 and 1")));
}

TEST(CheckPlan, AResultOrStateThatEndsElsewhereIsFound) {
  Plan plan = sample();
  plan.results[0].slot = plan.sources[0].slot;
  EXPECT_THAT(problems(plan), Contains(HasSubstr("is not where the plan says")));
  plan = sample();
  plan.results[1].slot = plan.sources[0].slot;
  EXPECT_THAT(problems(plan),
              Contains(AnyOf(HasSubstr("does not fit"), HasSubstr("is not where the plan says"))));
}

TEST(CheckPlan, SourcesOverEachOtherAreFound) {
  Plan plan = sample();
  plan.buffers[plan.sources[0].slot.buffer.index()].offset =
      plan.buffers[plan.sources[1].slot.buffer.index()].offset;
  EXPECT_THAT(problems(plan), Contains(HasSubstr("lies over another source")));
}

TEST(CheckPlan, AnArenaAboveTheBudgetIsFound) {
  Plan plan = sample();
  plan.budget = plan.arena_bytes();
  EXPECT_THAT(problems(plan), IsEmpty());
  plan.budget -= Bytes(1);
  EXPECT_THAT(problems(plan), Contains(HasSubstr("the budget is")));
}

TEST(CheckPlan, AContiguousGroupWithAHoleIsFound) {
  Plan plan = sample();
  const BufferId x = plan.sources[0].slot.buffer;
  const BufferId w = plan.sources[1].slot.buffer;
  const bool x_first = plan.buffer(x).offset < plan.buffer(w).offset;
  plan.contiguous = {{x_first ? w : x, x_first ? x : w}};
  EXPECT_THAT(problems(plan), Contains(HasSubstr("does not lie right behind")));
  plan.contiguous = {{BufferId(1000u)}};
  EXPECT_THAT(problems(plan),
              Contains(HasSubstr("a contiguous group names a buffer that does not exist")));
}

TEST(CheckPlan, IdsThatDoNotExistAreFound) {
  Plan plan = sample();
  plan.steps[0].node = NodeId(1000u);
  EXPECT_THAT(problems(plan), Contains(HasSubstr("step 0: no such node")));
  plan = sample();
  plan.steps[0].inputs[0].buffer = BufferId(1000u);
  EXPECT_THAT(problems(plan), Contains(HasSubstr("step 0: no such buffer")));
  plan = sample();
  plan.sources[0].value = ValueId(1000u);
  EXPECT_THAT(problems(plan),
              Contains(HasSubstr("a source names a value or buffer that does not exist")));
  plan = sample();
  plan.results[0].slot.buffer = BufferId(1000u);
  EXPECT_THAT(problems(plan),
              Contains(HasSubstr("a result names a value or buffer that does not exist")));
}

// A value sent to the host and fetched again, by hand.
TEST(CheckPlan, CopiesAreFollowed) {
  ops::Builder b("copies");
  const ops::Var x = b.input("x", {ir::DType::kF32, {4, 16}});
  const ops::Var h = softmax(x);
  Plan plan = plan_of(*b.finish({softmax(h)}));
  ASSERT_EQ(plan.steps.size(), 2u);
  const Slot on_device = plan.steps[0].outputs[0];
  plan.arenas.push_back({"host", Bytes(256)});
  PlanBuffer host = plan.buffers[on_device.buffer.index()];
  host.arena = 1;
  host.offset = Offset(0);
  plan.buffers.push_back(host);
  const Slot on_host{BufferId(plan.buffers.size() - 1), Bytes(0)};
  PlanStep out;
  out.kind = StepKind::kCopyOut;
  out.value = plan.graph.node(plan.steps[0].node).outputs[0];
  out.inputs = {on_device};
  out.outputs = {on_host};
  PlanStep in = out;
  in.kind = StepKind::kCopyIn;
  std::swap(in.inputs, in.outputs);
  plan.steps.insert(plan.steps.begin() + 1, {out, in});
  plan.buffers[on_device.buffer.index()].lifetime = {Step(0), Step(4)};
  PlanBuffer& sent = plan.buffers.back();
  sent.value = out.value;
  sent.name = plan.graph.value(out.value).name;
  sent.use = Use::kActivation;
  sent.lifetime = {Step(1), Step(3)};
  EXPECT_THAT(problems(plan), IsEmpty());
  Plan never_sent = plan;
  never_sent.steps.erase(never_sent.steps.begin() + 1);
  EXPECT_THAT(problems(never_sent), Contains(HasSubstr("finds other bytes")));
  Plan onto_itself = plan;
  onto_itself.steps[2].inputs[0] = onto_itself.steps[2].outputs[0];
  EXPECT_THAT(problems(onto_itself), Contains(HasSubstr("onto itself")));
  Plan nowhere = plan;
  nowhere.steps[1].outputs.clear();
  EXPECT_THAT(problems(nowhere), Contains(HasSubstr("without a value, a source or a destination")));
}

}  // namespace
}  // namespace plimsoll::plan

#include "plimsoll/plan/streams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "plimsoll/plan/check_plan.h"
#include "plimsoll/plan/make_plan.h"
#include "plimsoll/plan/testing/random_graph.h"
#include "plimsoll/schedule/fit.h"

namespace plimsoll::plan {
namespace {

using ::testing::IsEmpty;

Plan plan_of(std::uint64_t seed, int nodes, int streams) {
  const ir::Graph graph = random_graph(seed, nodes);
  const auto mapped = schedule::make_graph_workload(graph, {});
  Plan plan = *make_plan(graph, *mapped, schedule::keep_all(mapped->workload), {});
  const Status status = spread_over_streams(plan, {.streams = streams});
  EXPECT_TRUE(status) << status.error().message;
  return plan;
}

struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Walks every state that some interleaving can reach: how far each stream is, and whether its step
// is in flight. Two steps in flight together must not touch the same bytes unless both only read
// them. If no two ever do, every interleaving computes what the list computes, which check_plan()
// has replayed.
class Interleavings {
 public:
  explicit Interleavings(const Plan& plan) : plan_(plan), streams_(8) {
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      const PlanStep& step = plan.steps[s];
      streams_[step.stream].push_back(s);
      reads_.emplace_back();
      writes_.emplace_back();
      if (step.kind == StepKind::kDrop) continue;
      const ir::Node* node = step.node.valid() ? &plan.graph.node(step.node) : nullptr;
      const auto bytes = [&](const Slot& slot, const std::vector<ValueId>* values, std::size_t i) {
        return values != nullptr ? ir::bytes_of(plan.graph.value((*values)[i]).type)
                                 : plan.buffer(slot.buffer).bytes;
      };
      for (std::size_t i = 0; i < step.inputs.size(); ++i)
        add(reads_.back(), step.inputs[i],
            bytes(step.inputs[i], node != nullptr ? &node->inputs : nullptr, i));
      for (std::size_t i = 0; i < step.outputs.size(); ++i)
        add(writes_.back(), step.outputs[i],
            bytes(step.outputs[i], node != nullptr ? &node->outputs : nullptr, i));
      if (step.scratch.buffer.valid())
        add(writes_.back(), step.scratch, plan.buffer(step.scratch.buffer).bytes);
    }
  }

  bool has_race() {
    visit(std::string(streams_.size(), 0));
    return race_;
  }
  std::size_t states() const { return seen_.size(); }

 private:
  // A state is one character a stream: twice the steps that are done, plus one while one is in
  // flight.
  void visit(const std::string& state) {
    if (race_ || !seen_.insert(state).second) return;
    for (std::size_t k = 0; k < streams_.size(); ++k) {
      const auto done = static_cast<std::size_t>(state[k]) / 2;
      const bool in_flight = state[k] % 2 != 0;
      if (!in_flight && (done == streams_[k].size() || !may_start(state, streams_[k][done])))
        continue;
      if (!in_flight) check_start(state, streams_[k][done]);
      std::string next = state;
      ++next[k];
      visit(next);
    }
  }

  bool may_start(const std::string& state, std::size_t s) const {
    return std::all_of(
        plan_.steps[s].waits.begin(), plan_.steps[s].waits.end(), [&](std::uint32_t wait) {
          const std::vector<std::size_t>& line = streams_[plan_.steps[wait].stream];
          const auto place =
              static_cast<std::size_t>(std::find(line.begin(), line.end(), wait) - line.begin());
          return static_cast<std::size_t>(state[plan_.steps[wait].stream]) / 2 > place;
        });
  }

  void check_start(const std::string& state, std::size_t s) {
    for (std::size_t k = 0; k < streams_.size(); ++k) {
      if (state[k] % 2 == 0) continue;
      const std::size_t other = streams_[k][static_cast<std::size_t>(state[k]) / 2];
      race_ = race_ || meet(writes_[s], writes_[other]) || meet(writes_[s], reads_[other]) ||
              meet(reads_[s], writes_[other]);
    }
  }

  static bool meet(const std::vector<Range>& a, const std::vector<Range>& b) {
    return std::any_of(a.begin(), a.end(), [&](const Range& x) {
      return std::any_of(b.begin(), b.end(),
                         [&](const Range& y) { return x.begin < y.end && y.begin < x.end; });
    });
  }

  void add(std::vector<Range>& ranges, const Slot& slot, Bytes bytes) {
    // Arenas are kept apart by a distance that no arena has.
    const std::int64_t begin =
        place_of(plan_, slot).value + (std::int64_t{plan_.buffer(slot.buffer).arena} << 40);
    ranges.push_back({begin, begin + bytes.value});
  }

  const Plan& plan_;
  std::vector<std::vector<std::size_t>> streams_;
  std::vector<std::vector<Range>> reads_;
  std::vector<std::vector<Range>> writes_;
  std::set<std::string> seen_;
  bool race_ = false;
};

TEST(Streams, NoInterleavingOfASmallGraphRaces) {
  std::size_t states = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    for (const int streams : {2, 3}) {
      SCOPED_TRACE(fmt::format("seed {} streams {}", seed, streams));
      const Plan plan = plan_of(seed, 14, streams);
      EXPECT_THAT(check_plan(plan).problems, IsEmpty());
      Interleavings all(plan);
      EXPECT_FALSE(all.has_race());
      states += all.states();
    }
  }
  EXPECT_GT(states, 3000u);
}

TEST(Streams, TheCheckerFindsARaceWhereverSomeInterleavingHasOne) {
  int races = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Plan plan = plan_of(seed, 12, 2);
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      for (std::size_t w = 0; w < plan.steps[s].waits.size(); ++w) {
        Plan spoiled = plan;
        spoiled.steps[s].waits.erase(spoiled.steps[s].waits.begin() +
                                     static_cast<std::ptrdiff_t>(w));
        Interleavings all(spoiled);
        const bool race = all.has_race();
        EXPECT_EQ(check_plan(spoiled).ok(), !race) << "seed " << seed << " step " << s;
        races += race;
      }
    }
  }
  EXPECT_GT(races, 40);
}

TEST(Streams, MoreThanOneIsUsedAndTheLoadBoundsTheArena) {
  int spread = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const Plan plan = plan_of(seed, 30, 2);
    EXPECT_LE(plan.proof.load, plan.proof.lower_bound);
    EXPECT_LE(plan.proof.lower_bound, plan.arena_bytes());
    spread += std::any_of(plan.steps.begin(), plan.steps.end(),
                          [](const PlanStep& step) { return step.stream == 1; });
  }
  EXPECT_GT(spread, 40);
}

// A tight plan on one compute stream; the copies of a swap have streams of
// their own.
std::optional<Plan> tight_plan_of(std::uint64_t seed, int nodes, schedule::Remedies remedies) {
  const ir::Graph graph = random_graph(seed, nodes);
  const auto mapped = schedule::make_graph_workload(graph, {});
  schedule::FitOptions how;
  how.remedies = remedies;
  how.deterministic = true;
  const Bytes smallest = schedule::smallest_found(mapped->workload, how);
  how.budget =
      smallest + Bytes((schedule::keep_all(mapped->workload).peak_bytes - smallest).value / 2);
  const auto fitted = schedule::fit(mapped->workload, how);
  if (!fitted) return std::nullopt;
  Plan plan = *make_plan(graph, *mapped, fitted->schedule, {});
  plan.budget = plan.arena_bytes();
  return plan;
}

TEST(Streams, APlanWithinABudgetStaysThereAndNoInterleavingRaces) {
  int planned = 0;
  int faster = 0;
  int with_copies = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    for (const bool swap : {false, true}) {
      SCOPED_TRACE(fmt::format("seed {} swap {}", seed, swap));
      const auto one = tight_plan_of(
          seed, 12, {.recompute = true, .swap = swap, .encode = false, .lossy = false});
      if (!one) continue;
      ++planned;
      Plan plan = *one;
      const Status status = spread_over_streams(plan, {.streams = 2});
      ASSERT_TRUE(status) << status.error().message;
      EXPECT_LE(plan.arena_bytes(), one->budget);
      EXPECT_THAT(check_plan(plan).problems, IsEmpty());
      EXPECT_FALSE(Interleavings(plan).has_race());
      faster += plan.predicted_seconds < one->predicted_seconds;
      with_copies += plan.arenas.size() > 1;
    }
  }
  EXPECT_GE(planned, 6);
  EXPECT_GT(faster, 2);
  EXPECT_GT(with_copies, 0);
}

TEST(Streams, MoreThanThereAreAreRefused) {
  Plan plan = plan_of(1, 10, 1);
  EXPECT_EQ(spread_over_streams(plan, {.streams = kMostStreams + 1}).error().code,
            ErrorCode::kUsage);
}

}  // namespace
}  // namespace plimsoll::plan

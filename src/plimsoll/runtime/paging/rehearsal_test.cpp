#include "plimsoll/runtime/paging/rehearsal.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace plimsoll::runtime {
namespace {

constexpr BlockAccess kReads = BlockAccess::kRead;
constexpr BlockAccess kWrites = BlockAccess::kWrite;
constexpr BlockAccess kUpdates = BlockAccess::kUpdate;
constexpr double kMemoryRate = 2e12;

struct Layer {
  std::int64_t weight;
  std::int64_t activation;
  double operations;  // times what its bytes take
};

// A training step: forward, backward with gradients of weights, and an update with two moments
// behind every gradient.
class Training {
 public:
  explicit Training(const std::vector<Layer>& layers) {
    std::size_t data = tensor(layers.front().activation, Lifetime::kPersistent);
    std::vector<std::size_t> weights;
    std::vector<std::size_t> made{data};
    for (const Layer& layer : layers) {
      weights.push_back(tensor(layer.weight, Lifetime::kPersistent));
      made.push_back(tensor(layer.activation));
      launch({{made[made.size() - 2], kReads}, {weights.back(), kReads}, {made.back(), kWrites}},
             {}, layer.operations);
    }
    std::size_t gradient = made.back();
    for (std::size_t l = layers.size(); l-- > 0;) {
      const std::size_t of_weight = tensor(layers[l].weight);
      launch({{gradient, kReads}, {made[l], kReads}, {of_weight, kWrites}}, {},
             layers[l].operations);
      const std::size_t next = tensor(l > 0 ? layers[l - 1].activation : 64);
      std::vector<std::size_t> dies{gradient};
      if (l > 0 && made[l] != gradient) dies.push_back(made[l]);
      launch({{gradient, kReads}, {weights[l], kReads}, {next, kWrites}}, dies,
             layers[l].operations);
      gradient = next;
      const std::size_t first = tensor(layers[l].weight, Lifetime::kPersistent);
      const std::size_t second = tensor(layers[l].weight, Lifetime::kPersistent);
      launch({{weights[l], kUpdates}, {of_weight, kReads}, {first, kUpdates}, {second, kUpdates}},
             {of_weight}, 1);
    }
    program.launches.back().dies.push_back(gradient);
  }

  // The most that is there at once.
  Bytes peak() const {
    std::vector<bool> alive(program.tensors.size());
    Bytes now;
    Bytes most;
    for (std::size_t t = 0; t < alive.size(); ++t) {
      alive[t] = program.tensors[t].lifetime == Lifetime::kPersistent;
      if (alive[t]) now += program.tensors[t].bytes;
    }
    for (const PagedProgram::Launch& launch : program.launches) {
      for (const PagedProgram::Use& use : launch.uses) {
        if (!alive[use.tensor]) now += program.tensors[use.tensor].bytes;
        alive[use.tensor] = true;
      }
      most = std::max(most, now);
      for (const std::size_t dead : launch.dies) {
        now -= program.tensors[dead].bytes;
        alive[dead] = false;
      }
    }
    return most;
  }

  PagedProgram program;

 private:
  std::size_t tensor(std::int64_t bytes, Lifetime lifetime = Lifetime::kTransient) {
    program.tensors.push_back({Bytes(bytes), lifetime});
    return program.tensors.size() - 1;
  }
  void launch(std::vector<PagedProgram::Use> uses, std::vector<std::size_t> dies,
              double operations) {
    std::int64_t bytes = 0;
    for (const PagedProgram::Use& use : uses) bytes += program.tensors[use.tensor].bytes.value;
    program.launches.push_back(
        {std::move(uses), std::move(dies), operations * static_cast<double>(bytes) / kMemoryRate});
  }
};

constexpr std::int64_t kMi = 1 << 20;

// Activations shrink and weights grow.
std::vector<Layer> convolutions() {
  std::vector<Layer> out;
  for (const std::int64_t stage : {0, 1, 2, 3}) {
    for (int i = 0; i < 6; ++i)
      out.push_back({(64 << stage << stage) * 1024, (i % 3 == 0 ? 48 : 12) * kMi >> stage, 4});
  }
  return out;
}
// Blocks of the same sizes, and large logits.
std::vector<Layer> transformer() {
  std::vector<Layer> out;
  for (int i = 0; i < 6; ++i) {
    for (const auto& [weight, activation] : {std::pair{7, 72}, {2, 24}, {9, 96}, {9, 24}})
      out.push_back({weight * kMi, activation * kMi, 3});
  }
  out.push_back({150 * kMi, 400 * kMi, 3});
  return out;
}
std::vector<Layer> alike() {
  return std::vector<Layer>(24, Layer{8 * kMi, 16 * kMi, 8});
}

PagingOptions options(PagingPolicy policy, Bytes capacity) {
  PagingOptions out;
  out.policy = policy;
  out.capacity = capacity;
  out.alignment = Bytes(256);
  return out;
}

Bytes part(const Training& training, double factor) {
  return Bytes(static_cast<std::int64_t>(static_cast<double>(training.peak().value) / factor));
}

// Three activations of 400 bytes are made; the first is read again behind the third. In 1,000 bytes
// 200 have to leave before the third is there, and to come back.
TEST(Rehearsal, WhatExceedsTheCapacityGoesOutAndComesBack) {
  PagedProgram program;
  program.tensors = {{Bytes(400)}, {Bytes(400)}, {Bytes(400)}};
  program.launches = {{{{0, kWrites}}, {}, 1},
                      {{{1, kWrites}}, {}, 2},
                      {{{1, kReads}, {2, kWrites}}, {1}, 4},
                      {{{0, kReads}, {2, kReads}}, {0, 2}, 8}};
  const ForcedCopies forced = forced_copies(program, Bytes(1000));
  EXPECT_EQ(forced.out, Bytes(200));
  EXPECT_EQ(forced.in, Bytes(200));
  EXPECT_EQ(forced_copies(program, Bytes(1200)).out, Bytes(0));
  PagingRates slow;
  slow.out_bytes_per_second = 50;  // 4 s, of which 3 beside the first launches
  slow.in_bytes_per_second = 20;   // 10 s, of which 8 beside the last
  EXPECT_DOUBLE_EQ(least_seconds(program, Bytes(1000), slow), 4 + 4 + 10);
  EXPECT_DOUBLE_EQ(least_seconds(program, Bytes(1200), slow), 15);
}

// A weight that is read before and behind is at home already.
TEST(Rehearsal, WhatIsCleanComesBackWithoutHavingLeft) {
  PagedProgram program;
  program.tensors = {{Bytes(600), Lifetime::kPersistent}, {Bytes(800)}};
  program.launches = {{{{0, kReads}}, {}, 1}, {{{1, kWrites}}, {1}, 1}, {{{0, kReads}}, {}, 1}};
  const ForcedCopies forced = forced_copies(program, Bytes(1000));
  EXPECT_EQ(forced.out, Bytes(0));
  EXPECT_EQ(forced.in, Bytes(400));
}

TEST(Rehearsal, NoPolicyIsQuickerThanTheLeast) {
  for (const auto& layers : {convolutions(), transformer(), alike()}) {
    const Training training(layers);
    for (const double factor : {1.0, 1.1, 1.5, 2.0}) {
      const Bytes capacity = part(training, factor);
      const double least = least_seconds(training.program, capacity);
      for (const PagingPolicy policy : {PagingPolicy::kDemand, PagingPolicy::kPrefetch,
                                        PagingPolicy::kPreEvict, PagingPolicy::kBelady}) {
        const auto step = rehearse(training.program, options(policy, capacity));
        ASSERT_TRUE(step) << step.error().message;
        EXPECT_GE(step->seconds, least) << name(policy) << " " << factor;
      }
    }
  }
}

// What is left is room that large tensors break up.
TEST(Rehearsal, PagingThatKnowsTheNextUsesIsNearTheLeast) {
  struct Case {
    std::vector<Layer> layers;
    double most;  // times the least
  };
  for (const Case& one : {Case{convolutions(), 1.55}, {transformer(), 1.3}, {alike(), 1.2}}) {
    SCOPED_TRACE(testing::Message() << one.layers.size() << " layers");
    const Training training(one.layers);
    const Bytes capacity = part(training, 2);
    PagingOptions plain = options(PagingPolicy::kBelady, capacity);
    const auto chosen = chosen_options(training.program, plain);
    ASSERT_TRUE(chosen);
    plain.write_behind = false;
    const auto step = rehearse(training.program, *chosen);
    const auto before = rehearse(training.program, plain);
    const auto demand = rehearse(training.program, options(PagingPolicy::kDemand, capacity));
    ASSERT_TRUE(step && before && demand);
    EXPECT_LT(step->seconds, one.most * least_seconds(training.program, capacity));
    EXPECT_LT(step->seconds, before->seconds);
    EXPECT_LT(step->seconds, 0.9 * demand->seconds);
  }
}

// Activations leave while the layers behind them are computed, and not when the room is gone.
TEST(Rehearsal, WritingHomeAsSoonAsItIsWrittenCopiesNoMoreAndEndsSooner) {
  const Training training(alike());
  PagingOptions how = options(PagingPolicy::kBelady, part(training, 1.5));
  how.write_behind = false;
  const auto late = rehearse(training.program, how);
  how.write_behind = true;
  const auto soon = rehearse(training.program, how);
  ASSERT_TRUE(late && soon);
  EXPECT_LT(soon->seconds, late->seconds);
  EXPECT_LE(soon->counts.out.value, late->counts.out.value * 11 / 10);
  EXPECT_LE(soon->counts.in.value, late->counts.in.value * 11 / 10);
}

TEST(Rehearsal, AProgramThatFitsCopiesNothingAndTakesItsLaunches) {
  const Training training(alike());
  PagingRates rates;
  rates.launch_host_seconds = 0;
  const auto step = rehearse(training.program,
                             options(PagingPolicy::kBelady, Bytes(std::int64_t{1} << 40)), rates);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->counts.in + step->counts.out, Bytes(0));
  EXPECT_DOUBLE_EQ(step->seconds, training.program.seconds());
}

}  // namespace
}  // namespace plimsoll::runtime

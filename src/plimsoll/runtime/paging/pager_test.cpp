#include "plimsoll/runtime/paging/pager.h"

#include <gtest/gtest.h>

#include <map>

#include "plimsoll/base/random.h"

namespace plimsoll::runtime {
namespace {

constexpr BlockAccess kR = BlockAccess::kRead;
constexpr BlockAccess kW = BlockAccess::kWrite;
constexpr BlockAccess kU = BlockAccess::kUpdate;

PagingOptions paging(PagingPolicy policy, std::int64_t capacity, bool forget = true) {
  PagingOptions out;
  out.policy = policy;
  out.capacity = Bytes(capacity);
  out.alignment = Bytes(64);
  out.forget_dead = forget;
  return out;
}

// A network of `layers`: each forward launch reads weight and activation and makes the next one,
// each backward launch reads both again and updates the weight. Moves are carried out on numbers
// instead of memory, and every operand must hold the version that the program wrote last.
class Network {
 public:
  Network(const PagingOptions& options, int layers, std::int64_t weight, std::int64_t activation)
      : pager_(options), activation_(activation) {
    for (int l = 0; l < layers; ++l) {
      weights_.push_back(pager_.create(Bytes(weight), Lifetime::kPersistent));
      pager_.overwritten(weights_.back());
      wrote_[weights_.back()] = at_home_[pager_.home(weights_.back()).value] = ++version_;
    }
    input_ = pager_.create(Bytes(activation), Lifetime::kPersistent);
  }

  void step() {
    pager_.overwritten(input_);
    wrote_[input_] = at_home_[pager_.home(input_).value] = ++version_;
    pager_.begin_step();
    std::vector<BlockId> made{input_};
    for (const BlockId weight : weights_) {
      const BlockId next = pager_.create(Bytes(activation_), Lifetime::kTransient);
      launch({{made.back(), kR}, {weight, kR}, {next, kW}}, {});
      made.push_back(next);
    }
    BlockId gradient = made.back();
    for (std::size_t l = weights_.size(); l-- > 0;) {
      const BlockId next = pager_.create(Bytes(activation_), Lifetime::kTransient);
      std::vector<BlockId> dead{gradient};
      if (l > 0 && made[l] != gradient) dead.push_back(made[l]);
      launch({{gradient, kR}, {made[l], kR}, {weights_[l], kU}, {next, kW}}, dead);
      gradient = next;
    }
    launch({{gradient, kR}}, {gradient});
  }

  Pager& pager() { return pager_; }

 private:
  void carry_out(std::span<const PageMove> moves) {
    for (const PageMove& move : moves) {
      if (move.kind == PageMove::Kind::kOut) {
        at_home_[move.host.value] = there_[move.device.value];
      } else {
        there_[move.device.value] = at_home_[move.host.value];
      }
    }
  }

  void launch(const std::vector<BlockUse>& uses, const std::vector<BlockId>& dead) {
    const auto moves = pager_.begin_launch(uses);
    ASSERT_TRUE(moves) << moves.error().message;
    carry_out(*moves);
    for (const BlockUse& use : uses) {
      ASSERT_EQ(pager_.place(use.block).value % 64, 0);
      std::int64_t& holds = there_[pager_.place(use.block).value];
      if (use.access != kW) {
        ASSERT_EQ(holds, wrote_[use.block]);
      }
      if (use.access != kR) holds = wrote_[use.block] = ++version_;
    }
    ASSERT_LE(pager_.peak(), Bytes(1 << 30));
    for (const BlockId block : dead) pager_.forget(block);
    carry_out(pager_.end_launch());
  }

  Pager pager_;
  std::int64_t activation_;
  std::vector<BlockId> weights_;
  BlockId input_;
  std::int64_t version_ = 0;
  std::map<BlockId, std::int64_t> wrote_;
  std::map<std::int64_t, std::int64_t> there_;    // by offset in device memory
  std::map<std::int64_t, std::int64_t> at_home_;  // by offset in host memory
};

PagingCounts steady(const PagingOptions& options) {
  Network network(options, 24, 512, 1024);
  for (int i = 0; i < 4; ++i) network.step();
  const PagingCounts before = network.pager().counts();
  network.step();
  EXPECT_LE(network.pager().peak(), options.capacity);
  return network.pager().counts().since(before);
}

constexpr std::array kPolicies = {PagingPolicy::kDemand, PagingPolicy::kPrefetch,
                                  PagingPolicy::kPreEvict, PagingPolicy::kBelady};

TEST(Pager, OperandsHoldWhatWasWrittenLastUnderEveryPolicy) {
  for (const PagingPolicy policy : kPolicies) {
    for (const bool forget : {true, false}) {
      for (const std::int64_t capacity : {4608, 6144, 9217, 14399, 65536}) {
        SCOPED_TRACE(testing::Message() << name(policy) << " forget " << forget << " " << capacity);
        for (const int far : {0, 64}) {
          PagingOptions options = paging(policy, capacity, forget);
          options.far_prefetch = far;
          const PagingCounts counts = steady(options);
          EXPECT_EQ(counts.launches, 49);
          EXPECT_EQ(counts.mispredictions, 0);
        }
      }
    }
  }
}

TEST(Pager, CopiesOnlyTheBatchWhenEverythingFits) {
  for (const PagingPolicy policy : kPolicies) {
    PagingOptions options = paging(policy, 1 << 20);
    const PagingCounts counts = steady(options);
    EXPECT_EQ(counts.in, Bytes(1024)) << name(policy);  // the input, written between steps
    EXPECT_EQ(counts.out, Bytes(0)) << name(policy);
    EXPECT_EQ(counts.evictions, 0) << name(policy);
  }
}

// What lasts lies at the far end, so that what comes and goes finds its room in one piece.
TEST(Pager, RoomThatIsThereIsFound) {
  PagingOptions options = paging(PagingPolicy::kBelady, 0);
  options.capacity = Bytes(24 * (512 + 1024) + 4096);
  const PagingCounts counts = steady(options);
  EXPECT_EQ(counts.evictions, 0);
}

TEST(Pager, APoolThatForgetsNeverWritesBackWhatIsDead) {
  const PagingCounts forgets = steady(paging(PagingPolicy::kDemand, 12288));
  const PagingCounts keeps = steady(paging(PagingPolicy::kDemand, 12288, false));
  EXPECT_EQ(forgets.dead_evictions, 0);
  EXPECT_GT(keeps.dead_evictions, 0);
  EXPECT_LT(forgets.in + forgets.out, keeps.in + keeps.out);
}

TEST(Pager, FetchesAheadWhatTheLastStepUsed) {
  const PagingCounts demand = steady(paging(PagingPolicy::kDemand, 16384));
  const PagingCounts ahead = steady(paging(PagingPolicy::kPrefetch, 16384));
  const PagingCounts early = steady(paging(PagingPolicy::kPreEvict, 16384));
  const PagingCounts known = steady(paging(PagingPolicy::kBelady, 16384));
  EXPECT_GT(demand.faults, 20);
  EXPECT_LE(ahead.faults, 3);  // the first launches of a step
  EXPECT_LT(early.stalls, ahead.stalls);
  EXPECT_LT(4 * known.stalls, demand.stalls);
  EXPECT_LE(known.faults, 3);
}

// Ten blocks in turn, and room for eight: what was used longest ago is what is needed next.
TEST(Pager, KnowingTheNextUseBeatsRecencyOnACycle) {
  const auto fetched = [](PagingPolicy policy) {
    Pager pager(paging(policy, std::int64_t{8} * 512));
    std::vector<BlockId> blocks;
    for (int i = 0; i < 10; ++i) {
      blocks.push_back(pager.create(Bytes(512), Lifetime::kPersistent));
      pager.overwritten(blocks.back());
    }
    PagingCounts before;
    for (int step = 0; step < 5; ++step) {
      before = pager.counts();
      pager.begin_step();
      for (const BlockId block : blocks) {
        const std::vector<BlockUse> uses{{block, kR}};
        EXPECT_TRUE(pager.begin_launch(uses));
        pager.end_launch();
      }
    }
    const PagingCounts last = pager.counts().since(before);
    EXPECT_EQ(last.out, Bytes(0));  // nothing was written
    return last.in.value / 512;
  };
  EXPECT_EQ(fetched(PagingPolicy::kDemand), 10);
  EXPECT_LE(fetched(PagingPolicy::kBelady), 4);
}

TEST(Pager, AStepThatDoesSomethingElseIsStillRight) {
  for (const PagingPolicy policy : kPolicies) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      SCOPED_TRACE(testing::Message() << name(policy) << " seed " << seed);
      Random random(seed);
      Pager pager(paging(policy, 4096, seed % 2 == 0));
      std::vector<BlockId> lasting;
      for (int i = 0; i < 8; ++i) {
        lasting.push_back(pager.create(Bytes(64 * (1 + random.below(8))), Lifetime::kPersistent));
        pager.overwritten(lasting.back());
      }
      for (int step = 0; step < 6; ++step) {
        pager.begin_step();
        std::vector<BlockId> alive;
        for (int l = 0; l < 30; ++l) {
          const BlockId made =
              pager.create(Bytes(64 * (1 + random.below(8))), Lifetime::kTransient);
          std::vector<BlockUse> uses{{made, kW}};
          uses.push_back({lasting[static_cast<std::size_t>(random.below(8))], kU});
          if (!alive.empty()) uses.push_back({alive.front(), kR});
          ASSERT_TRUE(pager.begin_launch(uses));
          alive.push_back(made);
          if (random.below(2) == 0) {
            pager.forget(alive.front());
            alive.erase(alive.begin());
          }
          pager.end_launch();
        }
        for (const BlockId block : alive) pager.forget(block);
      }
      EXPECT_GE(pager.counts().mispredictions, 4);
      EXPECT_LE(pager.peak(), Bytes(4096));
    }
  }
}

TEST(Pager, OperandsThatCannotLieSideBySideAreRefused) {
  Pager pager(paging(PagingPolicy::kDemand, 1024));
  const BlockId a = pager.create(Bytes(640), Lifetime::kTransient);
  const BlockId b = pager.create(Bytes(448), Lifetime::kTransient);
  const std::vector<BlockUse> both{{a, kW}, {b, kW}};
  const auto refused = pager.begin_launch(both);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kDoesNotFit);
}

TEST(Pager, OperandsInTheWayOfEachOtherAreSetAnew) {
  Pager pager(paging(PagingPolicy::kDemand, 1024));
  std::vector<BlockId> small;
  std::vector<BlockUse> all;
  for (int i = 0; i < 4; ++i) {
    small.push_back(pager.create(Bytes(256), Lifetime::kTransient));
    all.push_back({small.back(), kW});
  }
  ASSERT_TRUE(pager.begin_launch(all));  // 0, 256, 512, 768
  pager.end_launch();
  const BlockId large = pager.create(Bytes(512), Lifetime::kTransient);
  // Two that stay, with 256 bytes on either side.
  const std::vector<BlockUse> around{{small[1], kR}, {small[3], kR}, {large, kW}};
  ASSERT_TRUE(pager.begin_launch(around));
  EXPECT_EQ(pager.counts().repacks, 1);
  EXPECT_EQ(pager.peak(), Bytes(1024));
}

}  // namespace
}  // namespace plimsoll::runtime

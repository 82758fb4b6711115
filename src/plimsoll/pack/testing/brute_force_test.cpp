#include "plimsoll/pack/testing/brute_force.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "plimsoll/pack/check/check_packing.h"
#include "plimsoll/pack/formats/csv.h"
#include "plimsoll/pack/pack.h"

namespace plimsoll::pack::testing {
namespace {

constexpr std::int64_t kMostNodes = 50'000;
constexpr std::int64_t kHighest = 64;  // offsets above this are never needed by random_small

struct Box {
  Interval<std::int64_t> time;
  std::int64_t lo, hi;
};

class BruteForce {
 public:
  BruteForce(const Problem& problem, std::size_t memory, const std::vector<std::uint8_t>& where)
      : problem_(problem), memory_(memory), where_(where) {
    const std::size_t n = problem.size();
    for (std::size_t i = 0; i < n; ++i) boxes_.push_back(boxes_of(i));
    anchor_.assign(n, {-1, 0});
    for (const auto& group : problem.contiguous) tie_group(group);
    for (const auto& members : problem.colocated) {
      for (const BufferId id : members) {
        class_of_.resize(n, -1);
        class_of_[id.index()] = static_cast<int>(members.front().index());
      }
    }
    class_of_.resize(n, -1);
    for (std::size_t i = 0; i < n; ++i) {
      if (lives_here(i)) order_.push_back(i);
    }
    // What can contradict comes first, or a contradiction is met again for every place of the rest.
    const auto rank = [&](std::size_t i) {
      const bool tied = anchor_[i].first >= 0 || class_of_[i] >= 0;
      const bool sided = !problem_.ends.empty() && problem_.ends[i] != ArenaEnd::kAny;
      const int kind = problem_.buffers[i].fixed ? 0 : tied ? 1 : sided ? 2 : 3;
      return std::pair(kind, -problem_.buffers[i].size.value);
    };
    std::stable_sort(order_.begin(), order_.end(),
                     [&](auto a, auto b) { return rank(a) < rank(b); });
    place_.assign(n, -1);
  }

  bool gave_up() const { return nodes_ > kMostNodes; }

  bool fits(std::int64_t capacity) {
    capacity_ = capacity;
    return place_next(0);
  }

 private:
  bool lives_here(std::size_t i) const { return where_.empty() || where_[i] == memory_; }

  std::vector<Box> boxes_of(std::size_t i) const {
    const Buffer& buffer = problem_.buffers[i];
    std::vector<Box> out;
    if (buffer.size.value == 0 || !ever_alive(problem_, BufferId(i))) return out;
    if (problem_.clocks.streams > 0) return {{{0, 1}, 0, buffer.size.value}};
    // One box per unit of time: slow and obvious.
    for (std::int64_t t = buffer.lifetime.begin; t < buffer.lifetime.end; ++t) {
      Box box{{t, t + 1}, 0, buffer.size.value};
      for (const Gap& gap : problem_.gaps) {
        if (gap.buffer == BufferId(i) && gap.time.contains(t)) {
          box.lo = gap.window.begin;
          box.hi = gap.window.end;
        }
      }
      if (box.lo < box.hi) out.push_back(box);
    }
    return out;
  }

  void tie_group(const std::vector<BufferId>& group) {
    std::int64_t at = 0;
    for (const BufferId id : group) {
      const Buffer& buffer = problem_.buffers[id.index()];
      while (at % buffer.alignment != 0) ++at;
      anchor_[id.index()] = {static_cast<int>(group.front().index()), at};
      group_start_.push_back({group.front().index(), buffer.alignment});
      at += buffer.size.value;
    }
  }

  bool pair_ok(std::size_t a, std::size_t b) const {
    if (anchor_[a].first >= 0 && anchor_[a].first == anchor_[b].first &&
        place_[a] - anchor_[a].second != place_[b] - anchor_[b].second)
      return false;
    if (class_of_[a] >= 0 && class_of_[a] == class_of_[b]) return place_[a] == place_[b];
    const bool clocks = problem_.clocks.streams > 0;
    if (clocks && !meet(problem_, BufferId(a), BufferId(b))) return true;
    for (const Box& x : boxes_[a]) {
      for (const Box& y : boxes_[b]) {
        if (!clocks && x.time.begin != y.time.begin) continue;
        const std::int64_t xl = place_[a] + x.lo, xh = place_[a] + x.hi;
        const std::int64_t yl = place_[b] + y.lo, yh = place_[b] + y.hi;
        if (xl < yh && yl < xh) return false;
        if (problem_.ends.empty()) continue;
        if (problem_.ends[a] == ArenaEnd::kFront && problem_.ends[b] == ArenaEnd::kBack && xh > yl)
          return false;
        if (problem_.ends[b] == ArenaEnd::kFront && problem_.ends[a] == ArenaEnd::kBack && yh > xl)
          return false;
      }
    }
    return true;
  }

  bool alone_ok(std::size_t i) const {
    const Buffer& buffer = problem_.buffers[i];
    const std::int64_t x = place_[i];
    if (x % buffer.alignment != 0 || (buffer.fixed && buffer.fixed->value != x)) return false;
    for (const auto& [first, alignment] : group_start_) {
      if (first == i && x % alignment != 0) return false;
    }
    for (const Box& box : boxes_[i]) {
      if (x + box.hi > capacity_) return false;
    }
    const auto& slab = problem_.memories[memory_].slab;
    return !slab || boxes_[i].empty() ||
           x / slab->value == (x + buffer.size.value - 1) / slab->value;
  }

  bool place_next(std::size_t k) {
    if (k == order_.size()) return true;
    if (++nodes_ > kMostNodes) return false;
    const std::size_t i = order_[k];
    const auto& fixed = problem_.buffers[i].fixed;
    const bool idle = boxes_[i].empty() && anchor_[i].first < 0 && class_of_[i] < 0 && !fixed;
    const std::int64_t to = fixed ? fixed->value : idle ? 0 : kHighest;
    for (place_[i] = fixed ? fixed->value : 0; place_[i] <= to; ++place_[i]) {
      if (!boxes_[i].empty() && place_[i] > capacity_) break;
      if (!alone_ok(i)) continue;
      bool ok = true;
      for (std::size_t j = 0; j < k && ok; ++j) ok = pair_ok(order_[j], i);
      if (ok && place_next(k + 1)) return true;
    }
    return false;
  }

  const Problem& problem_;
  const std::size_t memory_;
  const std::vector<std::uint8_t>& where_;
  std::vector<std::vector<Box>> boxes_;
  std::vector<std::pair<int, std::int64_t>> anchor_;  // first of the group, distance from it
  std::vector<std::pair<std::size_t, std::int64_t>> group_start_;
  std::vector<int> class_of_;
  std::vector<std::size_t> order_;
  std::vector<std::int64_t> place_;
  std::int64_t capacity_ = 0;
  std::int64_t nodes_ = 0;
};

}  // namespace

Best best_height(const Problem& problem) {
  const std::vector<std::uint8_t> all;
  BruteForce search(problem, 0, all);
  Best best;
  if (search.fits(kHighest)) {
    best.height = 0;
    while (!search.gave_up() && !search.fits(*best.height)) ++*best.height;
  }
  best.known = !search.gave_up();
  return best;
}

std::optional<double> least_cost(const Problem& problem) {
  std::optional<double> best;
  const std::size_t m = problem.memories.size();
  std::vector<std::uint8_t> where(problem.size(), 0);
  while (true) {
    double cost = 0;
    bool ok = true;
    for (std::size_t i = 0; i < problem.size(); ++i) {
      ok = ok && (problem.may_live_in.empty() || (problem.may_live_in[i] >> where[i] & 1));
      cost += static_cast<double>(problem.buffers[i].size.value) *
              problem.memories[where[i]].cost_per_byte;
    }
    for (std::size_t k = 0; ok && k < m && (!best || cost < *best); ++k)
      ok = BruteForce(problem, k, where).fits(problem.memories[k].capacity->value);
    if (ok && (!best || cost < *best)) best = cost;
    std::size_t i = 0;
    while (i < where.size() && ++where[i] == m) where[i++] = 0;
    if (i == where.size()) return best;
  }
}

Problem random_small(Random& random, int most, const Mix& mix) {
  Problem problem;
  const auto n = static_cast<std::size_t>(random.between(1, most));
  const bool alignment = mix.alignment && random.chance(0.3);
  const bool fixed = mix.fixed && random.chance(0.2);
  const bool clocks = mix.clocks && random.chance(0.2);
  const bool gaps = mix.gaps && !clocks && random.chance(0.3);
  for (std::size_t i = 0; i < n; ++i) {
    Buffer buffer;
    const std::int64_t begin = random.below(8);
    buffer.lifetime = {begin, begin + random.between(random.chance(0.05) ? 0 : 1, 5)};
    buffer.size = Bytes(random.chance(0.03) ? 0 : random.between(1, 5));
    if (alignment) buffer.alignment = std::int64_t{1} << random.below(3);
    if (alignment && random.chance(0.05)) buffer.alignment = 3;
    if (fixed && random.chance(0.2)) buffer.fixed = Offset(random.below(8));
    if (mix.hints && random.chance(0.1)) buffer.hint = Offset(random.below(8));
    problem.buffers.push_back(buffer);
    if (gaps && buffer.lifetime.end - buffer.lifetime.begin >= 2 && random.chance(0.5)) {
      const std::int64_t from = random.between(buffer.lifetime.begin, buffer.lifetime.end - 1);
      Gap gap{BufferId(i), {from, random.between(from + 1, buffer.lifetime.end)}, {}};
      if (random.chance(0.5) && buffer.size.value > 0) {
        gap.window.begin = random.below(buffer.size.value);
        gap.window.end = random.between(gap.window.begin + 1, buffer.size.value);
      }
      problem.gaps.push_back(gap);
    }
  }
  std::vector<BufferId> shuffled;
  for (std::size_t i = 0; i < n; ++i) shuffled.push_back(BufferId(i));
  random.shuffle(shuffled);
  if (mix.groups && n >= 2 && random.chance(0.2))
    problem.contiguous.push_back(
        {shuffled.begin(),
         shuffled.begin() +
             random.between(2, std::min<std::int64_t>(3, static_cast<std::int64_t>(n)))});
  const bool windows = std::any_of(problem.gaps.begin(), problem.gaps.end(),
                                   [](const Gap& gap) { return !gap.window.empty(); });
  if (mix.classes && n >= 2 && !windows && random.chance(0.2))
    problem.colocated.push_back({shuffled.end() - 2, shuffled.end()});
  if (clocks) {
    problem.clocks.streams = static_cast<int>(random.between(1, 3));
    for (std::size_t k = 0; k < n * static_cast<std::size_t>(problem.clocks.streams); ++k) {
      problem.clocks.ready.push_back(random.below(6));
      problem.clocks.released.push_back(problem.clocks.ready.back() + random.below(3));
    }
  }
  if (mix.ends && problem.contiguous.empty() && problem.colocated.empty() && random.chance(0.15)) {
    for (std::size_t i = 0; i < n; ++i)
      problem.ends.push_back(static_cast<ArenaEnd>(random.below(3)));
  }
  if (mix.slabs && problem.contiguous.empty() && problem.colocated.empty() && random.chance(0.1))
    problem.memories[0].slab = Bytes(alignment ? 12 : random.between(4, 9));
  return problem;
}

namespace {

std::string describe(const Problem& problem, std::uint64_t seed) {
  std::string out = "seed " + std::to_string(seed) + "\n" + write_csv(problem, nullptr);
  for (const auto& group : problem.contiguous) {
    out += "group";
    for (const BufferId id : group) out += " " + std::to_string(id.value);
    out += "\n";
  }
  for (const auto& members : problem.colocated) {
    out += "class";
    for (const BufferId id : members) out += " " + std::to_string(id.value);
    out += "\n";
  }
  if (problem.memories[0].slab)
    out += "slab " + std::to_string(problem.memories[0].slab->value) + "\n";
  for (const ArenaEnd end : problem.ends)
    out += "end " + std::to_string(static_cast<int>(end)) + " ";
  for (std::size_t k = 0; k < problem.clocks.ready.size(); ++k)
    out += fmt::format("{}-{} ", problem.clocks.ready[k], problem.clocks.released[k]);
  return out + fmt::format("streams {}", problem.clocks.streams);
}

void expect_same_optimum(std::uint64_t seed, int& skipped) {
  Random random(seed);
  Problem problem = random_small(random, 8, {});
  ASSERT_TRUE(verify(problem)) << describe(problem, seed);
  const auto [best, known] = best_height(problem);
  if (!known) {
    ++skipped;
    return;
  }
  const PackOptions options{.deadline_seconds = 2, .deterministic = true};
  const Result<Packing> found = pack(problem, options);
  ASSERT_TRUE(found) << found.error().message << describe(problem, seed);
  if (!best) {
    ASSERT_EQ(found->status, PackStatus::kInfeasible) << describe(problem, seed);
    return;
  }
  ASSERT_EQ(found->status, PackStatus::kOptimal) << found->method << describe(problem, seed);
  ASSERT_EQ(found->height().value, *best) << found->method << describe(problem, seed);
  const Status checked = check_packing_slowly(problem, *found);
  ASSERT_TRUE(checked) << checked.error().message << describe(problem, seed);
  if (*best == 0) return;
  problem.set_capacity(Bytes(*best - 1));
  const Result<Packing> refuted = pack(problem, options);
  ASSERT_TRUE(refuted);
  ASSERT_EQ(refuted->status, PackStatus::kInfeasible) << describe(problem, seed);
  ASSERT_FALSE(refuted->core.empty()) << describe(problem, seed);
}

TEST(BruteForce, AgreesOnEveryKindOfRule) {
  int skipped = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    ASSERT_NO_FATAL_FAILURE(expect_same_optimum(seed, skipped));
  }
  EXPECT_LT(skipped, 90) << "brute force gave up too often to be a referee";
}

// A hundred thousand problems in shards: GTEST_TOTAL_SHARDS and GTEST_SHARD_INDEX spread them over
// processes.
class SlowBruteForce : public ::testing::TestWithParam<int> {};

TEST_P(SlowBruteForce, AgreesOnFiveThousandProblems) {
  constexpr int kProblems = 5000;
  int skipped = 0;
  std::uint64_t seed = 1'000'001 + 100'000 * static_cast<std::uint64_t>(GetParam());
  for (int decided = 0; decided < kProblems; ++seed) {
    const int before = skipped;
    ASSERT_NO_FATAL_FAILURE(expect_same_optimum(seed, skipped));
    decided += skipped == before;
  }
  EXPECT_LT(skipped, kProblems * 15 / 100) << "brute force gave up too often to be a referee";
}

INSTANTIATE_TEST_SUITE_P(Shards, SlowBruteForce, ::testing::Range(0, 20));

void expect_same_cost(std::uint64_t seed) {
  Random random(seed);
  Problem problem = random_small(random, 6, {.groups = false, .classes = false, .slabs = false});
  problem.memories = {
      {"fast", Bytes(random.between(2, 6)), 0, {}},
      {"slow", Bytes(random.between(4, 20)), static_cast<double>(random.between(1, 3)), {}}};
  for (std::size_t i = 0; i < problem.size(); ++i)
    problem.may_live_in.push_back(static_cast<std::uint64_t>(random.between(1, 3)));
  const std::optional<double> best = least_cost(problem);
  const Result<Packing> found = pack(problem, {.deadline_seconds = 100, .deterministic = true});
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->status, best ? PackStatus::kOptimal : PackStatus::kInfeasible)
      << describe(problem, seed);
  if (!best) return;
  ASSERT_DOUBLE_EQ(found->cost, *best) << describe(problem, seed);
}

TEST(BruteForce, AgreesOnTheCheapestMemories) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    ASSERT_NO_FATAL_FAILURE(expect_same_cost(seed));
  }
}

}  // namespace
}  // namespace plimsoll::pack::testing

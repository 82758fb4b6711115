#include "plimsoll/schedule/search/free_swaps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace plimsoll::schedule {
namespace {

// The busy times of a copy engine, ascending.
class CopyEngine {
 public:
  struct Slot {
    double begin = 0, end = 0;
  };

  // The first hole of that length from a time on.
  Slot first_from(double time, double length) const {
    auto next = std::partition_point(busy_.begin(), busy_.end(),
                                     [time](const Slot& slot) { return slot.end <= time; });
    for (; next != busy_.end() && next->begin < time + length; ++next)
      time = std::max(time, next->end);
    return {time, time + length};
  }
  // The last one up to a time.
  Slot last_until(double time, double length) const {
    auto next = std::partition_point(busy_.begin(), busy_.end(),
                                     [time](const Slot& slot) { return slot.begin < time; });
    while (next != busy_.begin() && std::prev(next)->end > time - length) {
      --next;
      time = std::min(time, next->begin);
    }
    return {time - length, time};
  }
  void take(Slot slot) {
    const auto after = std::partition_point(
        busy_.begin(), busy_.end(), [slot](const Slot& other) { return other.begin < slot.begin; });
    busy_.insert(after, slot);
  }

 private:
  std::vector<Slot> busy_;
};

struct FilledSwaps {
  std::vector<FreeSwap> swaps;
  std::int64_t left = 0;  // byte · stages over the budget
};

class Filling {
 public:
  Filling(const Problem& problem, const Retention& plan, Random& random,
          const FreeSwapOptions& options)
      : p_(problem), plan_(plan), random_(random), how_(options) {
    const Index stages = plan.stages();
    starts_.assign(at(stages) + 1, 0);
    excess_.assign(at(stages) + 1, 0);
    over_before_.assign(at(stages) + 2, 0);
    position_.assign(at(stages), 0);
    for (Index t = 0; t <= stages; ++t) {
      if (t < stages) {
        const Index task = plan.order()[at(t)];
        position_[at(task)] = t;
        starts_[at(t) + 1] = starts_[at(t)] + p_.seconds[at(task)] + plan.extra_seconds(t);
      }
      excess_[at(t)] = plan.excess_at(t);
      over_before_[at(t) + 1] = over_before_[at(t)] + (excess_[at(t)] > 0 ? 1 : 0);
    }
    worth_ = random.chance(options.blind_chance) ? 0 : random.uniform();
    noise_ = how_.most_noise * random.uniform();
  }

  FilledSwaps run() {
    for (Index v = 0; v < p_.values; ++v) {
      if (p_.swappable[at(v)] && p_.bytes[at(v)] > 0) offer_gaps(v);
    }
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
    for (const Candidate& candidate : candidates_) {
      if (candidate.new_version != kNoIndex)
        place_at_home(candidate);
      else
        place(candidate);
    }
    std::int64_t left = 0;
    for (const std::int64_t bytes : excess_) left += std::max<std::int64_t>(0, bytes);
    return {std::move(out_), left};
  }

 private:
  struct Candidate {
    Index value = kNoIndex;
    Retention::Gap gap;            // idle, from its last use on; the stage before its end reads it
    Index new_version = kNoIndex;  // of a source that starts and ends on the host
    double score = 0;
  };

  Index over_within(Retention::Gap gap) const {
    return over_before_[at(std::min(gap.end, plan_.stages() + 1))] - over_before_[at(gap.begin)];
  }

  void offer_gaps(Index value) {
    const bool source = p_.producer[at(value)] == kNoIndex;
    for (Index stage = plan_.some_held(value, 0); stage < plan_.stages();) {
      const Retention::Gap gap = plan_.gap_at(value, stage);
      if (gap.begin >= gap.end) return;
      if (source && gap.begin == 0)
        offer_home(value, gap);
      else if (gap.end <= plan_.stages() && plan_.reads(gap.end - 1, value))
        offer({value, gap});
      const Index next = plan_.some_held(value, gap.end);
      if (next < gap.end) return;
      stage = next;
    }
  }

  void offer_home(Index value, Retention::Gap gap) {
    if (gap.end > plan_.stages() || !plan_.reads(gap.end - 1, value)) return;
    Candidate candidate{value, gap};
    if (const Index update = p_.overwriter[at(value)]; update != kNoIndex) {
      for (const Index made : p_.outputs[update]) {
        if (p_.must_take[at(made)] && p_.in_place[at(made)] == value) candidate.new_version = made;
      }
      const Index made = candidate.new_version;
      const bool ends = made != kNoIndex && p_.keep[at(made)] && p_.swappable[at(made)] &&
                        p_.overwriter[at(made)] == kNoIndex && p_.readers[made].empty();
      if (!ends) return;
    } else if (p_.keep[at(value)]) {
      return;
    }
    offer(candidate);
  }

  // What lies over all that is over the budget, and would be dear to recompute, goes first.
  void offer(Candidate candidate) {
    const Index all = over_before_.back();
    Index over = over_within(candidate.gap);
    if (candidate.new_version != kNoIndex)
      over +=
          over_within({position_[at(p_.overwriter[at(candidate.value)])] + 1, plan_.stages() + 1});
    if (over == 0) return;
    const auto v = at(candidate.value);
    const double copies = p_.out_seconds[v] + p_.in_seconds[v];
    const double otherwise =
        p_.recomputable(candidate.value) ? p_.seconds[at(p_.producer[v])] : copies;
    candidate.score = static_cast<double>(over) / all *
                      std::pow(std::max(otherwise, 1e-12) / std::max(copies, 1e-12), worth_) *
                      std::exp(noise_ * (2 * random_.uniform() - 1));
    candidates_.push_back(candidate);
  }

  // The first stage that starts at a time or later.
  Index stage_from(double time) const {
    return static_cast<Index>(std::lower_bound(starts_.begin(), starts_.end(), time) -
                              starts_.begin());
  }
  // The last that starts by then.
  Index stage_by(double time) const {
    return static_cast<Index>(std::upper_bound(starts_.begin(), starts_.end(), time) -
                              starts_.begin()) -
           1;
  }

  bool helps(Retention::Gap gap) const {
    for (Index t = gap.begin; t < std::min(gap.end, plan_.stages() + 1); ++t) {
      if (excess_[at(t)] > 0) return true;
    }
    return false;
  }
  void add(Index value, Retention::Gap gap) {
    for (Index t = gap.begin; t < std::min(gap.end, plan_.stages() + 1); ++t)
      excess_[at(t)] -= p_.bytes[at(value)];
    out_.push_back({value, gap});
  }

  void place(const Candidate& candidate) {
    const auto v = at(candidate.value);
    const auto [begin, end] = candidate.gap;
    const auto out = out_engine_.first_from(starts_[at(begin)], p_.out_seconds[v]);
    const auto in = in_engine_.last_until(starts_[at(end - 1)], p_.in_seconds[v]);
    if (out.end > in.begin) return;
    const Retention::Gap away{std::max(begin, stage_from(out.end)), stage_by(in.begin) + 1};
    if (away.begin >= away.end || !helps(away)) return;
    out_engine_.take(out);
    in_engine_.take(in);
    add(candidate.value, away);
  }

  void place_at_home(const Candidate& candidate) {
    const auto v = at(candidate.value);
    const auto o = at(candidate.new_version);
    const Index update = position_[at(p_.overwriter[v])];
    const auto in = in_engine_.last_until(starts_[at(candidate.gap.end - 1)], p_.in_seconds[v]);
    const auto out = out_engine_.first_from(starts_[at(update) + 1], p_.out_seconds[o]);
    if (in.begin < 0 || out.end > starts_.back()) return;
    const Retention::Gap before{0, stage_by(in.begin) + 1};
    const Retention::Gap after{stage_from(out.end), plan_.stages() + 1};
    if (!helps(before) && !helps(after)) return;
    in_engine_.take(in);
    out_engine_.take(out);
    add(candidate.value, before);
    add(candidate.new_version, after);
  }

  const Problem& p_;
  const Retention& plan_;
  Random& random_;
  const FreeSwapOptions& how_;
  std::vector<double> starts_;        // per stage, and the end
  std::vector<std::int64_t> excess_;  // what is still over the budget
  std::vector<Index> over_before_;    // stages over the budget at first, before each
  std::vector<Index> position_;
  double worth_ = 0, noise_ = 0;
  CopyEngine out_engine_, in_engine_;
  std::vector<Candidate> candidates_;
  std::vector<FreeSwap> out_;
};

}  // namespace

std::vector<FreeSwap> free_swaps(const Problem& problem, const Retention& plan, Random& random,
                                 const FreeSwapOptions& options) {
  FilledSwaps best;
  for (int i = 0; i < options.tries; ++i) {
    FilledSwaps next = Filling(problem, plan, random, options).run();
    if (i == 0 || next.left < best.left) best = std::move(next);
  }
  return std::move(best.swaps);
}

void settle(const std::vector<FreeSwap>& swaps, Problem& own, Retention& plan) {
  for (const FreeSwap& swap : swaps) {
    const auto v = at(swap.value);
    own.encoding[v] = kSettledSwap;
    own.encoded_bytes[v] = 0;
    own.encode_seconds[v] = own.decode_seconds[v] = 0;
  }
  for (const FreeSwap& swap : swaps) {
    plan.hold(swap.value, swap.gap, Form::kEncoded, true);
    plan.hold(swap.value, swap.gap, Form::kDevice, false);
  }
  plan.forget_log();
}

}  // namespace plimsoll::schedule

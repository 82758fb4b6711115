#include "plimsoll/schedule/search/improve.h"

#include <algorithm>
#include <cmath>

namespace plimsoll::schedule {
namespace {

constexpr std::size_t kCandidates = 48;
constexpr int kDropTries = 8;  // values looked at for one drop
constexpr double kHeatTasks = 60;
// Prices, as the time of the whole step for each byte of all values: the first; the one up to which
// all stages rise together; the highest for stages that stay over the budget.
constexpr double kFirstPrice = 0.1;
constexpr double kCommonPrice = 0.003;  // these two times the number of values
constexpr double kTopPrice = 0.1;
// How much of the search goes into prices twice as high; once a plan fits, so many moves a value,
// if that is less.
constexpr double kDoubling = 0.07;
constexpr double kSettling = 20;

class Search {
 public:
  Search(Retention plan, const Problem& problem, std::uint64_t seed,
         const ImproveSettings& settings)
      : plan_(std::move(plan)), p_(problem), random_(seed), s_(settings) {
    for (Index v = 0; v < p_.values; ++v) {
      const bool encodes = p_.encoding[at(v)] != kNoIndex && p_.producer[at(v)] != kNoIndex;
      if (p_.bytes[at(v)] > 0 && (p_.remakeable(v) || encodes)) movable_.push_back(v);
    }
    tolerance_ = p_.total_seconds * 1e-12;
    std::int64_t bytes = 1;
    for (Index v : movable_) bytes += p_.bytes[at(v)];
    const double per_byte = p_.total_seconds / static_cast<double>(bytes);
    const double of_one = per_byte * static_cast<double>(movable_.size());
    common_price_ = kCommonPrice * of_one;
    top_price_ = kTopPrice * of_one;
    plan_.set_limit(s_.budget);
    plan_.set_prices(kFirstPrice * per_byte);
  }

  Improved run() {
    if (fits()) record();
    if (p_.tasks < 2 || movable_.empty()) return std::move(best_);
    if (s_.priced)
      run_priced();
    else
      run_repaired();
    return std::move(best_);
  }

 private:
  void run_repaired() {
    if (!repair(kNoIndex, 0, 100 * p_.tasks)) return;
    plan_.forget_log();
    current_ = plan_.seconds();
    record();
    double done = 0;
    while ((done = s_.progress()) < 1) {
      for (int i = 0; i < 8; ++i) step(done);
      if ((++best_.moves & 127) == 0) {
        plan_.refresh_total();
        current_ = plan_.seconds();
      }
    }
  }

  // The price of a byte over the budget rises until the plan is within it and then follows how
  // often it is. It rises so slowly that the moves settle at every price: a price that runs ahead
  // of them buys room at any cost, and such plans are not improved out of again. All stages rise
  // together at first; then only those still over, so that a few of them do not freeze the search
  // everywhere else.
  void run_priced() {
    constexpr int kSteps = 64;
    const double settled = std::exp2(kSteps / (kSettling * static_cast<double>(movable_.size())));
    const double heat = s_.heat * p_.total_seconds / p_.tasks;
    double done = s_.progress();
    for (double before = done; done < 1; before = done, done = s_.progress()) {
      const double temperature = heat * (1 - done) * (1 - done) + tolerance_;
      int within = 0;
      for (int i = 0; i < kSteps; ++i) within += step_priced(temperature);
      const double paced = std::exp2((done - before) / kDoubling);
      const double rate = best_.found ? std::max(settled, paced) : paced;
      if (within > kSteps / 2) plan_.scale_prices(1 / rate);
      if (within < kSteps / 3) plan_.raise_prices(rate, common_price_, top_price_);
      best_.moves += kSteps;
      plan_.refresh_total();
    }
  }

  double score() const { return plan_.seconds() + plan_.toll(); }

  // One change as it comes, with no repair; true when the plan is within the budget afterwards.
  bool step_priced(double temperature) {
    const std::size_t mark = plan_.mark();
    slack_ = -temperature * std::log(1 - random_.uniform());
    const double most = score() + slack_;
    if (!propose_priced() || !plan_.possible() || score() > most) {
      plan_.roll_back(mark);
      return plan_.excess() == 0;
    }
    plan_.forget_log();
    if (plan_.excess() > 0) return false;
    record();
    return true;
  }

  bool propose_priced() {
    const double dice = random_.uniform();
    if (s_.move_operators && dice < 0.1) return move_operator();
    if (dice < 0.4) return random_.chance(0.5) ? drop_at(crowded_stage()) : drop_anywhere();
    if (dice < 0.7) return keep_if_worth();
    if (dice < 0.8) return keep_and_drop();
    if (dice < 0.9) return rerun_from_held_inputs();
    return recompute_earlier();
  }

  // A stage over the budget, or else the highest.
  Index crowded_stage() {
    for (int tries = 0; tries < 8; ++tries) {
      const Index stage = random_index(at(p_.tasks));
      if (plan_.excess_at(stage) > 0) return stage;
    }
    return plan_.peak_stage();
  }

  bool drop_at(Index stage) {
    const std::size_t start = at(random_index(movable_.size()));
    int tries = kDropTries;
    for (std::size_t i = 0; i < movable_.size() && tries > 0; ++i) {
      const Index value = movable_[(start + i) % movable_.size()];
      if (!plan_.held(value, stage)) continue;
      if (drop_if_worth(value, stage)) return true;
      --tries;
    }
    return false;
  }

  bool drop_anywhere() {
    const Index value = movable_[at(random_index(movable_.size()))];
    return drop_if_worth(value, plan_.some_held(value, random_index(at(p_.tasks))));
  }

  // Lets go of an idle stretch unless that is known to cost more than it gains.
  bool drop_if_worth(Index value, Index stage) {
    const auto gap = plan_.gap_at(value, stage);
    if (gap.begin >= gap.end) return false;
    const bool encode = encode_free(value, gap) && (!p_.remakeable(value) || random_.chance(0.5));
    if (!encode && !p_.remakeable(value)) return false;
    const std::int64_t freed = p_.bytes[at(value)] - (encode ? p_.encoded_bytes[at(value)] : 0);
    const double worth = slack_ + plan_.relief(gap, freed);
    const double costs = encode ? plan_.encode_price(value) : plan_.drop_price(value, gap, worth);
    if (costs > worth) return false;
    let_go(value, gap, encode);
    return true;
  }

  bool keep_if_worth() {
    const auto [value, gap, gain] = keepable();
    if (value == kNoIndex || plan_.burden(gap, p_.bytes[at(value)]) > slack_ + gain) return false;
    hold_plain(value, gap);
    return true;
  }

  // Keeps something and lets another value go that lies over it.
  bool keep_and_drop() {
    const auto [value, gap, gain] = keepable();
    if (value == kNoIndex) return false;
    const double before = score();
    hold_plain(value, gap);
    slack_ += before - score();
    return drop_at(std::min(gap.begin + random_index(at(gap.end - gap.begin)), p_.tasks - 1));
  }

  struct Keepable {
    Index value = kNoIndex;
    Retention::Gap gap;
    double gain = 0;  // at most
  };
  // Something that is made again, and from where on it could have been held.
  Keepable keepable() {
    const auto [stage, value] = remade();
    if (stage == kNoIndex || plan_.held(value, stage)) return {};
    const Index from = plan_.last_available(value, stage);
    if (from == kNoIndex || from >= stage) return {};
    return {value, {from + 1, stage + 1}, plan_.extra_seconds(stage)};
  }

  bool fits() const { return plan_.possible() && plan_.excess() == 0; }

  void record() {
    if (best_.found && plan_.seconds() >= best_.seconds - tolerance_) return;
    best_.found = true;
    best_.seconds = plan_.seconds();
    best_.script = plan_.script();
    best_.order = plan_.order();
    if (s_.on_better) s_.on_better(best_.seconds);
  }

  Index random_index(std::size_t size) {
    return static_cast<Index>(random_.below(static_cast<std::int64_t>(size)));
  }

  void step(double done) {
    const double cold = (1 - done) * (1 - done);
    // One move of a large graph changes a small share of the step, so it is cooled by its size.
    const double share = std::min(1.0, kHeatTasks / static_cast<double>(p_.tasks));
    const double temperature = p_.total_seconds * s_.heat * share * cold + tolerance_;
    const std::size_t mark = plan_.mark();
    bool good = propose() && fits();
    if (good) {
      const std::int64_t fills = 4 + random_.below(12);
      for (std::int64_t i = 0; i < fills; ++i) keep_if_better();
      const double worse = plan_.seconds() - current_;
      good = worse <= 0 || random_.uniform() < std::exp(-worse / temperature);
    }
    if (!good) {
      plan_.roll_back(mark);
      return;
    }
    current_ = plan_.seconds();
    plan_.forget_log();
    record();
  }

  bool propose() {
    const double dice = random_.uniform();
    const double noise = random_.uniform() * 0.7;
    if (s_.move_operators && dice < 0.12) return move_operator() && repair(kNoIndex, noise, 12);
    if (dice < 0.22) return recompute_earlier() && repair(kNoIndex, noise, 14);
    if (dice < 0.34) return rerun_from_held_inputs() && repair(kNoIndex, noise, 14);
    if (dice < 0.62) return keep_and_repair();
    const int drops = 1 + random_.chance(0.4) + random_.chance(0.15);
    for (int i = 0; i < drops; ++i) drop_one();
    if (!repair(kNoIndex, noise, 10)) return false;
    if (dice < 0.8) return keep_and_repair() || fits();
    return true;
  }

  // A value that some stage makes again or decodes, at random: (stage, value).
  std::pair<Index, Index> remade() {
    for (int tries = 0; tries < 60; ++tries) {
      const Index stage = random_index(at(p_.tasks));
      const auto& items = plan_.runs(stage);
      if (items.size() < 2) continue;
      const Index item = items[at(random_index(items.size()))];
      if (item >= p_.tasks + p_.values || item == plan_.order()[at(stage)]) continue;
      if (item >= p_.tasks) return {stage, item - p_.tasks};
      const auto outputs = p_.outputs[item];
      return {stage, outputs[at(random_index(outputs.size()))]};
    }
    return {kNoIndex, kNoIndex};
  }

  void hold_plain(Index value, Retention::Gap gap) {
    if (!plan_.may_hold(value, gap.end - 1)) return;
    for (Index b = gap.begin; b < gap.end; ++b) {
      if (plan_.held_encoded(value, b)) {
        Index end = b;
        while (end < gap.end && plan_.held_encoded(value, end)) ++end;
        plan_.hold(value, {b, end}, Retention::Hold::kEncoded, false);
        b = end;
      }
    }
    plan_.hold(value, gap, Retention::Hold::kPlain, true);
  }

  // Holds a value that is remade from where it was last at hand; kNoIndex when there is none such.
  Index keep_some() {
    const Keepable found = keepable();
    if (found.value != kNoIndex) hold_plain(found.value, found.gap);
    return found.value;
  }
  bool keep() { return keep_some() != kNoIndex; }
  bool keep_and_repair() {
    const Index value = keep_some();
    return value != kNoIndex && repair(value, random_.uniform() * 0.7, 14);
  }
  void keep_if_better() {
    const std::size_t mark = plan_.mark();
    const double before = plan_.seconds();
    if (keep() && (!fits() || plan_.seconds() > before)) plan_.roll_back(mark);
  }

  // Remake a value some stages before it is needed, where its inputs may still be at hand.
  bool recompute_earlier() {
    const auto [stage, value] = remade();
    if (stage == kNoIndex || plan_.held(value, stage) || plan_.held_encoded(value, stage))
      return false;
    const Index from = plan_.last_available(value, stage);
    if (from == kNoIndex || from + 1 >= stage) return false;
    const Index span = std::min<Index>(stage - from - 1,
                                       1 + random_index(std::min<std::size_t>(at(p_.tasks), 24)));
    const Index when = stage - 1 - random_index(at(span));
    if (when <= from) return false;
    for (Index b = when + 1; b <= stage; ++b) {
      if (plan_.held_encoded(value, b)) return false;
    }
    plan_.hold(value, {when + 1, stage + 1}, Retention::Hold::kPlain, true);
    return plan_.possible();
  }

  // Drop the first part of an idle stretch and make the value again inside it, holding its inputs
  // on until then. One drop alone would pay for remaking the inputs too and never look worth it.
  bool rerun_from_held_inputs() {
    for (int tries = 0; tries < 20; ++tries) {
      const Index value = movable_[at(random_index(movable_.size()))];
      const auto gap = plan_.gap_at(value, plan_.some_held(value, random_index(at(p_.tasks))));
      if (gap.begin >= gap.end || !p_.remakeable(value)) continue;
      const Index when = gap.begin + random_index(at(gap.end - gap.begin));
      if (when >= p_.tasks) continue;
      const Retention::Gap empty{gap.begin, when + 1};
      if (s_.priced && rerun_costs(value, when) > slack_ + plan_.relief(empty, p_.bytes[at(value)]))
        return false;
      for (Index u : p_.inputs[p_.producer[at(value)]]) {
        const auto wait = wait_of(u, when);
        if (wait.begin < wait.end) hold_plain(u, wait);
      }
      plan_.hold(value, empty, Retention::Hold::kPlain, false);
      return true;
    }
    return false;
  }

  // Where an input would have to be held on for a run at a stage.
  Retention::Gap wait_of(Index input, Index stage) const {
    if (plan_.held(input, stage) || plan_.held_encoded(input, stage)) return {};
    const Index from = plan_.last_available(input, stage);
    if (from == kNoIndex || from >= stage) return {};
    return {from + 1, stage + 1};
  }

  // At least.
  double rerun_costs(Index value, Index stage) const {
    const Index task = p_.producer[at(value)];
    double costs = p_.seconds[at(task)];
    for (Index u : p_.inputs[task]) costs += plan_.burden(wait_of(u, stage), p_.bytes[at(u)]);
    return costs;
  }

  bool drop_one() {
    for (int tries = 0; tries < 20; ++tries) {
      const Index value = movable_[at(random_index(movable_.size()))];
      const Index stage = plan_.some_held(value, random_index(at(p_.tasks)));
      if (drop_idle(value, stage)) return true;
    }
    return false;
  }

  // Lets go of the idle stretch around a stage, or encodes it.
  bool drop_idle(Index value, Index stage) {
    const auto gap = plan_.gap_at(value, stage);
    if (gap.begin >= gap.end) return false;
    const bool encode = encode_free(value, gap) && (!p_.remakeable(value) || random_.chance(0.5));
    if (!encode && !p_.remakeable(value)) return false;
    let_go(value, gap, encode);
    return true;
  }

  void let_go(Index value, Retention::Gap gap, bool encode) {
    plan_.hold(value, gap, Retention::Hold::kPlain, false);
    if (encode) plan_.hold(value, gap, Retention::Hold::kEncoded, true);
  }

  bool encode_free(Index value, Retention::Gap gap) const {
    if (!plan_.encodable(value)) return false;
    for (Index b = gap.begin; b < gap.end; ++b) {
      if (plan_.held_encoded(value, b)) return false;
    }
    return true;
  }

  bool move_operator() {
    const Index stage = random_index(at(p_.tasks));
    const bool later = random_.chance(0.5);
    const std::int64_t far =
        1 + (random_.chance(0.5) ? 0 : random_.below(random_.chance(0.3) ? 24 : 6));
    bool moved = false;
    Index where = later ? stage : stage - 1;
    for (std::int64_t i = 0; i < far; ++i, where += later ? 1 : -1) {
      if (!plan_.transpose(where)) break;
      moved = true;
    }
    return moved && plan_.possible();
  }

  // Drops or encodes idle stretches at the highest stage until the plan fits.
  bool repair(Index protect, double noise, Index most) {
    for (Index i = 0; plan_.excess() > 0; ++i) {
      if (i >= most || !relieve(plan_.peak_stage(), protect, noise)) return false;
      if (i % 64 == 63 && s_.progress() >= 1) return false;
    }
    return plan_.possible();
  }

  void gather(Index stage, Index protect) {
    candidates_.clear();
    const std::size_t size = movable_.size();
    const std::size_t start = at(random_index(size));
    for (std::size_t i = 0; i < size && candidates_.size() < kCandidates; ++i) {
      const Index value = movable_[(start + i) % size];
      if (value != protect && plan_.held(value, stage) && !plan_.reads(stage, value)) {
        candidates_.push_back(value);
      }
    }
  }

  bool relieve(Index stage, Index protect, double noise) {
    if (stage >= p_.tasks) return false;
    gather(stage, protect);
    const std::int64_t over = std::max<std::int64_t>(1, plan_.peak() - s_.budget);
    double best = std::numeric_limits<double>::infinity();
    Index victim = kNoIndex;
    bool encode = false;
    Retention::Gap where;
    const double epsilon = 1e-4 * p_.total_seconds / p_.tasks;
    const auto offer = [&](Index value, Retention::Gap gap, double seconds, std::int64_t freed,
                           bool how) {
      const double score = (seconds + epsilon) /
                           static_cast<double>(std::max<std::int64_t>(1, std::min(freed, over))) *
                           (1 + noise * random_.uniform());
      if (score < best) {
        best = score;
        victim = value;
        encode = how;
        where = gap;
      }
    };
    for (Index value : candidates_) {
      const auto gap = plan_.gap_at(value, stage);
      if (gap.begin >= gap.end || p_.bytes[at(value)] == 0) continue;
      if (p_.remakeable(value))
        offer(value, gap, plan_.drop_price(value, gap), p_.bytes[at(value)], false);
      if (encode_free(value, gap)) {
        offer(value, gap, plan_.encode_price(value),
              p_.bytes[at(value)] - p_.encoded_bytes[at(value)], true);
      }
    }
    if (victim == kNoIndex) return false;
    let_go(victim, where, encode);
    return true;
  }

  Retention plan_;
  const Problem& p_;
  Random random_;
  const ImproveSettings& s_;
  Improved best_;
  double current_ = 0;
  double common_price_ = 0, top_price_ = 0;  // of a byte over the budget for one stage, in seconds
  double slack_ = 0;                         // by how much the move at hand may make the plan worse
  double tolerance_ = 0;
  std::vector<Index> movable_;
  std::vector<Index> candidates_;
};

}  // namespace

Improved improve(Retention plan, const Problem& problem, std::uint64_t seed,
                 const ImproveSettings& settings) {
  return Search(std::move(plan), problem, seed, settings).run();
}

}  // namespace plimsoll::schedule

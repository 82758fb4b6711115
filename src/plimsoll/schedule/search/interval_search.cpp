#include "plimsoll/schedule/search/interval_search.h"

#include <algorithm>
#include <cmath>

#include "plimsoll/schedule/search/interval_moves.h"

namespace plimsoll::schedule {
namespace {

// What both ways share: the best plan so far.
class IntervalSearch : protected IntervalMoves {
 protected:
  IntervalSearch(Retention start, const Problem& problem, std::uint64_t seed,
                 const IntervalSearchOptions& options, const IntervalSearchSettings& settings)
      : IntervalMoves(std::move(start), problem, seed, options),
        s_(settings),
        tolerance_(problem.total_seconds * 1e-12) {
    retention_.set_limit(s_.budget);
  }

  // False when there is nothing to search.
  bool begin() {
    if (fits()) record();
    return p_.tasks >= 2 && !movable_.empty();
  }

  bool fits() const { return retention_.possible() && retention_.excess() == 0; }

  void record() {
    if (best_.found && retention_.seconds() >= best_.seconds - tolerance_) return;
    best_.found = true;
    best_.seconds = retention_.seconds();
    best_.list = retention_.action_list();
    best_.order = retention_.order();
  }

  // The best, or where it ended, so that others know how little it took.
  IntervalPlan end() {
    if (!best_.found && retention_.possible()) {
      best_.list = retention_.action_list();
      best_.order = retention_.order();
      best_.excess = retention_.excess();
    }
    return std::move(best_);
  }

  const IntervalSearchSettings& s_;
  double tolerance_;
  IntervalPlan best_;
};

class RepairedSearch : IntervalSearch {
 public:
  RepairedSearch(Retention start, const Problem& problem, std::uint64_t seed,
                 const IntervalSearchOptions& options, const IntervalSearchSettings& settings)
      : IntervalSearch(std::move(start), problem, seed, options, settings),
        repaired_(options.repaired) {}

  IntervalPlan run() {
    if (!begin() || !repair(kNoIndex, 0, repaired_.first_repairs_per_task * p_.tasks)) return end();
    retention_.forget_log();
    current_ = retention_.seconds();
    record();
    double done = 0;
    for (std::int64_t checks = 1; (done = s_.progress()) < 1; ++checks) {
      for (int i = 0; i < repaired_.moves_per_check; ++i) step(done);
      if (checks % repaired_.checks_per_sum == 0) {
        retention_.refresh_total();
        current_ = retention_.seconds();
      }
    }
    return end();
  }

 private:
  void step(double done) {
    const double cold = (1 - done) * (1 - done);
    // One move of a large graph changes a small share of the step, so it is cooled by its size.
    const double share = std::min(1.0, repaired_.heat_tasks / static_cast<double>(p_.tasks));
    const double temperature = p_.total_seconds * s_.heat * share * cold + tolerance_;
    const std::size_t mark = retention_.mark();
    bool good = propose() && fits();
    if (good) {
      const std::int64_t fills = repaired_.least_fills + random_.below(repaired_.fills_range);
      for (std::int64_t i = 0; i < fills; ++i) keep_if_better();
      const double worse = retention_.seconds() - current_;
      good = worse <= 0 || random_.uniform() < std::exp(-worse / temperature);
    }
    if (!good) {
      retention_.roll_back(mark);
      return;
    }
    current_ = retention_.seconds();
    retention_.forget_log();
    record();
  }

  bool propose() {
    const double dice = random_.uniform();
    const double noise = random_.uniform() * repaired_.noise;
    if (s_.move_operators && dice < repaired_.move_operator_up_to)
      return move_operator() && repair(kNoIndex, noise, repaired_.move_repairs);
    if (dice < repaired_.recompute_earlier_up_to)
      return recompute_earlier() && repair(kNoIndex, noise, repaired_.recompute_repairs);
    if (dice < repaired_.rerun_up_to)
      return rerun_from_held_inputs(std::nullopt) &&
             repair(kNoIndex, noise, repaired_.recompute_repairs);
    if (dice < repaired_.keep_up_to) return keep_and_repair();
    const int drops = 1 + random_.chance(repaired_.second_drop_chance) +
                      random_.chance(repaired_.third_drop_chance);
    for (int i = 0; i < drops; ++i) drop_one();
    if (!repair(kNoIndex, noise, repaired_.drop_repairs)) return false;
    if (dice < repaired_.drop_and_keep_up_to) return keep_and_repair() || fits();
    return true;
  }

  // Holds a value that is recomputed from where it was last at hand; kNoIndex when there is none.
  Index keep_some() {
    const Keepable found = keepable();
    if (found.value != kNoIndex) hold_plain(found.value, found.gap);
    return found.value;
  }
  bool keep_and_repair() {
    const Index value = keep_some();
    return value != kNoIndex &&
           repair(value, random_.uniform() * repaired_.noise, repaired_.keep_repairs);
  }
  void keep_if_better() {
    const std::size_t mark = retention_.mark();
    const double before = retention_.seconds();
    if (keep_some() != kNoIndex && (!fits() || retention_.seconds() > before))
      retention_.roll_back(mark);
  }

  // Drops or encodes one idle stretch, whatever it costs.
  void drop_one() {
    for (int tries = 0; tries < how_.drop_tries; ++tries) {
      const Index value = random_movable();
      const auto gap =
          retention_.gap_at(value, retention_.some_held(value, random_index(at(p_.tasks))));
      if (gap.begin >= gap.end) continue;
      const std::optional<bool> encode = encode_or_drop(value, gap);
      if (!encode) continue;
      let_go(value, gap, *encode);
      return;
    }
  }

  // Drops or encodes idle stretches at the highest stage until the plan fits.
  bool repair(Index protect, double noise, Index most) {
    for (Index i = 0; retention_.excess() > 0; ++i) {
      if (i >= most || !relieve(retention_.peak_stage(), protect, noise)) return false;
      if ((i + 1) % repaired_.repairs_per_check == 0 && s_.progress() >= 1) return false;
    }
    return retention_.possible();
  }

  void gather(Index stage, Index protect) {
    candidates_.clear();
    const std::size_t size = movable_.size();
    const std::size_t start = at(random_index(size));
    for (std::size_t i = 0; i < size && candidates_.size() < repaired_.candidates; ++i) {
      const Index value = movable_[(start + i) % size];
      if (value != protect && retention_.held(value, stage) && !retention_.reads(stage, value)) {
        candidates_.push_back(value);
      }
    }
  }

  bool relieve(Index stage, Index protect, double noise) {
    if (stage >= p_.tasks) return false;
    gather(stage, protect);
    const std::int64_t over = std::max<std::int64_t>(1, retention_.peak() - s_.budget);
    double best = std::numeric_limits<double>::infinity();
    Index victim = kNoIndex;
    bool encode = false;
    Retention::Gap where;
    const double epsilon = repaired_.epsilon * p_.total_seconds / p_.tasks;
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
      const auto gap = retention_.gap_at(value, stage);
      if (gap.begin >= gap.end || p_.bytes[at(value)] == 0) continue;
      if (p_.recomputable(value))
        offer(value, gap, retention_.drop_price(value, gap), p_.bytes[at(value)], false);
      if (can_encode(value, gap)) {
        offer(value, gap, retention_.encode_price(value),
              p_.bytes[at(value)] - p_.encoded_bytes[at(value)], true);
      }
    }
    if (victim == kNoIndex) return false;
    let_go(victim, where, encode);
    return true;
  }

  const IntervalSearchOptions::Repaired& repaired_;
  double current_ = 0;  // seconds of the plan as it stands
  std::vector<Index> candidates_;
};

class PricedSearch : IntervalSearch {
 public:
  PricedSearch(Retention start, const Problem& problem, std::uint64_t seed,
               const IntervalSearchOptions& options, const IntervalSearchSettings& settings)
      : IntervalSearch(std::move(start), problem, seed, options, settings),
        priced_(options.priced) {
    std::int64_t bytes = 1;
    for (Index v : movable_) bytes += p_.bytes[at(v)];
    const double per_byte = p_.total_seconds / static_cast<double>(bytes);
    const double of_one = per_byte * static_cast<double>(movable_.size());
    common_price_ = priced_.common_price * of_one;
    top_price_ = priced_.top_price * of_one;
    retention_.set_prices(settings.dear ? common_price_ : priced_.first_price * per_byte);
  }

  // The price of a byte over the budget rises until the plan is within it and then follows how
  // often it is. It rises so slowly that the moves settle at every price: a price that runs ahead
  // of them buys room at any cost, and such plans are not improved out of again. All stages rise
  // together at first; then only those still over, so that a few of them do not freeze the search
  // everywhere else.
  IntervalPlan run() {
    if (!begin()) return std::move(best_);
    const int moves = priced_.moves_per_check;
    const double settled =
        std::exp2(moves / (priced_.moves_per_doubling * static_cast<double>(movable_.size())));
    const double heat = s_.heat * p_.total_seconds / p_.tasks;
    double done = s_.progress();
    for (double before = done; done < 1; before = done, done = s_.progress()) {
      const double temperature = heat * (1 - done) * (1 - done) + tolerance_;
      int within = 0;
      for (int i = 0; i < moves; ++i) within += step(temperature);
      const double paced = std::exp2((done - before) / priced_.doubling);
      const double rate = best_.found ? std::max(settled, paced) : paced;
      if (within > moves / priced_.falls_above) retention_.scale_prices(1 / rate);
      if (within < moves / priced_.rises_below)
        retention_.raise_prices(rate, common_price_, top_price_);
      retention_.refresh_total();
    }
    return end();
  }

 private:
  double score() const { return retention_.seconds() + retention_.toll(); }

  // One change as it comes, with no repair; true when the plan is within the budget afterwards.
  bool step(double temperature) {
    const std::size_t mark = retention_.mark();
    slack_ = -temperature * std::log(1 - random_.uniform());
    const double most = score() + slack_;
    if (!propose() || !retention_.possible() || score() > most) {
      retention_.roll_back(mark);
      return retention_.excess() == 0;
    }
    retention_.forget_log();
    if (retention_.excess() > 0) return false;
    record();
    return true;
  }

  bool propose() {
    const double dice = random_.uniform();
    if (s_.move_operators && dice < priced_.move_operator_up_to) return move_operator();
    if (dice < priced_.drop_up_to)
      return random_.chance(priced_.crowded_chance) ? drop_at(crowded_stage()) : drop_anywhere();
    if (dice < priced_.keep_up_to) return keep_if_worth();
    if (dice < priced_.keep_and_drop_up_to) return keep_and_drop();
    if (dice < priced_.rerun_up_to) return rerun_from_held_inputs(slack_);
    return recompute_earlier();
  }

  // A stage over the budget, or else the highest.
  Index crowded_stage() {
    for (int tries = 0; tries < priced_.crowded_tries; ++tries) {
      const Index stage = random_index(at(p_.tasks));
      if (retention_.excess_at(stage) > 0) return stage;
    }
    return retention_.peak_stage();
  }

  bool drop_at(Index stage) {
    const std::size_t start = at(random_index(movable_.size()));
    int tries = priced_.drop_tries;
    for (std::size_t i = 0; i < movable_.size() && tries > 0; ++i) {
      const Index value = movable_[(start + i) % movable_.size()];
      if (!retention_.held(value, stage)) continue;
      if (drop_if_worth(value, stage)) return true;
      --tries;
    }
    return false;
  }

  bool drop_anywhere() {
    const Index value = random_movable();
    return drop_if_worth(value, retention_.some_held(value, random_index(at(p_.tasks))));
  }

  // Lets go of an idle stretch unless that is known to cost more than it gains.
  bool drop_if_worth(Index value, Index stage) {
    const auto gap = retention_.gap_at(value, stage);
    if (gap.begin >= gap.end) return false;
    const std::optional<bool> encode = encode_or_drop(value, gap);
    if (!encode) return false;
    const std::int64_t freed = p_.bytes[at(value)] - (*encode ? p_.encoded_bytes[at(value)] : 0);
    const double worth = slack_ + retention_.relief(gap, freed);
    const double costs =
        *encode ? retention_.encode_price(value) : retention_.drop_price(value, gap, worth);
    if (costs > worth) return false;
    let_go(value, gap, *encode);
    return true;
  }

  bool keep_if_worth() {
    const auto [value, gap, gain] = keepable();
    if (value == kNoIndex || retention_.burden(gap, p_.bytes[at(value)]) > slack_ + gain)
      return false;
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

  const IntervalSearchOptions::Priced& priced_;
  double common_price_ = 0, top_price_ = 0;  // of a byte over the budget for one stage, in seconds
  double slack_ = 0;                         // by how much the move at hand may make the plan worse
};

}  // namespace

IntervalPlan search_intervals(Retention start, const Problem& problem, std::uint64_t seed,
                              const IntervalSearchOptions& options,
                              const IntervalSearchSettings& settings) {
  if (settings.priced)
    return PricedSearch(std::move(start), problem, seed, options, settings).run();
  return RepairedSearch(std::move(start), problem, seed, options, settings).run();
}

}  // namespace plimsoll::schedule

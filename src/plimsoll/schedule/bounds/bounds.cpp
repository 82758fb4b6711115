#include "plimsoll/schedule/bounds/bounds.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "plimsoll/schedule/fit.h"

namespace plimsoll::schedule {
namespace {

// A stretch of stages in which nothing reads a value: its bytes, and the least seconds that leaving
// it empty costs.
struct Gap {
  Index begin, end;  // stages [begin, end)
  double bytes, seconds;
};

class Cover {
 public:
  Cover(const Problem& problem, const Sequence& sequence, std::int64_t budget)
      : p_(problem), q_(sequence), need_(at(problem.tasks), 0) {
    for (Index t = 0; t < p_.tasks; ++t) made_bytes_.push_back(bytes_made(t));
    for (Index v = 0; v < p_.values; ++v) add(v);
    for (Index t = 1; t < p_.tasks; ++t) need_[at(t)] += need_[at(t - 1)];
    for (Index t = 0; t < p_.tasks; ++t) need_[at(t)] += during(t) - static_cast<double>(budget);
    scale();
  }

  double ascend(double reached) {
    if (gaps_.empty()) return 0;
    std::vector<double> prices(need_.size(), 0);
    double best = start(prices);
    std::vector<double> slope(need_.size());
    std::vector<double> good = prices;
    double stride = 1;
    const auto steps = static_cast<int>(
        std::clamp<std::size_t>(40'000'000 / (gaps_.size() + need_.size()), 20, 600));
    for (int step = 0, stale = 0; step < steps && best < reached * (1 - 1e-6); ++step) {
      const double value = evaluate(prices, slope);
      if (value > best) {
        best = value;
        good = prices;
        stale = 0;
      } else if (++stale > 10) {
        stale = 0;
        stride /= 2;
        prices = good;
        evaluate(prices, slope);
      }
      double length = 0;
      for (std::size_t t = 0; t < slope.size(); ++t) {
        if (prices[t] > 0 || slope[t] > 0) length += slope[t] * slope[t];
      }
      if (length <= 0) break;
      const double move = stride * (reached - std::min(value, best)) / length;
      for (std::size_t t = 0; t < slope.size(); ++t)
        prices[t] = std::max(0.0, prices[t] + move * slope[t]);
    }
    return std::clamp(best, 0.0, reached);
  }

 private:
  double bytes_made(Index task) const {
    double bytes = 0;
    for (Index v : p_.outputs[task]) bytes += static_cast<double>(p_.bytes[at(v)]);
    return bytes;
  }

  // What task t needs beside the values that are alive at its start and after it.
  double during(Index t) const {
    const Index task = q_.order[at(t)];
    auto bytes = static_cast<double>(p_.scratch[at(task)]);
    for (Index v : p_.outputs[task]) {
      if (p_.in_place[at(v)] != kNoIndex) bytes -= static_cast<double>(p_.bytes[at(v)]);
    }
    return bytes;
  }

  double price_per_byte(Index v) const {
    const auto i = at(v);
    if (p_.swappable[i]) return 0;
    double price = std::numeric_limits<double>::infinity();
    // One task pays once for all of its outputs, so each is charged its share by bytes.
    if (p_.remakeable(v)) price = p_.seconds[at(p_.producer[i])] / made_bytes_[at(p_.producer[i])];
    if (p_.encoding[i] != kNoIndex) {
      price = std::min(price, (p_.encode_seconds[i] + p_.decode_seconds[i]) /
                                  static_cast<double>(p_.bytes[i] - p_.encoded_bytes[i]));
    }
    return price;
  }

  void add(Index v) {
    const auto i = at(v);
    const auto bytes = static_cast<double>(p_.bytes[i]);
    if (bytes <= 0) return;
    const Index made = p_.producer[i] == kNoIndex ? -1 : q_.position[at(p_.producer[i])];
    const auto readers = q_.readers[v];
    const Index last = p_.keep[i] ? p_.tasks : (readers.empty() ? made : readers.back());
    const Index from = std::max<Index>(made, 0);
    const Index past = std::min<Index>(std::max(last, from) + 1, p_.tasks);
    if (last < 0) return;
    need_[at(from)] += bytes;
    if (past < p_.tasks) need_[at(past)] -= bytes;
    const double price = price_per_byte(v);
    if (price == std::numeric_limits<double>::infinity()) return;
    Index use = made;
    const auto close = [&](Index next) {
      if (next - use > 1) gaps_.push_back({use + 1, next, bytes, price * bytes});
      use = next;
    };
    for (Index reader : readers) close(reader);
    if (p_.keep[i]) close(p_.tasks);
  }

  // Bytes in units of the largest need, so that steps in price have one length for all graphs.
  void scale() {
    double most = 0;
    for (double need : need_) most = std::max(most, need);
    if (most <= 0) gaps_.clear();
    for (double& need : need_) need /= std::max(1.0, most);
    for (Gap& gap : gaps_) gap.bytes /= std::max(1.0, most);
  }

  // The best price at one stage alone: a fractional knapsack. O(stages tried · gaps).
  double start(std::vector<double>& prices) const {
    std::vector<Index> by_price(gaps_.size());
    std::iota(by_price.begin(), by_price.end(), 0);
    std::sort(by_price.begin(), by_price.end(), [&](Index a, Index b) {
      return gaps_[at(a)].seconds * gaps_[at(b)].bytes < gaps_[at(b)].seconds * gaps_[at(a)].bytes;
    });
    double best = 0, best_price = 0;
    Index best_at = 0;
    const Index step = std::max<Index>(1, p_.tasks / 400);
    for (Index t = 0; t < p_.tasks; t += step) {
      double left = need_[at(t)], seconds = 0, price = 0;
      for (std::size_t k = 0; k < by_price.size() && left > 0; ++k) {
        const Gap& gap = gaps_[at(by_price[k])];
        if (gap.begin > t || gap.end <= t) continue;
        price = gap.seconds / gap.bytes;
        seconds += price * std::min(left, gap.bytes);
        left -= gap.bytes;
      }
      if (seconds <= best) continue;
      best = seconds;
      best_at = t;
      best_price = price;
    }
    prices[at(best_at)] = best_price;
    return best;
  }

  // The dual at these prices, and in which direction it rises.
  double evaluate(const std::vector<double>& prices, std::vector<double>& slope) const {
    std::vector<double> sum(prices.size() + 1, 0), covered(prices.size() + 1, 0);
    for (std::size_t t = 0; t < prices.size(); ++t) sum[t + 1] = sum[t] + prices[t];
    double value = 0;
    for (const Gap& gap : gaps_) {
      const double worth = gap.bytes * (sum[at(gap.end)] - sum[at(gap.begin)]) - gap.seconds;
      if (worth <= 0) continue;
      value -= worth;
      covered[at(gap.begin)] += gap.bytes;
      covered[at(gap.end)] -= gap.bytes;
    }
    double across = 0;
    for (std::size_t t = 0; t < prices.size(); ++t) {
      across += covered[t];
      value += need_[t] * prices[t];
      slope[t] = need_[t] - across;
    }
    return value;
  }

  const Problem& p_;
  const Sequence& q_;
  std::vector<double> need_;  // bytes that have to be absent while the task at a position runs
  std::vector<double> made_bytes_;
  std::vector<Gap> gaps_;
};

}  // namespace

double cover_bound(const Problem& problem, const Sequence& sequence, std::int64_t budget,
                   double reached) {
  if (problem.tasks == 0 || reached <= 0) return 0;
  return Cover(problem, sequence, budget).ascend(reached);
}

Floor floor_of(const Workload& workload, const Remedies& remedies) {
  const Problem p(workload, remedies, CopyRates{});
  const auto removable = [&](Index v) {
    return p.remakeable(v) || p.swappable[at(v)] || p.encoding[at(v)] != kNoIndex;
  };
  // Bytes that nothing can remove, by position. Without recompute, swap or encode a value stays
  // from its making to its last reader; but the order may change, so only sources and kept values
  // that last to the end are certain: a source read by nobody yet, or kept, is there.
  std::int64_t fixed = 0;
  std::vector<char> pinned(at(p.values), 0);
  for (Index v = 0; v < p.values; ++v) {
    const bool kept_source =
        p.producer[at(v)] == kNoIndex && (p.keep[at(v)] || p.overwriter[at(v)] != kNoIndex);
    if (kept_source && !removable(v)) {
      pinned[at(v)] = 1;
      fixed += p.bytes[at(v)];
    }
  }
  Floor floor;
  const auto consider = [&](TaskId id, std::int64_t bytes, std::vector<ValueId> wall) {
    if (bytes <= floor.bytes.value && !floor.wall.empty()) return;
    std::sort(wall.begin(), wall.end(), [&](ValueId a, ValueId b) {
      const Bytes size_a = workload.value(a).bytes, size_b = workload.value(b).bytes;
      return size_a != size_b ? size_a > size_b : a < b;
    });
    floor = {Bytes(bytes), id, std::move(wall)};
  };
  for (Index t = 0; t < p.tasks; ++t) {
    std::int64_t bytes = fixed + p.scratch[at(t)];
    std::vector<ValueId> wall;
    for (Index u : p.inputs[t]) {
      if (!pinned[at(u)]) bytes += p.bytes[at(u)];
      wall.push_back(ValueId(at(u)));
    }
    for (Index v : p.outputs[t]) {
      const bool in_place = p.in_place[at(v)] != kNoIndex;
      // A new version of a pinned source lies in its old one and stays; it counts once.
      if (!in_place) bytes += p.bytes[at(v)];
      wall.push_back(ValueId(at(v)));
    }
    consider(TaskId(at(t)), bytes, std::move(wall));
  }
  std::int64_t at_end = 0;
  std::vector<ValueId> kept;
  for (Index v = 0; v < p.values; ++v) {
    Index root = v;
    while (p.producer[at(root)] != kNoIndex && p.must_take[at(root)]) root = p.in_place[at(root)];
    const bool may_be_away = p.producer[at(root)] == kNoIndex && p.swappable[at(root)];
    if (!p.keep[at(v)] || may_be_away) continue;
    at_end += p.bytes[at(v)];
    kept.push_back(ValueId(at(v)));
  }
  consider(TaskId(), at_end, std::move(kept));
  return floor;
}

}  // namespace plimsoll::schedule

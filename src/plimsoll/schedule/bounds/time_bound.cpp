#include "plimsoll/schedule/bounds/time_bound.h"

#include <algorithm>
#include <limits>
#include <numeric>

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
    if (p_.recomputable(v))
      price = p_.seconds[at(p_.producer[i])] / made_bytes_[at(p_.producer[i])];
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

}  // namespace plimsoll::schedule

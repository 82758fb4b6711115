// LiveBytes: bytes alive per stage, how far they are over a limit in all, and where they peak.
//
// A plain array: adding to a range of steps costs its length, about a nanosecond a step, and keeps
// the sum over all steps of what is above the limit. That sum is what local search minimises beside
// time; a tree of maxima would be faster on very long ranges but cannot keep it. The highest is
// found by a scan when it is asked for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace plimsoll::schedule {

class LiveBytes {
 public:
  explicit LiveBytes(std::size_t steps) : bytes_(steps, 0), prices_(steps, 0) {}

  void set_limit(std::int64_t limit) {
    limit_ = limit;
    excess_ = 0;
    for (std::int64_t bytes : bytes_) excess_ += over(bytes);
    sum_toll();
  }
  // Adds to steps [begin, end).
  void add(std::size_t begin, std::size_t end, std::int64_t bytes) {
    if (bytes == 0) return;
    std::int64_t change = 0;
    double toll = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const std::int64_t before = over(bytes_[i]);
      bytes_[i] += bytes;
      const std::int64_t more = over(bytes_[i]) - before;
      change += more;
      toll += prices_[i] * static_cast<double>(more);
    }
    excess_ += change;
    toll_ += toll;
  }
  // Adds changes[i] from step i on, for all of them at once.
  void add_from(const std::vector<std::int64_t>& changes) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] += sum += changes[i];
    set_limit(limit_);
  }
  // Seconds that the bytes over the limit count as, at the prices set last.
  double toll() const { return toll_; }
  void set_prices(double price) {
    prices_.assign(bytes_.size(), price);
    sum_toll();
  }
  void scale_prices(double factor) {
    for (double& price : prices_) price *= factor;
    sum_toll();
  }
  // All below `common`; above it, up to `most`, only those of steps over the limit.
  void raise_prices(double factor, double common, double most) {
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      if (prices_[i] < common)
        prices_[i] = std::min(common, prices_[i] * factor);
      else if (bytes_[i] > limit_)
        prices_[i] = std::min(most, prices_[i] * factor);
    }
    sum_toll();
  }
  std::int64_t excess() const { return excess_; }
  std::int64_t excess_at(std::size_t step) const { return over(bytes_[step]); }
  // By how much the toll would fall if steps [begin, end) held so much less, and rise if more.
  double relief(std::size_t begin, std::size_t end, std::int64_t bytes) const {
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i)
      sum += prices_[i] * static_cast<double>(std::min(bytes, over(bytes_[i])));
    return sum;
  }
  double burden(std::size_t begin, std::size_t end, std::int64_t bytes) const {
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i)
      sum += prices_[i] * static_cast<double>(over(bytes_[i] + bytes) - over(bytes_[i]));
    return sum;
  }
  std::int64_t highest() const { return bytes_[where()]; }
  std::size_t where() const {
    return static_cast<std::size_t>(std::max_element(bytes_.begin(), bytes_.end()) -
                                    bytes_.begin());
  }

 private:
  std::int64_t over(std::int64_t bytes) const { return std::max<std::int64_t>(0, bytes - limit_); }

  void sum_toll() {
    toll_ = 0;
    for (std::size_t i = 0; i < bytes_.size(); ++i)
      toll_ += prices_[i] * static_cast<double>(over(bytes_[i]));
  }

  std::vector<std::int64_t> bytes_;
  std::vector<double> prices_;  // seconds a byte over the limit
  std::int64_t limit_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t excess_ = 0;
  double toll_ = 0;
};

}  // namespace plimsoll::schedule

// LoadLine: bytes per step, how far they are over a limit in all, and where they are highest.
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

class LoadLine {
 public:
  explicit LoadLine(std::size_t steps) : bytes_(steps, 0) {}

  void set_limit(std::int64_t limit) {
    limit_ = limit;
    excess_ = 0;
    for (std::int64_t bytes : bytes_) excess_ += over(bytes);
  }
  // Adds to steps [begin, end).
  void add(std::size_t begin, std::size_t end, std::int64_t bytes) {
    if (bytes == 0) return;
    std::int64_t change = 0;
    for (std::size_t i = begin; i < end; ++i) {
      change -= over(bytes_[i]);
      bytes_[i] += bytes;
      change += over(bytes_[i]);
    }
    excess_ += change;
  }
  std::int64_t excess() const { return excess_; }
  std::int64_t excess_at(std::size_t step) const { return over(bytes_[step]); }
  // By how much the excess would fall if steps [begin, end) held so much less, and rise if more.
  std::int64_t relief(std::size_t begin, std::size_t end, std::int64_t bytes) const {
    std::int64_t sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += std::min(bytes, over(bytes_[i]));
    return sum;
  }
  std::int64_t burden(std::size_t begin, std::size_t end, std::int64_t bytes) const {
    std::int64_t sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += over(bytes_[i] + bytes) - over(bytes_[i]);
    return sum;
  }
  std::int64_t highest() const { return bytes_[where()]; }
  std::size_t where() const {
    return static_cast<std::size_t>(std::max_element(bytes_.begin(), bytes_.end()) -
                                    bytes_.begin());
  }

 private:
  std::int64_t over(std::int64_t bytes) const { return std::max<std::int64_t>(0, bytes - limit_); }

  std::vector<std::int64_t> bytes_;
  std::int64_t limit_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t excess_ = 0;
};

}  // namespace plimsoll::schedule

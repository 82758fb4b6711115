// PeakTree: bytes per step, with "add to a range of steps" and "where is the highest" in O(log n).
//
// A segment tree in which a node holds the maximum of its range relative to its ancestors' pending
// additions; nothing is ever pushed down, so an addition touches 2·log n nodes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace plimsoll::schedule {

class PeakTree {
 public:
  explicit PeakTree(std::size_t steps) {
    while (leaves_ < steps) leaves_ *= 2;
    highest_.assign(2 * leaves_, 0);
    pending_.assign(2 * leaves_, 0);
  }

  // Adds to steps [begin, end).
  void add(std::size_t begin, std::size_t end, std::int64_t bytes) {
    if (begin < end && bytes != 0) add(1, 0, leaves_, begin, end, bytes);
  }
  std::int64_t highest() const { return highest_[1]; }
  std::size_t where() const {
    std::size_t node = 1;
    while (node < leaves_)
      node = highest_[2 * node] >= highest_[2 * node + 1] ? 2 * node : 2 * node + 1;
    return node - leaves_;
  }
  // The highest within [begin, end).
  std::int64_t highest_in(std::size_t begin, std::size_t end) const {
    return highest_in(1, 0, leaves_, begin, end);
  }

 private:
  static constexpr std::int64_t kNothing = std::numeric_limits<std::int64_t>::min() / 2;

  void add(std::size_t node, std::size_t low, std::size_t high, std::size_t begin, std::size_t end,
           std::int64_t bytes) {
    if (end <= low || high <= begin) return;
    if (begin <= low && high <= end) {
      highest_[node] += bytes;
      pending_[node] += bytes;
      return;
    }
    const std::size_t middle = (low + high) / 2;
    add(2 * node, low, middle, begin, end, bytes);
    add(2 * node + 1, middle, high, begin, end, bytes);
    highest_[node] = std::max(highest_[2 * node], highest_[2 * node + 1]) + pending_[node];
  }
  std::int64_t highest_in(std::size_t node, std::size_t low, std::size_t high, std::size_t begin,
                          std::size_t end) const {
    if (end <= low || high <= begin) return kNothing;
    if (begin <= low && high <= end) return highest_[node];
    const std::size_t middle = (low + high) / 2;
    return std::max(highest_in(2 * node, low, middle, begin, end),
                    highest_in(2 * node + 1, middle, high, begin, end)) +
           pending_[node];
  }

  std::size_t leaves_ = 1;
  std::vector<std::int64_t> highest_;
  std::vector<std::int64_t> pending_;
};

}  // namespace plimsoll::schedule

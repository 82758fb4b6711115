// Slack over sections, for a skyline that serves the tightest moment first: add to a range, find
// the least.
//
// A binary tree over the sections with sums that wait at inner nodes. Both operations start at the
// lowest node above their range, so that narrow valleys cost little: O(log of the width) in
// practice. Starts from the negated loads; what is wasted is taken off. Ties go to the earlier
// section.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plimsoll/base/interval.h"

namespace plimsoll::pack {

class SlackTree {
 public:
  void reset(std::span<const std::int64_t> load);
  void add(Interval<std::int32_t> sections, std::int64_t amount);
  std::int32_t tightest(Interval<std::int32_t> sections);
  std::int64_t work() const { return work_; }

 private:
  struct Node {
    std::size_t at;
    Interval<std::int32_t> sections;
  };
  Node above(Interval<std::int32_t> sections) const;
  void add(Node node, Interval<std::int32_t> sections, std::int64_t amount);
  struct Least {
    std::int64_t slack;
    std::int32_t where;
  };
  void tightest(Node node, Interval<std::int32_t> sections, std::int64_t sum, Least& least);

  std::vector<std::int64_t> slack_;
  std::vector<std::int64_t> waiting_;
  std::int32_t leaves_ = 1;
  std::int64_t work_ = 0;
};

}  // namespace plimsoll::pack

#include "plimsoll/pack/heuristics/slack_tree.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace plimsoll::pack {

void SlackTree::reset(std::span<const std::int64_t> load) {
  const std::size_t leaves = std::bit_ceil(std::max<std::size_t>(load.size(), 1));
  leaves_ = static_cast<std::int32_t>(leaves);
  slack_.assign(2 * leaves, std::numeric_limits<std::int64_t>::max() / 2);
  waiting_.assign(2 * leaves, 0);
  for (std::size_t s = 0; s < load.size(); ++s) slack_[leaves + s] = -load[s];
  for (std::size_t k = leaves - 1; k > 0; --k)
    slack_[k] = std::min(slack_[2 * k], slack_[2 * k + 1]);
}

// The lowest node above these sections.
SlackTree::Node SlackTree::above(Interval<std::int32_t> sections) const {
  const auto first = static_cast<std::uint32_t>(leaves_ + sections.begin);
  const auto last = static_cast<std::uint32_t>(leaves_ + sections.end - 1);
  const int up = std::bit_width(first ^ last);
  const std::int32_t width = 1 << up;
  const std::int32_t low = sections.begin / width * width;
  return {first >> up, {low, low + width}};
}

void SlackTree::add(Interval<std::int32_t> sections, std::int64_t amount) {
  const Node top = above(sections);
  add(top, sections, amount);
  for (std::size_t node = top.at / 2; node > 0; node /= 2) {
    const std::int64_t least = std::min(slack_[2 * node], slack_[2 * node + 1]) + waiting_[node];
    if (least == slack_[node]) break;
    slack_[node] = least;
    ++work_;
  }
}

void SlackTree::add(Node node, Interval<std::int32_t> sections, std::int64_t amount) {
  const auto [low, high] = node.sections;
  if (sections.end <= low || high <= sections.begin) return;
  ++work_;
  if (sections.begin <= low && high <= sections.end) {
    slack_[node.at] += amount;
    waiting_[node.at] += amount;
    return;
  }
  const std::int32_t middle = low + (high - low) / 2;
  add({2 * node.at, {low, middle}}, sections, amount);
  add({2 * node.at + 1, {middle, high}}, sections, amount);
  slack_[node.at] = std::min(slack_[2 * node.at], slack_[2 * node.at + 1]) + waiting_[node.at];
}

// What waits above the node is the same for all sections in question and can be left out.
std::int32_t SlackTree::tightest(Interval<std::int32_t> sections) {
  Least least{std::numeric_limits<std::int64_t>::max(), sections.begin};
  tightest(above(sections), sections, 0, least);
  return least.where;
}

void SlackTree::tightest(Node node, Interval<std::int32_t> sections, std::int64_t sum,
                         Least& least) {
  const auto [low, high] = node.sections;
  if (sections.end <= low || high <= sections.begin || slack_[node.at] + sum >= least.slack) return;
  ++work_;
  if (sections.begin <= low && high <= sections.end) {
    least.slack = slack_[node.at] + sum;
    std::size_t at = node.at;
    while (at < static_cast<std::size_t>(leaves_))
      at = slack_[2 * at] <= slack_[2 * at + 1] ? 2 * at : 2 * at + 1;
    least.where = static_cast<std::int32_t>(at) - leaves_;
    return;
  }
  const std::int32_t middle = low + (high - low) / 2;
  const std::int64_t below = sum + waiting_[node.at];
  tightest({2 * node.at, {low, middle}}, sections, below, least);
  tightest({2 * node.at + 1, {middle, high}}, sections, below, least);
}

}  // namespace plimsoll::pack

#include "plimsoll/pack/heuristics/skyline.h"

#include <algorithm>
#include <numeric>

#include "plimsoll/base/check.h"
#include "plimsoll/pack/heuristics/order.h"

namespace plimsoll::pack {
namespace {

constexpr std::size_t kSectionBlock = 512;
constexpr std::int64_t kLevelShare = 3000;  // of the peak: a step that is no step
constexpr std::int64_t kWorkPerPayment = 20'000;
constexpr std::size_t kPicks = 40;  // tried before space under an obstacle is given up

std::size_t block_of(std::int32_t section) {
  return static_cast<std::size_t>(section) / kSectionBlock;
}

}  // namespace

Skyline::Skyline(const BodyModel& model) : model_(model), load_(loads(model)) {
  const auto sections = static_cast<std::size_t>(model.sections);
  std::vector<std::uint32_t> next(sections + 2, 0);
  for (const Body& body : model.bodies)
    next[static_cast<std::size_t>(body.first) + 1] += body.fixed < 0;
  std::partial_sum(next.begin(), next.end(), next.begin());
  free_.resize(next.back());
  for (std::uint32_t b = 0; b < model.bodies.size(); ++b) {
    if (model.bodies[b].fixed >= 0) {
      fixed_.push_back(b);
    } else {
      free_[next[static_cast<std::size_t>(model.bodies[b].first)]++] = b;
    }
  }
  for (std::size_t s = 0, from = 0; s < sections; from = next[s++]) {
    std::sort(free_.begin() + static_cast<std::ptrdiff_t>(from), free_.begin() + next[s],
              [&](auto a, auto b) {
                return std::pair(model.bodies[a].last, a) < std::pair(model.bodies[b].last, b);
              });
  }
  std::sort(fixed_.begin(), fixed_.end(),
            [&](auto a, auto b) { return model.bodies[a].fixed < model.bodies[b].fixed; });
  index_obstacles();
  peak_ = load_.empty() ? 0 : *std::max_element(load_.begin(), load_.end());
  level_ = peak_ / kLevelShare;
  for (const std::uint32_t b : free_)
    (model.bodies[b].height > level_ ? coarse_ : fine_).push_back(b);
}

std::int32_t Skyline::pick(std::int32_t x, std::int32_t y) {
  ItemIndex::Want want{.within = {x, y}, .snug = snug_};
  if (guided_) {
    want.covering = slack_.tightest({x, y});
    if (const std::int32_t item = items_.best(want); item >= 0) return item;
    want.covering = -1;
  }
  return items_.best(want);
}

// Per block of sections the obstacles that touch it, lowest first.
void Skyline::index_obstacles() {
  const std::size_t blocks = static_cast<std::size_t>(model_.sections) / kSectionBlock + 1;
  obstacles_of_.assign(blocks + 1, 0);
  const auto each_block = [&](const Body& body, const auto& visit) {
    for (std::size_t k = block_of(body.first); k <= block_of(body.last - 1); ++k) visit(k);
  };
  for (const std::uint32_t f : fixed_)
    each_block(model_.bodies[f], [&](std::size_t k) { ++obstacles_of_[k + 1]; });
  std::partial_sum(obstacles_of_.begin(), obstacles_of_.end(), obstacles_of_.begin());
  obstacles_.resize(obstacles_of_.back());
  std::vector<std::uint32_t> next(obstacles_of_.begin(), obstacles_of_.end() - 1);
  for (std::uint32_t k = 0; k < fixed_.size(); ++k)
    each_block(model_.bodies[fixed_[k]], [&](std::size_t block) { obstacles_[next[block]++] = k; });
}

// The bottom of the lowest obstacle over these sections with above < bottom < below, or `below`.
std::int64_t Skyline::lowest_obstacle(std::int32_t first, std::int32_t last, std::int64_t above,
                                      std::int64_t below) {
  for (std::size_t block = block_of(first); block <= block_of(last - 1); ++block) {
    const auto end = obstacles_.begin() + obstacles_of_[block + 1];
    auto at = std::partition_point(obstacles_.begin() + next_obstacle_[block], end,
                                   [&](auto k) { return model_.bodies[fixed_[k]].fixed <= above; });
    for (work_ += 4; at != end; ++at, ++work_) {
      const Body& fixed = model_.bodies[fixed_[*at]];
      if (fixed.fixed >= below) break;
      if (fixed.first < last && first < fixed.last) below = fixed.fixed;
    }
  }
  return below;
}

// Obstacles that the lowest segment has reached become part of the skyline. Boxes of fixed bodies
// may overlap each other; then one lands piece by piece.
bool Skyline::land(std::int32_t& x, std::int32_t y, std::int64_t height) {
  for (std::size_t block = block_of(x); block <= block_of(y - 1); ++block) {
    std::uint32_t& next = next_obstacle_[block];
    const std::uint32_t end = obstacles_of_[block + 1];
    ++work_;
    while (next < end && landed_[obstacles_[next]]) ++next;
    for (std::uint32_t at = next; at < end; ++at, ++work_) {
      const std::uint32_t k = obstacles_[at];
      const Body& fixed = model_.bodies[fixed_[k]];
      if (fixed.fixed > height) break;
      const std::int64_t top = fixed.fixed + fixed.height;
      if (landed_[k] || fixed.first >= y || fixed.last <= x || top <= height) continue;
      landed_[k] = x <= fixed.first && fixed.last <= y;
      x = cover(x, std::max(x, fixed.first), std::min(y, fixed.last), top);
      return true;
    }
  }
  return false;
}

// The best of the first few picks that no obstacle hangs over; -1 when there is none.
std::int32_t Skyline::pick_clear(std::int32_t x, std::int32_t y, std::int64_t height) {
  std::vector<std::pair<std::int32_t, float>> parked;
  std::int32_t clear = -1;
  while (clear < 0 && parked.size() < kPicks) {
    const std::int32_t item = pick(x, y);
    if (item < 0) break;
    const std::uint32_t b = items_.body(item);
    const Body& body = model_.bodies[b];
    const std::int64_t top = model_.lift(b, height) + body.height;
    if (lowest_obstacle(body.first, body.last, height, top) == top) {
      clear = item;
    } else {
      parked.emplace_back(item, items_.priority(item));
      items_.remove(item);
    }
  }
  for (const auto& [item, priority] : parked) items_.restore(item, priority);
  return clear;
}

void Skyline::start_segments() {
  const auto sections = static_cast<std::size_t>(model_.sections);
  height_.assign(sections, -1);
  segment_end_.assign(sections, 0);
  segment_begin_.assign(sections + 1, 0);
  set_segment(0, model_.sections, 0);
}

void Skyline::set_segment(std::int32_t begin, std::int32_t end, std::int64_t height) {
  height_[static_cast<std::size_t>(begin)] = height;
  segment_end_[static_cast<std::size_t>(begin)] = end;
  segment_begin_[static_cast<std::size_t>(end)] = begin;
}

std::int32_t Skyline::lower_neighbour(std::int32_t x) const {
  const std::int64_t height = height_[static_cast<std::size_t>(x)];
  const std::int32_t right = segment_end_[static_cast<std::size_t>(x)];
  if (right < model_.sections && height_[static_cast<std::size_t>(right)] < height) return right;
  const std::int32_t left = x > 0 ? segment_begin_[static_cast<std::size_t>(x)] : -1;
  return left >= 0 && height_[static_cast<std::size_t>(left)] < height ? left : -1;
}

std::int64_t Skyline::lowest_neighbour_height(std::int32_t x) const {
  const std::int32_t right = segment_end_[static_cast<std::size_t>(x)];
  std::int64_t lowest = kLargest;
  if (right < model_.sections) lowest = height_[static_cast<std::size_t>(right)];
  if (x > 0)
    lowest = std::min(
        lowest, height_[static_cast<std::size_t>(segment_begin_[static_cast<std::size_t>(x)])]);
  return lowest;
}

std::int32_t Skyline::raise(std::int32_t x) {
  const std::int64_t height = height_[static_cast<std::size_t>(x)];
  std::int32_t begin = x;
  std::int32_t end = segment_end_[static_cast<std::size_t>(x)];
  const std::int32_t left = x > 0 ? segment_begin_[static_cast<std::size_t>(x)] : -1;
  const bool has_right = end < model_.sections;
  const std::int64_t left_height = left >= 0 ? height_[static_cast<std::size_t>(left)] : kLargest;
  const std::int64_t right_height = has_right ? height_[static_cast<std::size_t>(end)] : kLargest;
  std::int64_t up = std::min(left_height, right_height);
  if (!fixed_.empty()) up = lowest_obstacle(x, end, height, up);
  PLIMSOLL_CHECK(up < kLargest, "a body fits nowhere in the skyline");
  if (guided_) slack_.add({x, end}, height - up);
  if (levelling_) holes_.push_back({{x, end}, {height, up}});
  height_[static_cast<std::size_t>(x)] = -1;
  if (right_height == up) {
    height_[static_cast<std::size_t>(end)] = -1;
    end = segment_end_[static_cast<std::size_t>(end)];
  }
  if (left_height == up) begin = left;
  set_segment(begin, end, up);
  return begin;
}

std::int32_t Skyline::cover(std::int32_t x, std::int32_t first, std::int32_t last,
                            std::int64_t top) {
  const std::int64_t height = height_[static_cast<std::size_t>(x)];
  const std::int32_t y = segment_end_[static_cast<std::size_t>(x)];
  std::int32_t begin = first;
  std::int32_t end = last;
  height_[static_cast<std::size_t>(x)] = -1;
  if (x < first) {
    set_segment(x, first, height);
  } else if (x > 0) {
    const std::int32_t left = segment_begin_[static_cast<std::size_t>(x)];
    if (height_[static_cast<std::size_t>(left)] == top) begin = left;
  }
  if (last < y) {
    set_segment(last, y, height);
  } else if (y < model_.sections && height_[static_cast<std::size_t>(y)] == top) {
    height_[static_cast<std::size_t>(y)] = -1;
    end = segment_end_[static_cast<std::size_t>(y)];
  }
  set_segment(begin, end, top);
  return x < first ? x : last < y ? last : begin;
}

bool Skyline::pass(std::span<const float> priority, PassRules rules,
                   std::vector<std::int64_t>& places, Budget* budget) {
  places.assign(model_.bodies.size(), 0);
  work_ = static_cast<std::int64_t>(model_.bodies.size()) * 4 - items_.work() - slack_.work();
  paid_ = 0;
  for (const std::uint32_t f : fixed_) places[f] = model_.bodies[f].fixed;
  if (free_.empty()) return true;
  landed_.assign(fixed_.size(), 0);
  next_obstacle_.assign(obstacles_of_.begin(), obstacles_of_.end());
  start_segments();
  guided_ = rules.guided;
  snug_ = rules.snug;
  levelling_ = rules.level && !fine_.empty();
  holes_.clear();
  if (guided_) slack_.reset(load_);
  if (!place_all(levelling_ ? coarse_ : free_, priority, places, budget)) return false;
  if (!levelling_) return true;
  const std::vector<std::uint32_t> rest = fill(priority, places);
  guided_ = snug_ = levelling_ = false;
  return place_all(rest, priority, places, budget);
}

bool Skyline::place_all(std::span<const std::uint32_t> bodies, std::span<const float> priority,
                        std::vector<std::int64_t>& places, Budget* budget) {
  items_.load(model_, bodies, priority);
  std::int32_t x = 0;
  for (std::size_t left = bodies.size(); left > 0;) {
    if (const std::int32_t lower = lower_neighbour(x); lower >= 0) {
      x = lower;
      continue;
    }
    if (budget && work() - paid_ > kWorkPerPayment) {
      if (!budget->spend(work() - paid_)) return false;
      paid_ = work();
    }
    left -= serve(x, places);
  }
  if (budget) budget->spend(work() - paid_);
  paid_ = work();
  return true;
}

// Small bodies into the holes; returns those that found none.
std::vector<std::uint32_t> Skyline::fill(std::span<const float> priority,
                                         std::vector<std::int64_t>& places) {
  items_.load(model_, fine_, priority);
  fill_holes(model_, std::move(holes_), items_, places);
  std::vector<std::uint32_t> rest;
  for (std::size_t k = 0; k < fine_.size(); ++k) {
    if (!items_.removed(static_cast<std::int32_t>(k))) rest.push_back(fine_[k]);
  }
  return rest;
}

bool Skyline::serve(std::int32_t& x, std::vector<std::int64_t>& places) {
  const std::int64_t height = height_[static_cast<std::size_t>(x)];
  const std::int32_t y = segment_end_[static_cast<std::size_t>(x)];
  work_ += 40;
  if (!fixed_.empty() && land(x, y, height)) return false;
  if (levelling_ && lowest_neighbour_height(x) - height <= level_) {
    x = raise(x);
    return false;
  }
  const std::int32_t item = fixed_.empty() ? pick(x, y) : pick_clear(x, y, height);
  if (item < 0) {
    x = raise(x);
    return false;
  }
  const std::uint32_t b = items_.body(item);
  const Body& body = model_.bodies[b];
  const std::int64_t place = model_.lift(b, height);
  items_.remove(item);
  places[b] = place;
  if (guided_ && place > height) slack_.add({body.first, body.last}, height - place);
  x = cover(x, body.first, body.last, place + body.height);
  return true;
}

}  // namespace plimsoll::pack

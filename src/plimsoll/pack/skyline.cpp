#include "plimsoll/pack/skyline.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "plimsoll/base/check.h"
#include "plimsoll/pack/stable_log.h"

namespace plimsoll::pack {
namespace {

constexpr std::size_t kBlock = 16;
constexpr float kGone = -std::numeric_limits<float>::infinity();
constexpr std::size_t kSectionBlock = 512;
constexpr std::int32_t kLoosePerOctave = 5000;  // of priority, where an octave of area is 1000
constexpr std::int64_t kLevelShare = 10'000;    // of the peak: a step that is no step
constexpr std::int64_t kWorkPerPayment = 20'000;
constexpr std::size_t kPicks = 40;  // tried before space under an obstacle is given up

// Maximum of `load` over every body's span, by a sparse walk: a table of powers of two would take
// n log n memory, blocks of 64 sections take n / 64 log n.
class SpanMaximum {
 public:
  explicit SpanMaximum(std::span<const std::int64_t> values) : values_(values) {
    levels_.emplace_back((values.size() + kWidth - 1) / kWidth, 0);
    for (std::size_t i = 0; i < values.size(); ++i)
      levels_[0][i / kWidth] = std::max(levels_[0][i / kWidth], values[i]);
    for (std::size_t step = 1; 2 * step <= levels_[0].size(); step *= 2) {
      const auto& below = levels_.back();
      std::vector<std::int64_t> level(levels_[0].size() - 2 * step + 1);
      for (std::size_t i = 0; i < level.size(); ++i) level[i] = std::max(below[i], below[i + step]);
      levels_.push_back(std::move(level));
    }
  }
  std::int64_t operator()(std::size_t from, std::size_t to) const {
    std::int64_t most = 0;
    while (from < to && from % kWidth != 0) most = std::max(most, values_[from++]);
    while (from < to && to % kWidth != 0) most = std::max(most, values_[--to]);
    if (from >= to) return most;
    const std::size_t a = from / kWidth;
    const std::size_t b = to / kWidth;
    const auto level = static_cast<std::size_t>(std::bit_width(b - a) - 1);
    return std::max({most, levels_[level][a], levels_[level][b - (std::size_t{1} << level)]});
  }

 private:
  static constexpr std::size_t kWidth = 64;
  std::span<const std::int64_t> values_;
  std::vector<std::vector<std::int64_t>> levels_;
};

// Piecewise linear between powers of two.
std::int32_t log2_in_256ths(std::uint32_t x) {
  const int whole = std::bit_width(x) - 1;
  const auto part = static_cast<std::int32_t>((static_cast<std::uint64_t>(x) << 8 >> whole) - 256);
  return whole * 256 + part;
}

std::size_t block_of(std::int32_t section) {
  return static_cast<std::size_t>(section) / kSectionBlock;
}

}  // namespace

const char* name(Order order) {
  constexpr const char* kNames[] = {"width", "area",       "total-width", "total-area",
                                    "size",  "area-width", "long-area"};
  return kNames[static_cast<std::size_t>(order)];
}

Skyline::Skyline(const BodyModel& model) : model_(model) {
  const auto sections = static_cast<std::size_t>(model.sections);
  load_.assign(sections + 1, 0);
  first_item_.assign(sections + 2, 0);
  std::size_t free = 0;
  for (const Body& body : model.bodies) {
    load_[static_cast<std::size_t>(body.first)] += body.height;
    load_[static_cast<std::size_t>(body.last)] -= body.height;
    if (body.fixed >= 0) continue;
    ++first_item_[static_cast<std::size_t>(body.first) + 1];
    ++free;
  }
  std::partial_sum(load_.begin(), load_.end(), load_.begin());
  load_.pop_back();
  std::partial_sum(first_item_.begin(), first_item_.end(), first_item_.begin());
  body_.resize(free);
  std::vector<std::uint32_t> next(first_item_.begin(), first_item_.end() - 1);
  for (std::uint32_t b = 0; b < model.bodies.size(); ++b) {
    if (model.bodies[b].fixed >= 0) {
      fixed_.push_back(b);
    } else {
      body_[next[static_cast<std::size_t>(model.bodies[b].first)]++] = b;
    }
  }
  for (std::size_t s = 0; s < sections; ++s) {
    std::sort(body_.begin() + first_item_[s], body_.begin() + first_item_[s + 1],
              [&](auto a, auto b) {
                return std::pair(model.bodies[a].last, a) < std::pair(model.bodies[b].last, b);
              });
  }
  std::sort(fixed_.begin(), fixed_.end(),
            [&](auto a, auto b) { return model.bodies[a].fixed < model.bodies[b].fixed; });
  index_obstacles();
  end_.resize(free);
  std::int64_t spans = 0;
  for (std::size_t k = 0; k < free; ++k) {
    end_[k] = model.bodies[body_[k]].last;
    spans += end_[k] - model.bodies[body_[k]].first;
  }
  level_ = load_.empty() ? 0 : *std::max_element(load_.begin(), load_.end()) / kLevelShare;
  // Two fifths of the mean span count as nothing.
  loose_from_ = free == 0 ? 1 : static_cast<std::uint32_t>(spans * 2 / 5 / static_cast<std::int64_t>(free)) + 1;
  loose_octaves_ = log2_in_256ths(loose_from_);
  const std::size_t blocks = (free + kBlock - 1) / kBlock;
  leaves_ = std::bit_ceil(std::max<std::size_t>(blocks, 1));
}

std::vector<float> Skyline::priorities(Order order) const {
  if (order == Order::kAreaWidth) return weighted(2);
  if (order == Order::kLongArea) return weighted(4);
  std::vector<float> out(model_.bodies.size());
  const SpanMaximum most(load_);
  const double peak = std::max<double>(1, static_cast<double>(most(0, load_.size())));
  for (std::size_t b = 0; b < out.size(); ++b) {
    const Body& body = model_.bodies[b];
    const double width = stable_log2(body.duration);
    const double size = stable_log2(static_cast<double>(body.height));
    double value = 0;
    switch (order) {
      case Order::kWidth: value = width * 1000 + size; break;
      case Order::kArea: value = (width + size) * 1000 + width; break;
      case Order::kAreaWidth:
      case Order::kLongArea: break;
      case Order::kSize: value = size * 1000 + width; break;
      case Order::kTotalWidth:
      case Order::kTotalArea: {
        const auto total = most(static_cast<std::size_t>(body.first), static_cast<std::size_t>(body.last));
        value = static_cast<double>(total) / peak * 1e5 + width;
        if (order == Order::kTotalArea) value += size;
        break;
      }
    }
    out[b] = static_cast<float>(value);
  }
  return out;
}

std::vector<float> Skyline::weighted(double width_weight) const {
  std::vector<float> out;
  out.reserve(model_.bodies.size());
  for (const Body& body : model_.bodies) {
    const double width = stable_log2(body.duration);
    const double size = stable_log2(static_cast<double>(body.height));
    out.push_back(static_cast<float>((width_weight * width + size) * 1000));
  }
  return out;
}

void Skyline::load_items(std::span<const float> priority) {
  priority_.resize(body_.size());
  for (std::size_t k = 0; k < body_.size(); ++k) priority_[k] = priority[body_[k]];
  tree_.assign(2 * leaves_, {kGone, std::numeric_limits<std::int32_t>::max(), -1});
  const std::size_t blocks = (body_.size() + kBlock - 1) / kBlock;
  for (std::size_t block = 0; block < blocks; ++block) summarize(block);
  for (std::size_t node = leaves_ - 1; node > 0; --node) {
    const Summary& a = tree_[2 * node];
    const Summary& b = tree_[2 * node + 1];
    tree_[node] = {std::max(a.priority, b.priority), std::min(a.least_end, b.least_end),
                   std::max(a.greatest_end, b.greatest_end)};
  }
}

void Skyline::summarize(std::size_t block) {
  Summary summary{kGone, std::numeric_limits<std::int32_t>::max(), -1};
  const std::size_t to = std::min(body_.size(), (block + 1) * kBlock);
  for (std::size_t k = block * kBlock; k < to; ++k) {
    if (priority_[k] == kGone) continue;
    summary.priority = std::max(summary.priority, priority_[k]);
    summary.least_end = std::min(summary.least_end, end_[k]);
    summary.greatest_end = std::max(summary.greatest_end, end_[k]);
  }
  tree_[leaves_ + block] = summary;
}

void Skyline::set_priority(std::uint32_t item, float priority) {
  priority_[item] = priority;
  const std::size_t block = item / kBlock;
  summarize(block);
  for (std::size_t node = (leaves_ + block) / 2; node > 0; node /= 2) {
    const Summary& a = tree_[2 * node];
    const Summary& b = tree_[2 * node + 1];
    const Summary now{std::max(a.priority, b.priority), std::min(a.least_end, b.least_end),
                      std::max(a.greatest_end, b.greatest_end)};
    Summary& old = tree_[node];
    if (old.priority == now.priority && old.least_end == now.least_end &&
        old.greatest_end == now.greatest_end)
      break;
    old = now;
  }
}

// What a body loses for the sections it leaves free at both sides of the valley. In whole numbers, so
// that the same body is picked on every machine.
float Skyline::looseness(std::int32_t left, std::int32_t right) const {
  const auto octaves = [&](std::int32_t free) {
    return log2_in_256ths(loose_from_ + static_cast<std::uint32_t>(free)) - loose_octaves_;
  };
  return static_cast<float>((octaves(left) + octaves(right)) * kLoosePerOctave / 256);
}

void Skyline::search_block(Query& query, std::size_t block) {
  const std::size_t from = std::max<std::size_t>(query.from, block * kBlock);
  const std::size_t to = std::min<std::size_t>(query.to, (block + 1) * kBlock);
  work_ += 4;
  for (std::size_t k = from; k < to; ++k) {
    if (priority_[k] <= query.best || end_[k] > query.within || end_[k] <= query.beyond) continue;
    float score = priority_[k];
    if (rules_.snug)
      score -= looseness(model_.bodies[body_[k]].first - query.begin, query.within - end_[k]);
    if (score <= query.best) continue;
    query.best = score;
    query.pick = static_cast<std::int32_t>(k);
  }
}

// Starts at the lowest node above the whole range of items.
void Skyline::search(Query& query) {
  if (query.from >= query.to) return;
  const std::size_t first = leaves_ + query.from / kBlock;
  const std::size_t last = leaves_ + (query.to - 1) / kBlock;
  const int up = std::bit_width(first ^ last);
  const std::size_t node = first >> up;
  const std::size_t width = kBlock << up;
  const std::size_t low = query.from / width * width;
  search(query, node, low, low + width);
}

void Skyline::search(Query& query, std::size_t node, std::size_t low, std::size_t high) {
  const Summary& summary = tree_[node];
  if (low >= query.to || high <= query.from || summary.least_end > query.within ||
      summary.greatest_end <= query.beyond || summary.priority <= query.best)
    return;
  ++work_;
  if (node >= leaves_) return search_block(query, node - leaves_);
  const std::size_t middle = low + (high - low) / 2;
  if (tree_[2 * node].priority > tree_[2 * node + 1].priority) {
    search(query, 2 * node, low, middle);
    search(query, 2 * node + 1, middle, high);
  } else {
    search(query, 2 * node + 1, middle, high);
    search(query, 2 * node, low, middle);
  }
}

std::int32_t Skyline::pick(std::int32_t x, std::int32_t y) {
  Query query{first_item_[static_cast<std::size_t>(x)], 0, x, -1, y, kGone, -1};
  if (rules_.guided) {
    const std::int32_t s = tightest(x, y);
    query.to = first_item_[static_cast<std::size_t>(s) + 1];
    query.beyond = s;
    search(query);
    if (query.pick >= 0) return query.pick;
    query.beyond = -1;
  }
  query.to = first_item_[static_cast<std::size_t>(y)];
  search(query);
  return query.pick;
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
    auto at = std::partition_point(obstacles_.begin() + next_obstacle_[block], end, [&](auto k) {
      return model_.bodies[fixed_[k]].fixed <= above;
    });
    for (work_ += 4; at != end; ++at, ++work_) {
      const Body& fixed = model_.bodies[fixed_[*at]];
      if (fixed.fixed >= below) break;
      if (fixed.first < last && first < fixed.last) below = fixed.fixed;
    }
  }
  return below;
}

// Obstacles that the lowest segment has reached become part of the skyline. Boxes of fixed bodies may
// overlap each other; then one lands piece by piece.
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
  std::vector<std::pair<std::uint32_t, float>> parked;
  std::int32_t clear = -1;
  while (clear < 0 && parked.size() < kPicks) {
    const std::int32_t item = pick(x, y);
    if (item < 0) break;
    const auto k = static_cast<std::size_t>(item);
    const Body& body = model_.bodies[body_[k]];
    const std::int64_t top = model_.lift(body_[k], height) + body.height;
    if (lowest_obstacle(body.first, body.last, height, top) == top) {
      clear = item;
    } else {
      parked.emplace_back(static_cast<std::uint32_t>(item), priority_[k]);
      set_priority(static_cast<std::uint32_t>(item), kGone);
    }
  }
  for (const auto& [item, priority] : parked) set_priority(item, priority);
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
    lowest = std::min(lowest, height_[static_cast<std::size_t>(segment_begin_[static_cast<std::size_t>(x)])]);
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
  if (rules_.guided) add_slack(x, end, height - up);
  height_[static_cast<std::size_t>(x)] = -1;
  if (right_height == up) {
    height_[static_cast<std::size_t>(end)] = -1;
    end = segment_end_[static_cast<std::size_t>(end)];
  }
  if (left_height == up) begin = left;
  set_segment(begin, end, up);
  return begin;
}

std::int32_t Skyline::cover(std::int32_t x, std::int32_t first, std::int32_t last, std::int64_t top) {
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

bool Skyline::pass(std::span<const float> priority, PassRules rules, std::vector<std::int64_t>& places,
                   Budget* budget) {
  rules_ = rules;
  places.assign(model_.bodies.size(), 0);
  work_ = static_cast<std::int64_t>(model_.bodies.size()) * 4;
  for (const std::uint32_t f : fixed_) places[f] = model_.bodies[f].fixed;
  if (body_.empty()) return true;
  landed_.assign(fixed_.size(), 0);
  next_obstacle_.assign(obstacles_of_.begin(), obstacles_of_.end());
  load_items(priority);
  start_segments();
  if (rules.guided) build_slack();
  std::int64_t paid = 0;
  std::int32_t x = 0;
  for (std::size_t left = body_.size(); left > 0;) {
    if (const std::int32_t lower = lower_neighbour(x); lower >= 0) {
      x = lower;
      continue;
    }
    if (budget && work_ - paid > kWorkPerPayment) {
      if (!budget->spend(work_ - paid)) return false;
      paid = work_;
    }
    left -= serve(x, places);
  }
  if (budget) budget->spend(work_ - paid);
  return true;
}

bool Skyline::serve(std::int32_t& x, std::vector<std::int64_t>& places) {
  const std::int64_t height = height_[static_cast<std::size_t>(x)];
  const std::int32_t y = segment_end_[static_cast<std::size_t>(x)];
  work_ += 40;
  if (!fixed_.empty() && land(x, y, height)) return false;
  if (rules_.level && lowest_neighbour_height(x) - height <= level_) {
    x = raise(x);
    return false;
  }
  const std::int32_t item = fixed_.empty() ? pick(x, y) : pick_clear(x, y, height);
  if (item < 0) {
    x = raise(x);
    return false;
  }
  const std::uint32_t b = body_[static_cast<std::size_t>(item)];
  const Body& body = model_.bodies[b];
  const std::int64_t place = model_.lift(b, height);
  set_priority(static_cast<std::uint32_t>(item), kGone);
  places[b] = place;
  if (rules_.guided && place > height) add_slack(body.first, body.last, height - place);
  x = cover(x, body.first, body.last, place + body.height);
  return true;
}

void Skyline::build_slack() {
  slack_leaves_ = static_cast<std::int32_t>(std::bit_ceil(static_cast<std::uint32_t>(model_.sections)));
  const auto leaves = static_cast<std::size_t>(slack_leaves_);
  slack_.assign(2 * leaves, kLargest);
  slack_add_.assign(2 * leaves, 0);
  for (std::size_t s = 0; s < load_.size(); ++s) slack_[leaves + s] = -load_[s];
  for (std::size_t k = leaves - 1; k > 0; --k) slack_[k] = std::min(slack_[2 * k], slack_[2 * k + 1]);
}

// The lowest node above sections [from, to) and the sections it stands for.
Skyline::SlackNode Skyline::slack_node(std::int32_t from, std::int32_t to) const {
  const auto first = static_cast<std::uint32_t>(slack_leaves_ + from);
  const auto last = static_cast<std::uint32_t>(slack_leaves_ + to - 1);
  const int up = std::bit_width(first ^ last);
  const std::int32_t width = 1 << up;
  const std::int32_t low = from / width * width;
  return {first >> up, low, low + width};
}

void Skyline::add_slack(std::int32_t from, std::int32_t to, std::int64_t amount) {
  const SlackNode top = slack_node(from, to);
  add_slack(top.node, top.low, top.high, from, to, amount);
  for (std::size_t node = top.node / 2; node > 0; node /= 2) {
    const std::int64_t least = std::min(slack_[2 * node], slack_[2 * node + 1]) + slack_add_[node];
    if (least == slack_[node]) break;
    slack_[node] = least;
    ++work_;
  }
}

void Skyline::add_slack(std::size_t node, std::int32_t low, std::int32_t high, std::int32_t from,
                        std::int32_t to, std::int64_t amount) {
  if (to <= low || high <= from) return;
  ++work_;
  if (from <= low && high <= to) {
    slack_[node] += amount;
    slack_add_[node] += amount;
    return;
  }
  const std::int32_t middle = low + (high - low) / 2;
  add_slack(2 * node, low, middle, from, to, amount);
  add_slack(2 * node + 1, middle, high, from, to, amount);
  slack_[node] = std::min(slack_[2 * node], slack_[2 * node + 1]) + slack_add_[node];
}

// What is added above the node is the same for all sections in question and can be left out.
std::int32_t Skyline::tightest(std::int32_t from, std::int32_t to) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::int32_t where = from;
  const SlackNode top = slack_node(from, to);
  tightest(top.node, top.low, top.high, from, to, 0, least, where);
  return where;
}

void Skyline::tightest(std::size_t node, std::int32_t low, std::int32_t high, std::int32_t from,
                       std::int32_t to, std::int64_t sum, std::int64_t& least,
                       std::int32_t& where) {
  if (to <= low || high <= from || slack_[node] + sum >= least) return;
  ++work_;
  if (from <= low && high <= to) {
    least = slack_[node] + sum;
    while (node < static_cast<std::size_t>(slack_leaves_)) {
      node = slack_[2 * node] <= slack_[2 * node + 1] ? 2 * node : 2 * node + 1;
    }
    where = static_cast<std::int32_t>(node) - slack_leaves_;
    return;
  }
  const std::int32_t middle = low + (high - low) / 2;
  tightest(2 * node, low, middle, from, to, sum + slack_add_[node], least, where);
  tightest(2 * node + 1, middle, high, from, to, sum + slack_add_[node], least, where);
}

}  // namespace plimsoll::pack

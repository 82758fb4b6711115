#include "plimsoll/plan/memories/choose_placement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "plimsoll/base/random.h"

namespace plimsoll::plan {
namespace {

// Work of the search: so many touches and steps are looked at in all.
constexpr std::int64_t kLooks = 12'000'000;
constexpr std::int64_t kFewestMoves = 500;
constexpr double kHeat = 0.002;  // of the step's time; falls to 0 as (1 - progress)²
constexpr double kDear = 20;     // what being over the capacity by all of it costs, in steps
constexpr double kWhole = 0.35;  // chance that a move is of all touches of a buffer
constexpr double kRest = 0.15;   // chance that it is of a rest between two touches
constexpr double kPair = 0.4;    // chance that a second buffer moves too
constexpr std::int32_t kNoUse = std::numeric_limits<std::int32_t>::max();

// Walks along the steps once for every level, the fastest first.
class GreedyWalk {
 public:
  GreedyWalk(const PlacementModel& model, std::vector<std::int64_t> capacity)
      : model_(model), capacity_(std::move(capacity)), out_(model.all_home()) {}

  Placement run() {
    for (std::uint8_t level = 1; level <= model_.levels(); ++level) walk(level);
    return std::move(out_);
  }

 private:
  struct Inside {
    std::int32_t buffer = 0;
    std::int32_t since = 0;  // touch
  };

  void walk(std::uint8_t level) {
    begins_ = model_.starts(out_);
    inside_.clear();
    used_ = 0;
    in_free_ = 0;
    const auto& steps = model_.traffic().steps;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const auto now = static_cast<std::int32_t>(s);
      // What is needed here is not a candidate to leave.
      for (const auto& [buffer, which] : steps[s].touches) enter(level, now, buffer, which);
      leave_when_over(now);
    }
  }

  void enter(std::uint8_t level, std::int32_t now, std::int32_t buffer, std::int32_t which) {
    const BufferTraffic& traffic = model_.traffic().buffers[as_index(buffer)];
    const std::int64_t bytes = model_.bytes(as_index(buffer));
    if (!traffic.movable || out_.level[as_index(buffer)][as_index(which)] != 0 || bytes == 0)
      return;
    const auto found = std::find_if(inside_.begin(), inside_.end(),
                                    [&](const Inside& in) { return in.buffer == buffer; });
    if (found != inside_.end()) {
      out_.level[as_index(buffer)][as_index(which)] = level;
      return;
    }
    const bool made = which == 0 && !traffic.source;
    const std::int32_t next = next_use(buffer, which);
    if (!made && !in_time(level, now, buffer, which)) return;
    if (made && next == kNoUse && !model_.must_leave(as_index(buffer))) return;
    if (!make_room(level, now, bytes, next, buffer)) return;
    used_ += bytes;
    inside_.push_back({buffer, which});
    out_.level[as_index(buffer)][as_index(which)] = level;
    if (!made) in_free_ = std::max(in_free_, earliest_) + copy_seconds(level, buffer);
  }

  double copy_seconds(std::uint8_t level, std::int32_t buffer) const {
    Window window;
    window.buffer = buffer;
    window.level = level;
    return model_.copy_seconds(window, false);
  }

  // Whether a copy that begins after the touch before can end when the step begins.
  bool in_time(std::uint8_t level, std::int32_t now, std::int32_t buffer, std::int32_t which) {
    const auto& touches = model_.traffic().buffers[as_index(buffer)].touches;
    earliest_ = which == 0 ? 0 : begins_[as_index(touches[as_index(which - 1)].step) + 1];
    return std::max(earliest_, in_free_) + copy_seconds(level, buffer) <= begins_[as_index(now)];
  }

  std::int32_t next_use(std::int32_t buffer, std::int32_t which) const {
    const auto& touches = model_.traffic().buffers[as_index(buffer)].touches;
    return as_index(which) + 1 < touches.size() ? touches[as_index(which) + 1].step : kNoUse;
  }

  bool make_room(std::uint8_t level, std::int32_t now, std::int64_t bytes, std::int32_t next,
                 std::int32_t own) {
    const std::int64_t room = capacity_[level - 1U];
    if (bytes > room) return false;
    while (used_ + bytes > room) {
      std::optional<std::size_t> idlest;
      std::int32_t furthest = -1;
      for (std::size_t i = 0; i < inside_.size(); ++i) {
        const std::int32_t use = use_after(inside_[i].buffer, now);
        if (inside_[i].buffer == own || use == now || use <= furthest) continue;
        furthest = use;
        idlest = i;
      }
      if (!idlest || furthest < next) return false;
      remove(*idlest, now);
    }
    return true;
  }

  // The first touch at or after a step.
  std::int32_t use_after(std::int32_t buffer, std::int32_t now) const {
    const auto& touches = model_.traffic().buffers[as_index(buffer)].touches;
    const auto found =
        std::lower_bound(touches.begin(), touches.end(), now,
                         [](const Touch& touch, std::int32_t step) { return touch.step < step; });
    return found == touches.end() ? kNoUse : found->step;
  }

  void remove(std::size_t i, std::int32_t now) {
    const std::int32_t buffer = inside_[i].buffer;
    const auto& touches = model_.traffic().buffers[as_index(buffer)].touches;
    // It may come back: the window ends behind the last touch so far.
    for (std::size_t t = touches.size(); t-- > 0;) {
      if (touches[t].step >= now) continue;
      out_.rest[as_index(buffer)][t] = 1;
      break;
    }
    used_ -= model_.bytes(as_index(buffer));
    inside_.erase(inside_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  void leave_when_over(std::int32_t now) {
    for (std::size_t i = inside_.size(); i-- > 0;) {
      if (use_after(inside_[i].buffer, now + 1) == kNoUse) {
        used_ -= model_.bytes(as_index(inside_[i].buffer));
        inside_.erase(inside_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  }

  const PlacementModel& model_;
  std::vector<std::int64_t> capacity_;
  Placement out_;
  std::vector<double> begins_;
  std::vector<Inside> inside_;
  std::int64_t used_ = 0;
  double in_free_ = 0;
  double earliest_ = 0;
};

class PlacementSearch {
 public:
  PlacementSearch(const PlacementModel& model, const std::vector<std::int64_t>& capacity,
                  Placement start, std::uint64_t seed, std::int64_t most_moves)
      : model_(model),
        capacity_(capacity),
        now_(std::move(start)),
        random_(seed),
        most_moves_(most_moves) {
    std::int64_t touches = 0;
    for (std::size_t b = 0; b < model.traffic().buffers.size(); ++b) {
      const BufferTraffic& buffer = model.traffic().buffers[b];
      touches += std::ssize(buffer.touches);
      if (buffer.movable && !buffer.touches.empty() && model.bytes(b) > 0 && !model.must_leave(b))
        movable_.push_back(b);
    }
    looks_ = touches + std::ssize(model.traffic().steps) + 1;
    for (const std::int64_t bytes : capacity) all_ += bytes;
  }

  Placement run() {
    score_ = best_score_ = score(now_);
    best_ = now_;
    if (movable_.empty()) return now_;
    const std::int64_t moves = std::min(most_moves_, std::max(kLooks / looks_, kFewestMoves));
    const double heat = kHeat * score_;
    for (std::int64_t i = 0; i < moves; ++i) {
      const double cold = 1 - static_cast<double>(i) / static_cast<double>(moves);
      step(heat * cold * cold);
    }
    return best_;
  }

 private:
  double score(const Placement& placement) const {
    const Evaluated found = model_.evaluate(placement, capacity_);
    const double over = static_cast<double>(found.over_bytes) / static_cast<double>(all_ + 1);
    return found.seconds * (1 + kDear * over);
  }

  void step(double heat) {
    undo_.clear();
    change();
    if (random_.chance(kPair)) change();
    const double next = score(now_);
    if (next <= score_ - heat * std::log(1 - random_.uniform())) {
      score_ = next;
      if (score_ < best_score_ && model_.evaluate(now_, capacity_).over_bytes == 0) {
        best_score_ = score_;
        best_ = now_;
      }
      return;
    }
    for (auto it = undo_.rbegin(); it != undo_.rend(); ++it) {
      now_.level[it->buffer] = std::move(it->level);
      now_.rest[it->buffer] = std::move(it->rest);
    }
  }

  void change() {
    const std::size_t b = movable_[below(movable_.size())];
    undo_.push_back({b, now_.level[b], now_.rest[b]});
    auto& level = now_.level[b];
    const std::size_t first = below(level.size());
    if (level.size() > 1 && random_.chance(kRest)) {
      now_.rest[b][first] ^= 1;
      return;
    }
    const bool whole = random_.chance(kWhole);
    const std::size_t begin = whole ? 0 : first;
    const std::size_t end = whole ? level.size() : first + 1 + below(level.size() - first);
    auto other = static_cast<std::uint8_t>(below(model_.levels()));
    if (other >= level[first]) ++other;
    std::fill(level.begin() + static_cast<std::ptrdiff_t>(begin),
              level.begin() + static_cast<std::ptrdiff_t>(end), other);
    if (whole) std::fill(now_.rest[b].begin(), now_.rest[b].end(), std::uint8_t{0});
  }

  std::size_t below(std::size_t size) {
    return static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(size)));
  }

  struct Undo {
    std::size_t buffer;
    std::vector<std::uint8_t> level, rest;
  };

  const PlacementModel& model_;
  const std::vector<std::int64_t>& capacity_;
  Placement now_, best_;
  Random random_;
  std::int64_t most_moves_;
  std::vector<std::size_t> movable_;
  std::vector<Undo> undo_;
  std::int64_t looks_ = 1, all_ = 0;
  double score_ = 0, best_score_ = 0;
};

}  // namespace

std::string_view name(PlacementChoice choice) {
  switch (choice) {
    case PlacementChoice::kHome:
      return "home";
    case PlacementChoice::kGreedy:
      return "greedy";
    case PlacementChoice::kSearch:
      return "search";
  }
  return "unknown";
}

Placement greedy_placement(const PlacementModel& model, const std::vector<std::int64_t>& capacity) {
  return GreedyWalk(model, capacity).run();
}

Placement search_placement(const PlacementModel& model, const std::vector<std::int64_t>& capacity,
                           Placement start, std::uint64_t seed, std::int64_t most_moves) {
  return PlacementSearch(model, capacity, std::move(start), seed, most_moves).run();
}

}  // namespace plimsoll::plan

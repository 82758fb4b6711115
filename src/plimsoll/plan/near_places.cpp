#include "plimsoll/plan/near_places.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <string_view>

#include "plimsoll/base/checked.h"

namespace plimsoll::plan {
namespace {

class NearPlaces {
 public:
  NearPlaces(std::vector<PlanBuffer>& buffers, const Plan& other, Bytes alignment)
      : buffers_(buffers), alignment_(alignment), top_(other.arena_bytes()) {
    std::map<std::string_view, std::deque<const PlanBuffer*>> named;
    for (const PlanBuffer& buffer : other.buffers) named[buffer.name].push_back(&buffer);
    for (const PlanBuffer& buffer : buffers_) {
      auto& images = named[buffer.name];
      images_.push_back(images.empty() ? nullptr : images.front());
      if (!images.empty()) images.pop_front();
    }
  }

  bool run() {
    std::vector<std::size_t> order(buffers_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const bool stays = is_state(buffers_[a]);
      return stays != is_state(buffers_[b]) ? stays : buffers_[a].bytes > buffers_[b].bytes;
    });
    const auto way_in = [&](Way way) { return in_order(order, way); };
    return way_in(Way::kNamesFirst) || way_in(Way::kInTurn) || way_in(Way::kGapsOnly);
  }

 private:
  // Whoever finds the buffer of its name free goes there before the others look for gaps; each in
  // turn goes there or into a gap; or only what lives from step to step goes there.
  enum class Way { kNamesFirst, kInTurn, kGapsOnly };

  bool in_order(const std::vector<std::size_t>& order, Way way) {
    placed_.clear();
    std::vector<std::size_t> moved;
    for (const std::size_t b : order) {
      const bool there = (way != Way::kGapsOnly || is_state(buffers_[b])) &&
                         images_[b] != nullptr && fits(b, images_[b]->offset);
      if (there) {
        place(b, images_[b]->offset);
      } else if (way == Way::kNamesFirst && !is_state(buffers_[b])) {
        moved.push_back(b);
      } else if (is_state(buffers_[b]) || !into_a_gap(b)) {
        return false;
      }
    }
    return std::all_of(moved.begin(), moved.end(), [&](std::size_t b) { return into_a_gap(b); });
  }

  static bool is_state(const PlanBuffer& buffer) {
    return buffer.use == Use::kWeight || buffer.use == Use::kOptimizer;
  }

  bool meet(std::size_t a, std::size_t b) const {
    return buffers_[a].lifetime.begin < buffers_[b].lifetime.end &&
           buffers_[b].lifetime.begin < buffers_[a].lifetime.end;
  }

  bool fits(std::size_t b, Offset at) const {
    const Offset end = at + buffers_[b].bytes;
    if (end > Offset(0) + top_) return false;
    return std::none_of(placed_.begin(), placed_.end(), [&](std::size_t other) {
      return at < buffers_[other].offset + buffers_[other].bytes && buffers_[other].offset < end &&
             meet(b, other);
    });
  }

  void place(std::size_t b, Offset at) {
    buffers_[b].offset = at;
    placed_.push_back(b);
  }

  // The lowest place that is free as long as the buffer lives.
  bool into_a_gap(std::size_t b) {
    std::vector<std::size_t> beside;
    for (const std::size_t other : placed_) {
      if (meet(b, other)) beside.push_back(other);
    }
    std::sort(beside.begin(), beside.end(), [&](std::size_t x, std::size_t y) {
      return buffers_[x].offset < buffers_[y].offset;
    });
    Offset at(0);
    for (const std::size_t other : beside) {
      if (at + buffers_[b].bytes <= buffers_[other].offset) break;
      const Offset end = buffers_[other].offset + buffers_[other].bytes;
      at = std::max(at, Offset(round_up(end.value, alignment_.value)));
    }
    if (at + buffers_[b].bytes > Offset(0) + top_) return false;
    place(b, at);
    return true;
  }

  std::vector<PlanBuffer>& buffers_;
  Bytes alignment_;
  Bytes top_;
  std::vector<const PlanBuffer*> images_;  // by buffer: the one of its name in the other plan
  std::vector<std::size_t> placed_;
};

}  // namespace

bool take_near_places(std::vector<PlanBuffer>& buffers, const Plan& other, Bytes alignment) {
  return NearPlaces(buffers, other, alignment).run();
}

}  // namespace plimsoll::plan

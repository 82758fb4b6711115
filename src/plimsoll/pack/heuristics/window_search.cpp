#include "plimsoll/pack/heuristics/window_search.h"

#include <algorithm>
#include <memory>

#include "plimsoll/base/random.h"
#include "plimsoll/pack/heuristics/order.h"

namespace plimsoll::pack {
namespace {

constexpr double kWidthWeights[] = {1.5, 1, 2, 1.25, 0.75, 4};
constexpr double kNoise = 0.05;
constexpr std::size_t kMostIdle = 24;  // passes over one window without a gain
constexpr std::size_t kMostShare = 3;  // a window holds at most 1/3 of the bodies

using Range = Interval<std::int32_t>;

// One window: its bodies as a model of their own.
class Window {
 public:
  Window(const BodyModel& model, Range sections, std::span<const std::uint32_t> touching,
         std::span<const std::int64_t> places)
      : sections_(sections), bodies_(touching.begin(), touching.end()) {
    stage_.problem = model.problem;
    stage_.unit = model.unit;
    stage_.slab = model.slab;
    stage_.sections = sections.end - sections.begin;
    for (const std::uint32_t b : touching) {
      Body body = model.bodies[b];
      if (body.first < sections.begin || body.last > sections.end) body.fixed = places[b];
      body.first = std::max(body.first, sections.begin) - sections.begin;
      body.last = std::min(body.last, sections.end) - sections.begin;
      stage_.bodies.push_back(body);
      now_.push_back(places[b]);
    }
    best_height_ = height();
    skyline_ = std::make_unique<Skyline>(stage_);
  }

  bool holds(Range span) const {
    return sections_.begin <= span.begin && span.end <= sections_.end;
  }
  bool meets(Range other) const {
    return sections_.begin < other.end && other.begin < sections_.end;
  }
  bool exhausted() const { return idle_ >= kMostIdle; }

  // One pass; true when the window came out lower than ever, with its places written back.
  bool step(PassRules rules, Random& random, Budget& budget, std::vector<std::int64_t>& places) {
    std::vector<float> priority =
        weighted_priorities(stage_, kWidthWeights[passes_ % std::size(kWidthWeights)]);
    for (float& value : priority)
      value *= static_cast<float>(1 + kNoise * (random.uniform() - 0.5));
    ++passes_;
    ++idle_;
    if (!skyline_->pass(priority, rules, now_, &budget) || height() >= best_height_) return false;
    best_height_ = height();
    idle_ = 0;
    for (std::size_t k = 0; k < now_.size(); ++k) places[bodies_[k]] = now_[k];
    return true;
  }

 private:
  // Of the bodies that are free to move.
  std::int64_t height() const {
    std::int64_t most = 0;
    for (std::size_t k = 0; k < now_.size(); ++k) {
      if (stage_.bodies[k].fixed < 0) most = std::max(most, stage_.top_bytes(k, now_[k]));
    }
    return most;
  }

  Range sections_;
  std::vector<std::uint32_t> bodies_;
  BodyModel stage_;
  std::unique_ptr<Skyline> skyline_;
  std::vector<std::int64_t> now_;  // places of the last pass
  std::int64_t best_height_ = 0;
  std::size_t passes_ = 0;
  std::size_t idle_ = 0;  // of them, since the last gain
};

class WindowSearch {
 public:
  WindowSearch(const BodyModel& model, const WindowOptions& options, Budget& budget,
               std::vector<std::int64_t>& places)
      : model_(model),
        options_(options),
        budget_(budget),
        places_(places),
        random_(options.seed),
        load_(loads(model)) {}

  bool run() {
    bool better = false;
    while (!budget_.over()) {
      const std::uint32_t top = highest();
      budget_.spend(static_cast<std::int64_t>(model_.bodies.size()));
      if (model_.top_bytes(top, places_[top]) <= options_.target) break;
      Window* window = window_at(top);
      if (!window || window->exhausted()) break;
      better = window->step(options_.rules, random_, budget_, places_) || better;
    }
    return better;
  }

 private:
  std::uint32_t highest() const {
    std::uint32_t top = 0;
    for (std::uint32_t b = 1; b < places_.size(); ++b) {
      if (model_.top_bytes(b, places_[b]) > model_.top_bytes(top, places_[top])) top = b;
    }
    return top;
  }

  // The window in which the body is free to move; null when there is none.
  Window* window_at(std::uint32_t body) {
    const Range span{model_.bodies[body].first, model_.bodies[body].last};
    for (const auto& window : windows_) {
      if (window->holds(span)) return window.get();
    }
    const Range sections = cut_around(span);
    std::vector<std::uint32_t> touching;
    for (std::uint32_t b = 0; b < model_.bodies.size(); ++b) {
      if (model_.bodies[b].first < sections.end && sections.begin < model_.bodies[b].last)
        touching.push_back(b);
    }
    budget_.spend(static_cast<std::int64_t>(model_.bodies.size()) * 2);
    if (touching.size() > model_.bodies.size() / kMostShare) return nullptr;
    std::erase_if(windows_, [&](const auto& window) { return window->meets(sections); });
    windows_.push_back(std::make_unique<Window>(model_, sections, touching, places_));
    return windows_.back().get();
  }

  Range cut_around(Range span) const {
    Range hull = span;
    for (const Body& body : model_.bodies) {
      if (body.first >= span.end || body.last <= span.begin) continue;
      hull.begin = std::min(hull.begin, body.first);
      hull.end = std::max(hull.end, body.last);
    }
    const std::int32_t left = span.begin - hull.begin;
    const std::int32_t right = hull.end - span.end;
    return {quietest({hull.begin - 2 * left, hull.begin - left}),
            quietest({hull.end + right, hull.end + 2 * right})};
  }
  // The section of least load; the ends of time are quieter than anything.
  std::int32_t quietest(Range range) const {
    if (range.begin <= 0) return 0;
    if (range.end >= model_.sections) return model_.sections;
    const auto at = std::min_element(load_.begin() + range.begin, load_.begin() + range.end);
    return static_cast<std::int32_t>(at - load_.begin());
  }

  const BodyModel& model_;
  const WindowOptions options_;
  Budget& budget_;
  std::vector<std::int64_t>& places_;
  Random random_;
  std::vector<std::int64_t> load_;  // per section, units
  std::vector<std::unique_ptr<Window>> windows_;
};

}  // namespace

bool search_windows(const BodyModel& model, const WindowOptions& options, Budget& budget,
                    std::vector<std::int64_t>& places) {
  if (places.empty()) return false;
  return WindowSearch(model, options, budget, places).run();
}

}  // namespace plimsoll::pack

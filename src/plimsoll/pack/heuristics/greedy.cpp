#include "plimsoll/pack/heuristics/greedy.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "plimsoll/pack/model/pair_rules.h"

namespace plimsoll::pack {
namespace {

// The lowest (or tightest) place that avoids the forbidden ranges, sorted and disjoint.
std::int64_t choose_place(const BodyModel& model, std::size_t body, Fit fit,
                          std::span<const Forbidden> forbidden) {
  std::int64_t best = kLargest;
  std::int64_t best_room = kLargest;
  std::int64_t low = 0;
  const auto consider = [&](std::int64_t upper) {  // places in [low, upper]
    const std::int64_t place = model.lift(body, low);
    if (place > upper || place >= kLargest) return;
    if (fit == Fit::kFirst ? best == kLargest : upper - low < best_room) {
      best = place;
      best_room = upper - low;
    }
  };
  for (const Forbidden& range : forbidden) {
    if (range.begin >= low) consider(range.begin);
    low = std::max(low, range.end);
  }
  if (best == kLargest) consider(kLargest - 1);
  return best;
}

// Placed bodies by time: a body is kept at the topmost node of a balanced tree over the sections
// whose middle it covers, so the bodies of a node are alive together, and a query visits only nodes
// whose bodies reach into it.
class PlacedIndex {
 public:
  explicit PlacedIndex(const BodyModel& model) : model_(model) {
    width_ = std::bit_ceil(static_cast<std::uint32_t>(std::max(model.sections, 1)));
    nodes_.resize(2 * static_cast<std::size_t>(width_));
  }

  void insert(std::uint32_t b) {
    const Body& body = model_.bodies[b];
    std::size_t node = 1;
    for (std::uint32_t low = 0, size = width_;; size /= 2) {
      Node& here = nodes_[node];
      here.first = std::min(here.first, body.first);
      here.last = std::max(here.last, body.last);
      const auto middle = static_cast<std::int32_t>(low + size / 2);
      if (size == 1 || (body.first <= middle && middle < body.last)) {
        here.bodies.push_back(b);
        return;
      }
      const bool right = body.first > middle;
      if (right) low += size / 2;
      node = 2 * node + (right ? 1 : 0);
    }
  }

  // Calls visit(body) for every placed body alive in a section of [first, last).
  template <class Visit>
  std::int64_t each(std::int32_t first, std::int32_t last, const Visit& visit) const {
    return each(1, first, last, visit);
  }

 private:
  struct Node {
    std::int32_t first = std::numeric_limits<std::int32_t>::max();  // hull of all bodies below
    std::int32_t last = 0;
    std::vector<std::uint32_t> bodies;
  };

  template <class Visit>
  std::int64_t each(std::size_t node, std::int32_t first, std::int32_t last,
                    const Visit& visit) const {
    if (node >= nodes_.size()) return 0;
    const Node& here = nodes_[node];
    if (here.first >= last || here.last <= first) return 1;
    for (const std::uint32_t b : here.bodies) {
      const Body& body = model_.bodies[b];
      if (body.first < last && first < body.last) visit(b);
    }
    return static_cast<std::int64_t>(here.bodies.size()) + 1 + each(2 * node, first, last, visit) +
           each(2 * node + 1, first, last, visit);
  }

  const BodyModel& model_;
  std::uint32_t width_ = 1;
  std::vector<Node> nodes_;
};

// The highest top over any stretch of sections: range maximum, range "at least".
class Tops {
 public:
  explicit Tops(std::int32_t sections)
      : width_(static_cast<std::int32_t>(
            std::bit_ceil(static_cast<std::uint32_t>(std::max(sections, 1))))),
        most_(2 * static_cast<std::size_t>(width_), 0),
        whole_(most_.size(), 0) {}

  std::int64_t over(std::int32_t first, std::int32_t last) const {
    return over(1, 0, width_, first, last);
  }
  void raise(std::int32_t first, std::int32_t last, std::int64_t top) {
    raise(1, 0, width_, first, last, top);
  }

 private:
  std::int64_t over(std::size_t node, std::int32_t low, std::int32_t high, std::int32_t first,
                    std::int32_t last) const {
    if (last <= low || high <= first) return 0;
    if (first <= low && high <= last) return most_[node];
    const std::int32_t middle = low + (high - low) / 2;
    return std::max({whole_[node], over(2 * node, low, middle, first, last),
                     over(2 * node + 1, middle, high, first, last)});
  }
  void raise(std::size_t node, std::int32_t low, std::int32_t high, std::int32_t first,
             std::int32_t last, std::int64_t top) {
    if (last <= low || high <= first) return;
    most_[node] = std::max(most_[node], top);
    if (first <= low && high <= last) {
      whole_[node] = std::max(whole_[node], top);
      return;
    }
    const std::int32_t middle = low + (high - low) / 2;
    raise(2 * node, low, middle, first, last, top);
    raise(2 * node + 1, middle, high, first, last, top);
  }

  std::int32_t width_;
  std::vector<std::int64_t> most_;
  std::vector<std::int64_t> whole_;  // of what covers the whole node
};

// Without time to look for gaps: every body of `rest` above all that is alive with it.
bool stack_rest(const BodyModel& model, std::span<const std::uint32_t> order, std::size_t done,
                std::vector<std::int64_t>& places) {
  Tops tops(model.sections);
  bool fixed_back = false;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const Body& body = model.bodies[order[k]];
    std::int64_t& place = places[order[k]];
    if (body.fixed >= 0) {
      place = body.fixed;
      fixed_back = fixed_back || body.end == ArenaEnd::kBack;
    } else if (k >= done) {
      if (fixed_back && body.end == ArenaEnd::kFront) return false;
      place = model.lift(order[k], tops.over(body.first, body.last));
      if (place >= kLargest) return false;
    }
    tops.raise(body.first, body.last, place + body.height);
  }
  return true;
}

}  // namespace

std::vector<std::uint32_t> greedy_order(const BodyModel& model, GreedyOrder order) {
  std::vector<std::uint32_t> out(model.bodies.size());
  std::iota(out.begin(), out.end(), 0u);
  const auto key = [&](std::uint32_t b) {
    const Body& body = model.bodies[b];
    const auto size = static_cast<double>(body.height);
    std::pair<double, double> value{0, 0};
    switch (order) {
      case GreedyOrder::kSize:
        value = {-size, -body.duration};
        break;
      case GreedyOrder::kLifetime:
        value = {-body.duration, -size};
        break;
      case GreedyOrder::kArea:
        value = {-size * body.duration, 0};
        break;
      case GreedyOrder::kBirth:
        value = {body.first, -size};
        break;
      case GreedyOrder::kGiven:
        break;
      case GreedyOrder::kHint:
        value = {body.hint >= 0 ? static_cast<double>(body.hint) : 1e300, -size};
        break;
    }
    const int rank = body.fixed >= 0 ? 0 : body.end == ArenaEnd::kBack ? 2 : 1;
    return std::tuple(rank, value.first, value.second, b);
  };
  std::sort(out.begin(), out.end(), [&](auto a, auto b) { return key(a) < key(b); });
  return out;
}

std::optional<std::vector<std::int64_t>> place_greedily(const BodyModel& model,
                                                        std::span<const std::uint32_t> order,
                                                        Fit fit, Budget& budget) {
  std::vector<std::int64_t> places(model.bodies.size(), 0);
  PlacedIndex placed(model);
  std::vector<Forbidden> forbidden;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const std::uint32_t b = order[k];
    const Body& body = model.bodies[b];
    forbidden.clear();
    const std::int64_t visited = placed.each(body.first, body.last, [&](std::uint32_t other) {
      const std::size_t before = forbidden.size();
      append_forbidden(model, other, b, forbidden);
      for (std::size_t i = before; i < forbidden.size(); ++i) {
        forbidden[i].begin += places[other];
        forbidden[i].end += places[other];
      }
    });
    merge_forbidden(forbidden);
    if (body.fixed >= 0) {
      places[b] = body.fixed;
      for (const Forbidden& range : forbidden) {
        if (range.begin < places[b] && places[b] < range.end) return std::nullopt;
      }
    } else {
      places[b] = choose_place(model, b, fit, forbidden);
      if (places[b] >= kLargest) return std::nullopt;
    }
    placed.insert(b);
    const auto sorted = static_cast<std::int64_t>(forbidden.size());
    if (!budget.spend(visited + 4 * sorted + 20)) {
      if (!stack_rest(model, order, k + 1, places)) return std::nullopt;
      break;
    }
  }
  return places;
}

}  // namespace plimsoll::pack

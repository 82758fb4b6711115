#include "plimsoll/pack/greedy.h"

#include <algorithm>
#include <numeric>

#include "plimsoll/pack/pair_rules.h"

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

}  // namespace

std::vector<std::uint32_t> greedy_order(const BodyModel& model, GreedyOrder order) {
  std::vector<std::uint32_t> out(model.bodies.size());
  std::iota(out.begin(), out.end(), 0u);
  const auto key = [&](std::uint32_t b) {
    const Body& body = model.bodies[b];
    const auto size = static_cast<double>(body.height);
    std::pair<double, double> value{0, 0};
    switch (order) {
      case GreedyOrder::kSize: value = {-size, -body.duration}; break;
      case GreedyOrder::kLifetime: value = {-body.duration, -size}; break;
      case GreedyOrder::kArea: value = {-size * body.duration, 0}; break;
      case GreedyOrder::kBirth: value = {body.first, -size}; break;
      case GreedyOrder::kGiven: break;
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
  std::vector<std::uint32_t> placed;
  std::vector<Forbidden> forbidden;
  for (const std::uint32_t b : order) {
    forbidden.clear();
    for (const std::uint32_t other : placed) {
      const std::size_t before = forbidden.size();
      append_forbidden(model, other, b, forbidden);
      for (std::size_t k = before; k < forbidden.size(); ++k) {
        forbidden[k].begin += places[other];
        forbidden[k].end += places[other];
      }
    }
    merge_forbidden(forbidden);
    if (model.bodies[b].fixed >= 0) {
      places[b] = model.bodies[b].fixed;
      for (const Forbidden& range : forbidden) {
        if (range.begin < places[b] && places[b] < range.end) return std::nullopt;
      }
    } else {
      places[b] = choose_place(model, b, fit, forbidden);
      if (places[b] >= kLargest) return std::nullopt;
    }
    if (!budget.spend(static_cast<std::int64_t>(placed.size()) + 20)) return std::nullopt;
    placed.push_back(b);
  }
  return places;
}

}  // namespace plimsoll::pack

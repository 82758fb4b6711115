#include "plimsoll/pack/exact/ordering_search.h"

#include <algorithm>

#include "plimsoll/pack/model/pair_rules.h"

namespace plimsoll::pack {
namespace {

class OrderingSearch {
 public:
  OrderingSearch(const BodyModel& model, std::int64_t capacity, Budget& budget)
      : model_(model), budget_(budget), n_(model.bodies.size()) {
    for (std::size_t a = 0; a < n_; ++a) {
      for (std::size_t b = a + 1; b < n_; ++b) {
        Pair pair{a, b, {}};
        append_forbidden(model, a, b, pair.forbidden);
        merge_forbidden(pair.forbidden);
        if (!pair.forbidden.empty()) pairs_.push_back(std::move(pair));
      }
    }
    for (std::size_t b = 0; b < n_; ++b) {
      const Body& body = model.bodies[b];
      low_.push_back(body.fixed >= 0 ? body.fixed : model.lift(b, 0));
      high_.push_back(model.ceiling(b, capacity));
      if (body.fixed >= 0) high_[b] = std::min(high_[b], body.fixed);
    }
  }

  CoverResult run(std::vector<std::int64_t>& places) {
    const CoverResult result = solve(low_, high_);
    if (result == CoverResult::kFound) places = found_;
    return result;
  }

 private:
  struct Pair {
    std::size_t a, b;
    std::vector<Forbidden> forbidden;  // of x_b - x_a
  };
  struct Edge {  // x_to >= x_from + distance
    std::size_t from, to;
    std::int64_t distance;
  };
  using Places = std::vector<std::int64_t>;

  bool raise(Places& low, const Edge& edge) const {
    const std::int64_t least = low[edge.from] + edge.distance;
    if (low[edge.to] >= least) return false;
    const bool fixed = model_.bodies[edge.to].fixed >= 0;
    low[edge.to] = fixed ? kLargest : model_.lift(edge.to, least);
    return true;
  }

  bool tighten(Places& low, Places& high) const {
    for (bool changed = true; changed;) {
      changed = false;
      for (const Edge& edge : edges_) {
        changed = raise(low, edge) || changed;
        if (low[edge.to] > high[edge.to]) return false;
        if (high[edge.from] > high[edge.to] - edge.distance) {
          high[edge.from] = high[edge.to] - edge.distance;
          if (low[edge.from] > high[edge.from]) return false;
          changed = true;
        }
      }
    }
    return true;
  }

  // The allowed ranges of x_b - x_a that the bounds leave possible.
  std::vector<Interval<std::int64_t>> choices(const Pair& pair, const Places& low,
                                              const Places& high) const {
    std::vector<Interval<std::int64_t>> out;
    const std::int64_t least = low[pair.b] - high[pair.a];
    const std::int64_t most = high[pair.b] - low[pair.a];
    std::int64_t from = -kLargest;
    for (std::size_t k = 0; k <= pair.forbidden.size(); ++k) {
      const std::int64_t to = k < pair.forbidden.size() ? pair.forbidden[k].begin : kLargest;
      if (from <= to && from <= most && to >= least) out.push_back({from, to});
      if (k < pair.forbidden.size()) from = pair.forbidden[k].end;
    }
    return out;
  }

  bool violated(const Pair& pair, const Places& low) const {
    const std::int64_t difference = low[pair.b] - low[pair.a];
    for (const Forbidden& range : pair.forbidden) {
      if (range.begin < difference && difference < range.end) return true;
    }
    return false;
  }

  CoverResult solve(Places low, Places high) {
    if (!budget_.spend(static_cast<std::int64_t>(pairs_.size() * 4 + edges_.size() * 4 + 20)))
      return CoverResult::kLimit;
    if (!tighten(low, high)) return CoverResult::kImpossible;
    for (std::size_t b = 0; b < n_; ++b) {
      if (low[b] > high[b]) return CoverResult::kImpossible;
    }
    const Pair* worst = nullptr;
    std::vector<Interval<std::int64_t>> ranges;
    for (const Pair& pair : pairs_) {
      if (!violated(pair, low)) continue;
      auto left = choices(pair, low, high);
      if (worst && left.size() >= ranges.size()) continue;
      worst = &pair;
      ranges = std::move(left);
      if (ranges.size() < 2) break;
    }
    if (!worst) {
      found_ = low;
      return CoverResult::kFound;
    }
    return branch(*worst, ranges, low, high);
  }

  CoverResult branch(const Pair& pair, std::vector<Interval<std::int64_t>>& ranges,
                     const Places& low, const Places& high) {
    // The larger body below first: it is the harder one to lift.
    if (model_.bodies[pair.a].height * (model_.bodies[pair.a].last - model_.bodies[pair.a].first) >
        model_.bodies[pair.b].height * (model_.bodies[pair.b].last - model_.bodies[pair.b].first))
      std::reverse(ranges.begin(), ranges.end());
    const std::size_t mark = edges_.size();
    for (const auto& range : ranges) {
      if (range.begin > -kLargest) edges_.push_back({pair.a, pair.b, range.begin});
      if (range.end < kLargest) edges_.push_back({pair.b, pair.a, -range.end});
      const CoverResult result = solve(low, high);
      edges_.resize(mark);
      if (result != CoverResult::kImpossible) return result;
    }
    return CoverResult::kImpossible;
  }

  const BodyModel& model_;
  Budget& budget_;
  const std::size_t n_;
  std::vector<Pair> pairs_;
  std::vector<Edge> edges_;
  Places low_;
  Places high_;
  Places found_;
};

}  // namespace

CoverResult search_orderings(const BodyModel& model, std::int64_t capacity, Budget& budget,
                             std::vector<std::int64_t>& places) {
  return OrderingSearch(model, capacity, budget).run(places);
}

}  // namespace plimsoll::pack

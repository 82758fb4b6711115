#include "plimsoll/pack/portfolio.h"

#include <algorithm>
#include <numeric>

#include "plimsoll/base/random.h"
#include "plimsoll/pack/bounds/bounds.h"
#include "plimsoll/pack/exact/ordering_search.h"
#include "plimsoll/pack/exact/part_search.h"
#include "plimsoll/pack/heuristics/greedy.h"
#include "plimsoll/pack/heuristics/order.h"
#include "plimsoll/pack/heuristics/peak_stack.h"
#include "plimsoll/pack/heuristics/skyline.h"
#include "plimsoll/pack/heuristics/two_ended.h"
#include "plimsoll/pack/heuristics/window_search.h"

namespace plimsoll::pack {
namespace {

constexpr std::size_t kExactBodies = 3000;  // larger parts stay with the skylines

class Portfolio {
 public:
  Portfolio(const BodyModel& model, std::optional<std::int64_t> capacity,
            const PackOptions& options, Budget& budget)
      : model_(model),
        capacity_(capacity),
        options_(options),
        budget_(budget),
        boxes_of_pieces_(model.plain ? BodyModel() : box_bodies(model)),
        boxed_(model.plain ? model : boxes_of_pieces_) {
    Bound bound = lower_bound(model);
    best_.lower_bound = bound.bytes;
    best_.witnesses = std::move(bound.witnesses);
    const bool fit = options.goal == Goal::kFit || (options.goal == Goal::kAuto && capacity);
    target_ = fit && capacity ? std::max(*capacity, bound.bytes) : bound.bytes;
    fit_ = fit && capacity.has_value();
  }

  Solution run() {
    if (model_.bodies.empty()) {
      best_.height = 0;
      best_.places.clear();
      best_.method = "nothing to place";
      return std::move(best_);
    }
    if (best_.lower_bound > kLargest) return std::move(best_);
    if (options_.method >= Method::kBySize) {
      run_greedy_method();
      return std::move(best_);
    }
    construct();
    if (options_.method == Method::kSkyline || capacity_refuted()) return std::move(best_);
    if (!model_.plain) improve_pieces();
    if (!good_enough() && boxes_are_free()) improve_parts();
    return std::move(best_);
  }

 private:
  bool good_enough() const { return best_.height <= std::max(target_, best_.lower_bound); }
  bool capacity_refuted() const { return capacity_ && best_.lower_bound > *capacity_; }
  // The boxes of bodies with arena ends are not free to lie anywhere.
  bool boxes_are_free() const { return model_.problem->ends.empty(); }

  void offer(std::vector<std::int64_t> places, std::string method) {
    const std::int64_t height = height_of(model_, places);
    if (height >= best_.height) return;
    best_.height = height;
    best_.places = std::move(places);
    best_.method = std::move(method);
  }

  std::vector<BufferId> buffers_of(std::span<const std::uint32_t> bodies) const {
    std::vector<BufferId> out;
    for (const std::uint32_t b : bodies) {
      for (const Piece& piece : model_.pieces_of(b)) out.push_back(BufferId(piece.buffer));
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }
  std::vector<BufferId> all_buffers() const {
    std::vector<std::uint32_t> bodies(model_.bodies.size());
    std::iota(bodies.begin(), bodies.end(), 0u);
    return buffers_of(bodies);
  }

  void try_greedy(GreedyOrder order, Fit fit, const char* method, Budget& budget) {
    if (auto places = place_greedily(model_, greedy_order(model_, order), fit, budget))
      offer(std::move(*places), method);
  }

  void run_greedy_method() {
    switch (options_.method) {
      case Method::kBySize:
        return try_greedy(GreedyOrder::kSize, Fit::kBest, "by-size", budget_);
      case Method::kByLifetime:
        return try_greedy(GreedyOrder::kLifetime, Fit::kBest, "by-lifetime", budget_);
      case Method::kByArea:
        return try_greedy(GreedyOrder::kArea, Fit::kBest, "by-area", budget_);
      case Method::kExecutionOrder:
        return try_greedy(GreedyOrder::kBirth, Fit::kBest, "execution-order", budget_);
      case Method::kFirstFit:
        return try_greedy(GreedyOrder::kSize, Fit::kFirst, "first-fit", budget_);
      default:
        return try_greedy(GreedyOrder::kGiven, Fit::kBest, "given-order", budget_);
    }
  }

  // Hints first, if there are any; then skylines until good enough.
  void construct() {
    const bool hinted = std::any_of(model_.bodies.begin(), model_.bodies.end(),
                                    [](const Body& body) { return body.hint >= 0; });
    if (hinted) offer_hints();
    if (good_enough()) return;
    if (!boxes_are_free()) return construct_two_ended();
    Skyline skyline(boxed_);
    if (!try_orders(skyline)) return;
    if (large() && options_.peak_stack) build_on_peak();
    if (good_enough()) return;
    if (options_.squeaky_wheel) squeak(skyline);
  }

  // One cheap pass is enough for most graphs; then the orders that do best without structure. False
  // when nothing more is to be done.
  bool try_orders(Skyline& skyline) {
    enum class Care : std::uint8_t { kNone, kGuided, kFull };
    constexpr std::pair<Order, Care> kPasses[] = {
        {Order::kArea, Care::kNone},      {Order::kAreaWidth, Care::kFull},
        {Order::kLongArea, Care::kFull},  {Order::kTotalWidth, Care::kGuided},
        {Order::kWidth, Care::kGuided},   {Order::kArea, Care::kGuided},
        {Order::kTotalArea, Care::kNone}, {Order::kSize, Care::kNone},
        {Order::kWidth, Care::kNone},     {Order::kTotalArea, Care::kGuided},
        {Order::kSize, Care::kGuided},    {Order::kTotalWidth, Care::kNone}};
    std::vector<std::int64_t> places;
    for (const auto& [order, care] : kPasses) {
      if (care == Care::kGuided && !options_.slack_guidance) continue;
      const bool first = best_.places.empty();  // is finished whatever the budget says
      if (good_enough() || (!first && budget_.over())) return false;
      const PassRules rules = care == Care::kFull ? full_care() : guided(care == Care::kGuided);
      if (!skyline.pass(priorities(boxed_, order), rules, places, first ? nullptr : &budget_))
        return false;
      if (first) budget_.spend(skyline.work());
      offer(places, std::string("skyline ") + name(order) + (care == Care::kNone ? "" : " guided"));
      if (care == Care::kFull && large()) repack_windows();
    }
    return !good_enough() && !budget_.over();
  }

  bool large() const { return boxed_.bodies.size() > kExactBodies; }
  static PassRules guided(bool on) { return {.guided = on, .snug = false, .level = false}; }
  PassRules full_care() const {
    return {options_.slack_guidance, options_.snug_fit, options_.levelling};
  }

  void repack_windows() {
    if (!options_.window_search) return;
    Budget part = budget_.share(0.7);
    std::vector<std::int64_t> places = best_.places;
    const WindowOptions how{std::max(target_, best_.lower_bound), full_care(), options_.seed};
    if (search_windows(boxed_, how, part, places)) offer(std::move(places), "window search");
    budget_.settle(part);
  }

  void build_on_peak() {
    Budget part = budget_.share(0.7);
    std::vector<std::int64_t> places = best_.places;
    const PeakStackOptions how{std::max(target_, best_.lower_bound), full_care(), options_.seed};
    if (stack_peak(boxed_, how, part, places)) offer(std::move(places), "peak stack");
    budget_.settle(part);
  }

  // Bodies that ended above the target get a higher priority next time.
  void squeak(Skyline& skyline) {
    Random random(options_.seed);
    std::vector<std::int64_t> places;
    const int rounds = boxed_.bodies.size() <= kExactBodies ? 8 : 1 << 20;
    Budget part = budget_.share(boxed_.bodies.size() <= kExactBodies ? 0.05 : 0.3);
    for (int round = 0; round < rounds && !good_enough() && !part.over();) {
      for (const Order order : {Order::kArea, Order::kWidth, Order::kTotalArea, Order::kSize}) {
        std::vector<float> priority = priorities(boxed_, order);
        for (int k = 0; k < 12 && !good_enough() && !part.over(); ++k, ++round) {
          if (!skyline.pass(priority, guided(options_.slack_guidance), places, &part)) break;
          offer(places, "skyline squeaky");
          const std::int64_t limit = std::max(target_, best_.lower_bound);
          for (std::size_t b = 0; b < places.size(); ++b) {
            if (boxed_.top_bytes(b, places[b]) > limit)
              priority[b] += static_cast<float>(300 + 700 * random.uniform());
          }
        }
      }
    }
    budget_.settle(part);
  }

  void offer_hints() {
    if (model_.bodies.size() > kExactBodies * 4) return;
    Budget part = budget_.share(0.1);
    try_greedy(GreedyOrder::kHint, Fit::kFirst, "hints", part);
    budget_.settle(part);
  }

  void construct_two_ended();
  void improve_pieces();
  void squeak_pieces(Budget& budget);
  void improve_parts();

  const BodyModel& model_;
  const std::optional<std::int64_t> capacity_;
  const PackOptions& options_;
  Budget& budget_;
  const BodyModel boxes_of_pieces_;  // empty when the model is plain
  const BodyModel& boxed_;
  Solution best_;
  std::int64_t target_ = 0;
  bool fit_ = false;
};

// Front and other boxes from the bottom, back boxes upside down from the top; the arena is as high
// as the moment at which both together need most.
void Portfolio::construct_two_ended() {
  for (const Order order : {Order::kArea, Order::kSize, Order::kWidth}) {
    if (auto places = place_two_ended(boxed_, order, options_.slack_guidance))
      offer(std::move(*places), std::string("two-ended skyline ") + name(order));
    if (good_enough() || !budget_.spend(static_cast<std::int64_t>(boxed_.bodies.size()) * 100))
      return;
  }
  if (!best_.places.empty()) return;
  Budget part = budget_.share(1.0);
  try_greedy(GreedyOrder::kSize, Fit::kFirst, "two-ended greedy", part);
  budget_.settle(part);
}

// Composite bodies, clocks and ends: greedy on the real pieces, then the ordering search.
void Portfolio::improve_pieces() {
  Budget part = budget_.share(0.3);
  for (const GreedyOrder order :
       {GreedyOrder::kSize, GreedyOrder::kArea, GreedyOrder::kLifetime, GreedyOrder::kBirth}) {
    for (const Fit fit : {Fit::kFirst, Fit::kBest}) {
      if (!good_enough() && !part.over()) try_greedy(order, fit, "greedy on pieces", part);
    }
  }
  budget_.settle(part);
  if (good_enough()) return;
  const bool small = model_.bodies.size() <= kOrderingSearchBodies;
  if (options_.squeaky_wheel && boxes_are_free() && !small) {
    Budget squeaks = budget_.share(0.7);
    squeak_pieces(squeaks);
    budget_.settle(squeaks);
  }
  if (good_enough() || !small) return;
  Budget search = budget_.share(model_.bodies.size() <= 16 ? 1.0 : 0.5);
  std::vector<std::int64_t> places;
  while (!good_enough()) {
    const std::int64_t capacity = fit_ ? target_ : best_.height - 1;
    const CoverResult result = search_orderings(model_, capacity, search, places);
    if (result == CoverResult::kLimit) break;
    if (result == CoverResult::kFound) {
      offer(places, "ordering search");
    } else {
      best_.lower_bound = capacity + 1;
      best_.witnesses = all_buffers();
      break;
    }
  }
  budget_.settle(search);
}

// Greedy on the real pieces again and again: what ended above the target comes earlier next time.
// An order that made things worse is forgotten after a while, and the search goes on from the best.
void Portfolio::squeak_pieces(Budget& budget) {
  constexpr int kPatience = 12;
  constexpr int kRounds = 400;
  Random random(options_.seed);
  std::vector<std::uint32_t> order = greedy_order(model_, GreedyOrder::kSize);
  std::vector<std::uint32_t> best_order = order;
  std::int64_t best_height = kLargest;
  int worse = 0;
  for (int round = 0; round < kRounds && !good_enough() && !budget.over(); ++round) {
    const auto places =
        place_greedily(model_, order, worse % 3 == 2 ? Fit::kBest : Fit::kFirst, budget);
    if (!places) return;
    const std::int64_t height = height_of(model_, *places);
    offer(*places, "squeaky greedy on pieces");
    worse = height < best_height ? 0 : worse + 1;
    if (height < best_height) {
      best_height = height;
      best_order = order;
    }
    if (worse > kPatience) {
      order = best_order;
      worse = 1;
    }
    const std::int64_t limit = std::max(target_, best_.lower_bound);
    for (std::size_t k = 1; k < order.size(); ++k) {
      if (model_.bodies[order[k]].fixed >= 0 ||
          model_.top_bytes(order[k], (*places)[order[k]]) <= limit)
        continue;
      const auto to = static_cast<std::size_t>(static_cast<double>(k) * random.uniform());
      std::rotate(order.begin() + static_cast<std::ptrdiff_t>(to),
                  order.begin() + static_cast<std::ptrdiff_t>(k),
                  order.begin() + static_cast<std::ptrdiff_t>(k) + 1);
    }
    std::stable_partition(order.begin(), order.end(),
                          [&](std::uint32_t b) { return model_.bodies[b].fixed >= 0; });
  }
}

void Portfolio::improve_parts() {
  // Boxes hide the gaps of composite bodies, so their own bound may forbid what the pieces allow:
  // no search on boxes gets below it, and asking height by height would take forever.
  const std::int64_t lowest = model_.plain ? best_.lower_bound : lower_bound(boxed_).bytes;
  if (lowest >= best_.height) return;
  std::vector<Part> parts = split_parts(boxed_, options_.split_parts);
  std::erase_if(parts, [&](const Part& part) {
    for (const std::uint32_t b : part.bodies) {
      if (boxed_.top_bytes(b, best_.places[b]) > std::max(target_, best_.lower_bound)) return false;
    }
    return true;
  });
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.bodies.size() < b.bodies.size(); });
  std::vector<std::int64_t> places = best_.places;
  std::int64_t lower = best_.lower_bound;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const Part& part = parts[k];
    if (part.bodies.size() > kExactBodies) continue;
    std::int64_t height = 0;
    for (const std::uint32_t b : part.bodies)
      height = std::max(height, boxed_.top_bytes(b, places[b]));
    Incumbent incumbent(height, best_.lower_bound);
    Budget share = budget_.share(1.0 / static_cast<double>(parts.size() - k));
    const std::int64_t target = std::max({target_, lower, lowest});
    if (fit_) {
      fit_part(boxed_, part, target, options_, share, incumbent);
    } else {
      minimize_part(boxed_, part, target, options_, share, incumbent);
    }
    budget_.settle(share);
    if (model_.plain && incumbent.lower() > lower) best_.witnesses = buffers_of(part.bodies);
    lower = std::max(lower, incumbent.lower());
    const std::vector<std::int64_t> better = incumbent.places();
    for (std::size_t i = 0; i < better.size(); ++i) places[part.bodies[i]] = better[i];
    if (model_.plain && fit_ && incumbent.lower() > target) break;
  }
  offer(places, "point-cover");
  if (model_.plain) best_.lower_bound = lower;
}

}  // namespace

BodyModel box_bodies(const BodyModel& model) {
  BodyModel boxed = model;
  if (model.plain) return boxed;
  boxed.plain = true;
  boxed.pieces.clear();
  for (Body& body : boxed.bodies) {
    const std::uint32_t buffer = model.pieces[body.piece_begin].buffer;
    body.piece_begin = static_cast<std::uint32_t>(boxed.pieces.size());
    body.piece_end = body.piece_begin + 1;
    boxed.pieces.push_back({body.first, body.last, 0, body.height, buffer});
  }
  return boxed;
}

Solution solve(const BodyModel& model, std::optional<std::int64_t> capacity,
               const PackOptions& options, Budget& budget) {
  return Portfolio(model, capacity, options, budget).run();
}

PackStatus status_of(const Solution& solution, std::optional<std::int64_t> capacity) {
  if (solution.lower_bound > capacity.value_or(kLargest)) return PackStatus::kInfeasible;
  if (solution.places.empty() && solution.height > 0) return PackStatus::kUnknown;
  if (capacity && solution.height > *capacity) return PackStatus::kUnknown;
  return solution.height <= solution.lower_bound ? PackStatus::kOptimal : PackStatus::kFeasible;
}

}  // namespace plimsoll::pack

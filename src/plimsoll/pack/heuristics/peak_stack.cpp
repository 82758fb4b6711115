#include "plimsoll/pack/heuristics/peak_stack.h"

#include <algorithm>
#include <numeric>

#include "plimsoll/base/random.h"
#include "plimsoll/pack/heuristics/order.h"

namespace plimsoll::pack {
namespace {

// Share of the reach to the left in what decides the place in the stack.
constexpr double kLeftShares[] = {0.5, 1, 0, 0.75, 0.25};
constexpr Order kOrders[] = {Order::kArea, Order::kAreaWidth, Order::kSize, Order::kWidth};
constexpr double kStackNoise = 0.2;
constexpr double kOctaves = 1000;  // of noise in priorities, see order.h
constexpr int kMostIdleStacks = 200;

struct StackChoice {
  double left_share = 0.5;
  Order order = Order::kArea;
  bool careful = false;
};

class PeakStack {
 public:
  PeakStack(const BodyModel& model, const PeakStackOptions& options, Budget& budget,
            std::vector<std::int64_t>& places)
      : model_(model),
        options_(options),
        budget_(budget),
        places_(places),
        random_(options.seed),
        height_(height_of(model, places)) {
    const std::vector<std::int64_t> load = loads(model);
    peak_ = static_cast<std::int32_t>(std::max_element(load.begin(), load.end()) - load.begin());
    for (std::uint32_t b = 0; b < model.bodies.size(); ++b) {
      if (model.bodies[b].first <= peak_ && peak_ < model.bodies[b].last) alive_.push_back(b);
    }
  }

  bool run() {
    bool better = false;
    std::int64_t least = kLargest;
    StackChoice best;
    for (const double share : kLeftShares) {
      for (const Order order : kOrders) {
        for (const bool careful : {false, true}) {
          if (budget_.over() || height_ <= options_.target) return better;
          const StackChoice choice{share, order, careful};
          const std::int64_t height = attempt(choice, 0);
          better = better || height == height_;
          if (height < least) {
            least = height;
            best = choice;
          }
        }
      }
    }
    for (int idle = 0; idle < kMostIdleStacks && !budget_.over() && height_ > options_.target;
         ++idle) {
      const std::int64_t before = height_;
      attempt(best, kStackNoise);
      if (height_ == before) continue;
      better = true;
      idle = 0;
    }
    return better;
  }

 private:
  // The height it came to; the places are kept if it is the least so far.
  std::int64_t attempt(const StackChoice& choice, double noise) {
    BodyModel stage = model_;
    stack(stage, choice.left_share, noise);
    std::vector<float> priority = priorities(stage, choice.order);
    if (noise > 0) {
      for (float& value : priority)
        value += static_cast<float>(noise * kOctaves * (random_.uniform() - 0.5));
    }
    PassRules rules = {.guided = false, .snug = false, .level = false};
    if (choice.careful) rules = options_.rules;
    Skyline skyline(stage);
    std::vector<std::int64_t> made;
    if (!skyline.pass(priority, rules, made, &budget_)) return kLargest;
    const std::int64_t height = height_of(model_, made);
    if (height >= height_) return height == height_ ? height + 1 : height;
    height_ = height;
    places_ = std::move(made);
    return height;
  }

  void stack(BodyModel& stage, double left_share, double noise) {
    std::vector<std::pair<double, std::uint32_t>> reach;
    for (const std::uint32_t b : alive_) {
      const Body& body = model_.bodies[b];
      const double both = left_share * static_cast<double>(peak_ - body.first) +
                          (1 - left_share) * static_cast<double>(body.last - peak_);
      reach.emplace_back(-both * (1 + noise * (random_.uniform() - 0.5)), b);
    }
    std::sort(reach.begin(), reach.end());
    std::int64_t top = 0;
    for (const auto& [key, b] : reach) {
      Body& body = stage.bodies[b];
      body.fixed = model_.lift(b, top);
      top = body.fixed + body.height;
    }
    stage.has_fixed = true;
  }

  const BodyModel& model_;
  const PeakStackOptions options_;
  Budget& budget_;
  std::vector<std::int64_t>& places_;
  Random random_;
  std::int64_t height_;  // the least so far, bytes
  std::int32_t peak_ = 0;
  std::vector<std::uint32_t> alive_;
};

}  // namespace

bool stack_peak(const BodyModel& model, const PeakStackOptions& options, Budget& budget,
                std::vector<std::int64_t>& places) {
  if (places.empty() || !model.plain || model.has_fixed) return false;
  return PeakStack(model, options, budget, places).run();
}

}  // namespace plimsoll::pack

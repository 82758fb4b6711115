#include "plimsoll/pack/peaks_first.h"

#include <algorithm>

#include "plimsoll/pack/greedy.h"
#include "plimsoll/pack/skyline.h"

namespace plimsoll::pack {
namespace {

constexpr double kShares[] = {0.93, 0.97, 0.95};  // of the bound: a load that counts as a peak
constexpr Order kPeakOrders[] = {Order::kAreaWidth, Order::kArea, Order::kWidth};

class PeaksFirst {
 public:
  PeaksFirst(const BodyModel& model, const PeaksFirstOptions& options, Budget& budget,
             std::vector<std::int64_t>& places)
      : model_(model),
        options_(options),
        budget_(budget),
        best_(places),
        peaks_(Skyline(model).peaks()) {
    best_height_ = places.empty() ? kNever : height_of(model, places);
  }

  bool run() {
    const std::int64_t before = best_height_;
    for (const double share : kShares) {
      if (best_height_ <= options_.target || budget_.over()) break;
      pack_with(static_cast<std::int64_t>(share * static_cast<double>(options_.bound)));
    }
    return best_height_ < before;
  }

 private:
  void pack_with(std::int64_t least_load) {
    std::vector<std::uint32_t> chosen;
    for (std::uint32_t b = 0; b < model_.bodies.size(); ++b) {
      if (model_.bodies[b].fixed >= 0 || peaks_[b] * model_.unit >= least_load) chosen.push_back(b);
    }
    BodyModel stage = model_;
    stage.bodies.clear();
    for (const std::uint32_t b : chosen) stage.bodies.push_back(model_.bodies[b]);
    const std::vector<std::int64_t> peaks = pack_alone(stage);
    if (peaks.empty() || height_of(stage, peaks) >= best_height_) return;
    stage.bodies = model_.bodies;
    for (std::size_t k = 0; k < chosen.size(); ++k) stage.bodies[chosen[k]].fixed = peaks[k];
    Skyline around(stage);
    std::vector<std::int64_t> places;
    around.pass(around.priorities(Order::kAreaWidth), false, places);
    budget_.spend(around.work());
    const std::int64_t height = height_of(model_, places);
    if (height >= best_height_) return;
    best_height_ = height;
    best_ = std::move(places);
  }

  // The lowest of a few passes; empty when the budget ends first.
  std::vector<std::int64_t> pack_alone(const BodyModel& stage) {
    Skyline skyline(stage);
    std::vector<std::int64_t> places;
    std::vector<std::int64_t> lowest;
    std::int64_t height = kNever;
    for (const Order order : kPeakOrders) {
      skyline.pass(skyline.priorities(order), options_.guided, places);
      if (!budget_.spend(skyline.work())) return {};
      const std::int64_t now = height_of(stage, places);
      if (now < height) height = now, lowest = places;
    }
    return lowest;
  }

  const BodyModel& model_;
  const PeaksFirstOptions options_;
  Budget& budget_;
  std::vector<std::int64_t>& best_;
  std::int64_t best_height_ = kNever;
  const std::vector<std::int64_t> peaks_;  // per body: the highest load it sees
};

}  // namespace

bool pack_peaks_first(const BodyModel& model, const PeaksFirstOptions& options, Budget& budget,
                      std::vector<std::int64_t>& places) {
  return PeaksFirst(model, options, budget, places).run();
}

}  // namespace plimsoll::pack

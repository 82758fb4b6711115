#include "plimsoll/schedule/search/restarts.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plimsoll::schedule {
namespace {

constexpr std::int64_t kFruitless = 4000;

void blur(ConstructSettings& settings, Random& random) {
  if (random.chance(0.5)) settings.alpha = 0.3 + 1.5 * random.uniform();
  settings.copy_weight = random.chance(0.3) ? 0 : random.uniform();
  const double spread = 0.05 + 0.8 * random.uniform() * random.uniform();
  for (double& weight : settings.weights) weight *= std::exp((random.uniform() * 2 - 1) * spread);
}

void change_some(ConstructSettings& settings, const std::vector<Index>& left, Random& random) {
  for (std::int64_t i = 1 + random.below(6); i > 0; --i) {
    const auto v = at(left[static_cast<std::size_t>(random.below(std::ssize(left)))]);
    const bool swap = !settings.swap_weights.empty() && random.chance(0.5);
    (swap ? settings.swap_weights : settings.weights)[v] *= std::exp(4 * random.uniform() - 2);
  }
}

}  // namespace

Restarted restart(const Problem& problem, std::span<const Sequence> orders, std::uint64_t seed,
                  const RestartSettings& how) {
  Random random(seed * 7919 + 1);
  Restarted good{how.start, 0};
  const bool swaps = !good.settings.swap_weights.empty();
  std::vector<Index> left;
  double best = std::numeric_limits<double>::infinity();
  Construct walk(problem, orders.front(), seed);
  std::int64_t fruitless = 0;
  for (std::int64_t run = 0; !how.over(run) && (run <= 40 || fruitless <= kFruitless); ++run) {
    const bool first = run < std::ssize(orders);
    const std::size_t which = first ? static_cast<std::size_t>(run)
                              : random.chance(0.2)
                                  ? static_cast<std::size_t>(random.below(std::ssize(orders)))
                                  : good.order;
    ConstructSettings settings = good.settings;
    settings.give_up_seconds = std::min(1.2 * best, how.hopeless_seconds);
    if (!first && !left.empty() && random.chance(swaps ? 0.7 : 0.3)) {
      change_some(settings, left, random);
    } else if (!first) {
      blur(settings, random);
    }
    walk.set_sequence(orders[which]);
    ++fruitless;
    if (!walk.run(settings) || walk.seconds() >= best) continue;
    best = walk.seconds();
    good = {std::move(settings), which};
    left = walk.left();
    fruitless = 0;
    how.on_better(walk, which);
  }
  return good;
}

}  // namespace plimsoll::schedule

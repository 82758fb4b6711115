#include "plimsoll/schedule/search/restarts.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plimsoll::schedule {
namespace {

void blur(EvictorSettings& settings, const SearchOptions& options, Random& random) {
  const EvictorOptions& prices = options.evictor;
  const RestartOptions& how = options.restarts;
  if (random.chance(how.alpha_chance))
    settings.alpha = prices.alpha_least + prices.alpha_range * random.uniform();
  settings.copy_weight = random.chance(prices.free_copies_chance) ? 0 : random.uniform();
  const double spread = how.least_spread + how.spread_range * random.uniform() * random.uniform();
  for (double& weight : settings.weights) weight *= std::exp((random.uniform() * 2 - 1) * spread);
}

void change_some(EvictorSettings& settings, const std::vector<Index>& left,
                 const RestartOptions& how, Random& random) {
  for (std::int64_t i = 1 + random.below(how.most_values); i > 0; --i) {
    const auto v = at(left[static_cast<std::size_t>(random.below(std::ssize(left)))]);
    const bool swap = !settings.swap_weights.empty() && random.chance(how.swap_weight_chance);
    (swap ? settings.swap_weights : settings.weights)[v] *=
        std::exp(how.log_weight_range * random.uniform() + how.log_weight_least);
  }
}

}  // namespace

Restarted restart(const Problem& problem, std::span<const Sequence> orders, std::uint64_t seed,
                  const SearchOptions& options, const RestartSettings& settings) {
  const RestartOptions& how = options.restarts;
  Random random(seed * options.seeds.restart_factor + options.seeds.restart_offset);
  Restarted good{settings.start, 0};
  const double some =
      good.settings.swap_weights.empty() ? how.some_chance : how.some_chance_with_swap;
  std::vector<Index> left;
  double best = std::numeric_limits<double>::infinity();
  GreedyEvictor walk(problem, orders.front(), seed, options.evictor);
  std::int64_t fruitless = 0;
  for (std::int64_t run = 0;
       !settings.over(run) && (run <= how.least_runs || fruitless <= how.fruitless); ++run) {
    const bool first = run < std::ssize(orders);
    const std::size_t which = first ? static_cast<std::size_t>(run)
                              : random.chance(how.other_order_chance)
                                  ? static_cast<std::size_t>(random.below(std::ssize(orders)))
                                  : good.order;
    EvictorSettings next = good.settings;
    next.give_up_seconds = std::min(how.give_up_times * best, settings.hopeless_seconds);
    if (!first && !left.empty() && random.chance(some)) {
      change_some(next, left, how, random);
    } else if (!first) {
      blur(next, options, random);
    }
    walk.set_sequence(orders[which]);
    ++fruitless;
    if (!walk.run(next) || walk.seconds() >= best) continue;
    best = walk.seconds();
    good = {std::move(next), which};
    left = walk.left();
    fruitless = 0;
    settings.on_better(walk, which);
  }
  return good;
}

}  // namespace plimsoll::schedule

// Restarts: the walk of greedy_evictor.h again and again with changed prices, each from those of
// the best run.
//
// The first run of every order has them as they are. Later ones blur all of them, or change those
// of a few values that had to leave for good: dearer or cheaper to let go, or to swap. Orders other
// than that of the best run are tried now and then.
//
// Cost: one walk a restart. Ends when `over` says so, or after thousands of restarts without a
// gain.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "plimsoll/schedule/search/greedy_evictor.h"

namespace plimsoll::schedule {

struct RestartSettings {
  EvictorSettings start;
  double hopeless_seconds = 0;
  std::function<bool(std::int64_t run)> over;
  // A walk that is faster than all before it, with the place of its order.
  std::function<void(const GreedyEvictor& walk, std::size_t order)> on_better;
};

struct Restarted {
  EvictorSettings settings;  // of the best run
  std::size_t order = 0;
};

// `orders` is not empty and outlives the call.
Restarted restart(const Problem& problem, std::span<const Sequence> orders, std::uint64_t seed,
                  const SearchOptions& options, const RestartSettings& settings);

}  // namespace plimsoll::schedule

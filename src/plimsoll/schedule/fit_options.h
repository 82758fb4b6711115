// FitOptions: what fit() is asked for. How it searches is in search/search_options.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "plimsoll/base/units.h"
#include "plimsoll/schedule/remedies.h"
#include "plimsoll/schedule/search/search_options.h"
#include "plimsoll/schedule/workload/workload.h"

namespace plimsoll::schedule {

enum class OrderChoice { kGiven, kList, kSearch };

struct FitProgress {
  double seconds = 0;  // of the best schedule so far
  Bytes peak_bytes;
  double elapsed = 0;
};

struct FitOptions {
  Bytes budget = Bytes::max();
  Remedies remedies;
  OrderChoice order = OrderChoice::kSearch;
  CopyRates copies;
  double deadline_seconds = 3;
  bool deterministic = false;
  std::int64_t work = 1;  // times the usual counts, when deterministic
  std::uint64_t seed = 1;
  int threads = 1;
  std::function<void(const FitProgress&)> on_better;  // called from one thread at a time
  const std::atomic<bool>* stop = nullptr;            // set it to end the search early
  // Told the smallest peak of all that was found, where none is within the budget.
  std::function<void(Bytes)> on_none;
  // By value: times the price of letting it go; empty: 1. Whoever packs knows better than bytes
  // which values are in the way.
  std::vector<double> weights;
  // mirrored_order() of the workload, for who asks for many schedules of it; empty: found anew
  std::vector<TaskId> mirrored;
  // say how fast any schedule of its order could be
  bool bound = true;
  SearchOptions search;
};

}  // namespace plimsoll::schedule

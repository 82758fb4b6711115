// Exact search on one part of a plain model, by one worker or several.
//
// An Incumbent is what workers share: the best packing of the part, its height, and the lower bound
// proven so far. fit_part() asks one question (within the capacity?) with a different seed per
// worker; minimize_part() bisects by effort: at every level of effort it first asks for the lower
// bound itself, then for heights between, because solvability is not monotone for any search with a
// limit. An answer "impossible" raises the bound; a packing lowers the height; they meet at the
// optimum.
//
// Threads: Incumbent is guarded by a mutex; workers share nothing else but the stop flag.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "plimsoll/pack/budget.h"
#include "plimsoll/pack/model/bodies.h"
#include "plimsoll/pack/pack_options.h"

namespace plimsoll::pack {

struct Part {
  Interval<std::int32_t> sections;
  std::vector<std::uint32_t> bodies;
};

// Where no body crosses, time falls apart. With `split` off, everything is one part.
std::vector<Part> split_parts(const BodyModel& model, bool split);

class Incumbent {
 public:
  Incumbent(std::int64_t height, std::int64_t lower) : height_(height), lower_(lower) {}

  void offer(std::int64_t height, std::vector<std::int64_t> places);
  void raise_lower(std::int64_t lower);
  std::int64_t height() const;
  std::int64_t lower() const;
  std::vector<std::int64_t> places() const;  // per body of the part; empty: not improved

 private:
  mutable std::mutex mutex_;
  std::int64_t height_;
  std::int64_t lower_;
  std::vector<std::int64_t> places_;
};

// Stops when the incumbent is at or below `target`, or the part is solved to proof, or the budget
// ends.
void fit_part(const BodyModel& model, const Part& part, std::int64_t capacity,
              const PackOptions& options, Budget& budget, Incumbent& incumbent);
void minimize_part(const BodyModel& model, const Part& part, std::int64_t target,
                   const PackOptions& options, Budget& budget, Incumbent& incumbent);

}  // namespace plimsoll::pack

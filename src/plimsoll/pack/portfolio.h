// The portfolio: which engine runs on what, for how long, until the answer is good enough.
//
// Good enough is the capacity (Goal::kFit) or the lower bound (Goal::kMinimize). The stages are
// those listed in pack.h. Every stage offers its packings to one Incumbent per part and takes the
// target from there, so a stage never works on what another has finished.
//
// Bodies that are not plain are boxed for the fast engines: hull of the sections times full height.
// A packing of boxes is a packing of bodies; only the opposite needs the engines that see pieces.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/pack/budget.h"
#include "plimsoll/pack/model/bodies.h"
#include "plimsoll/pack/model/packing.h"
#include "plimsoll/pack/pack_options.h"

namespace plimsoll::pack {

struct Solution {
  std::vector<std::int64_t> places;  // per body; empty: none found
  std::int64_t height = kNever;      // bytes
  std::int64_t lower_bound = 0;      // bytes; above the capacity: proven infeasible
  std::string method = "none";
  std::vector<BufferId> witnesses;  // of the lower bound, as far as known
};

Solution solve(const BodyModel& model, std::optional<std::int64_t> capacity,
               const PackOptions& options, Budget& budget);

PackStatus status_of(const Solution& solution, std::optional<std::int64_t> capacity);

// Every body as one box; identical to the model when that is plain.
BodyModel box_bodies(const BodyModel& model);

}  // namespace plimsoll::pack

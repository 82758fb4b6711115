#include "plimsoll/pack/one_memory.h"

#include "plimsoll/pack/bounds/core.h"
#include "plimsoll/pack/model/make_bodies.h"
#include "plimsoll/pack/portfolio.h"

namespace plimsoll::pack {

Packing pack_one_memory(const Problem& problem, const PackOptions& options, Budget& budget) {
  Packing packing;
  const BodyModel model = make_bodies(problem, 0, {});
  if (!model.contradiction.empty()) {
    packing.status = PackStatus::kInfeasible;
    packing.method = "contradiction";
    packing.core = model.contradiction;
    return packing;
  }
  std::optional<std::int64_t> capacity;
  if (problem.capacity()) capacity = problem.capacity()->value;
  Solution solution = solve(model, capacity, options, budget);
  packing.status = status_of(solution, capacity);
  packing.method = std::move(solution.method);
  packing.lower_bound = Bytes(solution.lower_bound);
  if (!solution.places.empty() || model.bodies.empty()) {
    packing.offsets.resize(problem.size());
    write_offsets(model, solution.places, packing.offsets);
    packing.heights = {Bytes(model.bodies.empty() ? 0 : solution.height)};
  }
  if (packing.status == PackStatus::kInfeasible)
    packing.core = shrink_core(model, solution.witnesses, capacity.value_or(kLargest), budget);
  return packing;
}

}  // namespace plimsoll::pack

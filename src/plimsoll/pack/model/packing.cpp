#include "plimsoll/pack/model/packing.h"

namespace plimsoll::pack {

const char* name(PackStatus status) {
  constexpr const char* kNames[] = {"optimal", "feasible", "infeasible", "unknown"};
  return kNames[static_cast<std::size_t>(status)];
}

double Packing::gap() const {
  if (lower_bound.value <= 0 || heights.empty()) return 0;
  return static_cast<double>(height().value - lower_bound.value) /
         static_cast<double>(lower_bound.value);
}

}  // namespace plimsoll::pack

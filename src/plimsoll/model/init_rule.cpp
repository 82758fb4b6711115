#include "plimsoll/model/init_rule.h"

#include <algorithm>
#include <cmath>

namespace plimsoll::model {
namespace {

// An empty layer has no fan; any finite number will do for no elements.
double fan(std::int64_t count) {
  return static_cast<double>(std::max<std::int64_t>(count, 1));
}

}  // namespace

ir::Init InitRule::weight(std::int64_t fan_in, std::int64_t fan_out) const {
  switch (kind_) {
    case Kind::kTorchDefault:
      return uniform(1 / std::sqrt(fan(fan_in)));
    case Kind::kKaimingIn:
      return model::normal(std::sqrt(2 / fan(fan_in)));
    case Kind::kKaimingOut:
      return model::normal(std::sqrt(2 / fan(fan_out)));
    case Kind::kNormal:
      break;
  }
  return model::normal(deviation_);
}

ir::Init InitRule::bias(std::int64_t fan_in) const {
  return kind_ == Kind::kTorchDefault ? uniform(1 / std::sqrt(fan(fan_in))) : constant(0);
}

}  // namespace plimsoll::model

#include "plimsoll/ops/elementwise/fused_relu.h"

namespace plimsoll::ops {

Status expect_activation(const Call& call) {
  const std::string activation = call.attributes().text("activation", "");
  if (activation.empty() || activation == "relu") return {};
  return bad_input("activation is \"{}\", expects \"\" or \"relu\"", activation);
}

}  // namespace plimsoll::ops

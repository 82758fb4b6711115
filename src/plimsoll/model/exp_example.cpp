// y = exp(a*b + 3): three operators, the picture in which in-place and sharing are first explained.
// In training form a and b are scalar weights and y is the loss; in inference form they are vectors
// of inputs.
#include "plimsoll/model/families.h"
#include "plimsoll/model/layers.h"

namespace plimsoll::model {

Result<ir::Graph> build_exp_example(const std::string& name, const Sizes& sizes) {
  Net net(name, net_options(sizes));
  const Var a = net.training() ? net.weight("a", {}, constant(0.5))
                               : net.input("a", {sizes.batch, sizes.width});
  const Var b = net.training() ? net.weight("b", {}, constant(-2))
                               : net.input("b", {sizes.batch, sizes.width});
  return net.finish_with({exp(a * b + 3.0)});
}

}  // namespace plimsoll::model

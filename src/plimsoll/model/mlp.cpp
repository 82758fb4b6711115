// A multi-layer perceptron: the smallest model that trains, for teaching and tests.
#include "plimsoll/model/families.h"
#include "plimsoll/model/layers.h"

namespace plimsoll::model {

Result<ir::Graph> build_mlp(const std::string& name, const Sizes& sizes) {
  Net net(name, net_options(sizes));
  Var x = flatten(net.input("images", {sizes.batch, 1, sizes.image, sizes.image}));
  for (std::int64_t i = 0; i < sizes.layers; ++i) {
    x = dropout(net, relu(linear(net, fmt::format("layers.{}", i), x, sizes.width)), sizes.dropout);
  }
  return net.finish(linear(net, fmt::format("layers.{}", sizes.layers), x, sizes.classes));
}

}  // namespace plimsoll::model

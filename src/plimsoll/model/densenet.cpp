// DenseNet-121 (Huang et al. 2016): every layer reads all features made before it; 7,978,856
// parameters.
//
// The features so far are one tensor that grows by a concat per layer. Each of those tensors is
// needed by the gradient of the norm that reads it, which is why this family is a test for
// recomputation.
#include <array>

#include "plimsoll/model/families.h"
#include "plimsoll/model/layers.h"

namespace plimsoll::model {
namespace {

constexpr std::array<int, 4> kLayers = {6, 12, 24, 16};
constexpr std::int64_t kBottleneck = 4;  // in growth rates

Var norm_relu_conv(Net& net, int index, Var x, std::int64_t channels, ConvOptions options) {
  options.bias = false;
  const Var h = relu(batch_norm(net, fmt::format("norm{}", index), x));
  return conv2d(net, fmt::format("conv{}", index), h, channels, options);
}

Var dense_block(Net& net, Var x, int layers, std::int64_t growth) {
  for (int i = 1; i <= layers; ++i) {
    const auto scope = net.scope(fmt::format("denselayer{}", i));
    Var h = norm_relu_conv(net, 1, x, kBottleneck * growth, {});
    h = norm_relu_conv(net, 2, h, growth, {.kernel = 3, .padding = 1});
    x = ops::concat({x, h}, 1);
  }
  return x;
}

Var transition(Net& net, Var x) {
  if (!net.expect_rank(x, 4, "transition")) return x;
  const Var h = relu(batch_norm(net, "norm", x));
  return avg_pool2d(conv2d(net, "conv", h, x.dim(1) / 2, {.bias = false}));
}

Var densenet_features(Net& net, Var x, std::int64_t width) {
  const auto scope = net.scope("features");
  x = conv2d(net, "conv0", x, width, {.kernel = 7, .stride = 2, .padding = 3, .bias = false});
  x = max_pool2d(relu(batch_norm(net, "norm0", x)), {.kernel = 3, .stride = 2, .padding = 1});
  for (std::size_t block = 0; block < kLayers.size(); ++block) {
    {
      const auto dense = net.scope(fmt::format("denseblock{}", block + 1));
      x = dense_block(net, x, kLayers[block], width / 2);
    }
    if (block + 1 == kLayers.size()) break;
    const auto between = net.scope(fmt::format("transition{}", block + 1));
    x = transition(net, x);
  }
  return relu(batch_norm(net, "norm5", x));
}

}  // namespace

Result<ir::Graph> build_densenet(const std::string& name, const Sizes& sizes) {
  NetOptions options = net_options(sizes);
  options.conv_init = InitRule::kaiming_fan_in();
  Net net(name, options);
  const Var images = net.input("images", {sizes.batch, 3, sizes.image, sizes.image});
  const Var pooled = global_avg_pool2d(densenet_features(net, images, sizes.width));
  return net.finish(linear(net, "classifier", pooled, sizes.classes));
}

}  // namespace plimsoll::model

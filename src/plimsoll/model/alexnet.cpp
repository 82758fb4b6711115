// AlexNet as torchvision has it (Krizhevsky 2014, "one weird trick"): 61,100,840 parameters.
#include <array>

#include "plimsoll/model/families.h"
#include "plimsoll/model/layers.h"

namespace plimsoll::model {
namespace {

constexpr PoolOptions kPool{.kernel = 3, .stride = 2};

Var alexnet_features(Net& net, Var x, std::int64_t width) {
  const auto scope = net.scope("features");
  x = relu(conv2d(net, "0", x, width, {.kernel = 11, .stride = 4, .padding = 2}));
  x = max_pool2d(x, kPool);
  x = relu(conv2d(net, "3", x, 3 * width, {.kernel = 5, .padding = 2}));
  x = max_pool2d(x, kPool);
  x = relu(conv2d(net, "6", x, 6 * width, {.kernel = 3, .padding = 1}));
  x = relu(conv2d(net, "8", x, 4 * width, {.kernel = 3, .padding = 1}));
  x = relu(conv2d(net, "10", x, 4 * width, {.kernel = 3, .padding = 1}));
  return max_pool2d(x, kPool);
}

Var alexnet_classifier(Net& net, Var x, const Sizes& sizes) {
  const auto scope = net.scope("classifier");
  const std::int64_t hidden = 64 * sizes.width;
  x = relu(linear(net, "1", dropout(net, x, sizes.dropout), hidden));
  x = relu(linear(net, "4", dropout(net, x, sizes.dropout), hidden));
  return linear(net, "6", x, sizes.classes);
}

}  // namespace

Result<ir::Graph> build_alexnet(const std::string& name, const Sizes& sizes) {
  Net net(name, net_options(sizes));
  const Var images = net.input("images", {sizes.batch, 3, sizes.image, sizes.image});
  const Var pooled = adaptive_avg_pool2d(net, alexnet_features(net, images, sizes.width), 6);
  return net.finish(alexnet_classifier(net, flatten(pooled), sizes));
}

}  // namespace plimsoll::model

// VGG without batch norm (Simonyan & Zisserman 2014), configurations D (16) and E (19).
#include <array>

#include "plimsoll/model/families.h"
#include "plimsoll/model/layers.h"

namespace plimsoll::model {
namespace {

constexpr std::array<std::int64_t, 5> kWidths = {1, 2, 4, 8,
                                                 8};  // of the five stages, in first widths

// torchvision numbers convolutions, activations and pools in one sequence.
Var vgg_features(Net& net, Var x, const Sizes& sizes) {
  const auto scope = net.scope("features");
  const int late = sizes.depth == 19 ? 4 : 3;
  int place = 0;
  for (std::size_t stage = 0; stage < kWidths.size(); ++stage) {
    const int convolutions = stage < 2 ? 2 : late;
    for (int i = 0; i < convolutions; ++i, place += 2) {
      x = relu(conv2d(net, fmt::format("{}", place), x, kWidths[stage] * sizes.width,
                      {.kernel = 3, .padding = 1}));
    }
    x = max_pool2d(x);
    ++place;
  }
  return x;
}

Var vgg_classifier(Net& net, Var x, const Sizes& sizes) {
  const auto scope = net.scope("classifier");
  const std::int64_t hidden = 64 * sizes.width;
  x = dropout(net, relu(linear(net, "0", x, hidden)), sizes.dropout);
  x = dropout(net, relu(linear(net, "3", x, hidden)), sizes.dropout);
  return linear(net, "6", x, sizes.classes);
}

}  // namespace

Result<ir::Graph> build_vgg(const std::string& name, const Sizes& sizes) {
  NetOptions options = net_options(sizes);
  options.conv_init = InitRule::kaiming_fan_out();
  options.linear_init = InitRule::normal(0.01);
  Net net(name, options);
  const Var images = net.input("images", {sizes.batch, 3, sizes.image, sizes.image});
  const Var pooled = adaptive_avg_pool2d(net, vgg_features(net, images, sizes), 7);
  return net.finish(vgg_classifier(net, flatten(pooled), sizes));
}

}  // namespace plimsoll::model

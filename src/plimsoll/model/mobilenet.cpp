// MobileNetV2 (Sandler et al. 2018): inverted residuals with depthwise convolutions; 3,504,872
// parameters.
#include <algorithm>
#include <array>

#include "plimsoll/model/families.h"
#include "plimsoll/model/layers.h"

namespace plimsoll::model {
namespace {

struct Stage {
  std::int64_t expansion;
  std::int64_t channels;
  std::int64_t blocks;
  std::int64_t stride;
};
constexpr std::array<Stage, 7> kStages = {{{1, 16, 1, 1},
                                           {6, 24, 2, 2},
                                           {6, 32, 3, 2},
                                           {6, 64, 4, 2},
                                           {6, 96, 3, 1},
                                           {6, 160, 3, 2},
                                           {6, 320, 1, 1}}};
constexpr std::int64_t kFirstChannels = 32;

// Channels for another width, rounded to multiples of 8 without losing more than a tenth.
std::int64_t scaled(std::int64_t channels, std::int64_t width) {
  const std::int64_t exact = channels * width;  // in units of 1 / kFirstChannels
  const std::int64_t eights = (exact + 4 * kFirstChannels) / (8 * kFirstChannels);
  const std::int64_t rounded = std::max<std::int64_t>(eights * 8, 8);
  return 10 * rounded * kFirstChannels < 9 * exact ? rounded + 8 : rounded;
}

Var conv_norm_relu6(Net& net, std::int64_t index, Var x, std::int64_t channels,
                    ConvOptions options) {
  const auto scope = net.scope(fmt::format("{}", index));
  options.bias = false;
  options.padding = options.kernel / 2;
  return clip(batch_norm(net, "1", conv2d(net, "0", x, channels, options)), 0, 6);
}

Var inverted_residual(Net& net, Var x, std::int64_t expansion, std::int64_t channels,
                      std::int64_t stride) {
  if (!net.expect_rank(x, 4, "inverted residual")) return x;
  const auto scope = net.scope("conv");
  const std::int64_t hidden = x.dim(1) * expansion;
  std::int64_t place = 0;
  Var h = x;
  if (expansion != 1) h = conv_norm_relu6(net, place++, h, hidden, {});
  h = conv_norm_relu6(net, place++, h, hidden, {.kernel = 3, .stride = stride, .groups = hidden});
  h = conv2d(net, fmt::format("{}", place), h, channels, {.bias = false});
  h = batch_norm(net, fmt::format("{}", place + 1), h);
  return stride == 1 && x.dim(1) == channels ? x + h : h;
}

}  // namespace

Result<ir::Graph> build_mobilenet(const std::string& name, const Sizes& sizes) {
  NetOptions options = net_options(sizes);
  options.conv_init = InitRule::kaiming_fan_out();
  options.linear_init = InitRule::normal(0.01);
  Net net(name, options);
  Var x = net.input("images", {sizes.batch, 3, sizes.image, sizes.image});
  std::int64_t place = 0;
  {
    const auto scope = net.scope("features");
    x = conv_norm_relu6(net, place++, x, scaled(kFirstChannels, sizes.width),
                        {.kernel = 3, .stride = 2});
    for (const Stage& stage : kStages) {
      for (std::int64_t i = 0; i < stage.blocks; ++i, ++place) {
        const auto block = net.scope(fmt::format("{}", place));
        x = inverted_residual(net, x, stage.expansion, scaled(stage.channels, sizes.width),
                              i == 0 ? stage.stride : 1);
      }
    }
    x = conv_norm_relu6(net, place, x, std::max<std::int64_t>(1280, scaled(1280, sizes.width)), {});
  }
  x = dropout(net, global_avg_pool2d(x), sizes.dropout);
  return net.finish(linear(net, "classifier.1", x, sizes.classes));
}

}  // namespace plimsoll::model

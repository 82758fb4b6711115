// Residual networks (He et al. 2015) in torchvision's form: the stride of a bottleneck stands on
// its 3x3 convolution. Depths 18 to 152 are the published ones. Any other depth makes (depth-1)/3
// bottlenecks, spread evenly over the four stages with the remainder at the end: 1000 gives 83, 83,
// 83, 84.
#include <array>

#include "plimsoll/model/families.h"
#include "plimsoll/model/layers.h"

namespace plimsoll::model {
namespace {

using Stages = std::array<std::int64_t, 4>;

struct Plan {
  bool bottleneck;
  Stages blocks;
};

Plan plan_of(std::int64_t depth) {
  switch (depth) {
    case 18:
      return {false, {2, 2, 2, 2}};
    case 34:
      return {false, {3, 4, 6, 3}};
    case 50:
      return {true, {3, 4, 6, 3}};
    case 101:
      return {true, {3, 4, 23, 3}};
    case 152:
      return {true, {3, 8, 36, 3}};
    default:
      break;
  }
  const std::int64_t blocks = (depth - 1) / 3;
  Plan out{true, {}};
  for (std::int64_t stage = 0; stage < 4; ++stage) {
    out.blocks[static_cast<std::size_t>(stage)] = blocks / 4 + (stage >= 4 - blocks % 4);
  }
  return out;
}

struct BlockOptions {
  std::int64_t width;
  std::int64_t stride;
  bool bottleneck;
  std::int64_t channels() const { return bottleneck ? 4 * width : width; }
};

Var conv_norm(Net& net, int index, Var x, std::int64_t channels, ConvOptions options) {
  options.bias = false;
  x = conv2d(net, fmt::format("conv{}", index), x, channels, options);
  return batch_norm(net, fmt::format("bn{}", index), x);
}

Var shortcut(Net& net, Var x, const BlockOptions& block) {
  if (block.stride == 1 && x.dim(1) == block.channels()) return x;
  const auto scope = net.scope("downsample");
  return batch_norm(net, "1",
                    conv2d(net, "0", x, block.channels(), {.stride = block.stride, .bias = false}));
}

Var residual_block(Net& net, Var x, const BlockOptions& block) {
  Var h;
  if (block.bottleneck) {
    h = relu(conv_norm(net, 1, x, block.width, {.kernel = 1}));
    h = relu(
        conv_norm(net, 2, h, block.width, {.kernel = 3, .stride = block.stride, .padding = 1}));
    h = conv_norm(net, 3, h, block.channels(), {.kernel = 1});
  } else {
    h = relu(
        conv_norm(net, 1, x, block.width, {.kernel = 3, .stride = block.stride, .padding = 1}));
    h = conv_norm(net, 2, h, block.width, {.kernel = 3, .padding = 1});
  }
  return relu(h + shortcut(net, x, block));
}

}  // namespace

Result<ir::Graph> build_resnet(const std::string& name, const Sizes& sizes) {
  if (sizes.depth < 13)
    return fail(ErrorCode::kUsage, "{}: depth {} is too small, expects at least 13", name,
                sizes.depth);
  NetOptions options = net_options(sizes);
  options.conv_init = InitRule::kaiming_fan_out();
  Net net(name, options);
  Var x = net.input("images", {sizes.batch, 3, sizes.image, sizes.image});
  x = relu(conv_norm(net, 1, x, sizes.width, {.kernel = 7, .stride = 2, .padding = 3}));
  x = max_pool2d(x, {.kernel = 3, .stride = 2, .padding = 1});
  const Plan plan = plan_of(sizes.depth);
  for (std::int64_t stage = 0; stage < 4; ++stage) {
    for (std::int64_t i = 0; i < plan.blocks[static_cast<std::size_t>(stage)]; ++i) {
      const auto scope = net.scope(fmt::format("layer{}", stage + 1), i);
      const std::int64_t stride = i == 0 && stage > 0 ? 2 : 1;
      x = residual_block(net, x, {sizes.width << stage, stride, plan.bottleneck});
    }
  }
  return net.finish(linear(net, "fc", global_avg_pool2d(x), sizes.classes));
}

}  // namespace plimsoll::model

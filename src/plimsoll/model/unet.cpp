// U-Net (Ronneberger et al. 2015) with padded convolutions and batch norm, as it is used today:
// four levels down, four up, each level up also reads the features of the same size on the way
// down.
#include <array>

#include "plimsoll/model/families.h"
#include "plimsoll/model/layers.h"

namespace plimsoll::model {
namespace {

constexpr int kLevels = 4;

Var double_conv(Net& net, Var x, std::int64_t channels) {
  const auto scope = net.scope("double_conv");
  const ConvOptions options{.kernel = 3, .padding = 1, .bias = false};
  x = relu(batch_norm(net, "1", conv2d(net, "0", x, channels, options)));
  return relu(batch_norm(net, "4", conv2d(net, "3", x, channels, options)));
}

Var up(Net& net, Var x, Var skip, std::int64_t channels) {
  const Var larger = conv_transpose2d(net, "up", x, channels, {.kernel = 2, .stride = 2});
  const auto scope = net.scope("conv");
  return double_conv(net, ops::concat({skip, larger}, 1), channels);
}

}  // namespace

Result<ir::Graph> build_unet(const std::string& name, const Sizes& sizes) {
  if (sizes.image % (1 << kLevels) != 0) {
    return fail(ErrorCode::kUsage, "{}: image {} is no multiple of {}", name, sizes.image,
                1 << kLevels);
  }
  Net net(name, net_options(sizes));
  Var x = net.input("images", {sizes.batch, 3, sizes.image, sizes.image});
  std::array<Var, kLevels> skips;
  {
    const auto scope = net.scope("inc");
    x = double_conv(net, x, sizes.width);
  }
  for (int level = 0; level < kLevels; ++level) {
    skips[static_cast<std::size_t>(level)] = x;
    const auto scope = net.scope(fmt::format("down{}.maxpool_conv.1", level + 1));
    x = double_conv(net, max_pool2d(x), sizes.width << (level + 1));
  }
  for (int level = kLevels; level-- > 0;) {
    const auto scope = net.scope(fmt::format("up{}", kLevels - level));
    x = up(net, x, skips[static_cast<std::size_t>(level)], sizes.width << level);
  }
  x = conv2d(net, "outc.conv", x, sizes.classes);
  // One class for every pixel: the classes go last.
  return net.finish(transpose(x, {0, 2, 3, 1}));
}

}  // namespace plimsoll::model

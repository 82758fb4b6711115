#include "plimsoll/model/onnx/convert/window_attributes.h"

#include <algorithm>

#include "plimsoll/base/checked.h"

namespace plimsoll::model::onnx {
namespace {

constexpr std::int64_t kMostExtent = 1LL << 31;

Status check_list(const ir::Ints& list, std::size_t count, std::int64_t least,
                  std::string_view what) {
  if (list.size() != count)
    return bad_input("{} has {} numbers, expects {}", what, list.size(), count);
  for (const std::int64_t value : list) {
    if (value < least || value > kMostExtent)
      return bad_input("{} has an impossible {}", what, value);
  }
  return {};
}

}  // namespace

Result<WindowAttributes> window_attributes(OperatorCall& call, const ir::Shape& x,
                                           const ir::Ints& kernel) {
  const std::size_t n = kernel.size();
  if (n == 0 || x.rank() != static_cast<int>(n) + 2) {
    return bad_input("its input has rank {}, a window of {} dimensions expects {}", x.rank(), n,
                     n + 2);
  }
  WindowAttributes out;
  out.kernel = kernel;
  out.strides = call.integers("strides", ir::Ints(n, 1));
  out.dilations = call.integers("dilations", ir::Ints(n, 1));
  out.pads = call.integers("pads", ir::Ints(2 * n, 0));
  out.ceil_mode = call.integer("ceil_mode", 0) != 0;
  PLIMSOLL_RETURN_IF_ERROR(check_list(out.kernel, n, 1, "kernel_shape"));
  PLIMSOLL_RETURN_IF_ERROR(check_list(out.strides, n, 1, "strides"));
  PLIMSOLL_RETURN_IF_ERROR(check_list(out.dilations, n, 1, "dilations"));
  PLIMSOLL_RETURN_IF_ERROR(check_list(out.pads, 2 * n, -kMostExtent, "pads"));
  const std::string mode = call.text("auto_pad", "NOTSET");
  if (mode == "VALID") out.pads.assign(2 * n, 0);
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    for (std::size_t i = 0; i < n; ++i) {
      const std::int64_t extent = x[static_cast<int>(i) + 2];
      const std::int64_t reach = (out.kernel[i] - 1) * out.dilations[i] + 1;
      const std::int64_t windows = ceil_div(extent, out.strides[i]);
      const std::int64_t total =
          std::max<std::int64_t>((windows - 1) * out.strides[i] + reach - extent, 0);
      const std::int64_t smaller = total / 2;
      out.pads[i] = mode == "SAME_UPPER" ? smaller : total - smaller;
      out.pads[n + i] = total - out.pads[i];
    }
  }
  return out;
}

ir::Attributes convolution_attributes(const WindowAttributes& window, std::int64_t groups) {
  return {{"strides", window.strides},
          {"pads", window.pads},
          {"dilations", window.dilations},
          {"group", groups}};
}

Var convolved(OperatorCall& call, const WindowAttributes& window) {
  std::vector<Var> inputs{call.in(0), call.in(1)};
  if (call.has(2)) inputs.push_back(call.in(2));
  return call.builder().call1("conv", inputs,
                              convolution_attributes(window, call.integer("group", 1)));
}

}  // namespace plimsoll::model::onnx

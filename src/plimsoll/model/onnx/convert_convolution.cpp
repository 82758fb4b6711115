// Conv and ConvTranspose.
#include <algorithm>

#include "plimsoll/model/onnx/building_blocks.h"
#include "plimsoll/model/onnx/operator_table.h"
#include "plimsoll/model/onnx/window_attributes.h"

namespace plimsoll::model::onnx {
namespace {

Result<ir::Ints> kernel_of(OperatorCall& call) {
  if (!call.has(0) || !call.has(1)) return bad_input("its input or weight is missing");
  const ir::Shape& w = call.shape(1);
  if (w.rank() < 3) return bad_input("its weight has rank {}, expects at least 3", w.rank());
  const ir::Ints kernel(w.begin() + 2, w.end());
  if (call.has_attribute("kernel_shape") && call.integers("kernel_shape") != kernel) {
    return bad_input("kernel_shape differs from the weight's shape {}", ir::to_string(w));
  }
  return kernel;
}

Status conv(OperatorCall& call) {
  PLIMSOLL_TRY(const ir::Ints kernel, kernel_of(call));
  PLIMSOLL_TRY(const WindowAttributes window, window_attributes(call, call.shape(0), kernel));
  std::vector<Var> inputs{call.in(0), call.in(1)};
  if (call.has(2)) inputs.push_back(call.in(2));
  call.out(0, call.builder().call1("conv", inputs,
                                   {{"strides", window.strides},
                                    {"pads", window.pads},
                                    {"dilations", window.dilations},
                                    {"group", call.integer("group", 1)}}));
  return {};
}

// What output_shape or auto_pad asks for: pads, and output_padding where they would have to be negative.
Status fit_output(OperatorCall& call, WindowAttributes& window, ir::Ints& output_padding) {
  const ir::Shape& x = call.shape(0);
  const auto n = static_cast<std::size_t>(window.dims());
  const std::string mode = call.text("auto_pad", "NOTSET");
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  ir::Ints wanted = call.integers("output_shape");
  if (wanted.size() == n + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (wanted.empty() && same) {
    for (std::size_t i = 0; i < n; ++i) wanted.push_back(x[static_cast<int>(i) + 2] * window.strides[i]);
  }
  if (wanted.empty()) return {};
  if (wanted.size() != n) return bad_input("output_shape has {} numbers, expects {}", wanted.size(), n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t reach = (window.kernel[i] - 1) * window.dilations[i] + 1;
    const std::int64_t full = window.strides[i] * (x[static_cast<int>(i) + 2] - 1) + output_padding[i] + reach;
    if (wanted[i] < 0 || wanted[i] > (1LL << 40)) return bad_input("output_shape has an impossible {}", wanted[i]);
    const std::int64_t total = full - wanted[i];
    if (total < 0) output_padding[i] -= total;
    const std::int64_t pad = std::max<std::int64_t>(total, 0);
    window.pads[i] = mode == "SAME_UPPER" ? pad / 2 : pad - pad / 2;
    window.pads[n + i] = pad - window.pads[i];
  }
  return {};
}

Status conv_transpose(OperatorCall& call) {
  PLIMSOLL_TRY(const ir::Ints kernel, kernel_of(call));
  PLIMSOLL_TRY(WindowAttributes window, window_attributes(call, call.shape(0), kernel));
  ir::Ints output_padding = call.integers("output_padding", ir::Ints(kernel.size(), 0));
  if (output_padding.size() != kernel.size()) return bad_input("output_padding has the wrong length");
  PLIMSOLL_RETURN_IF_ERROR(fit_output(call, window, output_padding));
  std::vector<Var> inputs{call.in(0), call.in(1)};
  if (call.has(2)) inputs.push_back(call.in(2));
  call.out(0, call.builder().call1("conv_transpose", inputs,
                                   {{"strides", window.strides},
                                    {"pads", window.pads},
                                    {"dilations", window.dilations},
                                    {"group", call.integer("group", 1)},
                                    {"output_padding", output_padding}}));
  return {};
}

}  // namespace

std::vector<Operator> convolution_operators() {
  return {{"Conv", conv}, {"ConvTranspose", conv_transpose}};
}

}  // namespace plimsoll::model::onnx

// Conv, ConvTranspose, and what is one of them in disguise.
#include <algorithm>

#include "plimsoll/model/onnx/convert/building_blocks.h"
#include "plimsoll/model/onnx/convert/operator_table.h"
#include "plimsoll/model/onnx/convert/window_attributes.h"

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
  return call.done(convolved(call, window));
}

// What output_shape or auto_pad asks for: pads, and output_padding where they would have to be
// negative.
Status fit_output(OperatorCall& call, WindowAttributes& window, ir::Ints& output_padding) {
  const ir::Shape& x = call.shape(0);
  const auto n = static_cast<std::size_t>(window.dims());
  const std::string mode = call.text("auto_pad", "NOTSET");
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  ir::Ints wanted = call.integers("output_shape");
  if (wanted.size() == n + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (wanted.empty() && same) {
    for (std::size_t i = 0; i < n; ++i)
      wanted.push_back(x[static_cast<int>(i) + 2] * window.strides[i]);
  }
  if (wanted.empty()) return {};
  if (wanted.size() != n)
    return bad_input("output_shape has {} numbers, expects {}", wanted.size(), n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t reach = (window.kernel[i] - 1) * window.dilations[i] + 1;
    const std::int64_t full =
        window.strides[i] * (x[static_cast<int>(i) + 2] - 1) + output_padding[i] + reach;
    if (wanted[i] < 0 || wanted[i] > (1LL << 40))
      return bad_input("output_shape has an impossible {}", wanted[i]);
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
  if (output_padding.size() != kernel.size())
    return bad_input("output_padding has the wrong length");
  PLIMSOLL_RETURN_IF_ERROR(fit_output(call, window, output_padding));
  std::vector<Var> inputs{call.in(0), call.in(1)};
  if (call.has(2)) inputs.push_back(call.in(2));
  ir::Attributes how = convolution_attributes(window, call.integer("group", 1));
  how.set("output_padding", output_padding);
  return call.done(call.builder().call1("conv_transpose", inputs, how));
}

// Blocks [N, C·taps, places] added up where they lie in the image: a transposed convolution whose
// kernel for each tap has a single one.
Status col2im(OperatorCall& call) {
  PLIMSOLL_TRY(const ir::Ints image, call.known_integers(1, "image_shape"));
  PLIMSOLL_TRY(const ir::Ints block, call.known_integers(2, "block_shape"));
  if (call.rank(0) != 3 || image.size() != block.size() || image.empty())
    return bad_input("its shapes do not fit each other");
  ir::Ints space = image;
  space.insert(space.begin(), 2, 1);
  PLIMSOLL_TRY(const ir::Shape whole, ir::Shape::make(space));
  PLIMSOLL_TRY(const WindowAttributes window, window_attributes(call, whole, block));
  const std::size_t n = block.size();
  std::int64_t taps = 1;
  std::int64_t places = 1;
  ir::Ints shape{call.shape(0)[0], call.shape(0)[1]};
  ir::Ints output_padding;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t room =
        image[i] + window.pads[i] + window.pads[n + i] - ((block[i] - 1) * window.dilations[i] + 1);
    if (room < 0 || window.pads[i] < 0 || window.pads[n + i] < 0)
      return bad_input("a block of {} does not fit {}", block[i], image[i]);
    shape.push_back(room / window.strides[i] + 1);
    output_padding.push_back(room % window.strides[i]);
    if ((taps *= block[i]) > kMostFolded || (places *= shape.back()) > (1LL << 40))
      return bad_input("its blocks are too large");
  }
  const std::int64_t wide = shape[1];
  if (wide % taps != 0 || places != call.shape(0)[2] || wide > kMostFolded / 4 / taps) {
    return bad_input("{} does not hold blocks of {} in {} places", ir::to_string(call.shape(0)),
                     taps, places);
  }
  std::vector<double> single(static_cast<std::size_t>(wide * taps), 0);
  for (std::int64_t i = 0; i < wide; ++i) single[static_cast<std::size_t>(i * taps + i % taps)] = 1;
  ir::Ints kernel = block;
  kernel.insert(kernel.begin(), {wide, 1});
  PLIMSOLL_TRY(const ir::Shape kernel_shape, ir::Shape::make(kernel));
  const Var weight = call.constant(Array::of_reals(kernel_shape, std::move(single), call.dtype(0)));
  ir::Attributes how = convolution_attributes(window, wide / taps);
  how.set("output_padding", output_padding);
  return call.done(
      call.builder().call1("conv_transpose", {reshape_to(call.in(0), shape), weight}, how));
}

// A depthwise convolution that looks back only; what it needs of earlier calls is its state.
Status causal_conv_with_state(OperatorCall& call) {
  if (!call.has(0) || !call.has(1) || call.rank(0) != 3 || call.rank(1) != 3)
    return bad_input("its input or weight is not of rank 3");
  const std::string activation = call.text("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    return bad_input("activation '{}' is not known", activation);
  Builder& builder = call.builder();
  const Var x = call.in(0);
  const std::int64_t before = call.shape(1)[2] - 1;
  const Var past =
      call.has(3) ? call.in(3) : builder.fill({x.dtype(), {x.dim(0), x.dim(1), before}, {}}, 0);
  const Var whole = before > 0 ? concat_all({past, x}, 2) : x;
  std::vector<Var> inputs{whole, call.in(1)};
  if (call.has(2)) inputs.push_back(call.in(2));
  const Var y = builder.call1("conv", inputs,
                              {{"strides", ir::Ints{1}},
                               {"pads", ir::Ints{0, 0}},
                               {"dilations", ir::Ints{1}},
                               {"group", x.dim(1)}});
  if (builder.error()) return {};
  call.out(0, activation == "none" ? y : unary_call("silu", y));
  call.out(1, slice_axis(whole, 2, whole.dim(2) - before, whole.dim(2)));
  return {};
}

}  // namespace

std::vector<Operator> convolution_operators() {
  return {{"Conv", conv, "auto_pad dilations group kernel_shape pads strides"},
          same("conv_transpose", conv_transpose, "auto_pad kernel_shape output_shape"),
          {"Col2Im", col2im, "dilations pads strides"},
          {"CausalConvWithState", causal_conv_with_state, "activation"}};
}

}  // namespace plimsoll::model::onnx

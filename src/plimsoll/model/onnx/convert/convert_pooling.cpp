// Pooling. What has no operator of ours (dilated averages, p-norms) is a depthwise convolution with
// ones.
#include <algorithm>
#include <numeric>

#include "plimsoll/base/checked.h"
#include "plimsoll/model/onnx/convert/building_blocks.h"
#include "plimsoll/model/onnx/convert/operator_table.h"
#include "plimsoll/model/onnx/convert/window_attributes.h"

namespace plimsoll::model::onnx {
namespace {

using ir::DType;

Result<WindowAttributes> pool_window(OperatorCall& call) {
  if (!call.has(0)) return bad_input("its input is missing");
  if (!call.has_attribute("kernel_shape")) return bad_input("kernel_shape is missing");
  return window_attributes(call, call.shape(0), call.integers("kernel_shape"));
}

// ONNX's indices count elements of the whole input; ours count places inside the window.
Var global_indices(Var local, const ir::Shape& x, const WindowAttributes& window,
                   bool column_major) {
  Builder& builder = local.builder();
  const ir::Shape out = local.shape();
  const auto along = [&](int axis) { return counted(builder, dims_of(out), axis); };
  Var rest = cast_to(local, DType::kI64);
  std::vector<Var> places(static_cast<std::size_t>(window.dims()));
  for (int i = window.dims() - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    const Var size = ops::number(rest, static_cast<double>(window.kernel[at]));
    const Var step = builder.call1("mod", {rest, size});
    rest = rest / size;
    places[at] = along(i + 2) * static_cast<double>(window.strides[at]) -
                 static_cast<double>(window.pads[at]) +
                 step * static_cast<double>(window.dilations[at]);
  }
  Var index = along(0) * static_cast<double>(x[1]) + along(1);
  for (int i = 0; i < window.dims(); ++i) index = index * static_cast<double>(x[i + 2]);
  std::int64_t stride = 1;
  for (int k = 0; k < window.dims(); ++k) {
    const int i = column_major ? k : window.dims() - 1 - k;
    index = index + places[static_cast<std::size_t>(i)] * static_cast<double>(stride);
    stride *= x[i + 2];
  }
  return index;
}

Status max_pool(OperatorCall& call) {
  PLIMSOLL_TRY(const WindowAttributes window, pool_window(call));
  const DType dtype = call.dtype(0);
  const Var x = ir::is_float(dtype) ? call.in(0) : cast_to(call.in(0), DType::kF32);
  const auto made = call.builder().call("max_pool", {x},
                                        {{"kernel", window.kernel},
                                         {"strides", window.strides},
                                         {"pads", window.pads},
                                         {"dilations", window.dilations},
                                         {"ceil_mode", std::int64_t{window.ceil_mode}}});
  call.out(0, cast_to(made[0], dtype));
  if (call.wants(1) && made.size() > 1) {
    call.out(1,
             global_indices(made[1], call.shape(0), window, call.integer("storage_order", 0) != 0));
  }
  return {};
}

// Sums over windows: every channel convolved with ones, room made at the ends for partial windows.
Var window_sums(OperatorCall& call, Var x, const WindowAttributes& window) {
  const ir::Shape shape = x.shape();
  const auto n = static_cast<std::size_t>(window.dims());
  ir::Ints pads = window.pads;
  ir::Ints flat{shape[0] * shape[1], 1};
  ir::Ints weight{1, 1};
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t extent = shape[static_cast<int>(i) + 2];
    const std::int64_t reach = (window.kernel[i] - 1) * window.dilations[i] + 1;
    const std::int64_t room = extent + pads[i] + pads[n + i] - reach;
    const std::int64_t stride = window.strides[i];
    if (window.ceil_mode && room > 0) {
      std::int64_t last = ceil_div(room, stride) * stride;
      if (last >= extent + pads[i]) last -= stride;
      pads[n + i] += std::max<std::int64_t>(last - room, 0);
    }
    flat.push_back(extent);
    weight.push_back(window.kernel[i]);
  }
  Builder& builder = call.builder();
  const auto made_weight = ir::Shape::make(weight);
  if (!made_weight) {
    builder.fail(made_weight.error().message);
    return x;
  }
  const Var ones = builder.fill({x.dtype(), *made_weight, {}}, 1);
  const Var y =
      builder.call1("conv", {reshape_to(x, flat), ones},
                    {{"strides", window.strides}, {"pads", pads}, {"dilations", window.dilations}});
  if (builder.error()) return x;
  ir::Ints out = dims_of(y.shape());
  out[0] = shape[0];
  out[1] = shape[1];
  return reshape_to(y, out);
}

Status average_pool(OperatorCall& call) {
  PLIMSOLL_TRY(const WindowAttributes window, pool_window(call));
  const bool dilated = std::any_of(window.dilations.begin(), window.dilations.end(),
                                   [](std::int64_t d) { return d != 1; });
  const std::int64_t count_pad = call.integer("count_include_pad", 0);
  const Var x = call.in(0);
  if (!dilated) {
    return call.done(call.builder().call1("avg_pool", {x},
                                          {{"kernel", window.kernel},
                                           {"strides", window.strides},
                                           {"pads", window.pads},
                                           {"ceil_mode", std::int64_t{window.ceil_mode}},
                                           {"count_include_pad", count_pad}}));
  }
  const Var sums = window_sums(call, x, window);
  if (count_pad != 0 && !window.ceil_mode) {
    const std::int64_t places = std::accumulate(window.kernel.begin(), window.kernel.end(),
                                                std::int64_t{1}, std::multiplies<>());
    return call.done(sums / static_cast<double>(places));
  }
  // How many elements (and, when they count, pads) each window covers.
  ir::Shape ones_shape = x.shape();
  ones_shape[0] = ones_shape[1] = 1;
  Var ones = call.builder().fill({x.dtype(), ones_shape, {}}, 1);
  WindowAttributes counting = window;
  if (count_pad != 0) {
    ir::Ints pads(static_cast<std::size_t>(x.rank()) * 2, 0);
    for (int i = 0; i < window.dims(); ++i) {
      pads[static_cast<std::size_t>(i + 2)] = window.pads[static_cast<std::size_t>(i)];
      pads[static_cast<std::size_t>(i + 2 + x.rank())] =
          window.pads[static_cast<std::size_t>(i + window.dims())];
    }
    ones = call.builder().call1("pad", {ones}, {{"pads", pads}, {"value", 1.0}});
    counting.pads.assign(counting.pads.size(), 0);
  }
  return call.done(sums / window_sums(call, ones, counting));
}

Status lp_pool(OperatorCall& call) {
  PLIMSOLL_TRY(const WindowAttributes window, pool_window(call));
  const auto p = static_cast<double>(call.integer("p", 2));
  Builder& builder = call.builder();
  const Var x = unary_call("abs", call.in(0));
  const Var powers = p == 2 ? x * x : p == 1 ? x : builder.call1("pow", {x, ops::number(x, p)});
  const Var sums = window_sums(call, powers, window);
  return call.done(p == 2   ? unary_call("sqrt", sums)
                   : p == 1 ? sums
                            : builder.call1("pow", {sums, ops::number(sums, 1 / p)}));
}

Status global_pool(OperatorCall& call) {
  if (!call.has(0) || call.rank(0) < 3) return bad_input("its input has no spatial dimensions");
  return call.done(reduce(call.target(), call.in(0), range(2, call.rank(0)), true));
}

Status global_lp_pool(OperatorCall& call) {
  if (!call.has(0) || call.rank(0) < 3) return bad_input("its input has no spatial dimensions");
  const auto p = static_cast<double>(call.integer("p", 2));
  Builder& builder = call.builder();
  const Var x = unary_call("abs", call.in(0));
  const Var sums =
      reduce("reduce_sum", builder.call1("pow", {x, ops::number(x, p)}), range(2, x.rank()), true);
  return call.done(builder.call1("pow", {sums, ops::number(sums, 1 / p)}));
}

// Every element back to where its index says, zeros elsewhere.
Status max_unpool(OperatorCall& call) {
  PLIMSOLL_TRY(const WindowAttributes window, pool_window(call));
  if (!call.has(1)) return bad_input("indices (input 1) are missing");
  const ir::Shape& x = call.shape(0);
  const auto n = static_cast<std::size_t>(window.dims());
  ir::Ints shape{x[0], x[1]};
  for (std::size_t i = 0; i < n; ++i) {
    shape.push_back((x[static_cast<int>(i) + 2] - 1) * window.strides[i] - window.pads[i] -
                    window.pads[n + i] + window.kernel[i]);
  }
  PLIMSOLL_TRY(const ir::Shape full, ir::Shape::make(shape));
  Builder& builder = call.builder();
  const Var zeros = builder.fill({call.dtype(0), {full.elements()}, {}}, 0);
  PLIMSOLL_RETURN_IF_ERROR(check_indices(call.known(1), full.elements()));
  const Var flat = builder.call1("scatter_elements",
                                 {zeros, reshape_to(call.in(1), {call.shape(1).elements()}),
                                  reshape_to(call.in(0), {x.elements()})},
                                 {{"axis", std::int64_t{0}}});
  Var y = reshape_to(flat, shape);
  if (call.has(2)) {
    PLIMSOLL_TRY(const ir::Ints wanted, call.known_integers(2, "output_shape"));
    if (wanted.size() != shape.size())
      return bad_input("output_shape has {} numbers, expects {}", wanted.size(), shape.size());
    ir::Ints pads(shape.size() * 2, 0);
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (wanted[i] < 0 || wanted[i] > (1LL << 40))
        return bad_input("output_shape has an impossible {}", wanted[i]);
      pads[shape.size() + i] = wanted[i] - shape[i];
    }
    if (wanted != shape) y = builder.call1("pad", {y}, {{"pads", pads}});
  }
  return call.done(y);
}

}  // namespace

std::vector<Operator> pooling_operators() {
  return {
      {"MaxPool", max_pool, "auto_pad ceil_mode dilations kernel_shape pads storage_order strides"},
      {"AveragePool", average_pool,
       "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides"},
      {"LpPool", lp_pool, "auto_pad ceil_mode dilations kernel_shape p pads strides"},
      {"MaxUnpool", max_unpool, "kernel_shape pads strides"},
      {"GlobalAveragePool", global_pool, {}, "reduce_mean"},
      {"GlobalMaxPool", global_pool, {}, "reduce_max"},
      {"GlobalLpPool", global_lp_pool, "p"},
  };
}

}  // namespace plimsoll::model::onnx

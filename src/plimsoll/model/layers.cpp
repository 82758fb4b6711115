#include "plimsoll/model/layers.h"

#include <algorithm>

namespace plimsoll::model {
namespace {

// The same number for every spatial axis.
ir::Ints spatial(int axes, std::int64_t value) {
  return ir::Ints(static_cast<std::size_t>(axes), value);
}

ops::ConvOptions spatial(int axes, const ConvOptions& options) {
  return {.strides = spatial(axes, options.stride),
          .pads = spatial(2 * axes, options.padding),
          .dilations = spatial(axes, 1),
          .group = options.groups};
}

Var convolve(Net& net, std::string_view name, Var x, std::int64_t channels, int axes,
             const ConvOptions& options) {
  if (!net.expect_rank(x, axes + 2, name)) return x;
  const auto scope = net.scope(name);
  if (options.groups < 1 || x.dim(1) % options.groups != 0) {
    net.builder().fail(
        fmt::format("{} channels do not divide into {} groups", x.dim(1), options.groups));
    return x;
  }
  ir::Shape shape{channels, x.dim(1) / options.groups};
  for (int axis = 0; axis < axes; ++axis) shape.push_back(options.kernel);
  const std::int64_t window = shape.elements(2, axes + 2);
  const std::int64_t fan_in = shape[1] * window;
  const InitRule& rule = net.options().conv_init;
  const Var w = net.weight("weight", shape, rule.weight(fan_in, channels * window));
  const Var bias = options.bias ? net.weight("bias", {channels}, rule.bias(fan_in)) : Var();
  return ops::conv(x, w, bias, spatial(axes, options));
}

// Row i averages the input places that output place i covers.
ops::Array averaging_matrix(std::int64_t out, std::int64_t in, ir::DType dtype) {
  std::vector<double> values(static_cast<std::size_t>(out * in));
  for (std::int64_t i = 0; i < out; ++i) {
    const std::int64_t begin = i * in / out;
    const std::int64_t end = ((i + 1) * in + out - 1) / out;
    for (std::int64_t j = begin; j < end; ++j) {
      values[static_cast<std::size_t>(i * in + j)] = 1.0 / static_cast<double>(end - begin);
    }
  }
  return ops::Array::of_reals({out, in}, std::move(values), dtype);
}

ops::PoolOptions spatial(const PoolOptions& options) {
  return {.kernel = spatial(2, options.kernel),
          .strides = spatial(2, options.stride),
          .pads = spatial(4, options.padding)};
}

}  // namespace

Var conv2d(Net& net, std::string_view name, Var x, std::int64_t channels,
           const ConvOptions& options) {
  return convolve(net, name, x, channels, 2, options);
}

Var conv1d(Net& net, std::string_view name, Var x, std::int64_t channels,
           const ConvOptions& options) {
  return convolve(net, name, x, channels, 1, options);
}

Var conv_transpose2d(Net& net, std::string_view name, Var x, std::int64_t channels,
                     const ConvOptions& options) {
  if (!net.expect_rank(x, 4, name)) return x;
  const auto scope = net.scope(name);
  const std::int64_t window = options.kernel * options.kernel;
  const InitRule& rule = net.options().conv_init;
  // PyTorch takes the fans of the weight as it lies, so the roles of the channels are turned.
  const Var w = net.weight("weight", {x.dim(1), channels, options.kernel, options.kernel},
                           rule.weight(channels * window, x.dim(1) * window));
  const Var bias =
      options.bias ? net.weight("bias", {channels}, rule.bias(channels * window)) : Var();
  return ops::conv_transpose(x, w, bias, spatial(2, options));
}

Var linear(Net& net, std::string_view name, Var x, std::int64_t features,
           const LinearOptions& options) {
  if (net.builder().error()) return x;
  if (x.rank() == 0) {
    net.builder().fail(fmt::format("{}: input is a scalar", name));
    return x;
  }
  const auto scope = net.scope(name);
  const std::int64_t in = x.dim(-1);
  const InitRule rule = options.init.value_or(net.options().linear_init);
  const ir::Shape shape = options.input_major ? ir::Shape{in, features} : ir::Shape{features, in};
  const Var w = net.weight("weight", shape, rule.weight(in, features));
  const Var bias = options.bias ? net.weight("bias", {features}, rule.bias(in)) : Var();
  return ops::linear(x, w, bias, {.trans_w = !options.input_major});
}

Var batch_norm(Net& net, std::string_view name, Var x, const NormOptions& options) {
  if (net.builder().error()) return x;
  if (x.rank() < 2) {
    net.builder().fail(fmt::format("{}: input is {}, expects a batch and channels", name,
                                   ir::to_string(x.shape())));
    return x;
  }
  const auto scope = net.scope(name);
  const ir::Shape channels{x.dim(1)};
  const Var gamma = net.weight("weight", channels, constant(1));
  const Var beta = net.weight("bias", channels, constant(0));
  const Var running_mean = net.state("running_mean", channels, 0);
  const Var running_var = net.state("running_var", channels, 1);
  const ops::BatchNormOptions how{.epsilon = options.epsilon};
  if (!net.training()) {
    const Var mean = net.cast_to(running_mean, x.dtype());
    const Var var = net.cast_to(running_var, x.dtype());
    return ops::batch_norm_inference(x, gamma, beta, mean, var, how);
  }
  const ops::BatchNorm made = ops::batch_norm(x, gamma, beta, how);
  const std::int64_t count = x.dim(0) * x.shape().elements(2, x.rank());
  net.move_statistics_later(running_mean, running_var, made.mean, made.var, 0.1, count);
  return made.y;
}

Var layer_norm(Net& net, std::string_view name, Var x, const NormOptions& options) {
  if (net.builder().error() || x.rank() == 0) return x;
  const auto scope = net.scope(name);
  const auto parameter = [&](std::string_view part, double start) {
    return net.cast_to(net.stored_weight(part, {x.dim(-1)}, constant(start)), x.dtype());
  };
  const Var gamma = parameter("weight", 1);
  const Var beta = parameter("bias", 0);
  return ops::layer_norm(x, gamma, beta, -1, options.epsilon).y;
}

Var embedding_table(Net& net, std::string_view name, std::int64_t rows, std::int64_t width,
                    ir::Init init) {
  const auto scope = net.scope(name);
  return net.stored_weight("weight", {rows, width}, init);
}

Var look_up(Var table, Var ids) {
  return ops::gather(table, ids);
}

Var first_rows(Var table, std::int64_t count) {
  return table.dim(0) == count ? table : ops::slice(table, 0, 0, count);
}

Var tied_head(Net& net, Var x, Var table, Var bias) {
  return ops::linear(x, net.computed(table), bias, {.trans_w = true});
}

Var attend(Var q, Var k, Var v, const AttentionOptions& options) {
  return ops::attention(q, k, v, {.heads = options.heads, .causal = options.causal}).y;
}

Var attend_fused(Var qkv, const AttentionOptions& options) {
  return ops::attention_qkv(qkv, {.heads = options.heads, .causal = options.causal}).y;
}

Var dropout(Net& net, Var x, double ratio) {
  if (!net.training() || ratio <= 0) return x;
  return ops::dropout(x, net.dropout_counter(), ratio, net.next_dropout_seed());
}

Var max_pool2d(Var x, const PoolOptions& options) {
  return ops::max_pool(x, spatial(options)).y;
}

Var avg_pool2d(Var x, const PoolOptions& options) {
  return ops::avg_pool(x, spatial(options));
}

Var adaptive_avg_pool2d(Net& net, Var x, std::int64_t extent) {
  if (!net.expect_rank(x, 4, "adaptive_avg_pool2d")) return x;
  const std::int64_t height = x.dim(2);
  const std::int64_t width = x.dim(3);
  if (height == extent && width == extent) return x;
  if (height == width && height % extent == 0) {
    return avg_pool2d(x, {.kernel = height / extent, .stride = height / extent});
  }
  const auto scope = net.scope("avgpool");
  const Var rows = net.builder().constant("rows", averaging_matrix(extent, height, x.dtype()));
  const Var columns = net.builder().constant("columns", averaging_matrix(extent, width, x.dtype()));
  return ops::matmul(ops::matmul(rows, x), columns, {.trans_b = true});
}

Var global_avg_pool2d(Var x) {
  return ops::reduce_mean(x, {2, 3});
}

}  // namespace plimsoll::model

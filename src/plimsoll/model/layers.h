// Layers: operators together with their weights, as one writes models.
//
//   Var h = conv2d(net, "conv1", x, 64, {.kernel = 7, .stride = 2, .padding = 3, .bias = false});
//   h = relu(batch_norm(net, "bn1", h));
//   h = max_pool2d(h, {.kernel = 3, .stride = 2, .padding = 1});
//
// A layer with weights takes its name second; weights are called <scope>.<name>.weight and .bias,
// shaped as in PyTorch ([out, in] for linear, [out, in/groups, k, k] for convolutions). Sizes of
// inputs are read from x, so only outputs are said. What has no weights and no state takes only its
// input; relu, gelu, concat, flatten and the like are the operators themselves (ops/functions.h).
#pragma once

#include <optional>
#include <string_view>

#include "plimsoll/model/net.h"
#include "plimsoll/ops/functions.h"

namespace plimsoll::model {

struct ConvOptions {
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t groups = 1;
  bool bias = true;
};
// x[N,C,H,W] -> [N,channels,H',W'].
Var conv2d(Net& net, std::string_view name, Var x, std::int64_t channels,
           const ConvOptions& options = {});
// x[N,C,L] -> [N,channels,L'].
Var conv1d(Net& net, std::string_view name, Var x, std::int64_t channels,
           const ConvOptions& options = {});
// x[N,C,H,W] -> [N,channels,H*stride,W*stride] when kernel = stride.
Var conv_transpose2d(Net& net, std::string_view name, Var x, std::int64_t channels,
                     const ConvOptions& options);

struct LinearOptions {
  bool bias = true;
  std::optional<InitRule> init = std::nullopt;  // the net's when absent
  bool input_major = false;  // the weight is [in, out], as GPT-2's Conv1D has it, not [out, in]
};
// x[..., in] -> [..., features].
Var linear(Net& net, std::string_view name, Var x, std::int64_t features,
           const LinearOptions& options = {});

struct NormOptions {
  double epsilon = ops::kNormEpsilon;
};
// Over N and the spatial extents of x[N,C,...]. In training form the running statistics move at the
// end of the step with momentum 0.1.
Var batch_norm(Net& net, std::string_view name, Var x, const NormOptions& options = {});
// Over the last axis, in the type of x.
Var layer_norm(Net& net, std::string_view name, Var x, const NormOptions& options = {});

// A table [rows, width] called <name>.weight; look rows up in it, or tie an output layer to it. In
// mixed precision it is read as it is kept: rows are summed with all their digits, and so are their
// gradients, as under PyTorch's autocast; net.computed(sum) goes on.
Var embedding_table(Net& net, std::string_view name, std::int64_t rows, std::int64_t width,
                    ir::Init init);
Var look_up(Var table, Var ids);
// The first `count` rows.
Var first_rows(Var table, std::int64_t count);
// x[..., width] times the table's transpose: scores for every row.
Var tied_head(Net& net, Var x, Var table, Var bias = {});

struct AttentionOptions {
  std::int64_t heads = 1;
  bool causal = false;
};
// The attention product alone: q[B,Sq,W], k and v[B,Sk,W] -> [B,Sq,W].
Var attend(Var q, Var k, Var v, const AttentionOptions& options);
// The same with q, k and v side by side in one tensor [B,S,3W].
Var attend_fused(Var qkv, const AttentionOptions& options);

// Nothing in inference form or when the ratio is 0.
Var dropout(Net& net, Var x, double ratio);

struct PoolOptions {
  std::int64_t kernel = 2;
  std::int64_t stride = 2;
  std::int64_t padding = 0;
};
Var max_pool2d(Var x, const PoolOptions& options = {});
Var avg_pool2d(Var x, const PoolOptions& options = {});
// To height = width = extent, whatever the input's, as torch.nn.AdaptiveAvgPool2d: windows that do
// not divide evenly become two small matrix products.
Var adaptive_avg_pool2d(Net& net, Var x, std::int64_t extent);
// x[N,C,H,W] -> [N,C]
Var global_avg_pool2d(Var x);

}  // namespace plimsoll::model

// A model under construction: a Builder, and what all of its layers share.
//
//   Net net("tiny", {.training = true});
//   Var x = net.input("images", {32, 3, 224, 224});
//   Var h = relu(batch_norm(net, "bn1", conv2d(net, "conv1", x, 64, {.kernel = 7, .stride = 2,
//   .padding = 3})));
//   ...
//   return net.finish(logits);
//
// A Net knows whether the model is to be trained, in which dtype its weights are, and what its
// layers leave for the end of the step: running statistics to be moved, the dropout counter to be
// raised. Layers (layers.h) are free functions on it; anything else is built with net.builder() and
// ops/functions.h.
//
// The two forms of a model:
//   training    dropout is there, batch norm uses the batch, the graph's first output is the loss
//   inference   neither is there, batch norm uses running statistics, the first output is the
//   prediction
//
// Names follow torchvision and Hugging Face ("layer1.0.conv1.weight"), so that weights and
// references map one to one; scopes put the dots in. Every input has the batch as its first extent.
//
// Errors are the Builder's: the first one is kept and comes out of finish() with the layer's name,
// so model code has no error handling of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/model/init_rule.h"
#include "plimsoll/ops/builder.h"

namespace plimsoll::model {

using ops::Builder;
using ops::Var;

struct NetOptions {
  bool training = true;
  ir::DType dtype = ir::DType::kF32;  // of weights and float inputs
  // Mixed precision: weights, inputs, running statistics and the loss stay in `dtype`, everything
  // between is computed in this one. A weight is cast where it is used, so its gradient and update
  // are in `dtype`.
  std::optional<ir::DType> compute = std::nullopt;
  std::uint64_t seed = 0;  // of the dropout masks
  InitRule conv_init = InitRule::torch_default();
  InitRule linear_init = InitRule::torch_default();
};

class Net {
 public:
  Net(std::string name, const NetOptions& options) : builder_(std::move(name)), options_(options) {}

  Builder& builder() { return builder_; }
  const NetOptions& options() const { return options_; }
  bool training() const { return options_.training; }
  [[nodiscard]] Builder::Scope scope(std::string_view name) { return builder_.scope(name); }
  // The same for a numbered block: "layer.3".
  [[nodiscard]] Builder::Scope scope(std::string_view name, std::int64_t index);

  Var input(std::string_view name, const ir::Shape& shape);
  // Integers from 0 up to `count`: labels, tokens. Synthetic data stays in that range.
  Var tokens(std::string_view name, const ir::Shape& shape, std::int64_t count);
  // Ready to be computed with: in mixed precision, the weight's cast.
  Var weight(std::string_view name, const ir::Shape& shape, ir::Init init);
  // As it is kept.
  Var stored_weight(std::string_view name, const ir::Shape& shape, ir::Init init);
  // Numbers that outlive a step and are not trained: running statistics.
  Var state(std::string_view name, const ir::Shape& shape, double start);

  // The random counter that every dropout of the model reads, and a number that tells them apart.
  Var dropout_counter();
  std::int64_t next_dropout_seed();

  // Running statistics move at the end of the step, by a batch_norm_update under the current layer.
  void move_statistics_later(Var running_mean, Var running_var, Var mean, Var var, double momentum,
                             std::int64_t count);

  // x itself when it has this dtype.
  Var cast_to(Var x, ir::DType dtype);
  // In the type that the model computes in.
  Var computed(Var x) { return cast_to(x, compute_dtype()); }

  // False, and the builder has failed, when x is not of this rank. Layers look before they index.
  bool expect_rank(Var x, int rank, std::string_view layer);

  // The graph, verified. In training form its output is the mean cross-entropy between logits[...,
  // classes] and an input labels[...], which this adds; in inference form its output is the logits.
  Result<ir::Graph> finish(Var logits);
  // The same with outputs of one's own; in training form the first is the loss.
  Result<ir::Graph> finish_with(std::initializer_list<Var> outputs);

 private:
  struct PendingStatistics {
    std::string layer;
    Var running_mean, running_var, mean, var;
    double momentum;
    std::int64_t count;
  };
  void append_updates();
  ir::DType compute_dtype() const { return options_.compute.value_or(options_.dtype); }

  Builder builder_;
  NetOptions options_;
  std::vector<PendingStatistics> statistics_;
  Var counter_;
  std::int64_t dropouts_ = 0;
};

}  // namespace plimsoll::model

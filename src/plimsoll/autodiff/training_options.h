// What training is asked for: the optimizer, and which weights it trains.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"

namespace plimsoll::autodiff {

enum class Optimizer { kSgd, kMomentum, kAdam, kAdamW };

// "sgd", "momentum", "adam", "adamw"
Result<Optimizer> parse_optimizer(std::string_view name);
std::string_view name(Optimizer optimizer);
// What trains every built-in model from its first step, without warm-up: the nets without
// normalisation decide. On one batch at published widths VGG diverges within five steps with SGD at
// 1e-2, and a narrow one with Adam at 1e-3.
double default_learning_rate(Optimizer optimizer);

struct TrainingOptions {
  Optimizer optimizer = Optimizer::kAdamW;
  double learning_rate = 1e-3;
  double momentum = 0.9;
  double weight_decay = 0.01;         // adamw; the others use 0 unless it is set explicitly
  bool decay_always = false;          // apply weight_decay with every optimizer
  double clip_norm = 0;               // 0: no clipping
  int accumulate = 1;                 // micro-batches per step
  std::vector<std::string> freeze;    // glob patterns of weights that are not trained
  int ranks = 1;                      // that train together, each on its own examples
  bool fixed_order = false;           // gradients are added in the order of ranks
  bool gradients_as_outputs = false;  // loss, then one gradient per trained weight, in their order
};

// The weights that a training graph trains: float, not frozen, and the loss depends on them.
std::vector<ValueId> trained_weights(const ir::Graph& forward, const TrainingOptions& options);

// `*` any characters, `?` one: "encoder.*.bias".
bool matches_glob(std::string_view pattern, std::string_view text);

}  // namespace plimsoll::autodiff

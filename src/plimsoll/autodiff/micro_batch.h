// Gradient accumulation: a step of N micro-batches as one graph. Internal to autodiff; see
// training.h.
#pragma once

#include <vector>

#include "plimsoll/autodiff/differentiate.h"
#include "plimsoll/autodiff/training.h"

namespace plimsoll::autodiff {

// `forward` is the model at the size of one micro-batch; inputs whose first extent is the batch
// become N times as long and are sliced.
Result<ir::Graph> make_accumulating_graph(const ir::Graph& forward, const TrainingOptions& options);

// Clipping and update nodes at the end of the graph.
void finish_updates(Builder& builder, const std::vector<Var>& weights,
                    const std::vector<Var>& gradients, const TrainingOptions& options);

}  // namespace plimsoll::autodiff

// Gradient accumulation: a step of N micro-batches as one graph. Internal to autodiff; see
// training.h.
#pragma once

#include "plimsoll/autodiff/training_options.h"

namespace plimsoll::autodiff {

// `forward` is the model at the size of one micro-batch; inputs whose first extent is the batch
// become N times as long and are sliced.
Result<ir::Graph> make_accumulating_graph(const ir::Graph& forward, const TrainingOptions& options);

}  // namespace plimsoll::autodiff

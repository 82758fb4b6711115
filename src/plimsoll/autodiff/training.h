// From a model with a loss to the graph of one training step.
//
//   forward graph ──▶ micro-batches ──▶ gradients ──▶ clipping ──▶ updates
//
// The forward graph's first output is the scalar loss. The training graph has the same loss as its
// first output and, for every weight that is trained, an update node whose result takes the
// weight's place at the end of the step. Moments and the step counter become sources of kind
// optimizer.
//
// Updates stand right behind the last node that needs the old weight, so that a gradient dies as
// soon as it is born. That is not possible when all gradients are needed at once: when they are
// clipped by their global norm, or when the caller wants them as outputs; then updates stand at the
// end.
//
// Accumulation over N micro-batches repeats the forward and backward part N times on slices of the
// inputs and adds the gradients up; the loss is the mean. State that a step changes (running
// statistics, the dropout counter) is handed from one micro-batch to the next.
//
// With several ranks the loss is each rank's share of the mean over all examples, and every
// gradient is summed over the ranks before anybody uses it: one `all_reduce` for each weight, which
// rewrite/fuse_collectives.h joins. The loss that the graph puts out is summed too, so that all
// ranks say the same.
#pragma once

#include "plimsoll/autodiff/training_options.h"
#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"

namespace plimsoll::autodiff {

Result<ir::Graph> make_training_graph(const ir::Graph& forward, const TrainingOptions& options);

}  // namespace plimsoll::autodiff

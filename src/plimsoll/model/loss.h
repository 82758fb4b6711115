// Gives a model that only predicts a loss to be trained with.
//
//   cross-entropy   of the first output as logits against a new int64 input `labels`: [...,
//                   classes] against [...], or
//                   [N, classes, H, W] (a segmentation) against [N, H, W]
//   mse             of the first output against a new input `target` of its type
//   NAME            the output of that name already is the loss; it becomes the first
#pragma once

#include <string_view>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"

namespace plimsoll::model {

Result<ir::Graph> with_loss(ir::Graph graph, std::string_view loss);

}  // namespace plimsoll::model

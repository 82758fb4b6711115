// From a MODEL as a user names it to the graph that runs.
//
//   built-in name ─┐
//   model.graph   ─┼─▶ forward graph ─▶ (loss) ─▶ training step
//   model.onnx    ─┘
//
// A built-in model is trained unless told otherwise, a file is used as it is unless told to train.
// A `.graph` file may hold any stage: a prediction (give it a --loss), a forward graph with its
// loss, or a whole training step. Everything that leaves here has passed ops::verify.
#pragma once

#include "plimsoll/api/model_options.h"
#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/store/weight_source.h"

namespace plimsoll::api {

struct LoadedModel {
  ir::Graph graph;              // a training step, or a forward graph
  bool training = false;        // which of the two
  store::WeightSource weights;  // what an .onnx file brings; empty otherwise
};

Result<LoadedModel> load_model(const ModelRequest& request);

// Without the training step: a forward graph, whose first output is the loss if it is to be
// trained.
Result<LoadedModel> load_forward(const ModelRequest& request);

}  // namespace plimsoll::api

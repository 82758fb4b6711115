// From a MODEL as a user names it to a graph: the pipeline's first arrow (api/pipeline.h).
//
//   built-in name ─┐
//   model.graph   ─┼─▶ forward graph ─▶ (loss)
//   model.onnx    ─┘
//
// A built-in model is trained unless told otherwise, a file is used as it is unless told to train.
// A `.graph` file may hold any stage: a prediction (give it a --loss), a forward graph with its
// loss, or a whole training step. Everything that leaves here has passed ops::verify.
#pragma once

#include "plimsoll/api/model_options.h"
#include "plimsoll/autodiff/training.h"
#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/store/weight_source.h"

namespace plimsoll::api {

struct LoadedModel {
  ir::Graph graph;              // a training step, or a forward graph
  bool training = false;        // which of the two
  store::WeightSource weights;  // what an .onnx file brings; empty otherwise
};

// A forward graph, whose first output is the loss if it is to be trained; or what the file holds.
Result<LoadedModel> load_forward(const ModelRequest& request);

// Whether the graph has a backward pass already.
bool has_backward(const ir::Graph& graph);
// The request as autodiff knows it.
Result<autodiff::TrainingOptions> training_options(const ModelRequest& request);

}  // namespace plimsoll::api

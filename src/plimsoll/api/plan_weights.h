// The weights of a plan that came from a model file: what the plan's file remembers of them, and
// how `run plan.json` gets them again.
//
//   plan m.onnx -o p.json   p.json: "m.onnx", 113 MB, hash 5d0c...; imported to train, batch 8
//   run p.json              imports m.onnx the same way, compares, copies the weights
//
// A plan file is hostile like any other, so what it says is no permission to read. By itself `run`
// opens only a model in the plan's own folder or below it, through no symbolic link, as a model
// file may open its external data (store/data_folder.h). A model elsewhere has to be named by the
// user: `--weights ../models/m.onnx`. What was named is read whatever it holds, with a warning
// where that is not what the plan was made with; what was not named must be the very same bytes.
//
// Weights that a --weights or --resume archive brings in full need no model file.
//
// Failures: kBadInput that names the plan, the file and what to do.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/api/model_options.h"
#include "plimsoll/base/result.h"
#include "plimsoll/plan/plan.h"
#include "plimsoll/store/weight_source.h"

namespace plimsoll::api {

// Whether content of a file is missing from the graph alone.
bool takes_weights_from_file(const ir::Graph& graph);

// What a plan in `plan_file` should say of the weights that `request`, a file, was loaded with.
// Reads the files through once.
Result<plan::WeightsOrigin> origin_of_weights(const ModelRequest& request,
                                              const store::WeightSource& weights,
                                              const std::string& plan_file);

// Whether `run plan_file` opens the model by itself.
bool lies_beside(const std::string& model, const std::string& plan_file);

// The weights again. `named`: the model as the user names it; empty: as the plan does.
Result<store::WeightSource> load_plan_weights(const plan::Plan& plan, const std::string& plan_file,
                                              const std::string& named);

// An error unless every source of the graph that comes from a file is an array of one of these
// archives; `otherwise` is that error.
Status require_weights_in(const ir::Graph& graph, const std::vector<std::string>& archives,
                          const Error& otherwise);

}  // namespace plimsoll::api

// The built-in models: what there is, and how to build one.
//
//   PLIMSOLL_TRY(ir::Graph graph, build_model("resnet50", {.batch = 8, .image = 224}));
//
// The graph is the forward half: in training form (the default) its first output is the loss, its
// inputs are the data and `labels`, and running statistics move in nodes of phase update; autodiff
// makes the training step out of it. With `.training = false` it is the model as one uses it.
//
// A model says which options it takes and what they are when nobody says; an option it does not
// have, or one out of range, is an error that lists what there is. Parameter counts are not written
// down anywhere: they are counted on the graph.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/model/sizes.h"

namespace plimsoll::model {

struct ModelInfo {
  std::string name;
  std::string description;
  Sizes defaults;
  std::vector<std::string> options;  // of those in Sizes, the ones a user may set
  Result<ir::Graph> (*build)(const std::string& name, const Sizes& sizes);
};

// In the order in which they are listed to a user.
std::span<const ModelInfo> models();
// Null when there is none of that name.
const ModelInfo* find_model(std::string_view name);
// The default of an option by its name: "batch", "dropout".
double default_of(const ModelInfo& model, std::string_view option);

// An unknown name is an error that suggests the nearest one.
Result<ir::Graph> build_model(std::string_view name, const ModelOptions& options);

// Elements of all weights; a tied weight is one weight.
std::int64_t count_parameters(const ir::Graph& graph);

}  // namespace plimsoll::model

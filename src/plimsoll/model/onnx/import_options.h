// What an import is told, and what it gives (model/onnx_import.h).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/ir/graph.h"
#include "plimsoll/ops/evaluation/array.h"
#include "plimsoll/store/weight_source.h"

namespace plimsoll::model {

// How much of what NonZero may find there is room for; what is more makes the outputs NaN.
struct Capacity {
  std::optional<std::int64_t> count;
  double share = 1;  // of all there can be, rounded up

  bool is_limited() const { return count || share < 1; }
  std::int64_t of(std::int64_t most) const {
    if (count) return std::min(*count, most);
    return std::min(most, static_cast<std::int64_t>(std::ceil(share * static_cast<double>(most))));
  }
};

struct ImportOptions {
  std::optional<std::int64_t> batch;
  std::optional<std::int64_t> seq;
  // By symbol ("batch_size"), or "input:axis" for a dimension without one.
  std::map<std::string, std::int64_t> dims;
  // Whole shapes of inputs by name; they bind the symbols they meet.
  std::map<std::string, ir::Shape> shapes;
  // Inputs whose content is given at import (shapes and axes that a model takes as inputs): they
  // become constants, and the graph has no such input any more.
  std::map<std::string, ops::Array> values;
  bool training = false;
  // The initialisers are replaced after the import: each stays a weight by the name that training
  // gives it, and nothing is computed from what it holds. Implied by training.
  bool keeps_weights = false;
  // With either: a weight that stands in several places of the file becomes one for each place.
  bool untie = false;
  // The arrays that `shapes` come from may hold more examples than the model takes at once.
  bool shapes_of_datasets = false;
  Capacity capacity;
  // Exporters' patterns are put together again (layer norm, attention, ...); off to see the raw
  // import.
  bool recover_patterns = true;
  // External data may be reached through symbolic links (caches of model hubs are made of them).
  bool follow_links = false;
};

// What training makes of the file's float initialisers.
struct TrainedInitialisers {
  std::int64_t weights = 0;  // that are trained
  std::int64_t places = 0;   // where they stand
  std::int64_t shared = 0;   // weights that stand in more than one place
  std::string most_shared;
  std::int64_t most_places = 0;
  std::map<std::string, std::int64_t> not_trained;  // how many, by why
};

struct ImportedModel {
  ir::Graph graph;
  store::WeightSource weights;
  // Names of graph.outputs in their order, as the file has them.
  std::vector<std::string> outputs;
  TrainedInitialisers trained;  // only with ImportOptions::training
};

}  // namespace plimsoll::model

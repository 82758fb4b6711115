// What `plimsoll models` and `plimsoll graph` print or write.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/api/model_options.h"
#include "plimsoll/base/result.h"

namespace plimsoll::api {

struct ModelSummary {
  std::string name;
  std::string description;
  std::int64_t parameters = 0;
  std::vector<std::pair<std::string, double>> options;  // with their defaults
};

// Builds every model once to count its parameters.
Result<std::vector<ModelSummary>> list_models();

enum class GraphFormat { kText, kJson, kDot };

// The graph in this form, ending with a newline. The JSON is {"schema", "nodes", "values",
// "graph"}.
Result<std::string> show_graph(const ModelRequest& request, GraphFormat format);

// The text of the graph for every size of "batch", "seq" or both: "batch,seq".
Result<std::string> show_symbolic_graph(const ModelRequest& request, const std::string& symbols);

// The graph as an .onnx file, weights as the model's file or the seed gives them.
Status write_onnx_file(const ModelRequest& request, const std::filesystem::path& path);

}  // namespace plimsoll::api

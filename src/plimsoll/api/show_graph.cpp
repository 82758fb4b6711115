#include "plimsoll/api/show_graph.h"

#include "plimsoll/api/pipeline.h"
#include "plimsoll/api/symbolic_model.h"
#include "plimsoll/base/comma_list.h"
#include "plimsoll/base/json.h"
#include "plimsoll/ir/dot.h"
#include "plimsoll/ir/graph_json.h"
#include "plimsoll/ir/text.h"
#include "plimsoll/model/onnx_export.h"
#include "plimsoll/model/zoo.h"
#include "plimsoll/runtime/initial_content.h"

namespace plimsoll::api {

Result<std::vector<ModelSummary>> list_models() {
  std::vector<ModelSummary> out;
  for (const model::ModelInfo& info : model::models()) {
    PLIMSOLL_TRY(const ir::Graph graph, model::build_model(info.name, {}));
    ModelSummary row{info.name, info.description, model::count_parameters(graph), {}};
    for (const std::string& option : info.options)
      row.options.emplace_back(option, model::default_of(info, option));
    out.push_back(std::move(row));
  }
  return out;
}

Result<std::string> show_graph(const ModelRequest& request, GraphFormat format) {
  PLIMSOLL_TRY(const LoadedModel loaded, load_model(request));
  const ir::Graph& graph = loaded.graph;
  if (format == GraphFormat::kText) return ir::to_text(graph);
  if (format == GraphFormat::kDot) return ir::to_dot(graph);
  const nlohmann::ordered_json json = {{"schema", 1},
                                       {"nodes", graph.nodes.size()},
                                       {"values", graph.values.size()},
                                       {"graph", ir::to_json(graph)}};
  // Names from a file may be any bytes; JSON is UTF-8.
  return json_text(json) + "\n";
}

Result<std::string> show_symbolic_graph(const ModelRequest& request, const std::string& symbols) {
  const std::vector<std::string_view> names = comma_list(symbols);
  PLIMSOLL_TRY(const ir::SymbolicGraph symbolic,
               symbolic_model(request, {names.begin(), names.end()}));
  return ir::to_text(symbolic);
}

Status write_onnx_file(const ModelRequest& request, const std::filesystem::path& path) {
  PLIMSOLL_TRY(const LoadedModel loaded, load_model(request));
  const auto content = [&](const ir::Value& value) -> Result<std::vector<std::byte>> {
    if (const auto* entry = loaded.weights.find(value.name))
      return std::vector<std::byte>(entry->bytes.begin(), entry->bytes.end());
    std::vector<std::byte> out(static_cast<std::size_t>(ir::bytes_of(value.type).value));
    runtime::fill_source(value, request.seed, 0, out);
    return out;
  };
  const Status written = model::write_onnx(path, loaded.graph, content);
  if (!written) return forward(written, request.model);
  return {};
}

}  // namespace plimsoll::api

#include "plimsoll/api/memory_of_model.h"

#include <algorithm>

#include "plimsoll/api/pipeline.h"
#include "plimsoll/base/threads.h"
#include "plimsoll/kernels/cpu/cpu_kernels.h"
#include "plimsoll/model/zoo.h"

namespace plimsoll::api {
namespace {

using Size = std::optional<std::int64_t> model::ModelOptions::*;

struct Variable {
  const char* name;
  Size size;
};
constexpr std::array<Variable, 3> kVariables = {{{"batch", &model::ModelOptions::batch},
                                                 {"seq", &model::ModelOptions::seq},
                                                 {"layers", &model::ModelOptions::layers}}};

Result<ir::Graph> graph_at(const ModelRequest& request, Size size, std::int64_t value) {
  ModelRequest changed = request;
  changed.sizes.*size = value;
  PLIMSOLL_TRY(LoadedModel model, load_model(changed));
  return std::move(model.graph);
}

std::optional<std::int64_t> current(const ModelRequest& request, const Variable& variable) {
  if (const auto& given = request.sizes.*variable.size) return given;
  const model::ModelInfo* info = model::find_model(request.model);
  if (info == nullptr ||
      std::find(info->options.begin(), info->options.end(), variable.name) == info->options.end())
    return std::nullopt;
  return static_cast<std::int64_t>(model::default_of(*info, variable.name));
}

report::ScratchRow largest_scratch(const ir::Graph& graph, const ops::KernelTable& kernels,
                                   std::int64_t batch) {
  report::ScratchRow row{batch, Bytes(0), "none"};
  for (const ir::Node& node : graph.nodes) {
    const Bytes scratch = kernels.of(graph, node).scratch;
    if (scratch > row.largest) row = {batch, scratch, runtime::display_name(node)};
  }
  return row;
}

}  // namespace

Result<report::MemoryReport> memory_of_model(const ModelRequest& request) {
  PLIMSOLL_TRY(const LoadedModel model, load_model(request));
  PLIMSOLL_TRY(const ops::KernelTable kernels,
               kernels::cpu_kernel_facts(model.graph, {resolve_threads(request.threads)}));
  report::MemoryReport out;
  out.by_use = report::logical_bytes(model.graph, kernels);
  for (const Bytes bytes : out.by_use) out.total += bytes;
  out.parameters = model::count_parameters(model.graph);
  out.by_layer = report::bytes_by_layer(model.graph, kernels);
  for (const Variable& variable : kVariables) {
    const auto here = current(request, variable);
    if (!here) continue;
    PLIMSOLL_TRY(report::Law law, report::find_law(variable.name, *here, [&](std::int64_t value) {
                   return graph_at(request, variable.size, value);
                 }));
    out.laws.push_back(std::move(law));
  }
  const auto batch = current(request, kVariables[0]);
  out.scratch.push_back(largest_scratch(model.graph, kernels, batch.value_or(0)));
  for (const std::int64_t factor : {2, 4}) {
    if (!batch) break;
    PLIMSOLL_TRY(const ir::Graph larger, graph_at(request, kVariables[0].size, *batch * factor));
    PLIMSOLL_TRY(const ops::KernelTable facts,
                 kernels::cpu_kernel_facts(larger, {resolve_threads(request.threads)}));
    out.scratch.push_back(largest_scratch(larger, facts, *batch * factor));
  }
  return out;
}

}  // namespace plimsoll::api

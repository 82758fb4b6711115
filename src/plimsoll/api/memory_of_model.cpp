#include "plimsoll/api/memory_of_model.h"

#include <algorithm>
#include <array>

#include "plimsoll/api/fit_to_backend.h"
#include "plimsoll/api/pipeline.h"
#include "plimsoll/base/threads.h"
#include "plimsoll/kernels/cpu/cpu_kernels.h"
#include "plimsoll/model/zoo.h"
#include "plimsoll/report/find_law.h"
#include "plimsoll/report/rank_laws.h"

namespace plimsoll::api {
namespace {

// A size that a model can be loaded at: an option of it, or a dimension of a file.
struct Variable {
  std::string name;
  std::optional<std::int64_t> model::ModelOptions::*option = nullptr;  // null: a dimension
  std::int64_t here = 0;
};

using Option = std::pair<const char*, std::optional<std::int64_t> model::ModelOptions::*>;
constexpr std::array<Option, 11> kOptions = {{{"batch", &model::ModelOptions::batch},
                                              {"image", &model::ModelOptions::image},
                                              {"seq", &model::ModelOptions::seq},
                                              {"frames", &model::ModelOptions::frames},
                                              {"depth", &model::ModelOptions::depth},
                                              {"width", &model::ModelOptions::width},
                                              {"layers", &model::ModelOptions::layers},
                                              {"heads", &model::ModelOptions::heads},
                                              {"classes", &model::ModelOptions::classes},
                                              {"vocab", &model::ModelOptions::vocab},
                                              {"experts", &model::ModelOptions::experts}}};

Result<std::vector<Variable>> variables_of(const ModelRequest& request) {
  std::vector<Variable> out;
  const model::ModelInfo* info = model::find_model(request.model);
  for (const auto& [name, option] : kOptions) {
    if (const auto& given = request.sizes.*option) {
      out.push_back({name, option, *given});
    } else if (info != nullptr &&
               std::find(info->options.begin(), info->options.end(), name) != info->options.end()) {
      out.push_back({name, option, static_cast<std::int64_t>(model::default_of(*info, name))});
    }
  }
  PLIMSOLL_TRY(const auto dims, parse_dims(request.dims));
  for (const auto& [name, size] : dims) out.push_back({name, nullptr, size});
  return out;
}

ModelRequest with_size(const ModelRequest& request, const Variable& variable, std::int64_t size) {
  ModelRequest out = request;
  out.quiet = true;
  if (variable.option != nullptr) {
    out.sizes.*variable.option = size;
  } else {
    out.dims.push_back(fmt::format("{}={}", variable.name, size));
  }
  return out;
}

// As it is planned and run: with the layouts of its kernels.
Result<ir::Graph> laid_out(const ModelRequest& request) {
  PLIMSOLL_TRY(const LoadedModel model, load_model(request));
  const auto backend = kernels::make_cpu_backend(resolve_threads(request.threads));
  return fit_to_backend(model.graph, *backend, schedule::shipped_profile("cpu"));
}

Result<report::Sample> sample_of(const ModelRequest& request, bool kernels) {
  PLIMSOLL_TRY(const ir::Graph graph, laid_out(request));
  if (!kernels) return report::sample_of(graph, {});
  PLIMSOLL_TRY(const ops::KernelTable facts,
               kernels::cpu_kernel_facts(graph, {resolve_threads(request.threads)}));
  return report::sample_of(graph, facts);
}

// A model that is only used, or exists at this size only, has no such law.
void add_laws(const ModelRequest& request, const std::vector<Variable>& variables,
              report::MemoryReport& out) {
  for (const Variable& variable : variables) {
    auto law =
        report::find_law(variable.name, variable.here, [&](std::int64_t value, bool kernels) {
          return sample_of(with_size(request, variable, value), kernels);
        });
    if (law) out.laws.push_back(std::move(*law));
  }
  const std::array<std::pair<const char*, const char*>, 2> kinds = {
      {{"copies", ""}, {"shards", kShards}}};
  for (const auto& [name, shard] : kinds) {
    auto law = report::find_rank_law(
        name, [&](std::int64_t ranks) { return graph_of_rank(request, ranks, shard); });
    if (law) out.rank_laws.push_back(std::move(*law));
  }
}

// The variable that counts examples, if any.
const Variable* batch_of(const std::vector<Variable>& variables) {
  const auto is_batch = [](const Variable& variable) {
    return variable.name.find("batch") != std::string::npos;
  };
  const auto found = std::find_if(variables.begin(), variables.end(), is_batch);
  return found == variables.end() ? nullptr : &*found;
}

report::ScratchRow largest_scratch(const ir::Graph& graph, const ops::KernelTable& kernels,
                                   std::optional<std::int64_t> batch) {
  report::ScratchRow row{batch, Bytes(0), "none"};
  for (const ir::Node& node : graph.nodes) {
    const Bytes scratch = kernels.of(graph, node).scratch;
    if (scratch > row.largest) row = {batch, scratch, runtime::display_name(node)};
  }
  return row;
}

// At the size asked for, and at twice and four times the batch where there is such a model.
Status add_scratch(const ModelRequest& request, const Variable* batch, report::MemoryReport& out) {
  for (const std::int64_t factor : {2, 4}) {
    if (batch == nullptr) return {};
    const auto larger = laid_out(with_size(request, *batch, batch->here * factor));
    if (!larger) return {};
    PLIMSOLL_TRY(const ops::KernelTable facts,
                 kernels::cpu_kernel_facts(*larger, {resolve_threads(request.threads)}));
    out.scratch.push_back(largest_scratch(*larger, facts, batch->here * factor));
  }
  return {};
}

}  // namespace

bool set_size(ModelRequest& request, std::string_view option, std::int64_t size) {
  const auto found = std::find_if(kOptions.begin(), kOptions.end(),
                                  [&](const Option& one) { return one.first == option; });
  if (found == kOptions.end()) return false;
  request.sizes.*(found->second) = size;
  return true;
}

Result<ir::Graph> graph_of_rank(const ModelRequest& request, std::int64_t ranks,
                                const std::string& shard) {
  Pipeline p;
  p.request = request;
  p.request.quiet = true;
  RankRequest several;
  several.ranks = static_cast<int>(ranks);
  several.shard = shard;
  several.bucket_bytes = kBucket;
  PLIMSOLL_TRY(p.ranks, imagine_ranks(several));
  PLIMSOLL_RETURN_IF_ERROR(advance(p, Stage::kPrepared));
  return std::move(p.model.graph);
}

Result<report::MemoryReport> memory_of_model(const ModelRequest& request) {
  PLIMSOLL_TRY(const ir::Graph graph, laid_out(request));
  PLIMSOLL_TRY(const ops::KernelTable kernels,
               kernels::cpu_kernel_facts(graph, {resolve_threads(request.threads)}));
  report::MemoryReport out;
  out.by_use = report::logical_bytes(graph, kernels);
  for (const Bytes bytes : out.by_use) out.total += bytes;
  out.parameters = model::count_parameters(graph);
  out.by_layer = report::bytes_by_layer(graph, kernels);
  PLIMSOLL_TRY(const std::vector<Variable> variables, variables_of(request));
  add_laws(request, variables, out);
  const Variable* batch = batch_of(variables);
  out.scratch.push_back(largest_scratch(
      graph, kernels, batch != nullptr ? std::optional(batch->here) : std::nullopt));
  PLIMSOLL_RETURN_IF_ERROR(add_scratch(request, batch, out));
  return out;
}

}  // namespace plimsoll::api

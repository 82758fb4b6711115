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

// Graphs at other sizes, as long as there are not too many operators in all of them.
class OtherSizes {
 public:
  OtherSizes(const ModelRequest& request, const ir::Graph& here, std::size_t most_operators)
      : request_(request), here_(here), most_(most_operators) {}

  Result<ir::Graph> build(const Variable& variable, std::int64_t size) {
    if (size == variable.here) return here_;
    if (spent()) return bad_input("graphs of too many operators");
    PLIMSOLL_TRY(ir::Graph graph, laid_out(with_size(request_, variable, size)));
    operators_ += graph.nodes.size();
    return graph;
  }

  Result<ir::Graph> of_rank(std::int64_t ranks, const std::string& shard) {
    if (spent()) return bad_input("graphs of too many operators");
    PLIMSOLL_TRY(ir::Graph graph, graph_of_rank(request_, ranks, shard));
    operators_ += graph.nodes.size();
    return graph;
  }

  Result<report::Sample> with_kernels(const ir::Graph& graph) {
    PLIMSOLL_RETURN_IF_ERROR(
        kernels::add_cpu_kernel_facts(graph, {resolve_threads(request_.threads)}, kernels_));
    return report::sample_of(graph, kernels_);
  }

  // No law is found from fewer graphs than these.
  bool spent() const {
    constexpr std::size_t kLeastGraphs = 12;
    return std::max(operators_, kLeastGraphs * here_.nodes.size()) > most_;
  }

 private:
  const ModelRequest& request_;
  const ir::Graph& here_;
  const std::size_t most_;
  ops::KernelTable kernels_;
  std::size_t operators_ = 0;
};

// A model that exists at this size only has no such law.
void add_laws(const std::vector<Variable>& variables, OtherSizes& sizes,
              const MemoryReportOptions& options, report::MemoryReport& out) {
  for (const Variable& variable : variables) {
    const auto law =
        report::find_law(variable.name, variable.here,
                         {[&](std::int64_t value) { return sizes.build(variable, value); },
                          [&](const ir::Graph& graph) { return sizes.with_kernels(graph); }});
    if (sizes.spent()) {
      out.left_out.push_back(variable.name);
    } else if (law) {
      out.laws.push_back(*law);
      if (options.on_law) options.on_law(*law, out);
    }
  }
}

// Nor has one that is only used one of ranks.
void add_rank_laws(OtherSizes& sizes, const MemoryReportOptions& options,
                   report::MemoryReport& out) {
  const std::array<std::pair<const char*, const char*>, 2> kinds = {
      {{"copies", ""}, {"shards", kShards}}};
  for (const auto& [name, shard] : kinds) {
    const auto law = report::find_rank_law(
        name, [&](std::int64_t ranks) { return sizes.of_rank(ranks, shard); });
    if (sizes.spent()) {
      out.left_out.push_back(name);
    } else if (law) {
      out.rank_laws.push_back(*law);
      if (options.on_rank_law) options.on_rank_law(*law);
    }
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
Status add_scratch(const ir::Graph& here, const ops::KernelTable& kernels, const Variable* batch,
                   OtherSizes& sizes, int threads, report::MemoryReport& out) {
  out.scratch.push_back(
      largest_scratch(here, kernels, batch != nullptr ? std::optional(batch->here) : std::nullopt));
  for (const std::int64_t factor : {2, 4}) {
    if (batch == nullptr) return {};
    const auto larger = sizes.build(*batch, batch->here * factor);
    if (!larger) return {};
    PLIMSOLL_TRY(const ops::KernelTable facts, kernels::cpu_kernel_facts(*larger, {threads}));
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

Result<report::MemoryReport> memory_of_model(const ModelRequest& request,
                                             const MemoryReportOptions& options) {
  const int threads = resolve_threads(request.threads);
  PLIMSOLL_TRY(const ir::Graph graph, laid_out(request));
  PLIMSOLL_TRY(const ops::KernelTable kernels, kernels::cpu_kernel_facts(graph, {threads}));
  report::MemoryReport out;
  out.by_use = report::logical_bytes(graph, kernels);
  for (const Bytes bytes : out.by_use) out.total += bytes;
  out.parameters = model::count_parameters(graph);
  out.by_layer = report::bytes_by_layer(graph, kernels);
  if (options.on_table) options.on_table(out);
  PLIMSOLL_TRY(const std::vector<Variable> variables, variables_of(request));
  OtherSizes sizes(request, graph, options.most_operators);
  add_laws(variables, sizes, options, out);
  add_rank_laws(sizes, options, out);
  PLIMSOLL_RETURN_IF_ERROR(add_scratch(graph, kernels, batch_of(variables), sizes, threads, out));
  return out;
}

}  // namespace plimsoll::api

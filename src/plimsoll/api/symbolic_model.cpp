#include "plimsoll/api/symbolic_model.h"

#include <algorithm>
#include <optional>

#include "plimsoll/api/pipeline.h"
#include "plimsoll/model/zoo.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::api {
namespace {

using ir::SymbolSize;

// Size 1 is a case of its own in many models: it broadcasts.
constexpr std::int64_t kSmallestSample = 2;

Result<SymbolSize> size_asked_for(const ModelRequest& request, const std::string& symbol) {
  if (symbol != "batch" && symbol != "seq")
    return fail(ErrorCode::kUsage, "symbol '{}': expects batch or seq", symbol);
  model::ModelOptions sizes = request.sizes;
  if (const auto& given = size_option(sizes, symbol)) return SymbolSize{symbol, *given};
  const model::ModelInfo* info = model::find_model(request.model);
  if (info == nullptr)
    return fail(ErrorCode::kUsage, "{}: say a --{} to begin with", request.model, symbol);
  return SymbolSize{symbol, static_cast<std::int64_t>(model::default_of(*info, symbol))};
}

Result<LoadedModel> load_at(ModelRequest request, const std::vector<SymbolSize>& sizes) {
  for (const SymbolSize& symbol : sizes) size_option(request.sizes, symbol.name) = symbol.size;
  return load_model(request);
}

// Every combination of first, first+1 and first+2, the last symbol running fastest.
Result<std::vector<ir::Graph>> sample(ModelRequest request, const std::vector<SymbolSize>& first) {
  std::vector<ir::Graph> out;
  std::vector<SymbolSize> at = first;
  while (true) {
    PLIMSOLL_TRY(LoadedModel loaded, load_at(request, at));
    request.quiet = true;
    out.push_back(std::move(loaded.graph));
    std::size_t s = at.size();
    while (s > 0 && at[s - 1].size == first[s - 1].size + ir::kSamplesPerSymbol - 1) {
      at[s - 1].size = first[s - 1].size;
      --s;
    }
    if (s == 0) return out;
    ++at[s - 1].size;
  }
}

Result<ir::SymbolicGraph> generalize_near(const ModelRequest& request,
                                          std::vector<SymbolSize> first,
                                          std::int64_t (*start)(std::int64_t)) {
  for (SymbolSize& symbol : first) symbol.size = std::max(start(symbol.size), kSmallestSample);
  PLIMSOLL_TRY(std::vector<ir::Graph> samples, sample(request, first));
  return ir::generalize(std::move(first), std::move(samples));
}

// Three neighbours may agree on what is no law: a division that is rounded up changes seldom. So
// the law is held against the model at sizes some way below.
Status holds_below(const ir::SymbolicGraph& law, ModelRequest request,
                   const std::vector<SymbolSize>& wanted) {
  std::vector<SymbolSize> below = wanted;
  for (SymbolSize& symbol : below) {
    const std::int64_t way = std::max<std::int64_t>(ir::kSamplesPerSymbol, symbol.size / 8);
    symbol.size = std::max(symbol.size - way, kSmallestSample);
  }
  request.quiet = true;
  const auto expected = load_at(request, below);
  if (!expected) return {};
  const auto found = at_sizes(law, below);
  if (found && *found == expected->graph) return {};
  std::string sizes;
  for (const SymbolSize& symbol : below)
    sizes += fmt::format("{}{} {}", sizes.empty() ? "" : ", ", symbol.name, symbol.size);
  return bad_input(
      "{}: there is no one graph for all sizes: what holds just below the sizes asked for does not "
      "at {}",
      request.model, sizes);
}

}  // namespace

Result<ir::SymbolicGraph> symbolic_model(const ModelRequest& request,
                                         const std::vector<std::string>& symbols) {
  std::vector<SymbolSize> wanted;
  for (const std::string& symbol : symbols) {
    PLIMSOLL_TRY(SymbolSize size, size_asked_for(request, symbol));
    if (ir::find_symbol(wanted, symbol) != nullptr)
      return fail(ErrorCode::kUsage, "symbol '{}' stands twice", symbol);
    wanted.push_back(std::move(size));
  }
  auto found = generalize_near(
      request, wanted, [](std::int64_t size) { return size - (ir::kSamplesPerSymbol - 1); });
  // The largest size may be a case of its own: a table of 1024 positions is sliced for every length
  // but 1024.
  if (!found) found = generalize_near(request, wanted, [](std::int64_t size) { return size / 2; });
  if (!found) return forward(found);
  ir::SymbolicGraph out = *std::move(found);
  PLIMSOLL_RETURN_IF_ERROR(holds_below(out, request, wanted));
  PLIMSOLL_TRY(out.graph, at_sizes(out, wanted));
  out.sizes = std::move(wanted);
  return out;
}

Result<ir::Graph> at_sizes(const ir::SymbolicGraph& symbolic,
                           const std::vector<SymbolSize>& sizes) {
  PLIMSOLL_TRY(ir::Graph out, ir::bind_sizes(symbolic, sizes));
  PLIMSOLL_RETURN_IF_ERROR(ops::verify(out));
  return out;
}

}  // namespace plimsoll::api

#include "plimsoll/api/encoded_weights.h"

#include <algorithm>
#include <vector>

#include "plimsoll/api/pipeline.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/ops/products/encoded_weight.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/plan/fit/no_recompute_plan.h"
#include "plimsoll/plan/fit/workloads.h"
#include "plimsoll/rewrite/keep_encoded.h"
#include "plimsoll/runtime/model_weights.h"

namespace plimsoll::api {
namespace {

// From here on laying pages beats reading, and a page for every buffer is nothing beside it.
constexpr std::int64_t kWorthPages = 16 << 20;

using Named = std::pair<std::string, rewrite::EncodedWeight>;

// Those that save most first.
std::vector<Named> candidates(const Pipeline& p, const runtime::ModelWeights& file) {
  std::vector<std::pair<std::int64_t, Named>> found;
  const auto forms = file.encoded_forms(p.model.graph);
  for (const ir::Value& value : p.model.graph.values) {
    const auto form = forms.find(value.name);
    if (form == forms.end() || !rewrite::may_stay_encoded(value)) continue;
    const auto& [name, dtype, bytes] = form->second;
    found.push_back(
        {ir::bytes_of(value.type).value - bytes.value, {value.name, {name, dtype, bytes}}});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Named> out;
  for (auto& [saved, weight] : found)
    if (saved > 0) out.push_back(std::move(weight));
  return out;
}

Result<ir::Graph> with_first(const ir::Graph& graph, const std::vector<Named>& weights,
                             std::size_t count) {
  return rewrite::keep_encoded(
      graph, {weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(count)});
}

// The arena of the graph when nothing else is given up.
Result<Bytes> arena_of(const Pipeline& p, const ir::Graph& graph) {
  PLIMSOLL_TRY(const ir::Graph laid, assign_layouts(graph, *p.backend));
  PlanOptions how = p.planning;
  PLIMSOLL_TRY(how.kernels, kernels::kernel_facts(*p.backend, laid));
  how.alignment = p.backend->device().alignment();
  PLIMSOLL_TRY(const plan::Workloads work, plan::make_workloads(laid, std::nullopt, how));
  return plan::greedy_arena(work);
}

// The fewest that make everything fit; all of them where even that is too much.
Result<std::size_t> fewest_that_fit(Pipeline& p, const std::vector<Named>& weights) {
  PLIMSOLL_TRY(const Bytes plain, arena_of(p, p.model.graph));
  PLIMSOLL_TRY(const Bytes budget, parse_byte_size(p.planning.budget, plain));
  // A share is one of the plain model.
  p.planning.budget = std::to_string(budget.value);
  if (plain <= budget) return std::size_t{0};
  std::size_t too_few = 0;
  std::size_t enough = weights.size();
  while (enough - too_few > 1) {
    const std::size_t middle = too_few + (enough - too_few) / 2;
    PLIMSOLL_TRY(const ir::Graph graph, with_first(p.model.graph, weights, middle));
    PLIMSOLL_TRY(const Bytes arena, arena_of(p, graph));
    (arena <= budget ? enough : too_few) = middle;
  }
  return enough;
}

bool is_card(const Pipeline& p) {
  return !p.backend->device().computes_on_host();
}

}  // namespace

Status choose_encoded_weights(Pipeline& p) {
  const std::string& how = p.request.encoded_weights;
  if (how != "auto" && how != "all" && how != "none")
    return fail(ErrorCode::kUsage, "--encoded-weights {}: expects auto, all or none", how);
  if (how == "all" && (p.request.weights.empty() || p.model.training || is_card(p)))
    return fail(ErrorCode::kUsage, "--encoded-weights all: {}",
                p.request.weights.empty() ? "there is no --weights file that has them"
                : p.model.training        ? "weights that are trained change; give --infer"
                                          : "a card has no kernels for them yet");
  if (p.request.weights.empty() || p.model.training || is_card(p)) return {};
  PLIMSOLL_TRY(const auto file, runtime::ModelWeights::open(p.request.weights));
  const bool pages = p.files.load == "auto" || p.files.load == "mapped";
  p.begins_with_pages = pages && p.planning.budget.empty() && !p.running.measure &&
                        !p.running.poison && file->bytes_on_pages().value >= kWorthPages;
  if (how == "none" || (how == "auto" && p.planning.budget.empty())) return {};
  const std::vector<Named> weights = candidates(p, *file);
  if (how == "all" && weights.empty())
    return bad_input(
        "{}: none of the model's weights is encoded in it; `plimsoll weights {} -o FILE.plim "
        "--form "
        "q8_0` makes such a file",
        p.request.weights, p.request.weights);
  if (weights.empty()) return {};
  std::size_t count = weights.size();
  if (how == "auto") {
    PLIMSOLL_TRY(count, fewest_that_fit(p, weights));
  }
  PLIMSOLL_TRY(p.model.graph, with_first(p.model.graph, weights, count));
  return {};
}

EncodedWeightTotals encoded_weight_totals(const ir::Graph& graph) {
  EncodedWeightTotals out;
  const auto weights = ops::encoded_weights(graph);
  if (!weights) return out;
  for (const auto& [id, reader] : *weights) {
    const ops::AttributeReader attributes = ops::attributes_of(*reader);
    ++out.tensors;
    out.encoded += ir::bytes_of(graph.value(id).type);
    out.decoded += Bytes(4 * static_cast<std::int64_t>(ops::encoded_type(attributes)->elements));
    ++out.by_form[attributes.text("form")];
  }
  return out;
}

}  // namespace plimsoll::api

#include "plimsoll/api/encoded_weights.h"

#include <algorithm>
#include <vector>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/ops/products/encoded_weight.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/keep_encoded.h"
#include "plimsoll/runtime/model_weights.h"

namespace plimsoll::api {
namespace {

// From here on laying pages beats reading, and a page for every buffer is nothing beside it.
constexpr std::int64_t kWorthPages = 16 << 20;

using Named = std::pair<std::string, rewrite::EncodedWeight>;

// Those that save most first.
std::vector<Named> candidates(const ir::Graph& graph, const runtime::ModelWeights& file) {
  std::vector<std::pair<std::int64_t, Named>> found;
  const auto forms = file.encoded_forms(graph);
  for (const ir::Value& value : graph.values) {
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

// The fewest that make everything fit; all of them where even that is too much.
Result<std::size_t> fewest_that_fit(const EncodedWeightsRequest& request,
                                    const std::vector<Named>& weights,
                                    EncodedWeightsChoice& choice) {
  PLIMSOLL_TRY(const Bytes plain, request.arena_of(choice.graph));
  PLIMSOLL_TRY(const Bytes budget, parse_byte_size(request.budget, plain));
  choice.budget = std::to_string(budget.value);
  if (plain <= budget) return std::size_t{0};
  std::size_t too_few = 0;
  std::size_t enough = weights.size();
  while (enough - too_few > 1) {
    const std::size_t middle = too_few + (enough - too_few) / 2;
    PLIMSOLL_TRY(const ir::Graph graph, with_first(choice.graph, weights, middle));
    PLIMSOLL_TRY(const Bytes arena, request.arena_of(graph));
    (arena <= budget ? enough : too_few) = middle;
  }
  return enough;
}

Status check_request(const EncodedWeightsRequest& request) {
  const std::string& which = request.which;
  if (which != "auto" && which != "all" && which != "none")
    return fail(ErrorCode::kUsage, "--encoded-weights {}: expects auto, all or none", which);
  if (which != "all") return {};
  if (request.file.empty())
    return fail(ErrorCode::kUsage,
                "--encoded-weights all: there is no --weights file that has them");
  if (request.trains)
    return fail(ErrorCode::kUsage,
                "--encoded-weights all: weights that are trained change; give --infer");
  if (!request.on_host)
    return fail(ErrorCode::kUsage, "--encoded-weights all: a card has no kernels for them yet");
  return {};
}

}  // namespace

Result<EncodedWeightsChoice> choose_encoded_weights(ir::Graph graph,
                                                    const EncodedWeightsRequest& request) {
  PLIMSOLL_RETURN_IF_ERROR(check_request(request));
  EncodedWeightsChoice out{std::move(graph), request.budget, false};
  if (request.file.empty() || request.trains || !request.on_host) return out;
  PLIMSOLL_TRY(const auto file, runtime::ModelWeights::open(request.file));
  out.begins_with_pages = (request.load == "auto" || request.load == "mapped") &&
                          request.budget.empty() && !request.writes_freely &&
                          file->bytes_on_pages().value >= kWorthPages;
  const bool all = request.which == "all";
  if (request.which == "none" || (!all && request.budget.empty())) return out;
  const std::vector<Named> weights = candidates(out.graph, *file);
  if (all && weights.empty())
    return bad_input(
        "{}: none of the model's weights is encoded in it; `plimsoll weights {} -o FILE.plim "
        "--form "
        "q8_0` makes such a file",
        request.file, request.file);
  if (weights.empty()) return out;
  std::size_t count = weights.size();
  if (!all) {
    PLIMSOLL_TRY(count, fewest_that_fit(request, weights, out));
  }
  PLIMSOLL_TRY(out.graph, with_first(out.graph, weights, count));
  return out;
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

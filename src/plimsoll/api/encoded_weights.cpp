#include "plimsoll/api/encoded_weights.h"

#include <algorithm>
#include <vector>

#include <fmt/ranges.h>

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

bool may_stay(const ir::Value& value, const EncodedWeightsRequest& request) {
  return rewrite::may_stay_encoded(value) &&
         (!request.trains || request.frozen.contains(value.name));
}

// Those that save most first.
std::vector<Named> candidates(const ir::Graph& graph, const runtime::ModelWeights& file,
                              const EncodedWeightsRequest& request) {
  std::vector<std::pair<std::int64_t, Named>> found;
  const auto forms = file.encoded_forms(graph);
  for (const ir::Value& value : graph.values) {
    const auto form = forms.find(value.name);
    if (form == forms.end() || !may_stay(value, request)) continue;
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

// Forms of weights that the file has plain, the least loss first, then what saves most.
Result<std::vector<Named>> further_rungs(const ir::Graph& graph, const runtime::ModelWeights& file,
                                         const EncodedWeightsRequest& request) {
  const std::vector<std::string>& lossy = request.lossy;
  const auto wanted = [&](const ir::Value& value) { return may_stay(value, request); };
  PLIMSOLL_TRY(const auto forms, file.possible_forms(graph, wanted, lossy));
  const auto stage = [&](const std::string& form) {
    const auto place = std::find(lossy.begin(), lossy.end(), form);
    return place != lossy.end() ? 2 + (place - lossy.begin()) : form == "raw" ? 0 : 1;
  };
  struct Rung {
    std::ptrdiff_t stage;
    std::int64_t saved;
    Named weight;
  };
  std::vector<Rung> rungs;
  for (const ir::Value& value : graph.values) {
    const auto found = forms.find(value.name);
    if (found == forms.end()) continue;
    Bytes before = ir::bytes_of(value.type);
    for (const auto& [form, dtype, bytes] : found->second) {
      rungs.push_back(
          {stage(form), before.value - bytes.value, {value.name, {form, dtype, bytes}}});
      before = bytes;
    }
  }
  std::stable_sort(rungs.begin(), rungs.end(), [](const Rung& a, const Rung& b) {
    return a.stage != b.stage ? a.stage < b.stage : a.saved > b.saved;
  });
  std::vector<Named> out;
  for (Rung& rung : rungs) out.push_back(std::move(rung.weight));
  return out;
}

// Of two rungs for one weight the later counts.
Result<ir::Graph> with_first(const ir::Graph& graph, const std::vector<Named>& weights,
                             std::size_t count, const EncodedWeightsRequest& request) {
  std::map<std::string, rewrite::EncodedWeight> kept;
  for (std::size_t i = 0; i < count; ++i) kept[weights[i].first] = weights[i].second;
  return rewrite::keep_encoded(graph, kept, {request.trains, request.int8_activations});
}

// The fewest that make everything fit; all of them where even that is too much. `weights` grows
// where those that the file has encoded are not enough.
Result<std::size_t> fewest_that_fit(const EncodedWeightsRequest& request,
                                    const runtime::ModelWeights& file, std::vector<Named>& weights,
                                    EncodedWeightsChoice& choice) {
  PLIMSOLL_TRY(const Bytes plain, request.arena_of(choice.graph));
  PLIMSOLL_TRY(const Bytes all, parse_byte_size(request.budget, plain));
  choice.budget = std::to_string(all.value);
  Bytes budget = all - choice.loading;
  if (plain <= budget) return std::size_t{0};
  const auto arena_with = [&](std::size_t count) -> Result<Bytes> {
    PLIMSOLL_TRY(const ir::Graph graph, with_first(choice.graph, weights, count, request));
    return request.arena_of(graph);
  };
  PLIMSOLL_TRY(const Bytes least, arena_with(weights.size()));
  if (least > budget) {
    PLIMSOLL_TRY(const std::vector<Named> more, further_rungs(choice.graph, file, request));
    if (!more.empty()) {
      weights.insert(weights.end(), more.begin(), more.end());
      choice.loading = file.loading_bytes(choice.graph, true);
      budget = all - choice.loading;
    }
    if (request.lossy.empty())
      choice.advice = "`--lossy` keeps weights in fewer bits, q8_0 or the forms that it lists";
  }
  if (weights.empty()) return std::size_t{0};
  std::size_t too_few = 0;
  std::size_t enough = weights.size();
  while (enough - too_few > 1) {
    const std::size_t middle = too_few + (enough - too_few) / 2;
    PLIMSOLL_TRY(const Bytes arena, arena_with(middle));
    (arena <= budget ? enough : too_few) = middle;
  }
  return enough;
}

bool rounds_some(const ir::Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const ir::Node& node) {
    return node.op == "encoded_linear" && ops::rounds_activations(ops::attributes_of(node));
  });
}

Status check_request(const EncodedWeightsRequest& request) {
  const std::string& which = request.which;
  const bool may_keep = which == "all" || (which == "auto" && !request.budget.empty());
  if (request.int8_activations &&
      (request.file.empty() || request.trains || !request.on_host || !may_keep))
    return fail(ErrorCode::kUsage,
                "--int8-activations: for inference on the CPU with weights that stay encoded; give "
                "--infer, --weights FILE.plim of int8 or q8_0, and --encoded-weights all or a "
                "--budget");
  if (which != "auto" && which != "all" && which != "none")
    return fail(ErrorCode::kUsage, "--encoded-weights {}: expects auto, all or none", which);
  if (request.lossy_named &&
      (request.file.empty() || request.budget.empty() ||
       (request.trains && request.frozen.empty()) || !request.on_host || which != "auto"))
    return fail(
        ErrorCode::kUsage,
        "--lossy {}: a form for the weights of an inference on the CPU, or frozen ones; give "
        "--infer or --freeze, --weights FILE and a --budget that wants it",
        fmt::join(request.lossy, ","));
  if (which != "all") return {};
  if (request.file.empty())
    return fail(ErrorCode::kUsage,
                "--encoded-weights all: there is no --weights file that has them");
  if (request.trains && request.frozen.empty())
    return fail(ErrorCode::kUsage,
                "--encoded-weights all: weights that are trained change; give --infer, or --freeze "
                "those that are not");
  if (!request.on_host)
    return fail(ErrorCode::kUsage, "--encoded-weights all: a card has no kernels for them yet");
  return {};
}

}  // namespace

Result<EncodedWeightsChoice> choose_encoded_weights(ir::Graph graph,
                                                    const EncodedWeightsRequest& request) {
  PLIMSOLL_RETURN_IF_ERROR(check_request(request));
  EncodedWeightsChoice out{std::move(graph), request.budget, Bytes(0), false, ""};
  if (request.file.empty() || !request.on_host) return out;
  PLIMSOLL_TRY(const auto file, runtime::ModelWeights::open(request.file));
  out.loading = file->loading_bytes(out.graph, false);
  if (request.trains && request.frozen.empty()) return out;
  out.begins_with_pages = (request.load == "auto" || request.load == "mapped") &&
                          request.budget.empty() && !request.writes_freely && !request.trains &&
                          file->bytes_on_pages().value >= kWorthPages;
  const bool all = request.which == "all";
  if (request.which == "none" || (!all && request.budget.empty())) return out;
  std::vector<Named> weights = candidates(out.graph, *file, request);
  if (all && weights.empty())
    return bad_input(
        "{}: none of the model's weights is encoded in it; `plimsoll weights {} -o FILE.plim "
        "--form "
        "q8_0` makes such a file",
        request.file, request.file);
  std::size_t count = weights.size();
  if (!all) {
    PLIMSOLL_TRY(count, fewest_that_fit(request, *file, weights, out));
  }
  PLIMSOLL_TRY(out.graph, with_first(out.graph, weights, count, request));
  if (request.int8_activations && !rounds_some(out.graph))
    return fail(
        ErrorCode::kUsage,
        "--int8-activations: no product reads a weight [out, in] that stays encoded as int8 "
        "or q8_0; `plimsoll weights {} -o FILE.plim --form int8` makes such a file, and "
        "--encoded-weights all keeps its weights so",
        request.file);
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
    out.all.push_back(
        {graph.value(id).name, attributes.text("form"), ir::bytes_of(graph.value(id).type),
         Bytes(4 * static_cast<std::int64_t>(ops::encoded_type(attributes)->elements))});
  }
  return out;
}

}  // namespace plimsoll::api

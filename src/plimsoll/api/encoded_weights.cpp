#include "plimsoll/api/encoded_weights.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/ops/products/encoded_weight.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/keep_encoded.h"
#include "plimsoll/runtime/model_weights.h"
#include "plimsoll/store/form_choice.h"

namespace plimsoll::api {
namespace {

// From here on laying pages beats reading, and a page for every buffer is nothing beside it.
constexpr std::int64_t kWorthPages = 16 << 20;

bool may_stay(const ir::Value& value, const EncodedWeightsRequest& request) {
  return rewrite::may_stay_encoded(value) &&
         (!request.trains || request.frozen.contains(value.name));
}

// A weight becomes this; of two steps of one weight the later counts.
struct FormChange {
  std::string weight;
  rewrite::EncodedWeight to;
  std::uint64_t saved = 0;
  double seconds = 0;  // more than before
  std::size_t rung = 0;
};
// The forms of weights on one rung, by their names.
using Rung = std::map<std::string, std::vector<rewrite::EncodedWeight>>;

Rung forms_of_file(const ir::Graph& graph, const runtime::ModelWeights& file,
                   const EncodedWeightsRequest& request) {
  Rung out;
  const auto forms = file.encoded_forms(graph);
  for (const ir::Value& value : graph.values) {
    const auto form = forms.find(value.name);
    if (form == forms.end() || !may_stay(value, request)) continue;
    const auto& [name, dtype, bytes] = form->second;
    if (bytes < ir::bytes_of(value.type)) out[value.name].push_back({name, dtype, bytes});
  }
  return out;
}

// Of weights that the file has plain: what loses nothing, then each form of --lossy.
Result<std::vector<Rung>> further_rungs(const ir::Graph& graph, const runtime::ModelWeights& file,
                                        const EncodedWeightsRequest& request) {
  const std::vector<std::string>& lossy = request.lossy;
  const auto wanted = [&](const ir::Value& value) { return may_stay(value, request); };
  PLIMSOLL_TRY(const auto forms, file.possible_forms(graph, wanted, lossy));
  std::vector<Rung> out(1 + lossy.size());
  for (const auto& [weight, of_weight] : forms) {
    for (const auto& [form, dtype, bytes] : of_weight) {
      const auto place = std::find(lossy.begin(), lossy.end(), form);
      const auto rung =
          place == lossy.end() ? 0 : static_cast<std::size_t>(1 + (place - lossy.begin()));
      out[rung][weight].push_back({form, dtype, bytes});
    }
  }
  return out;
}

// The steps of all rungs, one rung behind the other.
class FormLadder {
 public:
  FormLadder(const ir::Graph& graph, const EncodedWeightsRequest& request)
      : graph_(graph), request_(request) {}

  Status add(const Rung& rung) {
    std::vector<std::string> names;
    std::vector<std::vector<store::FormPlace>> places;
    std::size_t most = 0;
    for (const auto& [weight, forms] : rung) {
      PLIMSOLL_TRY(const store::FormPlace from, standing(weight));
      names.push_back(weight);
      places.push_back({from});
      most = std::max(most, forms.size());
    }
    // All weights in their first form, then all in their second: a few graphs, not one for each.
    for (std::size_t i = 0; i < most; ++i) {
      std::map<std::string, rewrite::EncodedWeight> kept;
      for (const auto& [weight, forms] : rung)
        if (i < forms.size()) kept[weight] = forms[i];
      PLIMSOLL_TRY(const ir::Graph graph, keep(kept));
      PLIMSOLL_TRY(auto seconds, request_.seconds_of(graph));
      for (std::size_t w = 0; w < names.size(); ++w)
        if (const auto form = kept.find(names[w]); form != kept.end())
          places[w].push_back(
              {static_cast<std::uint64_t>(form->second.bytes.value), seconds[names[w]]});
    }
    for (const store::FormStep& step : store::steps_to_smaller_forms(places)) {
      const std::string& weight = names[step.weight];
      steps_.push_back({weight, rung.at(weight)[step.place - 1], step.saved, step.seconds, rungs_});
      stands_[weight] = places[step.weight][step.place];
    }
    ++rungs_;
    return {};
  }

  const std::vector<FormChange>& steps() const { return steps_; }
  Result<ir::Graph> graph_with(const std::vector<FormChange>& steps) const {
    std::map<std::string, rewrite::EncodedWeight> kept;
    for (const FormChange& step : steps) kept[step.weight] = step.to;
    return keep(kept);
  }
  std::vector<FormChange> first(std::size_t count) const {
    return {steps_.begin(), steps_.begin() + static_cast<std::ptrdiff_t>(count)};
  }

 private:
  Result<ir::Graph> keep(const std::map<std::string, rewrite::EncodedWeight>& kept) const {
    return rewrite::keep_encoded(graph_, kept, {request_.trains, request_.int8_activations});
  }
  // Where the rungs so far leave a weight.
  Result<store::FormPlace> standing(const std::string& weight) {
    if (stands_.empty()) {
      PLIMSOLL_TRY(auto seconds, request_.seconds_of(graph_));
      for (const ir::Value& value : graph_.values)
        if (value.kind == ir::ValueKind::kWeight)
          stands_[value.name] = {static_cast<std::uint64_t>(ir::bytes_of(value.type).value),
                                 seconds[value.name]};
    }
    return stands_[weight];
  }

  const ir::Graph& graph_;
  const EncodedWeightsRequest& request_;
  std::vector<FormChange> steps_;
  std::map<std::string, store::FormPlace> stands_;
  std::size_t rungs_ = 0;
};

// Of the rungs that lose nothing what is predicted to be faster, needed or not.
std::size_t with_faster_ones(const std::vector<FormChange>& steps, std::size_t count) {
  constexpr std::size_t kLossless = 2;  // rungs: as the file has it, and what loses nothing
  while (count > 0 && count < steps.size() && steps[count].rung == steps[count - 1].rung &&
         steps[count].rung < kLossless && steps[count].seconds < 0)
    ++count;
  return count;
}

// What did not have to be done: the last step was perhaps larger than what was missing. First what
// loses most, then what costs most time.
Status take_back(const FormLadder& ladder, const EncodedWeightsRequest& request, Bytes budget,
                 std::vector<FormChange>& steps) {
  constexpr int kTries = 4;
  const auto arena_of = [&](const std::vector<FormChange>& some) -> Result<Bytes> {
    PLIMSOLL_TRY(const ir::Graph graph, ladder.graph_with(some));
    return request.arena_of(graph);
  };
  PLIMSOLL_TRY(Bytes arena, arena_of(steps));
  for (int tries = 0; tries < kTries && arena <= budget; ++tries) {
    std::set<std::string> later;
    auto best = steps.rend();
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      if (!later.insert(step->weight).second || step->seconds <= 0 ||
          step->saved > static_cast<std::uint64_t>((budget - arena).value))
        continue;
      if (best == steps.rend() || step->rung > best->rung ||
          (step->rung == best->rung && step->seconds > best->seconds))
        best = step;
    }
    if (best == steps.rend()) break;
    std::vector<FormChange> fewer = steps;
    fewer.erase(fewer.begin() + (steps.rend() - best - 1));
    PLIMSOLL_TRY(const Bytes without, arena_of(fewer));
    if (without > budget) break;
    steps = std::move(fewer);
    arena = without;
  }
  return {};
}

// Where what the file has encoded is not enough. What loading takes beside the arena grows with it.
Status add_further_rungs(const EncodedWeightsRequest& request, const runtime::ModelWeights& file,
                         FormLadder& ladder, EncodedWeightsChoice& choice) {
  PLIMSOLL_TRY(const std::vector<Rung> more, further_rungs(choice.graph, file, request));
  const std::size_t before = ladder.steps().size();
  for (const Rung& rung : more) PLIMSOLL_RETURN_IF_ERROR(ladder.add(rung));
  if (ladder.steps().size() > before) choice.loading = file.loading_bytes(choice.graph, true);
  if (request.lossy.empty())
    choice.advice = "`--lossy` keeps weights in fewer bits, q8_0 or the forms that it lists";
  return {};
}

// The steps that make everything fit at the least time; all of them where even that is too much.
Result<std::vector<FormChange>> steps_that_fit(const EncodedWeightsRequest& request,
                                               const runtime::ModelWeights& file,
                                               FormLadder& ladder, EncodedWeightsChoice& choice) {
  PLIMSOLL_TRY(const Bytes plain, request.arena_of(choice.graph));
  PLIMSOLL_TRY(const Bytes all, parse_byte_size(request.budget, plain));
  choice.budget = std::to_string(all.value);
  if (plain <= all - choice.loading) return std::vector<FormChange>();
  const auto arena_with = [&](std::size_t count) -> Result<Bytes> {
    PLIMSOLL_TRY(const ir::Graph graph, ladder.graph_with(ladder.first(count)));
    return request.arena_of(graph);
  };
  PLIMSOLL_RETURN_IF_ERROR(ladder.add(forms_of_file(choice.graph, file, request)));
  PLIMSOLL_TRY(const Bytes least, arena_with(ladder.steps().size()));
  if (least > all - choice.loading)
    PLIMSOLL_RETURN_IF_ERROR(add_further_rungs(request, file, ladder, choice));
  const Bytes budget = all - choice.loading;
  std::size_t too_few = 0;
  std::size_t enough = ladder.steps().size();
  while (enough > too_few + 1) {
    const std::size_t middle = too_few + (enough - too_few) / 2;
    PLIMSOLL_TRY(const Bytes arena, arena_with(middle));
    (arena <= budget ? enough : too_few) = middle;
  }
  const std::size_t faster = with_faster_ones(ladder.steps(), enough);
  if (faster > enough) {
    PLIMSOLL_TRY(const Bytes arena, arena_with(faster));
    if (arena <= budget) enough = faster;
  }
  std::vector<FormChange> out = ladder.first(enough);
  PLIMSOLL_RETURN_IF_ERROR(take_back(ladder, request, budget, out));
  return out;
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
  if (all) {
    std::map<std::string, rewrite::EncodedWeight> kept;
    for (const auto& [weight, forms] : forms_of_file(out.graph, *file, request))
      kept[weight] = forms.front();
    if (kept.empty())
      return bad_input(
          "{}: none of the model's weights is encoded in it; `plimsoll weights {} -o FILE.plim "
          "--form "
          "q8_0` makes such a file",
          request.file, request.file);
    PLIMSOLL_TRY(out.graph, rewrite::keep_encoded(out.graph, kept,
                                                  {request.trains, request.int8_activations}));
  } else {
    const ir::Graph plain = out.graph;
    FormLadder ladder(plain, request);
    PLIMSOLL_TRY(const std::vector<FormChange> steps, steps_that_fit(request, *file, ladder, out));
    PLIMSOLL_TRY(out.graph, ladder.graph_with(steps));
  }
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

#include "plimsoll/api/plan_request.h"

#include <algorithm>
#include <iterator>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/comma_list.h"

namespace plimsoll::api {
namespace {

// Of weights; activations have the first four too.
constexpr std::string_view kWeightForms[] = {"fp16", "bf16", "fp8",  "int8",
                                             "q8_0", "q4_0", "q4_k", "nf4"};

Status read_lossy(const std::string& text, plan::PlanOptions& out) {
  if (text == kBareLossy) {
    out.lossy = {"fp16"};
    out.lossy_weights = {"q8_0"};
    out.remedies.lossy = true;
    return {};
  }
  std::string of_activations;
  for (const std::string_view word : comma_list(text)) {
    const bool of_weights =
        std::find(std::begin(kWeightForms), std::end(kWeightForms), word) != std::end(kWeightForms);
    if (of_weights) out.lossy_weights.emplace_back(word);
    const std::string name(word);
    if (of_weights && !schedule::parse_lossy_forms(name)) {
      out.lossy_weights_named = true;
      continue;
    }
    of_activations += (of_activations.empty() ? "" : ",") + name;
  }
  if (of_activations.empty() && !out.lossy_weights.empty()) return {};
  const auto forms = schedule::parse_lossy_forms(of_activations);
  if (!forms)
    return fail(forms.error().code, "{}; of weights also q8_0, q4_0, q4_k, nf4",
                forms.error().message);
  out.lossy = *forms;
  out.remedies.lossy = true;
  return {};
}

}  // namespace

bool is_lossy_list(const std::string& text) {
  plan::PlanOptions ignored;
  return read_lossy(text, ignored).has_value();
}

Status read_techniques(std::string_view text, plan::PlanOptions& out) {
  out.in_place = out.share = out.split_last = false;
  out.remedies = {.recompute = false,
                  .swap = false,
                  .encode = false,
                  .lossy = out.remedies.lossy,
                  .split = false};
  for (const std::string_view word : comma_list(text)) {
    const bool all = word == "all";
    if (word == "inplace") {
      out.in_place = true;
    } else if (word == "share") {
      out.share = true;
    } else if (all || word == "recompute" || word == "swap" || word == "encode" ||
               word == "split") {
      out.in_place = out.share = true;
      out.remedies.recompute |= all || word == "recompute";
      out.remedies.swap |= all || word == "swap";
      out.remedies.encode |= all || word == "encode";
      out.remedies.split |= word == "split";
      out.split_last |= all;  // looking takes time from graphs that need no parts
    } else {
      return fail(
          ErrorCode::kUsage,
          "technique '{}': expects a comma list of inplace, share, recompute, swap, encode, split, "
          "all",
          word);
    }
  }
  return {};
}

Result<schedule::Remedies> remedies_in(std::string_view techniques) {
  plan::PlanOptions read;
  PLIMSOLL_RETURN_IF_ERROR(read_techniques(techniques, read));
  return read.remedies;
}

Result<bool> give_up_time(std::string_view techniques) {
  PLIMSOLL_TRY(const schedule::Remedies used, remedies_in(techniques));
  return used.recompute || used.swap || used.encode || used.split;
}

static Result<plan::PlacementChoice> parse_placement(const std::string& text) {
  for (const plan::PlacementChoice choice :
       {plan::PlacementChoice::kHome, plan::PlacementChoice::kGreedy,
        plan::PlacementChoice::kSearch}) {
    if (text == plan::name(choice)) return choice;
  }
  return fail(ErrorCode::kUsage, "placement '{}': expects home, greedy or search", text);
}

Result<schedule::OrderChoice> parse_order(const std::string& text) {
  if (text == "natural" || text == "given") return schedule::OrderChoice::kGiven;
  if (text == "list") return schedule::OrderChoice::kList;
  if (text == "search") return schedule::OrderChoice::kSearch;
  return fail(ErrorCode::kUsage, "order '{}': expects natural, given, list or search", text);
}

Result<std::optional<double>> parse_slowdown(const PlanRequest& request) {
  if (request.slowdown.empty()) return std::optional<double>();
  if (!request.budget.empty())
    return fail(ErrorCode::kUsage,
                "--slowdown {} and --budget {}: one asks for bytes, the other for time; give one",
                request.slowdown, request.budget);
  const auto share = parse_percentage(request.slowdown);
  if (!share) return forward(share, "--slowdown");
  return std::optional(*share);
}

Result<plan::PlanOptions> plan_options(const PlanRequest& request) {
  plan::PlanOptions out;
  out.budget = request.budget;
  PLIMSOLL_TRY(out.slowdown, parse_slowdown(request));
  out.two_ended = request.two_ended;
  out.swaps_to_file = !request.swap_file.empty();
  out.deterministic = request.deterministic;
  if (!request.techniques.empty())
    PLIMSOLL_RETURN_IF_ERROR(read_techniques(request.techniques, out));
  if (!request.lossy.empty()) {
    PLIMSOLL_RETURN_IF_ERROR(read_lossy(request.lossy, out));
  }
  PLIMSOLL_TRY(out.order, parse_order(request.order));
  if (!request.placement.empty()) {
    PLIMSOLL_TRY(out.placement, parse_placement(request.placement));
  }
  if (!request.bucket.empty()) {
    PLIMSOLL_TRY(out.bucket, parse_byte_size(request.bucket));
  }
  out.pinned = request.pinned;
  out.streams = request.streams;
  PLIMSOLL_TRY(out.deadline_seconds, parse_seconds(request.deadline));
  return out;
}

}  // namespace plimsoll::api

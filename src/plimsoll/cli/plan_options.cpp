#include "plimsoll/cli/plan_options.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "plimsoll/api/auto_budget.h"
#include "plimsoll/api/file_kind.h"
#include "plimsoll/api/machine_profile.h"

namespace plimsoll::cli {

std::vector<std::string> with_lossy_values(std::vector<std::string> arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--") break;
    if (arguments[i] != "--lossy") continue;
    const bool forms = i + 1 < arguments.size() && api::is_lossy_list(arguments[i + 1]);
    arguments[i] = fmt::format("--lossy={}", forms ? arguments[i + 1] : api::kBareLossy);
    if (forms) arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
  return arguments;
}

namespace {

bool has_limit(const Command& command, const api::PlanRequest& texts) {
  if (!texts.budget.empty() || !texts.slowdown.empty()) return true;
  const auto names = {"--sweep",         "--max-batch", "--figure",
                      "--checkpointing", "--sizes",     "--capacity"};
  return std::any_of(names.begin(), names.end(),
                     [&](const char* name) { return command.has(name); });
}

// A list of words that are no forms of ours has an error of its own, or is a DAG's.
bool is_asked(const std::string& lossy) {
  return !lossy.empty() && (lossy == api::kBareLossy || api::is_lossy_list(lossy));
}

// What can be stored with loss: activations where they may be encoded, weights that no step
// changes.
Status refuse_idle_lossy(const Command& command, const api::PlanRequest& texts,
                         const api::ModelRequest& model) {
  if (!is_asked(texts.lossy) || !model.freeze.empty()) return {};
  const bool weights = command.has("--weights") || command.has("--infer") ||
                       (!model.train.value_or(false) && model.model.find('.') != std::string::npos);
  if (weights || command.has("--checkpointing")) return {};
  PLIMSOLL_TRY(const auto used, api::remedies_in(texts.techniques));
  if (used.encode) return {};
  return fail(ErrorCode::kUsage,
              "--lossy: would change nothing, because nothing is encoded; give --techniques "
              "recompute,encode too");
}

Status refuse_idle_swap_file(const api::PlanRequest& texts) {
  if (texts.swap_file.empty() || (texts.budget.empty() && texts.slowdown.empty())) return {};
  PLIMSOLL_TRY(const auto used, api::remedies_in(texts.techniques));
  if (used.swap) return {};
  return fail(ErrorCode::kUsage,
              "--swap-file {}: nothing is swapped without the technique; give --techniques "
              "recompute,swap too",
              texts.swap_file);
}

// What gives up time or precision is used where there is a budget, or another limit.
Status refuse_idle_techniques(const Command& command, const api::PlanRequest& texts,
                              const api::ModelRequest& model) {
  if (api::is_read_as_plan(model.model)) return {};  // of a plan they are refused anyway
  if (has_limit(command, texts)) {
    PLIMSOLL_RETURN_IF_ERROR(refuse_idle_swap_file(texts));
    return refuse_idle_lossy(command, texts, model);
  }
  if (model.model.empty()) return {};
  if (!texts.swap_file.empty())
    return fail(ErrorCode::kUsage,
                "--swap-file {}: nothing is swapped without a limit; give --budget SIZE too",
                texts.swap_file);
  if (is_asked(texts.lossy))
    return fail(ErrorCode::kUsage,
                "--lossy: would change nothing, because there is memory enough without it; give "
                "--budget SIZE or --slowdown PERCENT too");
  if (texts.techniques.empty()) return {};
  PLIMSOLL_TRY(const bool gives_up_time, api::give_up_time(texts.techniques));
  if (!gives_up_time) return {};
  return fail(ErrorCode::kUsage,
              "--techniques {}: would change nothing, because there is memory enough without them; "
              "give --budget SIZE or --slowdown PERCENT too",
              texts.techniques);
}

}  // namespace

void bind_plan_options(Command& command, api::PlanRequest& texts, api::ModelRequest& model,
                       bool limited) {
  constexpr const char* kGroup = "Planning";
  command.before([&command, &texts, &model, limited]() -> Status {
    if (!limited) PLIMSOLL_RETURN_IF_ERROR(refuse_idle_techniques(command, texts, model));
    if (!texts.deterministic) model.machine_rates = api::rates_of_this_machine();
    if (texts.budget != "auto") return {};
    PLIMSOLL_TRY(const api::AutoBudget found, api::auto_budget(texts.device));
    std::fprintf(stderr, "budget %s\n", found.reason.c_str());
    texts.budget = std::to_string(found.bytes.value);
    return {};
  });
  command
      .add_option("--budget", texts.budget,
                  "bytes the run may use: 1.5GiB, 800MB, 40% of the no-recompute plan, or auto: "
                  "what the device has free, less 10 %")
      .type_name("SIZE")
      .group(kGroup);
  command
      .add_option(
          "--slowdown", texts.slowdown,
          "instead of a budget: the least memory for at most this much more time, as 5%; 0% "
          "takes what is free")
      .type_name("PERCENT")
      .group(kGroup);
  command
      .add_option(
          "--techniques,--remedies", texts.techniques,
          "memory techniques, a comma list of inplace, share, recompute, swap, encode, split, all: "
          "these, split where nothing else fits (default: recompute with a budget)")
      .type_name("LIST")
      .group(kGroup);
  command
      .add_option(
          "--lossy", texts.lossy,
          "lossy encodings too, a comma list (alone: fp16, weights q8_0); run says what each "
          "lost. Of the weights of a plain file also q8_0, q4_0, q4_k, nf4")
      .type_name("fp16|bf16|fp8|int8|...")
      .group(kGroup);
  command.add_option("--order", texts.order, "of the steps (default natural)")
      .type_name("natural|given|list|search")
      .group(kGroup);
  command
      .add_option("--placement", texts.placement,
                  "on a --device with several memories, how it is decided what lies where: home "
                  "(all in device memory), greedy (prefetch the next use, evict the longest idle) "
                  "or search (default)")
      .type_name("home|greedy|search")
      .group(kGroup);
  command.add_option("--deadline", texts.deadline, "how long to search (default 3s)")
      .type_name("TIME")
      .group(kGroup);
  command
      .add_flag(
          "--deterministic", texts.deterministic,
          "count work instead of seconds, with the times of the shipped profile instead of this "
          "machine's; monotone in the budget")
      .group(kGroup);
  command
      .add_flag("--two-ended", texts.two_ended,
                "long-lived buffers at the front of the arena, the rest at the back")
      .group(kGroup);
  command
      .add_option("--bucket", texts.bucket,
                  "gradients side by side in buckets of this size, weights in one block: 25MiB")
      .type_name("SIZE")
      .group(kGroup);
  command
      .add_option("--pin", texts.pinned,
                  "a value, by name, that must still be there after the step; may be repeated")
      .type_name("NAME")
      .group(kGroup);
  command.add_option("--streams", texts.streams, "compute streams, 1 to 6 (default 1)")
      .between(1, 6)
      .group(kGroup);
  command
      .add_option(
          "--device", texts.device,
          "whose times and memory to plan for; cpu: operators as cpu2 ships them, at the rates of "
          "this machine; measured: this machine, each operator timed first; cuda: a card of this "
          "machine, which run then runs on (default cpu; run --budget: measured)")
      .type_name("cpu|cuda[:N]|h200|measured|FILE")
      .group(kGroup);
  command
      .add_option(
          "--swap-file", texts.swap_file,
          "a folder, or a new file, on the disk that swapped values go to instead of host memory")
      .type_name("PATH")
      .group(kGroup);
  command
      .add_option("--tune", texts.tune,
                  "run this many plans for real, learn from their times and keep the fastest")
      .type_name("N")
      .between(0, 1000)
      .group(kGroup);
}

}  // namespace plimsoll::cli

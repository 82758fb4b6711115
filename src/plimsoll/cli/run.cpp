#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "plimsoll/api/file_kind.h"
#include "plimsoll/api/launch_ranks.h"
#include "plimsoll/api/run_model.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/json.h"
#include "plimsoll/base/threads.h"
#include "plimsoll/cli/model_options.h"
#include "plimsoll/cli/plan_options.h"
#include "plimsoll/cli/rank_options.h"
#include "plimsoll/cli/search_progress.h"
#include "plimsoll/cli/verb.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kRunExamples =
    "Examples:\n"
    "  plimsoll run alexnet --batch 16 --steps 3                  trains on synthetic data\n"
    "  plimsoll run resnet50 --batch 16 --budget 40% --steps 3    plans within a budget, then runs "
    "it\n"
    "  plimsoll run gpt2 --budget 35% --techniques all --swap-file /scratch --tune 3\n"
    "  plimsoll run plan.json --steps 3                           runs a plan made by `plimsoll "
    "plan -o`\n"
    "  plimsoll run plans.json --batch 17                        the member of `plan --sizes "
    "batch=1..64 -o plans.json`\n"
    "  plimsoll run plans.json --sizes batch=1..8 --steps 16     another batch every step, in one "
    "arena\n"
    "  plimsoll run gpt2 --layers 2 --executor on-demand --trace run.jsonl\n"
    "  plimsoll run resnet18 --batch 4 --budget 60% --measure     what the run really held, beside "
    "the plan\n"
    "  plimsoll run model.onnx --inputs in.npz --outputs out.npz  inference, arrays by name\n"
    "  plimsoll run gpt2 --infer --weights model.plim --budget 300MB   compressed weights stay so\n"
    "  plimsoll run alexnet --save w.npz; plimsoll run alexnet --resume w.npz\n"
    "  plimsoll run resnet18 --ranks 2 --batch 8                  two processes, 16 examples a "
    "step\n"
    "  plimsoll run resnet50 --batch 256 --device cuda --tf32     on the first GPU of this "
    "machine\n"
    "  plimsoll run alexnet --batch 4 --paging belady --capacity 700MiB   in less than its tensors "
    "take";

struct RunOptions {
  api::RunRequest request;
  api::RankRequest ranks;
  std::string sizes;
  bool json = false;
};

// What the forms took (`encodings`) and what the lossy ones lost (`encoding_error`).
void add_encodings(const api::RunReport& report, nlohmann::ordered_json& out) {
  for (const api::FormReport& form : api::by_form(report.encoded)) {
    out["encodings"][form.form] = {
        {"lossless", form.lossless},        {"tensors", form.activations.size()},
        {"plain_bytes", form.plain.value},  {"planned_bytes", form.planned.value},
        {"encoded_bytes", form.used.value}, {"overflow_bytes", form.overflow.value}};
    if (form.lossless) continue;
    auto& error = out["encoding_error"][form.form];
    error = {{"max", form.largest_error},
             {"rms", form.rms_error},
             {"relative_rms", form.relative_error},
             {"tensors", form.activations.size()}};
    for (const auto& activation : form.activations) {
      error["by_tensor"].push_back({{"name", activation.tensor},
                                    {"max", activation.largest_error},
                                    {"rms", api::rms_error(activation)}});
    }
  }
}

// Of activations that products rounded to int8.
double relative_rms(const api::Rounding& rounding) {
  return rounding.value_squares > 0 ? std::sqrt(rounding.squares / rounding.value_squares) : 0;
}

// How the file of weights came into memory.
void add_loaded(const api::WeightsLoaded& loaded, nlohmann::ordered_json& out) {
  nlohmann::ordered_json weights{{"file", loaded.file},
                                 {"format", loaded.format},
                                 {"tensors", loaded.tensors},
                                 {"load_seconds", loaded.seconds},
                                 {"by_method", nlohmann::ordered_json::object()}};
  for (const auto& [method, bytes] : loaded.by_method) weights["by_method"][method] = bytes.value;
  for (const auto& [form, kept] : loaded.encoded)
    weights["encoded"][form] = {{"tensors", kept.tensors},
                                {"encoded_bytes", kept.encoded.value},
                                {"decoded_bytes", kept.decoded.value}};
  for (const auto& kept : loaded.kept) {
    weights["by_tensor"].push_back({{"name", kept.name},
                                    {"form", kept.form},
                                    {"encoded_bytes", kept.encoded.value},
                                    {"decoded_bytes", kept.decoded.value}});
    if (kept.max_error) weights["by_tensor"].back()["max_error"] = *kept.max_error;
  }
  out["weights"] = std::move(weights);
}
void print_loaded(const api::WeightsLoaded& loaded) {
  std::string methods;
  for (const auto& [method, bytes] : loaded.by_method)
    methods += fmt::format("{}{} ({})", methods.empty() ? "" : ", ", human(bytes), method);
  std::printf("weights: %s loaded in %.1f ms\n", methods.c_str(), 1e3 * loaded.seconds);
  for (const auto& [form, kept] : loaded.encoded)
    std::printf("%lld weights stay encoded as %s: %s instead of %s\n",
                static_cast<long long>(kept.tensors), form.c_str(), human(kept.encoded).c_str(),
                human(kept.decoded).c_str());
  const api::WeightsLoaded::KeptWeight* worst = nullptr;
  for (const auto& kept : loaded.kept)
    if (kept.max_error && (worst == nullptr || *kept.max_error > *worst->max_error)) worst = &kept;
  if (worst != nullptr)
    std::printf("encoded when loaded: error at most %.3g of a tensor's largest value (%s)\n",
                *worst->max_error, worst->name.c_str());
}

// The last batch of an inference may be filled up; nothing is seen twice.
double epochs_of(const api::RunReport& report) {
  const double seen = static_cast<double>(report.data_set->batch) *
                      static_cast<double>(report.step_seconds.size()) /
                      static_cast<double>(report.data_set->examples);
  return report.data_set->shuffled ? seen : std::min(seen, 1.0);
}

// What a reader of the losses must not overlook.
void warn_of_losses(const api::RunRequest& request, const api::RunReport& report) {
  if (!report.first_bad_step) return;
  std::fprintf(stderr, "plimsoll: warning: step %d: the loss is NaN or infinite%s\n",
               *report.first_bad_step + 1,
               request.find_nan ? "" : "; --find-nan names the operator that made it so");
}

nlohmann::ordered_json paging_json(const api::RunRequest& request,
                                   const api::PagingReport& paging) {
  return {{"policy", request.paging.policy},
          {"forgets_dead", paging.forget_dead},
          {"capacity_bytes", paging.capacity.value},
          {"pool_bytes", paging.pool.value},
          {"resident_peak_bytes", paging.peak.value},
          {"launches", paging.step.launches},
          {"bytes_in", paging.step.in.value},
          {"bytes_out", paging.step.out.value},
          {"faults", paging.step.faults},
          {"stalls", paging.step.stalls},
          {"evictions", paging.step.evictions},
          {"dead_evictions", paging.step.dead_evictions},
          {"dead_bytes_out", paging.step.dead_out.value},
          {"prefetches", paging.step.prefetches},
          {"wasted_prefetches", paging.step.wasted_prefetches},
          {"mispredictions", paging.step.mispredictions}};
}

void print_paging(const api::RunRequest& request, const api::PagingReport& paging) {
  std::printf(
      "paging %s: %s of tensors in %s; %s step: %s in, %s out; waited for operands: %s, in %s of "
      "%s "
      "launches",
      request.paging.policy.c_str(), human(paging.pool).c_str(), human(paging.capacity).c_str(),
      request.paging.policy == "planned" ? "the first" : "the last", human(paging.step.in).c_str(),
      human(paging.step.out).c_str(), grouped(paging.step.faults).c_str(),
      grouped(paging.step.stalls).c_str(), grouped(paging.step.launches).c_str());
  if (paging.step.dead_evictions > 0)
    std::printf("; %s dead tensors written back, %s", grouped(paging.step.dead_evictions).c_str(),
                human(paging.step.dead_out).c_str());
  std::printf("\n");
}

// What ranks said to each other, in a step.
void add_ranks(const api::RunReport& report, nlohmann::ordered_json& out) {
  if (!report.ranks) return;
  out["ranks"] = report.ranks->ranks;
  out["messages"] = report.ranks->messages;
  out["wire_bytes"] = static_cast<std::int64_t>(report.ranks->wire_bytes);
  out["communication_seconds"] = report.ranks->communication_seconds;
  out["start_messages"] = report.ranks->start_messages;
  for (const Bytes peak : report.ranks->peak_by_rank)
    out["peak_bytes_by_rank"].push_back(peak.value);
}

void print_ranks(const api::RunReport& report) {
  if (!report.ranks) return;
  const auto [least, most] =
      std::minmax_element(report.ranks->peak_by_rank.begin(), report.ranks->peak_by_rank.end());
  std::printf(
      "%d ranks: %.0f messages a step, %s leave a rank, %.1f ms in them; peak by rank %s to %s\n",
      report.ranks->ranks, report.ranks->messages,
      human(Bytes(static_cast<std::int64_t>(report.ranks->wire_bytes))).c_str(),
      1e3 * report.ranks->communication_seconds, human(*least).c_str(), human(*most).c_str());
}

void print_json(const api::RunRequest& request, const api::RunReport& report) {
  nlohmann::ordered_json out{{"schema", 1},
                             {"losses", report.losses},
                             {"step_seconds", report.step_seconds},
                             {"peak_bytes", report.peak.value},
                             {"measured", report.measured.has_value()}};
  if (report.measured) {
    out["touched_bytes"] = report.measured->touched.value;
    out["outside_bytes"] = report.measured->outside.value;
    out["touched_by"] = report.measured->touched_by();
  } else if (!report.not_measured.empty()) {
    out["not_measured"] = report.not_measured;
  }
  if (report.planned_peak) out["planned_peak_bytes"] = report.planned_peak->value;
  if (report.host.value > 0) out["host_peak_bytes"] = report.host.value;
  if (report.budget.value > 0) {
    out["budget_bytes"] = report.budget.value;
    out["predicted_seconds"] = report.predicted_seconds;
    out["measured_seconds"] = api::typical_seconds(report);
    out["overflow_bytes"] = report.overflow.value;
  }
  for (std::size_t step = 0; request.sizes && step < report.step_seconds.size(); ++step) {
    const std::vector<std::int64_t> sizes = api::sizes_of_step(*request.sizes, step);
    if (sizes.size() == 1) {
      out["step_sizes"].push_back(sizes.front());
    } else {
      out["step_sizes"].push_back(sizes);
    }
  }
  if (!report.encoded.empty()) add_encodings(report, out);
  if (report.first_bad_step) out["first_bad_step"] = *report.first_bad_step + 1;
  if (report.stopped) out["stopped"] = true;
  if (report.data_set) {
    out["data_set"] = {{"examples", report.data_set->examples},
                       {"batch", report.data_set->batch},
                       {"shuffled", report.data_set->shuffled},
                       {"epochs", epochs_of(report)}};
  }
  if (report.loaded) add_loaded(*report.loaded, out);
  if (report.rounding)
    out["int8_activations"] = {{"values", report.rounding->elements},
                               {"max_error", report.rounding->largest},
                               {"relative_rms", relative_rms(*report.rounding)}};
  add_ranks(report, out);
  out["device"] = report.device;
  if (report.context.value > 0) {
    out["context_bytes"] = report.context.value;
    out["bare_context_bytes"] = report.bare_context.value;
  }
  if (!report.neighbours.empty()) out["neighbours"] = report.neighbours;
  out["threads"] = report.threads;
  out["strategy"] = request.paging.policy.empty() ? request.executor : "paged";
  if (report.paging) out["paging"] = paging_json(request, *report.paging);
  std::printf("%s\n", json_text(out, 2).c_str());
}

// Nobody asked for it, and a model of one's own has data of one's own.
bool runs_file_on_synthetic_data(const api::RunRequest& request) {
  return request.model.model.ends_with(".onnx") && !request.random &&
         request.model.inputs.empty() && request.files.data.empty();
}

void print_table(const api::RunRequest& request, const api::RunReport& report) {
  if (report.data_set) {
    std::printf(
        "%s examples%s in %zu steps of %s\n", grouped(report.data_set->examples).c_str(),
        report.data_set->shuffled
            ? fmt::format(" in an order by the seed, {:.2f} epochs", epochs_of(report)).c_str()
            : "",
        report.step_seconds.size(), grouped(report.data_set->batch).c_str());
  }
  if (report.stopped) {
    std::printf("stopped after step %zu%s%s\n", report.step_seconds.size(),
                request.files.save.empty() ? "" : ", saved to ", request.files.save.c_str());
  }
  if (request.find_nan) std::printf("no NaN and no infinity in any result\n");
  if (runs_file_on_synthetic_data(request))
    std::printf("on synthetic data; --inputs FILE.npz or, in training, --data FILE.npz is yours\n");
  std::printf("peak %s (%s bytes", human(report.peak).c_str(), grouped(report.peak.value).c_str());
  if (report.measured) {
    std::printf(" measured: %s touched in the arena, %s outside it)",
                grouped(report.measured->touched.value).c_str(),
                grouped(report.measured->outside.value).c_str());
  } else {
    std::printf(" taken, not measured%s%s)", report.not_measured.empty() ? "" : ": ",
                report.not_measured.c_str());
  }
  if (report.planned_peak)
    std::printf(", planned %s bytes", grouped(report.planned_peak->value).c_str());
  if (report.budget.value > 0)
    std::printf(", budget %s bytes", grouped(report.budget.value).c_str());
  std::printf("\n");
  if (report.loaded) print_loaded(*report.loaded);
  if (report.rounding)
    std::printf("activations rounded to int8: error at most %.3g, rms %.2g %% of the values'\n",
                report.rounding->largest, 100 * relative_rms(*report.rounding));
  if (report.context.value > 0)
    std::printf("%s beside it on %s: %s for the context, %s for modules, libraries and graphs\n",
                human(report.context).c_str(), report.device.c_str(),
                human(report.bare_context).c_str(),
                human(report.context - std::min(report.context, report.bare_context)).c_str());
  if (!report.neighbours.empty()) std::printf("%s\n", report.neighbours.c_str());
  for (const api::FormReport& form : api::by_form(report.encoded)) {
    std::printf("%zu activations as %s: %s in %s (%.2f times less; %s planned)",
                form.activations.size(), form.form.c_str(), human(form.plain).c_str(),
                human(form.used + form.overflow).c_str(),
                static_cast<double>(form.plain.value) /
                    static_cast<double>((form.used + form.overflow).value),
                human(form.planned).c_str());
    if (!form.lossless)
      std::printf("; lossy: error at most %.3g, rms %.3g, %.2g %% of the values'",
                  form.largest_error, form.rms_error, 100 * form.relative_error);
    std::printf("\n");
  }
  if (report.paging) print_paging(request, *report.paging);
  print_ranks(report);
  if (report.budget.value == 0) return;
  const double measured = api::typical_seconds(report);
  std::printf("predicted %.1f ms a step, measured %.1f ms (%+.1f %%)\n",
              1e3 * report.predicted_seconds, 1e3 * measured,
              100 * (measured / report.predicted_seconds - 1));
  if (report.overflow.value > 0)
    std::printf(
        "%s of compressed activations did not fit their planned size and waited in host memory\n",
        human(report.overflow).c_str());
}

// Prints every step, and on a terminal how long the rest will take.
void follow_steps(api::RunRequest& request) {
  const bool known = request.files.epochs == 0 && request.model.inputs.empty();
  const int steps = known ? request.steps : 0;
  request.on_step = [steps, sizes = request.sizes, follow = isatty(STDERR_FILENO) == 1](
                        int step, std::optional<double> loss, double seconds) {
    if (follow) std::fprintf(stderr, "\r\033[K");
    std::printf("step %d  ", step + 1);
    if (sizes)
      std::printf(
          "%s %s  ", sizes->options().c_str(),
          fmt::format("{}",
                      fmt::join(api::sizes_of_step(*sizes, static_cast<std::size_t>(step)), " x "))
              .c_str());
    if (loss) std::printf("loss %.6f  ", std::isnan(*loss) ? std::abs(*loss) : *loss);
    std::printf("%.1f ms\n", 1e3 * seconds);
    std::fflush(stdout);
    if (follow && step + 1 < steps)
      std::fprintf(stderr, "%d of %d, %.0f s left", step + 1, steps,
                   std::ceil(seconds * (steps - step - 1)));
  };
  request.on_tuned = [](double predicted, double measured) {
    std::printf("tuning  predicted %.1f ms, measured %.1f ms\n", 1e3 * predicted, 1e3 * measured);
  };
}

// Tensor by tensor there is no plan that could keep to a budget.
Status refuse_without_plan(const Command& command, const api::RunRequest& request) {
  if (request.executor != "on-demand") return {};
  for (const char* name :
       {"--budget", "--slowdown", "--techniques", "--lossy", "--order", "--streams", "--tune",
        "--swap-file", "--placement", "--two-ended", "--bucket", "--pin"}) {
    if (command.has(name))
      return fail(ErrorCode::kUsage,
                  "{}: --executor on-demand makes no plan; leave one of them out", name);
  }
  return {};
}

// Rank 0 speaks for all.
Status run_silently(const api::RunRequest& request) {
  PLIMSOLL_RETURN_IF_ERROR(api::run_model(request));
  return {};
}

Status run(RunOptions& options) {
  api::RunRequest& request = options.request;
  if (api::must_launch(options.ranks)) {
    PLIMSOLL_RETURN_IF_ERROR(api::imagine_ranks(options.ranks));  // wrong words are said once
    PLIMSOLL_TRY(const int code,
                 api::launch_ranks(options.ranks.ranks, !request.files.save.empty()));
    if (code != 0) std::exit(code);
    return {};
  }
  PLIMSOLL_TRY(request.ranks, api::join_ranks(options.ranks));
  if (!options.sizes.empty()) {
    PLIMSOLL_TRY(request.sizes, api::parse_sizes(options.sizes));
  }
  if (options.json) {
    request.on_step = [](int step, std::optional<double> loss, double seconds) {
      progress_line(
          loss ? fmt::format("step {}, loss {:.6f}, {:.1f} s a step", step + 1, *loss, seconds)
               : fmt::format("step {}, {:.1f} s a step", step + 1, seconds));
    };
  } else {
    follow_steps(request);
  }
  request.on_measuring = measuring_operators;
  request.on_prepared = [] { progress_line(""); };
  // With nothing to save, Ctrl-C ends the program at once.
  if (!request.files.save.empty()) request.stop = stop_on_interrupt();
  if (request.ranks.rank() > 0) {
    request.on_step = nullptr;
    request.on_measuring = nullptr;
    request.on_prepared = nullptr;
    return run_silently(request);
  }
  PLIMSOLL_TRY(const api::RunReport report, api::run_model(request));
  progress_line("");
  if (options.json) {
    print_json(request, report);
  } else {
    print_table(request, report);
  }
  warn_of_losses(request, report);
  return {};
}

// What is written is an .npz, whatever it is called; a name that promises another format misleads
// whoever opens it later.
Status refuse_other_formats(const api::RunRequest& request) {
  constexpr std::array<std::string_view, 11> kOthers = {".onnx",        ".pt",   ".pth",  ".ckpt",
                                                        ".safetensors", ".gguf", ".plim", ".h5",
                                                        ".csv",         ".json", ".txt"};
  for (const auto& [option, file] :
       {std::pair("--save", request.files.save), std::pair("--outputs", request.files.outputs)}) {
    const std::string extension = std::filesystem::path(file).extension();
    if (std::find(kOthers.begin(), kOthers.end(), extension) != kOthers.end())
      return fail(ErrorCode::kUsage, "{} {}: writes an .npz, not a {} file; call it {}", option,
                  file, extension, std::filesystem::path(file).replace_extension(".npz").string());
  }
  return {};
}

// Threads that share a core wait for each other at the end of every loop.
void warn_of_threads(int threads) {
  const int cores = resolve_threads(0);
  if (threads > cores)
    std::fprintf(stderr,
                 "plimsoll: warning: --threads %d: this machine has %d cores, more threads are "
                 "slower\n",
                 threads, cores);
}

Action bind_run(Command& command) {
  auto options = std::make_shared<RunOptions>();
  api::RunRequest& request = options->request;
  bind_model_options(command, request.model);
  bind_plan_options(command, request.planning, request.model);
  bind_tf32(command, request.model);
  command.add_option("--steps", request.steps, "how many (default 3)").between(1, 1 << 30);
  command
      .add_option("--sizes", options->sizes,
                  "another size every step, in one arena and without planning again: batch=1..8, "
                  "seq=16..32 or batch=1..4,seq=16..32")
      .type_name("RANGE");
  bind_rank_options(command, options->ranks,
                    "processes that train together on this machine, each on its own examples; "
                    "mpirun and srun say it themselves");
  command
      .add_option("--executor,--strategy", request.executor,
                  "from a plan (default), or one allocation at a time")
      .type_name("planned|on-demand");
  command
      .add_option("--paging", request.paging.policy,
                  "run without a plan in less memory than the tensors take; planned: from the "
                  "second step on by a plan for --capacity")
      .type_name("demand|prefetch|pre-evict|belady|planned")
      .group("Paging");
  command
      .add_option("--capacity", request.paging.capacity,
                  "of device memory that --paging keeps to: 12GiB")
      .type_name("SIZE")
      .group("Paging");
  command
      .add_option("--prefetch", request.paging.prefetch,
                  "how many operators ahead operands are fetched (default 16)")
      .type_name("N")
      .between(1, 4096)
      .group("Paging");
  command
      .add_flag(
          "--keep-dead", request.paging.keep_dead,
          "a pool that does not know which tensors are dead: they are written back, as managed "
          "memory does")
      .group("Paging");
  Option data =
      command
          .add_option(
              "--data", request.files.data,
              "one synthetic batch for all steps (default), another every step, or an .npz with "
              "one array per input: one batch, or more examples (shuffled by the seed to "
              "train); or a folder of such files")
          .type_name("synthetic|fresh|FILE");
  command
      .add_option("--epochs", request.files.epochs,
                  "steps that see every example of --data so often, instead of --steps")
      .between(1, 1 << 20);
  Option inputs =
      command
          .add_option("--inputs", request.model.inputs,
                      "the arrays of an .npz, by input name; one step, or for inference as many "
                      "as it has batches")
          .type_name("FILE")
          .excludes(data);
  command
      .add_flag("--random", request.random,
                "inference on synthetic inputs; without --outputs that is the default")
      .excludes(inputs);
  command.add_output("--outputs", request.files.outputs, "write the outputs to an .npz, by name");
  command
      .add_option("--weights", request.files.weights,
                  "weights by name from a .safetensors, .plim, .gguf, .pt or .npz, which must have "
                  "them all; of a plan file also the .onnx model it was made from")
      .type_name("FILE");
  bind_encoded_weights(command, request.model);
  command
      .add_option("--load", request.files.load,
                  "how the file of --weights is read: mapped (no copy, where pages agree), cached, "
                  "direct (past the page cache), network; auto (default) sees what it is")
      .type_name("auto|mapped|cached|direct|network");
  command.add_flag("--allow-missing", request.files.allow_missing,
                   "weights that the file of --weights lacks start from the seed, or as an .onnx "
                   "model has them");
  command
      .add_option("--resume", request.files.resume,
                  "weights and optimizer state from an .npz that --save wrote")
      .type_name("FILE");
  command.add_output("--save", request.files.save,
                     "write weights and optimizer state to an .npz at the end, and on Ctrl-C");
  command
      .add_option("--save-every", request.files.save_every,
                  "and after every so many steps, over what was saved before")
      .type_name("N")
      .between(1, 1 << 30);
  command.add_flag("--find-nan", request.find_nan,
                   "stop at a loss that is NaN or infinite and name the operator that made the "
                   "first one; steps are slower");
  command.add_output("--trace", request.files.trace,
                     "write every allocation and operator as JSON lines");
  command.add_output("--chrome-trace", request.files.chrome_trace,
                     "the same for chrome://tracing and Perfetto");
  Option poison = command.add_flag("--poison", request.poison,
                                   "fill memory with NaN when it is freed (for tests)");
  command
      .add_flag("--measure", request.measure,
                "measure the peak: bytes written in the arena, and live bytes outside it since "
                "binding; steps are slower")
      .excludes(poison);
  command.add_flag("--json", options->json, "one JSON object");
  return [options, &command]() -> Status {
    PLIMSOLL_RETURN_IF_ERROR(refuse_words_beside_plan(command, options->request.model.model));
    api::PlanRequest& planning = options->request.planning;
    const api::PagingRequest& paging = options->request.paging;
    for (const char* name : {"--prefetch", "--keep-dead"}) {
      if (command.has(name) && paging.policy.empty())
        return fail(ErrorCode::kUsage, "{}: belongs to --paging", name);
    }
    if (!paging.policy.empty() && command.has("--executor"))
      return fail(ErrorCode::kUsage, "--executor: --paging is a strategy of its own; give one");
    PLIMSOLL_RETURN_IF_ERROR(refuse_without_plan(command, options->request));
    PLIMSOLL_RETURN_IF_ERROR(refuse_other_formats(options->request));
    warn_of_threads(options->request.model.threads);
    if (paging.policy == "planned" && planning.techniques.empty()) planning.techniques = "all";
    const bool fits =
        (!planning.budget.empty() || !planning.slowdown.empty() || paging.policy == "planned") &&
        !api::is_read_as_plan(options->request.model.model);
    if (fits && !command.has("--device")) planning.device = api::kMeasured;
    options->request.steps_given = command.has("--steps");
    return run(*options);
  };
}

}  // namespace

Verb run_verb() {
  return {"run", "runs steps of a model or of a plan", kRunExamples, bind_run};
}

}  // namespace plimsoll::cli

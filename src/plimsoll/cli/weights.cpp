#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plimsoll/api/weights.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/utf8.h"
#include "plimsoll/cli/search_progress.h"
#include "plimsoll/cli/verb.h"

namespace plimsoll::cli {
namespace {

std::string size_text(std::uint64_t bytes) {
  return human(Bytes(static_cast<std::int64_t>(bytes)));
}
double share_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 1.0 : static_cast<double>(part) / static_cast<double>(whole);
}

// The largest tensors by name; --json has all of them.
void print_largest(const api::WeightsReport& report) {
  constexpr std::size_t kShown = 5;
  std::vector<const api::WeightsTensor*> tensors;
  for (const api::WeightsTensor& tensor : report.tensors) tensors.push_back(&tensor);
  const std::size_t shown = std::min(kShown, tensors.size());
  std::partial_sort(tensors.begin(), tensors.begin() + static_cast<std::ptrdiff_t>(shown),
                    tensors.end(), [](const auto* a, const auto* b) {
                      return a->bytes != b->bytes ? a->bytes > b->bytes : a->name < b->name;
                    });
  if (shown > 0)
    fmt::print("{}\n", shown < tensors.size() ? "the largest (--json has all):" : "tensors:");
  for (std::size_t i = 0; i < shown; ++i)
    fmt::print("  {:>12}  {:<5} {:<16}{}{}\n", size_text(tensors[i]->bytes), tensors[i]->dtype,
               fmt::format("[{}]", fmt::join(tensors[i]->shape, ",")), printable(tensors[i]->name),
               tensors[i]->form == "raw" ? "" : fmt::format(" ({})", tensors[i]->form));
}

void print_content(const api::WeightsReport& report) {
  fmt::print("{}: {}, {} tensors, {}", report.file, report.format, report.tensors.size(),
             size_text(report.bytes));
  if (report.stored_bytes != report.bytes)
    fmt::print(", stored in {} ({})", size_text(report.stored_bytes), report.form);
  fmt::print("\n");
  for (const auto& [dtype, bytes] : report.bytes_by_dtype)
    fmt::print("  {:<12}{:>12}\n", dtype, size_text(bytes));
  print_largest(report);
  if (report.sampled_bytes == 0) return;
  fmt::print(
      "\nWhat each form would make of it, by {} of {}{}; entropy of byte planes {:.3f} of it\n",
      size_text(report.sampled_bytes), size_text(report.bytes),
      report.sampled_bytes < report.bytes ? " (--all: by all of it)" : "", report.entropy_share);
  fmt::print("  {:<15}{:>12}{:>8}{:>12}{:>12}{:>12}\n", "form", "bytes", "share", "decode ms",
             "max error", "rms error");
  for (const api::WeightsOfForm& form : report.by_form) {
    fmt::print("  {:<15}{:>12}{:>8.3f}{:>12}", form.form, size_text(form.bytes),
               share_of(form.bytes, report.bytes),
               form.form == "raw" ? "" : fmt::format("{:.1f}", 1e3 * form.decode_seconds));
    if (form.lossless) {
      fmt::print("{:>12}\n", "lossless");
    } else {
      fmt::print("{:>12.2e}{:>12.2e}\n", form.error.max_error, form.error.rms_error);
    }
  }
}

void print_converted(const api::WeightsReport& report) {
  fmt::print("{}: {} tensors, {} in {} ({:.3f}), {}", report.output, report.tensors.size(),
             size_text(report.bytes), size_text(report.output_bytes),
             share_of(report.output_bytes, report.bytes), report.form);
  if (report.error.max_error > 0)
    fmt::print("; max error {:.2e}, rms error {:.2e}", report.error.max_error,
               report.error.rms_error);
  fmt::print("\n");
  if (!report.kept.empty())
    fmt::print("{} tensors are as they were: their error would be above --max-error; '{}' is one\n",
               report.kept.size(), printable(report.kept.front()));
  std::uint64_t stored = 0;
  for (const api::WeightsTensor& tensor : report.tensors) stored += tensor.stored_bytes;
  if (report.output_bytes >= report.bytes && stored < report.bytes) {
    fmt::print("the tensors take {}; each begins with a page of 4 KiB, which many small ones pay\n",
               size_text(stored));
    return;
  }
  if (report.form != "raw" && report.output_bytes >= report.bytes && report.kept.empty())
    fmt::print(
        "{} made nothing smaller; `plimsoll weights {}` says what each form would make of it\n",
        report.form, report.file);
}

struct WeightsOptions {
  api::WeightsRequest request;
  double max_error = -1;
  bool json = false;
};

Status run(const WeightsOptions& options) {
  api::WeightsRequest request = options.request;
  if (options.max_error >= 0) request.max_error = options.max_error;
  auto waiting = waiting_on_terminal(request.output.empty() ? "measuring" : "converting");
  PLIMSOLL_TRY(const api::WeightsReport report, api::weights_of_file(request));
  waiting.reset();
  if (options.json) {
    fmt::print("{}\n", to_json(report));
  } else if (request.output.empty()) {
    print_content(report);
  } else {
    print_converted(report);
  }
  return {};
}

Action bind_weights(Command& command) {
  auto options = std::make_shared<WeightsOptions>();
  api::WeightsRequest& request = options->request;
  command.add_option("file", request.file, ".safetensors, .plim, .gguf, .pt, .npz or .onnx")
      .required();
  command.add_output("-o,--output", request.output, "write .plim, .safetensors or .npz");
  command
      .add_option("--form", request.form,
                  "how to store matrices of floats (default raw); auto: the smallest, tensor by "
                  "tensor")
      .type_name(
          "raw|fp16|bf16|fp8|int8|q8_0|q4_0|q4_k|nf4|coo|csr|bitmask|2:4|bf16-lossless|archive|"
          "ternary|auto");
  command
      .add_option("--max-error", options->max_error,
                  "a tensor whose largest error, as a share of its largest value, is above this "
                  "stays as it is")
      .type_name("SHARE")
      .between(0.0, 1.0);
  command
      .add_option("--prune", request.prune,
                  "this share of each matrix, its smallest values, becomes zero first; for sparse "
                  "forms")
      .type_name("SHARE")
      .between(0.0, 1.0);
  command.add_flag("--all", request.all, "measure all of a file above 8 MiB, not a sample");
  command.add_flag("--json", options->json, "one JSON object, with a line for every tensor");
  return [options] { return run(*options); };
}

}  // namespace

Verb weights_verb() {
  return {
      "weights", "what a weight file holds; convert, quantize, compress",
      "Examples:\n"
      "  plimsoll weights model.safetensors                  what is inside, what each form saves\n"
      "  plimsoll weights model.safetensors -o model.plim --form q8_0\n"
      "  plimsoll weights model.safetensors -o model.plim --form auto --max-error 1e-2\n"
      "  plimsoll weights model.safetensors -o model.plim --form csr --prune 0.95\n"
      "  plimsoll weights model.plim -o model.safetensors    back again\n"
      "  plimsoll weights model.onnx -o model.safetensors    also from .gguf, .pt, .npz\n",
      bind_weights};
}

}  // namespace plimsoll::cli

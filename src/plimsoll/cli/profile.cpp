#include <cstdio>
#include <memory>

#include "plimsoll/api/profile_model.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/cli/model_options.h"
#include "plimsoll/cli/search_progress.h"
#include "plimsoll/cli/verb.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kProfileExamples =
    "Examples:\n"
    "  plimsoll profile                                           what this machine can do\n"
    "  plimsoll profile -o cpu.json                               as a file, for --device "
    "cpu.json\n"
    "  plimsoll profile resnet50 --batch 16 -o cpu.json           with the time of each of its "
    "operators\n"
    "  plimsoll plan resnet50 --batch 16 --budget 50% --device cpu.json\n"
    "  plimsoll profile gpt2 --device cuda -o gpu.json             a GPU of this machine";

struct ProfileOptions {
  api::ProfileRequest request;
  bool json = false;
};

void print_rates(const api::ProfileReport& report) {
  const auto& profile = report.profile;
  std::printf("%s: %s\n", profile.name.c_str(), profile.note.c_str());
  std::printf("  %-22s %s\n", "memory", human(profile.memory_bytes).c_str());
  for (const auto& [dtype, rate] : profile.operations_per_second)
    std::printf("  %-22s %.1f GFLOP/s\n", dtype.c_str(), 1e-9 * rate);
  std::printf("  %-22s %.1f GB/s\n", "memory rate", 1e-9 * profile.memory_bytes_per_second);
  std::printf("  %-22s %.2f us\n", "launch", 1e6 * profile.launch_seconds);
  const auto copies = [](const char* what, const auto& rates) {
    std::printf("  %-22s out %.2f GB/s, in %.2f GB/s, latency %.1f us\n", what,
                1e-9 * rates.out_bytes_per_second, 1e-9 * rates.in_bytes_per_second,
                1e6 * rates.latency_seconds);
  };
  copies("copies to host memory", profile.copies);
  if (profile.disk.out_bytes_per_second > 0) copies("copies to a file", profile.disk);
  std::printf("  %-22s %.2f s of computing lost for a second of copying\n", "copy tax",
              profile.copy_tax);
  const auto codec = [](const std::string& what, const auto& rate) {
    std::printf("  %-22s in %.2f GB/s, out %.2f GB/s\n", what.c_str(),
                1e-9 * rate.encode_bytes_per_second, 1e-9 * rate.decode_bytes_per_second);
  };
  if (profile.codecs.encode_bytes_per_second > 0) codec("encodings, sparse", profile.codecs);
  for (const auto& [form, rate] : profile.codecs.forms) codec("  " + form, rate);
}

void print_operators(const api::ProfileReport& report) {
  double total = 0;
  std::printf("  %-24s %8s %9s %9s %12s %10s\n", "operator", "nodes", "measured", "estimated",
              "seconds", "efficiency");
  for (const api::OperatorCost& cost : report.operators) {
    total += cost.seconds;
    const auto reached = report.profile.efficiency.find(cost.op);
    std::printf("  %-24s %8lld %9lld %9lld %12.6f %10s\n", cost.op.c_str(),
                static_cast<long long>(cost.nodes), static_cast<long long>(cost.measured),
                static_cast<long long>(cost.nodes - cost.measured), cost.seconds,
                reached != report.profile.efficiency.end()
                    ? fmt::format("{:.0f} %", 100 * reached->second).c_str()
                    : "-");
  }
  std::printf("  one after the other %.4g s\n", total);
}

Status profile(ProfileOptions& options) {
  options.request.on_measuring = measuring_operators;
  options.request.on_progress = [](std::string_view what) {
    progress_line(fmt::format("measuring {}", what));
  };
  PLIMSOLL_TRY(const api::ProfileReport report, api::profile_model(options.request));
  progress_line("");
  if (options.json) {
    std::printf("%s", report.json.c_str());
    return {};
  }
  print_rates(report);
  if (!report.operators.empty()) print_operators(report);
  return {};
}

Action bind_profile(Command& command) {
  auto options = std::make_shared<ProfileOptions>();
  bind_model_options(command, options->request.model).required(false);
  command.add_output("-o,--output", options->request.output, "write the profile, for --device");
  command.add_option("--device", options->request.device, "what to measure (default cpu)")
      .type_name("cpu|cuda[:N]");
  bind_tf32(command, options->request.model);
  command.add_option("--folder", options->request.folder,
                     "a folder on the disk to measure (default: where temporary files go)");
  command.add_flag("--layouts", options->request.layouts,
                   "with MODEL: time its operators in the layouts that were not chosen too; plans "
                   "with this profile choose by price");
  command.add_flag("--json", options->json, "the profile as one JSON object");
  return [options]() { return profile(*options); };
}

}  // namespace

Verb profile_verb() {
  return {"profile", "measures this machine, and the operators of a model on it", kProfileExamples,
          bind_profile};
}

}  // namespace plimsoll::cli

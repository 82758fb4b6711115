#include "plimsoll/api/pipeline_device.h"

#include <filesystem>
#include <map>
#include <string_view>

#include "plimsoll/api/run_device.h"
#include "plimsoll/base/threads.h"
#include "plimsoll/dist/open_communicator.h"
#include "plimsoll/kernels/backend/paper_card.h"
#include "plimsoll/kernels/collective/rank_backend.h"
#include "plimsoll/profile/find_profile.h"
#include "plimsoll/profile/measure_on_device.h"
#include "plimsoll/profile/measure_operators.h"
#include "plimsoll/profile/profile_machine.h"

namespace plimsoll::api {
namespace {

// A signature of fp32 products, whose kernels depend on whether operands may be rounded to TF32.
bool depends_on_tf32(const std::string& signature) {
  const std::string op = signature.substr(0, signature.find('('));
  const bool multiplies = op.starts_with("conv") || op.starts_with("linear") || op == "matmul" ||
                          op.starts_with("attention");
  return multiplies && signature.find("(fp32") != std::string::npos;
}

// What a profile says of its card, for products as --tf32 says; what was measured with other
// products is not known, and so is the rate of exact ones where only rounded ones were measured.
void keep_arithmetic(bool tf32, schedule::DeviceProfile& profile) {
  if (!profile.card) return;
  constexpr double kRoundedFaster = 8;  // 67 against 495 TFLOP/s by the data sheet of an H200
  constexpr std::string_view kRounds = " tf32";
  std::map<std::string, double>& rates = profile.operations_per_second;
  std::string& instructions = profile.card->instruction_set;
  const bool rounded = instructions.ends_with(kRounds);
  const auto rate = rates.find("tf32");
  if (rate != rates.end() && !tf32 && rounded && rates["fp32"] == rate->second)
    rates["fp32"] = rate->second / kRoundedFaster;
  if (rate != rates.end() && tf32) rates["fp32"] = rate->second;
  if (rounded == tf32) return;
  // The plan is one for the arithmetic that was asked for.
  if (tf32) {
    instructions += kRounds;
  } else {
    instructions.resize(instructions.size() - kRounds.size());
  }
  const auto other = [](const auto& known) { return depends_on_tf32(known.first); };
  std::erase_if(profile.measured, other);
  std::erase_if(profile.card->kernels, other);
}

std::shared_ptr<kernels::Backend> paper_card(const schedule::DeviceProfile& profile) {
  kernels::PaperCard card;
  card.name = profile.name;
  card.instruction_set = profile.card->instruction_set;
  card.library = profile.card->library;
  card.memory = profile.memory_bytes;
  for (const auto& [signature, need] : profile.card->kernels)
    card.kernels.emplace(signature, ops::KernelFacts{need.scratch, need.in_place, 0, need.engine});
  return kernels::make_paper_card(std::move(card));
}

std::filesystem::path folder_of(const std::filesystem::path& swap_file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(swap_file, ignored)) return swap_file;
  return swap_file.has_parent_path() ? swap_file.parent_path() : std::filesystem::path(".");
}

// Every rank of a machine has the card of its number there.
Status open_own_backend(Pipeline& p) {
  PLIMSOLL_TRY(std::optional<int> card, kernels::parse_cuda(p.device));
  if (card) {
    if (p.ranks.several()) *card += p.ranks.communicator->local_rank();
    PLIMSOLL_TRY(p.backend, kernels::open_cuda_backend({*card, p.request.tf32}));
    if (p.ranks.several()) {
      PLIMSOLL_TRY(p.ranks.communicator, dist::open_nccl(p.ranks.communicator, *card));
    }
    return {};
  }
  // a wrong name is said before the model is loaded
  if (p.device != kMeasured) {
    PLIMSOLL_TRY(const schedule::DeviceProfile profile, profile_named(p));
    if (profile.card) {
      p.backend = paper_card(profile);
      return {};
    }
  }
  if (p.request.tf32)
    return fail(ErrorCode::kUsage, "--tf32: a card's arithmetic; give --device cuda with it");
  p.backend = kernels::make_cpu_backend(resolve_threads(p.request.threads));
  return {};
}

}  // namespace

Status open_backend(Pipeline& p) {
  if (p.backend) return {};
  PLIMSOLL_RETURN_IF_ERROR(open_own_backend(p));
  if (!p.ranks.several()) return {};
  p.backend = kernels::make_rank_backend(p.backend, p.ranks.communicator, !p.on_demand);
  return {};
}

bool on_card(const Pipeline& p) {
  return plans_for_card(p) && p.backend->is_here();
}

bool plans_for_card(const Pipeline& p) {
  return p.backend && !p.backend->device().computes_on_host();
}

bool for_card(const Pipeline& p) {
  return on_card(p) || (p.device != "cpu" && p.device != kMeasured);
}

Result<schedule::DeviceProfile> profile_named(const Pipeline& p) {
  PLIMSOLL_TRY(schedule::DeviceProfile out, profile::find_profile(p.device));
  keep_arithmetic(p.request.tf32, out);
  return out;
}

Result<schedule::DeviceProfile> prices_of_layouts(const Pipeline& p) {
  if (p.device == "cpu" || p.device == kMeasured) return profile::find_profile("cpu");
  PLIMSOLL_TRY(const std::optional<int> card, kernels::parse_cuda(p.device));
  if (!card) return profile_named(p);
  PLIMSOLL_TRY(schedule::DeviceProfile out, profile::find_profile("h200"));
  keep_arithmetic(p.request.tf32, out);
  return out;
}

Result<schedule::DeviceProfile> profile_of_card(const Pipeline& p) {
  if (!p.measure) return profile::find_profile("h200");
  PLIMSOLL_TRY(schedule::DeviceProfile out, profile::profile_device(*p.backend, {}));
  profile::MeasureOptions how;
  how.on_progress = p.on_measuring;
  how.backend = p.backend.get();
  PLIMSOLL_RETURN_IF_ERROR(profile::measure_operators(p.model.graph, how, out));
  if (!p.running.swap_file.empty()) {
    PLIMSOLL_TRY(out.disk, profile::measure_disk(folder_of(p.running.swap_file)));
    // One half after the other.
    out.disk.out_bytes_per_second =
        1 / (1 / out.disk.out_bytes_per_second + 1 / out.copies.out_bytes_per_second);
    out.disk.in_bytes_per_second =
        1 / (1 / out.disk.in_bytes_per_second + 1 / out.copies.in_bytes_per_second);
  }
  return out;
}

}  // namespace plimsoll::api

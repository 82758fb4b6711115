#include "plimsoll/api/auto_budget.h"

#include <memory>
#include <optional>

#include "plimsoll/api/plan_request.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/device/cpu/free_memory.h"
#include "plimsoll/kernels/backend/backend.h"
#include "plimsoll/profile/find_profile.h"

namespace plimsoll::api {
namespace {

Result<AutoBudget> less_a_margin(Bytes free, const std::string& source) {
  const Bytes bytes(
      static_cast<std::int64_t>((1 - kMemoryMargin) * static_cast<double>(free.value)));
  if (bytes.value <= 0)
    return fail(ErrorCode::kDoesNotFit, "--budget auto: nothing is free ({})", source);
  return AutoBudget{bytes, fmt::format("{}: {} ({}) less {:.0f} %", human(bytes), human(free),
                                       source, 100 * kMemoryMargin)};
}

}  // namespace

Result<AutoBudget> auto_budget(const std::string& device) {
  if (device == "cpu" || device == kMeasured) {
    PLIMSOLL_TRY(const device::FreeMemory free, device::free_memory());
    return less_a_margin(free.bytes, free.source);
  }
  PLIMSOLL_TRY(const std::optional<int> card, kernels::parse_cuda(device));
  if (card) {
    PLIMSOLL_TRY(const std::shared_ptr<kernels::Backend> backend,
                 kernels::open_cuda_backend({.index = *card}));
    PLIMSOLL_TRY(const device::MemoryInfo info, backend->device().memory_info());
    return less_a_margin(info.free, fmt::format("free on {} beside this program's context",
                                                backend->device().name()));
  }
  PLIMSOLL_TRY(const schedule::DeviceProfile profile, profile::find_profile(device));
  if (profile.memory_bytes.value <= 0)
    return fail(ErrorCode::kUsage, "--budget auto: the profile '{}' does not say memory_bytes",
                profile.name);
  return less_a_margin(profile.memory_bytes, fmt::format("the memory of '{}'", profile.name));
}

}  // namespace plimsoll::api

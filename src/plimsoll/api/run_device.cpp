#include "plimsoll/api/run_device.h"

#include "plimsoll/api/plan_request.h"
#include "plimsoll/kernels/backend/backend.h"
#include "plimsoll/profile/find_profile.h"

namespace plimsoll::api {
namespace {

constexpr std::string_view kCpu = "cpu";

// "cpu", "cpu2": profiles of CPUs are named after their threads.
bool is_cpu(std::string_view name) {
  return name.starts_with(kCpu) &&
         name.find_first_not_of("0123456789", kCpu.size()) == std::string_view::npos;
}

}  // namespace

std::string planned_device(const std::string& device) {
  const schedule::DeviceProfile* shipped = schedule::shipped_profile(device);
  return shipped == nullptr || is_cpu(shipped->name) ? std::string(kCpu) : device;
}

Status require_runnable(const std::string& device) {
  if (device == kCpu || device == kMeasured) return {};
  PLIMSOLL_TRY(const std::optional<int> card, kernels::parse_cuda(device));
  if (card) return {};  // whether there is one, opening it says
  PLIMSOLL_TRY(const schedule::DeviceProfile profile, profile::find_profile(device));
  const bool file = schedule::shipped_profile(device) == nullptr;
  if (is_cpu(profile.name) || (file && schedule::shipped_profile(profile.name) == nullptr))
    return {};
  return fail(ErrorCode::kDevice,
              "device '{}': a profile to plan with, not a device that can run; --device cpu runs "
              "here, and --device cuda on a card",
              device);
}

}  // namespace plimsoll::api

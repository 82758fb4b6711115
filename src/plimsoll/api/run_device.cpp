#include "plimsoll/api/run_device.h"

#include "plimsoll/api/plan_request.h"
#include "plimsoll/profile/find_profile.h"

namespace plimsoll::api {
namespace {

constexpr std::string_view kCpu = "cpu";

// "cpu", "cpu2": profiles of CPUs are named after their threads.
bool is_cpu(std::string_view name) {
  return name.starts_with(kCpu) &&
         name.find_first_not_of("0123456789", kCpu.size()) == std::string_view::npos;
}

bool is_cuda(std::string_view device) {
  return device == "cuda" || device.starts_with("cuda:");
}

}  // namespace

std::string planned_device(const std::string& device) {
  const schedule::DeviceProfile* shipped = schedule::shipped_profile(device);
  return shipped == nullptr || is_cpu(shipped->name) ? std::string(kCpu) : device;
}

Status require_runnable(const std::string& device) {
  if (device == kCpu || device == kMeasured) return {};
  if (is_cuda(device)) {
    return fail(ErrorCode::kDevice,
                "device '{}': this program cannot run on a GPU; --device cpu runs here", device);
  }
  PLIMSOLL_TRY(const schedule::DeviceProfile profile, profile::find_profile(device));
  const bool file = schedule::shipped_profile(device) == nullptr;
  if (is_cpu(profile.name) || (file && schedule::shipped_profile(profile.name) == nullptr))
    return {};
  return fail(ErrorCode::kDevice,
              "device '{}': a profile to plan with, not a device that can run; --device cpu runs "
              "here",
              device);
}

}  // namespace plimsoll::api

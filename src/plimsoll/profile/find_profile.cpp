#include "plimsoll/profile/find_profile.h"

#include <fmt/ranges.h>

#include "plimsoll/base/file.h"

namespace plimsoll::profile {

Result<schedule::DeviceProfile> find_profile(const std::string& device) {
  if (const schedule::DeviceProfile* shipped = schedule::shipped_profile(device)) return *shipped;
  if (device.ends_with(".json")) {
    PLIMSOLL_TRY(const std::string text, read_file(device));
    auto profile = schedule::read_profile(text);
    if (!profile) return forward(profile, device);
    return profile;
  }
  return fail(ErrorCode::kUsage,
              "device '{}': expects cpu, measured, cuda, {} or a profile file ending in .json",
              device, fmt::join(schedule::shipped_profile_names(), ", "));
}

}  // namespace plimsoll::profile

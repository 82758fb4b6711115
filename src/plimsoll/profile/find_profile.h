// A profile by the name a user gives: one that ships with the program, or a file.
#pragma once

#include <string>

#include "plimsoll/base/result.h"
#include "plimsoll/schedule/device_profile.h"

namespace plimsoll::profile {

// `cpu`, `h200`, ..., or the name of a file that ends in .json.
Result<schedule::DeviceProfile> find_profile(const std::string& device);

}  // namespace plimsoll::profile

// The text of profiles/h200.json, which the build puts into the program.
#pragma once

#include <string_view>

namespace plimsoll::schedule {

extern const std::string_view kH200Profile;

}  // namespace plimsoll::schedule

// The version of the program and of the schemas it writes.
#pragma once

namespace plimsoll::api {

const char* version();

}  // namespace plimsoll::api

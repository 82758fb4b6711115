#include "plimsoll/api/version.h"

namespace plimsoll::api {

const char* version() {
  return "0.1.0";
}

}  // namespace plimsoll::api

#include "plimsoll/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace plimsoll::base {

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "plimsoll: internal error at %s:%d: %s%s%s\n", file, line, condition,
               message.empty() ? "" : ": ", message.c_str());
  std::abort();
}

}  // namespace plimsoll::base

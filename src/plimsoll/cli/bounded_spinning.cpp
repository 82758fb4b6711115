#include "plimsoll/cli/bounded_spinning.h"

#include <cstdlib>

#include <unistd.h>

namespace plimsoll::cli {

void bound_spinning(char** argv) {
  constexpr const char* kSpins = "GOMP_SPINCOUNT";
  constexpr const char* kSetByUs = "PLIMSOLL_BOUNDED_SPINNING";
  // libgomp has read it; programs that we start are none of our business
  if (std::getenv(kSetByUs) != nullptr) {
    unsetenv(kSpins);
    unsetenv(kSetByUs);
    return;
  }
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv(kSpins) != nullptr) return;
  if (setenv(kSpins, "1000", 1) != 0 || setenv(kSetByUs, "1", 1) != 0) return;
  execv("/proc/self/exe", argv);
}

}  // namespace plimsoll::cli

#include "plimsoll/cli/bounded_spinning.h"

#include <cstdlib>

#include <unistd.h>

namespace plimsoll::cli {

void bound_spinning(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  if (setenv("GOMP_SPINCOUNT", "1000", 1) != 0) return;
  execv("/proc/self/exe", argv);
}

}  // namespace plimsoll::cli

#include "plimsoll/kernels/cpu/site.h"

#include <omp.h>

namespace plimsoll::kernels {

void use_threads(int threads) {
  if (omp_get_max_threads() != threads) omp_set_num_threads(threads);
}

}  // namespace plimsoll::kernels

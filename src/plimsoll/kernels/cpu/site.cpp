#include "plimsoll/kernels/cpu/site.h"

#include <algorithm>

#include <omp.h>

namespace plimsoll::kernels {

void use_threads(int threads) {
  // oneDNN hands out its work to as many as are set, and waits for no other: where OMP_THREAD_LIMIT
  // gives fewer, the rest would be left undone.
  const int most = std::min(threads, omp_get_thread_limit());
  if (omp_get_max_threads() != most) omp_set_num_threads(most);
}

}  // namespace plimsoll::kernels

#include "plimsoll/kernels/cpu/site.h"

#include <omp.h>

namespace plimsoll::kernels {
namespace {

template <typename Test>
bool every_type(const Site& site, const Test& test) {
  for (int i = 0; i < site.inputs(); ++i) {
    if (site.has(i) && !test(site.in(i))) return false;
  }
  for (int i = 0; i < site.outputs(); ++i) {
    if (!test(site.out(i))) return false;
  }
  return true;
}

}  // namespace

void use_threads(int threads) {
  if (omp_get_max_threads() != threads) omp_set_num_threads(threads);
}

bool all_f32(const Site& site) {
  return every_type(site, is_f32);
}

bool all_row_major(const Site& site) {
  return every_type(site, [](const ir::TensorType& type) {
    return type.layout.is_row_major() || type.shape.rank() < 2;
  });
}

bool all_unblocked(const Site& site) {
  return every_type(site, [](const ir::TensorType& type) { return type.layout.block_count == 0; });
}

}  // namespace plimsoll::kernels

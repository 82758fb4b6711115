// Masks of one bit an element, kept for a backward pass instead of the tensor
// (rewrite/keep_masks.h).
#include <limits>

#include "plimsoll/kernels/cuda/reduction.h"
#include "plimsoll/kernels/cuda/table.h"

namespace plimsoll::kernels::cuda {
namespace {

// Bit i is element i in memory: data and mask lie alike.
bool takes_mask(const Site& site, const ir::TensorType& data, const ir::TensorType& mask) {
  return is_kernel_float(data.dtype) && all_unblocked(site) && data.layout == mask.layout;
}

Made make_mask(const Site& site, double low, double high, bool inclusive) {
  if (!takes_mask(site, site.in(0), site.out())) return no_kernel();
  return make_kernel([=, type = element_of(site.in(0).dtype), count = site.in(0).shape.elements()](
                         const Arguments& a, cudaStream_t stream) {
    mask_of_range(type, count, low, high, inclusive, a.inputs[0], a.outputs[0], stream);
  });
}

Made make_positive_mask(const Site& site) {
  return make_mask(site, 0, std::numeric_limits<double>::infinity(), false);
}

Made make_inside_mask(const Site& site) {
  return make_mask(site, site.attributes().real("min"), site.attributes().real("max"), true);
}

Made make_masked(const Site& site) {
  if (!takes_mask(site, site.in(0), site.in(1)) || site.in(0) != site.out()) return no_kernel();
  return make_kernel([type = element_of(site.in(0).dtype), count = site.in(0).shape.elements()](
                         const Arguments& a, cudaStream_t stream) {
    apply_mask(type, count, a.inputs[0], a.inputs[1], a.outputs[0], stream);
  });
}

}  // namespace

std::span<const TableEntry> mask_kernels() {
  static constexpr TableEntry kRows[] = {
      {"inside_mask", make_inside_mask},
      {"masked", make_masked},
      {"positive_mask", make_positive_mask},
  };
  return kRows;
}

}  // namespace plimsoll::kernels::cuda

// Softmax and its logarithm along an axis, with gradients.
#include "plimsoll/kernels/cuda/lines.h"
#include "plimsoll/kernels/cuda/reduction.h"
#include "plimsoll/kernels/cuda/table.h"

namespace plimsoll::kernels::cuda {
namespace {

bool takes_lines(const Site& site) {
  return is_kernel_float(site.in(0).dtype) && all_row_major(site);
}

template <bool as_logarithm>
Made make_softmax(const Site& site) {
  if (!takes_lines(site)) return no_kernel();
  return make_kernel([lines = lines_of(site), type = element_of(site.in(0).dtype)](
                         const Arguments& a, cudaStream_t stream) {
    softmax_lines(type, lines, as_logarithm, a.inputs[0], a.outputs[0], stream);
  });
}

template <bool of_logarithm>
Made make_softmax_grad(const Site& site) {
  if (!takes_lines(site)) return no_kernel();
  return make_kernel([lines = lines_of(site), type = element_of(site.in(0).dtype)](
                         const Arguments& a, cudaStream_t stream) {
    softmax_gradient_lines(type, lines, of_logarithm, a.inputs[0], a.inputs[1], a.outputs[0],
                           stream);
  });
}

}  // namespace

std::span<const TableEntry> softmax_kernels() {
  static constexpr TableEntry kRows[] = {
      {"log_softmax", make_softmax<true>},
      {"log_softmax_grad", make_softmax_grad<true>},
      {"softmax", make_softmax<false>},
      {"softmax_grad", make_softmax_grad<false>},
  };
  return kRows;
}

}  // namespace plimsoll::kernels::cuda

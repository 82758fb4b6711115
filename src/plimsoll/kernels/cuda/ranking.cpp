// What runs along a line of elements: running sums, and the k best.
#include "plimsoll/kernels/cuda/lines.h"
#include "plimsoll/kernels/cuda/reduction.h"
#include "plimsoll/kernels/cuda/table.h"

namespace plimsoll::kernels::cuda {
namespace {

Made make_cumsum(const Site& site) {
  if (!is_kernel_element(site.in(0).dtype) || !all_row_major(site)) return no_kernel();
  return make_kernel([lines = lines_of(site), type = element_of(site.in(0).dtype),
                      exclusive = site.attributes().integer("exclusive") != 0,
                      reverse = site.attributes().integer("reverse") != 0](const Arguments& a,
                                                                           cudaStream_t stream) {
    running_sums(type, lines, exclusive, reverse, a.inputs[0], a.outputs[0], stream);
  });
}

Made make_top_k(const Site& site) {
  if (!is_kernel_element(site.in(0).dtype) || !all_row_major(site)) return no_kernel();
  return make_kernel([lines = lines_of(site), type = element_of(site.in(0).dtype),
                      k = site.attributes().integer("k"),
                      largest = site.attributes().integer("largest") != 0](const Arguments& a,
                                                                           cudaStream_t stream) {
    best_of_lines(type, lines, k, largest, a.inputs[0], a.outputs[0], output<std::int64_t>(a, 1),
                  stream);
  });
}

}  // namespace

std::span<const TableEntry> ranking_kernels() {
  static constexpr TableEntry kRows[] = {
      {"cumsum", make_cumsum},
      {"top_k", make_top_k},
  };
  return kRows;
}

}  // namespace plimsoll::kernels::cuda

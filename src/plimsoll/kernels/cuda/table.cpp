#include "plimsoll/kernels/cuda/table.h"

#include <vector>

namespace plimsoll::kernels::cuda {

std::span<const TableEntry> cuda_table() {
  static const std::vector<TableEntry> kTable = [] {
    std::vector<TableEntry> out;
    for (const auto rows :
         {activation_kernels, attention_kernels, batch_norm_kernels, binary_kernels,
          convolution_kernels, cross_entropy_kernels, indexing_kernels, mask_kernels,
          matmul_kernels, movement_kernels, neighbourhood_kernels, pooling_kernels, ranking_kernels,
          reduce_kernels, row_norm_kernels, softmax_kernels, update_kernels, value_kernels}) {
      out.insert(out.end(), rows().begin(), rows().end());
    }
    return out;
  }();
  return kTable;
}

}  // namespace plimsoll::kernels::cuda

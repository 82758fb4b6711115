#include "plimsoll/kernels/cpu/table.h"

#include <vector>

namespace plimsoll::kernels {

std::span<const TableEntry> cpu_table() {
  static const std::vector<TableEntry> kTable = [] {
    std::vector<TableEntry> out;
    for (const auto rows : {attention_kernels,
                            batch_norm_kernels,
                            binary_kernels,
                            cast_kernels,
                            choice_kernels,
                            convolution_kernels,
                            convolution_transpose_kernels,
                            cross_entropy_kernels,
                            dropout_kernels,
                            encoded_weight_kernels,
                            gather_kernels,
                            group_norm_kernels,
                            indexing_kernels,
                            layer_norm_kernels,
                            lrn_kernels,
                            mask_kernels,
                            matmul_kernels,
                            movement_kernels,
                            pooling_kernels,
                            reduce_kernels,
                            resize_kernels,
                            softmax_kernels,
                            unary_kernels,
                            update_kernels}) {
      out.insert(out.end(), rows().begin(), rows().end());
    }
    return out;
  }();
  return kTable;
}

}  // namespace plimsoll::kernels

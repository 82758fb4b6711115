// The mean cross-entropy of rows of logits and its gradient. Logits may be bf16: nothing is copied
// to fp32. Rows of logits may be padded (row_step.h).
#include <limits>

#include "plimsoll/kernels/cuda/reduction.h"
#include "plimsoll/kernels/cuda/row_step.h"
#include "plimsoll/kernels/cuda/table.h"

namespace plimsoll::kernels::cuda {
namespace {

bool takes_loss(const Site& site, int logits) {
  const ir::DType labels = site.in(logits + 1).dtype;
  return is_kernel_float(site.in(logits).dtype) && row_step(site.in(logits)) &&
         site.in(logits + 1).layout.block_count == 0 &&
         (labels == ir::DType::kI64 || labels == ir::DType::kI32);
}

LossRows loss_rows(const Site& site, int logits) {
  const ir::Shape& shape = site.in(logits).shape;
  const std::int64_t classes = shape[shape.rank() - 1];
  return {shape.elements(0, shape.rank() - 1), classes, *row_step(site.in(logits)),
          site.attributes().integer("ignore_index"), site.in(logits + 1).dtype == ir::DType::kI64};
}

Made make_cross_entropy(const Site& site) {
  if (!takes_loss(site, 0)) return no_kernel();
  const LossRows rows = loss_rows(site, 0);
  if (site.attributes().integer("per_row") != 0) {
    // The losses of rows are the first half of what is summed otherwise.
    return make_kernel(
        [rows, type = element_of(site.in(0).dtype)](const Arguments& a, cudaStream_t stream) {
          auto* sums = scratch<float>(a);
          cross_entropy_rows(type, rows, a.inputs[0], a.inputs[1], sums + 2 * rows.rows,
                             output<float>(a, 1), sums, stream);
          cudaMemcpyAsync(a.outputs[0], sums, static_cast<std::size_t>(rows.rows) * 4,
                          cudaMemcpyDeviceToDevice, stream);
        },
        {Bytes((rows.rows * 2 + 1) * 4)});
  }
  return make_kernel(
      [rows, type = element_of(site.in(0).dtype)](const Arguments& a, cudaStream_t stream) {
        cross_entropy_rows(type, rows, a.inputs[0], a.inputs[1], output<float>(a, 0),
                           output<float>(a, 1), scratch<float>(a), stream);
      },
      {Bytes(rows.rows * 2 * 4)});
}

Made make_mean_loss(const Site& site) {
  const ir::DType labels = site.in(1).dtype;
  if (!is_f32(site.in(0)) || !all_row_major(site) ||
      (labels != ir::DType::kI64 && labels != ir::DType::kI32))
    return no_kernel();
  const LossRows rows{site.in(0).shape.elements(), std::numeric_limits<std::int64_t>::max(), 0,
                      site.attributes().integer("ignore_index"), labels == ir::DType::kI64};
  return make_kernel([rows](const Arguments& a, cudaStream_t stream) {
    mean_of_losses(rows, input<float>(a, 0), a.inputs[1], output<float>(a, 0), stream);
  });
}

Made make_cross_entropy_grad(const Site& site) {
  const std::size_t all = site.has(4) ? 4 : 2;  // whose labels are counted
  if (!takes_loss(site, 1) || row_step(site.out()) != row_step(site.in(1)) ||
      site.in(static_cast<int>(all)).dtype != site.in(2).dtype)
    return no_kernel();
  const LossRows rows = loss_rows(site, 1);
  return make_kernel(
      [rows, all, all_rows = site.in(static_cast<int>(all)).shape.elements(),
       type = element_of(site.in(1).dtype)](const Arguments& a, cudaStream_t stream) {
        cross_entropy_gradient_rows(type, rows, {all_rows, a.inputs[all]}, input<float>(a, 0),
                                    a.inputs[1], a.inputs[2], input<float>(a, 3), a.outputs[0],
                                    scratch<float>(a), stream);
      },
      {Bytes(4)});
}

}  // namespace

std::span<const TableEntry> cross_entropy_kernels() {
  static constexpr TableEntry kRows[] = {
      {"cross_entropy", make_cross_entropy},
      {"cross_entropy_grad", make_cross_entropy_grad},
      {"mean_loss", make_mean_loss},
  };
  return kRows;
}

}  // namespace plimsoll::kernels::cuda

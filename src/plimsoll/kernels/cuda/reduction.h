// Planning the reductions that reduction.cu launches: which axes are kept, which are reduced, and
// into how many pieces a reduction is cut.
//
//   db = column sums of dy[rows, n]      kept {n, step 1}, reduced {rows, step n}: by columns
//   batch norm over NCHW                 kept {C, HW}, reduced {N, CHW}, {HW, 1}: a block a channel
//   the same, channels last              kept {C, 1}, reduced {NHW, C}: by columns
//
// Pieces depend on the shape alone, never on the device: the same bits on every card.
#pragma once

#include <optional>
#include <vector>

#include "plimsoll/kernels/cuda/launch.h"
#include "plimsoll/kernels/cuda/site.h"
#include "plimsoll/kernels/strided_loop.h"

namespace plimsoll::kernels::cuda {

struct ReduceAxis {
  std::int64_t extent;
  std::int64_t step;      // in elements
  std::int64_t also = 0;  // from one statistic to the next, where elements belong to one
};

// Outputs are numbered over the kept axes, the last one fastest. Fewer than 2^32 of either.
ReducePlan make_reduce_plan(const std::vector<ReduceAxis>& kept,
                            const std::vector<ReduceAxis>& reduced);

// Of a tensor: the axes not named are kept, in order.
ReducePlan make_reduce_plan(const ir::TensorType& type, const std::vector<int>& axes);

Bytes scratch_of(const ReducePlan& plan);

// The shape that columns.cu takes: rows that begin at multiples of 16 bytes. Nothing for others.
std::optional<ColumnShape> column_shape(std::int64_t rows, std::int64_t columns, std::int64_t step,
                                        ir::DType dtype);
Bytes scratch_of(const ColumnShape& shape);

// Of data [N, C, ...]: its channels as columns, where they lie last.
std::optional<ColumnShape> channel_columns(const ir::TensorType& data);

// The sums of a matrix's columns, by columns.cu where it takes them.
class ColumnSums {
 public:
  ColumnSums(std::int64_t rows, std::int64_t columns, std::int64_t step, ir::DType dtype);
  Bytes scratch() const;
  void run(cudaStream_t stream, const std::byte* x, std::byte* y, std::byte* scratch) const;

 private:
  std::optional<ColumnShape> columns_;
  ReducePlan plan_{};
  Element type_;
};

// The type of the kernels' arguments; is_kernel_element says whether there is one.
Element element_of(ir::DType dtype);
bool is_kernel_element(ir::DType dtype);

}  // namespace plimsoll::kernels::cuda

#include "plimsoll/kernels/cuda/staged_product.h"

#include <algorithm>

namespace plimsoll::kernels::cuda {
namespace {

constexpr std::int64_t kRowAlignment = 16;                     // bytes
constexpr std::int64_t kPaddedTo = 64;                         // elements
constexpr std::int64_t kMostStaged = std::int64_t{32} << 20;   // bytes of a piece
constexpr std::int64_t kLeastWorthIt = std::int64_t{1} << 18;  // bytes of the operand
constexpr std::int64_t kRowsOfTile = 256;                      // that kernels like

std::int64_t padded_row(std::int64_t elements) {
  return (elements + kPaddedTo - 1) / kPaddedTo * kPaddedTo;
}

bool is_odd_row(std::int64_t row, std::int64_t rows, ir::DType dtype) {
  const std::int64_t bytes = row * width_of(dtype);
  return bytes % kRowAlignment != 0 && bytes * rows >= kLeastWorthIt;
}

// Rows of `rows` x `columns` elements from one tensor to another.
Result<PointwiseKernel> make_rows_copy(ir::DType dtype, std::int64_t rows, std::int64_t columns,
                                       std::int64_t from, std::int64_t to) {
  Pointwise copy;
  copy.space = {dtype, {rows, columns}, {}};
  copy.inputs = {{dtype, Strides{from, 1}}};
  copy.outputs = {{dtype, Strides{to, 1}}};
  copy.results = {"a"};
  return PointwiseKernel::make(copy);
}

}  // namespace

Result<StagedProduct> StagedProduct::make(const ProductShape& shape,
                                          const CudaKernelOptions& options) {
  StagedProduct out;
  out.shape_ = shape;
  const bool on_tensor_cores = shape.dtype != ir::DType::kF32 || options.tf32;
  const std::int64_t rows_a = shape.turned_a ? shape.k : shape.m;
  out.stages_a_ = on_tensor_cores && is_odd_row(shape.row_a, rows_a, shape.dtype);
  out.stages_c_ = on_tensor_cores && is_odd_row(shape.row_c, shape.m, shape.result);
  std::int64_t rows = shape.m;
  // Bytes in scratch for each row of C.
  const std::int64_t each_a =
      (shape.turned_a ? shape.k : padded_row(shape.k)) * width_of(shape.dtype);
  const std::int64_t each_c = padded_row(shape.n) * width_of(shape.result);
  if (out.stages_a_ || out.stages_c_) {
    const std::int64_t each = std::max(out.stages_a_ ? each_a : 0, out.stages_c_ ? each_c : 0);
    rows = std::max(kMostStaged / each / kRowsOfTile * kRowsOfTile, kRowsOfTile);
    rows = std::min(rows, shape.m);
  }
  if (rows > 0) {
    PLIMSOLL_TRY(out.whole_, out.make_piece(rows, options));
  }
  if (rows > 0 && shape.m % rows != 0) {
    PLIMSOLL_TRY(out.rest_, out.make_piece(shape.m % rows, options));
  }
  std::int64_t workspace = 0;
  for (const auto* piece : {&out.whole_, &out.rest_}) {
    if (*piece) workspace = std::max(workspace, (*piece)->product.workspace().value);
  }
  out.workspace_ = out.scratch_.add(workspace);
  if (out.stages_a_) {
    const std::int64_t padded =
        shape.turned_a ? padded_row(rows) * shape.k * width_of(shape.dtype) : rows * each_a;
    out.staged_a_ = out.scratch_.add(padded);
  }
  if (out.stages_c_) out.staged_c_ = out.scratch_.add(rows * each_c);
  return out;
}

Result<StagedProduct::Piece> StagedProduct::make_piece(std::int64_t rows,
                                                       const CudaKernelOptions& options) const {
  ProductShape part = shape_;
  part.m = rows;
  PointwiseKernel take_a;
  PointwiseKernel put_c;
  if (stages_a_) {
    // A stored [m,k] keeps its columns; stored [k,m] a piece of its columns is taken.
    part.row_a = padded_row(shape_.turned_a ? rows : shape_.k);
    PLIMSOLL_TRY(take_a,
                 make_rows_copy(shape_.dtype, shape_.turned_a ? shape_.k : rows,
                                shape_.turned_a ? rows : shape_.k, shape_.row_a, part.row_a));
  }
  if (stages_c_) {
    part.row_c = padded_row(shape_.n);
    PLIMSOLL_TRY(put_c, make_rows_copy(shape_.result, rows, shape_.n, part.row_c, shape_.row_c));
  }
  PLIMSOLL_TRY(Product product, Product::make(part, options));
  return Piece{rows, std::move(product), std::move(take_a), std::move(put_c)};
}

void StagedProduct::run(cudaStream_t stream, const std::byte* a, const std::byte* b,
                        const std::byte* bias, std::byte* c, std::byte* scratch) const {
  std::int64_t first = 0;
  for (; whole_ && first + whole_->rows <= shape_.m; first += whole_->rows)
    run_piece(*whole_, first, stream, a, b, bias, c, scratch);
  if (rest_) run_piece(*rest_, first, stream, a, b, bias, c, scratch);
}

void StagedProduct::run_piece(const Piece& piece, std::int64_t first, cudaStream_t stream,
                              const std::byte* a, const std::byte* b, const std::byte* bias,
                              std::byte* c, std::byte* scratch) const {
  const std::byte* left = a + first * (shape_.turned_a ? 1 : shape_.row_a) * width_of(shape_.dtype);
  std::byte* result = c + first * shape_.row_c * width_of(shape_.result);
  std::byte* staged_a = scratch + staged_a_;
  std::byte* staged_c = scratch + staged_c_;
  const std::byte* const computed = staged_c;
  if (stages_a_) piece.take_a.launch(stream, {&left, 1}, {&staged_a, 1});
  piece.product.run(stream, stages_a_ ? staged_a : left, b, bias, stages_c_ ? staged_c : result,
                    scratch + workspace_);
  if (stages_c_) piece.put_c.launch(stream, {&computed, 1}, {&result, 1});
}

}  // namespace plimsoll::kernels::cuda

// A product on tensor cores whose rows are no multiple of 16 bytes, in pieces through scratch.
//
// cuBLASLt needs rows that begin at multiples of 16 bytes for its fast kernels: with a vocabulary
// of 50,257 the products around the logits run at 123 instead of 729 TFLOP/s in bf16. Padding the
// logits themselves would change their bytes everywhere, so a piece of the rows at a time is
// computed with padded rows in scratch and copied to where it belongs (C), or copied from there
// (A):
//
//   C[m,n], n = 50,257     for each piece of 256 rows: scratch[256, 50,304] = A B, then copied
//   A[m,k] or A^T[k,m]     for each piece of m: copied to scratch with padded rows, then multiplied
//
// A copy moves the operand's bytes twice more, which takes a tenth of the time that the fast
// product saves. Products whose rows are fine, small ones and those of exact fp32 are one plain
// product, with no scratch but its workspace. B is never staged: it is a weight, and lies with its
// long side outermost.
//
// matmul.cpp does not use it yet: it compiles, but it has not run on a card so far. Once
// it has, linear and its weight gradient take it instead of Product, and CudaOddRows tests it.
#pragma once

#include <optional>

#include "plimsoll/kernels/cuda/pointwise.h"
#include "plimsoll/kernels/cuda/product.h"

namespace plimsoll::kernels::cuda {

class StagedProduct {
 public:
  // The shape has one matrix (batch 1).
  static Result<StagedProduct> make(const ProductShape& shape, const CudaKernelOptions& options);
  Bytes scratch() const { return scratch_.size(); }
  void run(cudaStream_t stream, const std::byte* a, const std::byte* b, const std::byte* bias,
           std::byte* c, std::byte* scratch) const;

 private:
  // What is done for a piece of so many rows of C.
  struct Piece {
    std::int64_t rows;
    Product product;
    PointwiseKernel take_a;
    PointwiseKernel put_c;
  };
  Result<Piece> make_piece(std::int64_t rows, const CudaKernelOptions& options) const;
  void run_piece(const Piece& piece, std::int64_t first, cudaStream_t stream, const std::byte* a,
                 const std::byte* b, const std::byte* bias, std::byte* c, std::byte* scratch) const;

  ProductShape shape_;
  bool stages_a_ = false;
  bool stages_c_ = false;
  std::optional<Piece> whole_;  // of all pieces but the last
  std::optional<Piece> rest_;
  ScratchLayout scratch_;
  std::int64_t workspace_ = 0;
  std::int64_t staged_a_ = 0;
  std::int64_t staged_c_ = 0;
};

}  // namespace plimsoll::kernels::cuda

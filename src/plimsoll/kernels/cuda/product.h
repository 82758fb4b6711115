// One matrix product by cuBLASLt: C = alpha * op(A) op(B) + beta * C (+ bias), row-major, batched.
//
// The algorithm is the first of cuBLASLt's heuristic that is deterministic and needs at most 32 MiB
// of workspace; the workspace declared is that algorithm's own figure. With a limit of 0 TF32
// products are 1.6 times slower; most of the best forward algorithms take less than a kilobyte.
// Split-K that adds up in place is excluded. Operands are told to be aligned to what the caller
// promises, so that the choice does not follow addresses. Where an algorithm is named
// (engine_trail.h), it is that one or an error, by the same rules.
#pragma once

#include <memory>

#include "plimsoll/kernels/cuda/site.h"

namespace plimsoll::kernels::cuda {

struct ProductShape {
  ir::DType dtype = ir::DType::kF32;  // of A and B
  ir::DType result = ir::DType::kF32;
  bool turned_a = false;  // A is stored [k, m]
  bool turned_b = false;  // B is stored [n, k]
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t row_a = 0, row_b = 0, row_c = 0;  // elements from one stored row to the next
  std::int64_t batch = 1;
  std::int64_t step_a = 0, step_b = 0, step_c = 0;  // elements from one matrix to the next
  bool bias = false;                                // one number for each column of C
  double alpha = 1;
  std::int64_t alignment = 256;  // bytes, of every address
};

class Product {
 public:
  static Result<Product> make(const ProductShape& shape, const CudaKernelOptions& options);
  Product(Product&&) noexcept;
  Product& operator=(Product&&) noexcept;
  ~Product();

  Bytes workspace() const;
  // beta is 0 or 1. C = beta * C where k is 0.
  void run(cudaStream_t stream, const std::byte* a, const std::byte* b, const std::byte* bias,
           std::byte* c, std::byte* workspace, float beta = 0) const;

 private:
  struct State;
  explicit Product(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace plimsoll::kernels::cuda

// A product on tensor cores one of whose extents is no multiple of 16 bytes.
//
// cuBLASLt's fast kernels take rows that begin at multiples of 16 bytes and extents that are such
// multiples: with a vocabulary of 50,257 the products around the logits run at 123 instead of 729
// TFLOP/s in bf16, and with padded rows alone two of the three still do. Where the rows are padded
// (rewrite/pad_rows.h) the product is cut into one of the extents' largest multiple and a small
// rest:
//
//   C[m, 50,257] = A B        C[:, :50,256] = A B[:, :50,256], then one column
//   C = A[m, 50,257] B        one column of A times one row of B, then C += A[:, :50,256] B[...]
//
// Products whose extents are fine, small ones and those of exact fp32 are one plain product.
//
// No piece reaches 2^31 elements from its beginning along the rows of A, B or C, and a piece of one
// row or column none along k either: cuBLASLt's kernels for those count in 32 bits, and wrote
// outside of C where a column of 49,152 logits had rows of 50,304. Only such pieces are cut along
// k, because sums of several are rounded in between.
#pragma once

#include <vector>

#include "plimsoll/kernels/cuda/product.h"

namespace plimsoll::kernels::cuda {

class SplitProduct {
 public:
  // The shape has one matrix (batch 1).
  static Result<SplitProduct> make(const ProductShape& shape, const CudaKernelOptions& options);
  Bytes workspace() const;
  void run(cudaStream_t stream, const std::byte* a, const std::byte* b, const std::byte* bias,
           std::byte* c, std::byte* workspace) const;

 private:
  // One product, and where its operands begin, in bytes.
  struct Piece {
    Product product;
    std::int64_t a, b, c, bias;
    bool adds, biased;
  };
  std::vector<Piece> pieces_;
};

// Of one extent: its largest multiple of `unit` and the rest, or all of it where it is one; none
// larger than `most`.
struct ExtentPiece {
  std::int64_t begin, size;
  bool operator==(const ExtentPiece&) const = default;
};
std::vector<ExtentPiece> extent_pieces(std::int64_t extent, std::int64_t unit, std::int64_t most);

struct ProductPiece {
  ExtentPiece m, n, k;
  bool adds;    // to what the pieces before it made
  bool biased;  // the last of those that add up
};
std::vector<ProductPiece> product_pieces(const ProductShape& shape, bool tf32);

}  // namespace plimsoll::kernels::cuda

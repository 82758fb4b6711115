#include "plimsoll/kernels/cuda/split_product.h"

#include <algorithm>
#include <numeric>

namespace plimsoll::kernels::cuda {
namespace {

constexpr std::int64_t kRowBytes = 16;
constexpr std::int64_t kLeastMultiplications = std::int64_t{1} << 26;

bool is_worth_splitting(const ProductShape& shape, bool tf32) {
  const bool on_tensor_cores = shape.dtype != ir::DType::kF32 || tf32;
  const double size =
      static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
  const std::int64_t width = width_of(shape.dtype);
  return on_tensor_cores && shape.batch == 1 && shape.dtype == shape.result &&
         size >= static_cast<double>(kLeastMultiplications) &&
         shape.row_a * width % kRowBytes == 0 && shape.row_b * width % kRowBytes == 0 &&
         shape.row_c * width % kRowBytes == 0;
}

// Elements of 16 bytes where the extent's elements are neighbours in one of the operands, else 1.
std::int64_t unit_of(const ProductShape& shape, bool neighbours) {
  return neighbours ? kRowBytes / width_of(shape.dtype) : 1;
}

}  // namespace

std::vector<ExtentPiece> extent_pieces(std::int64_t extent, std::int64_t unit) {
  const std::int64_t whole = extent / unit * unit;
  if (whole == extent || whole == 0) return {{0, extent}};
  return {{0, whole}, {whole, extent - whole}};
}

Result<SplitProduct> SplitProduct::make(const ProductShape& shape,
                                        const CudaKernelOptions& options) {
  SplitProduct out;
  const auto add = [&](ExtentPiece m, ExtentPiece n, ExtentPiece k, bool adds,
                       bool biased) -> Status {
    ProductShape part = shape;
    part.m = m.size;
    part.n = n.size;
    part.k = k.size;
    part.bias = biased;
    const std::int64_t width = width_of(shape.dtype);
    const std::int64_t a =
        shape.turned_a ? k.begin * shape.row_a + m.begin : m.begin * shape.row_a + k.begin;
    const std::int64_t b =
        shape.turned_b ? n.begin * shape.row_b + k.begin : k.begin * shape.row_b + n.begin;
    const std::int64_t c = m.begin * shape.row_c + n.begin;
    for (const std::int64_t begin : {a, b, c, n.begin})
      part.alignment = std::gcd(part.alignment, begin * width);
    PLIMSOLL_TRY(Product product, Product::make(part, options));
    out.pieces_.push_back(
        {std::move(product), a * width, b * width, c * width, n.begin * width, adds, biased});
    return {};
  };
  const ExtentPiece all_m{0, shape.m};
  const ExtentPiece all_n{0, shape.n};
  const ExtentPiece all_k{0, shape.k};
  if (!is_worth_splitting(shape, options.tf32)) {
    PLIMSOLL_RETURN_IF_ERROR(add(all_m, all_n, all_k, false, shape.bias));
    return out;
  }
  std::vector<ExtentPiece> inner =
      extent_pieces(shape.k, unit_of(shape, !shape.turned_a || shape.turned_b));
  // The small one first: what is rounded in between is small.
  std::ranges::reverse(inner);
  for (const ExtentPiece& m : extent_pieces(shape.m, unit_of(shape, shape.turned_a))) {
    for (const ExtentPiece& n : extent_pieces(shape.n, unit_of(shape, true))) {
      for (std::size_t i = 0; i < inner.size(); ++i) {
        const bool last = i + 1 == inner.size();
        PLIMSOLL_RETURN_IF_ERROR(add(m, n, inner[i], i > 0, last && shape.bias));
      }
    }
  }
  return out;
}

Bytes SplitProduct::workspace() const {
  Bytes most(0);
  for (const Piece& piece : pieces_) most = std::max(most, piece.product.workspace());
  return most;
}

void SplitProduct::run(cudaStream_t stream, const std::byte* a, const std::byte* b,
                       const std::byte* bias, std::byte* c, std::byte* workspace) const {
  for (const Piece& piece : pieces_) {
    piece.product.run(stream, a + piece.a, b + piece.b, piece.biased ? bias + piece.bias : nullptr,
                      c + piece.c, workspace, piece.adds ? 1.0F : 0.0F);
  }
}

}  // namespace plimsoll::kernels::cuda

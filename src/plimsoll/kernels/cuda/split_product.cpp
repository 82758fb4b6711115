#include "plimsoll/kernels/cuda/split_product.h"

#include <algorithm>
#include <limits>
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

// Rows that begin `row` elements apart and end within the reach of a 32-bit index.
std::int64_t rows_within_reach(std::int64_t row) {
  return std::max<std::int64_t>(
      std::numeric_limits<std::int32_t>::max() / std::max<std::int64_t>(row, 1), 1);
}

}  // namespace

std::vector<ExtentPiece> extent_pieces(std::int64_t extent, std::int64_t unit, std::int64_t most) {
  const std::int64_t whole = extent / unit * unit;
  const std::int64_t each = most >= unit ? most / unit * unit : most;
  std::vector<ExtentPiece> out;
  for (std::int64_t begin = 0; begin < whole; begin += each)
    out.push_back({begin, std::min(each, whole - begin)});
  for (std::int64_t begin = whole; begin < extent; begin += most)
    out.push_back({begin, std::min(most, extent - begin)});
  if (extent == 0) out.push_back({0, 0});
  return out;
}

std::vector<ProductPiece> product_pieces(const ProductShape& shape, bool tf32) {
  const bool splits = is_worth_splitting(shape, tf32);
  const auto unit = [&](bool neighbours) { return splits ? unit_of(shape, neighbours) : 1; };
  const std::int64_t most_m =
      rows_within_reach(std::max(shape.row_c, shape.turned_a ? 1 : shape.row_a));
  const std::int64_t most_n = shape.turned_b ? rows_within_reach(shape.row_b) : shape.n;
  const std::int64_t most_k = rows_within_reach(
      std::max(shape.turned_a ? shape.row_a : 1, shape.turned_b ? 1 : shape.row_b));
  std::vector<ProductPiece> out;
  for (const ExtentPiece& m : extent_pieces(shape.m, unit(shape.turned_a), most_m)) {
    for (const ExtentPiece& n :
         extent_pieces(shape.n, unit(true), std::max<std::int64_t>(most_n, 1))) {
      const bool is_vector = m.size == 1 || n.size == 1;
      std::vector<ExtentPiece> inner =
          extent_pieces(shape.k, unit(!shape.turned_a || shape.turned_b),
                        is_vector ? most_k : std::max<std::int64_t>(shape.k, 1));
      // The small one first: what is rounded in between is small.
      std::ranges::reverse(inner);
      for (std::size_t i = 0; i < inner.size(); ++i)
        out.push_back({m, n, inner[i], i > 0, shape.bias && i + 1 == inner.size()});
    }
  }
  return out;
}

Result<SplitProduct> SplitProduct::make(const ProductShape& shape,
                                        const CudaKernelOptions& options) {
  SplitProduct out;
  const std::int64_t width = width_of(shape.dtype);
  const std::int64_t result_width = width_of(shape.result);
  for (const auto& [m, n, k, adds, biased] : product_pieces(shape, options.tf32)) {
    ProductShape part = shape;
    part.m = m.size;
    part.n = n.size;
    part.k = k.size;
    part.bias = biased;
    const std::int64_t a = width * (shape.turned_a ? k.begin * shape.row_a + m.begin
                                                   : m.begin * shape.row_a + k.begin);
    const std::int64_t b = width * (shape.turned_b ? n.begin * shape.row_b + k.begin
                                                   : k.begin * shape.row_b + n.begin);
    const std::int64_t c = result_width * (m.begin * shape.row_c + n.begin);
    const std::int64_t bias = result_width * n.begin;
    for (const std::int64_t begin : {a, b, c, bias})
      part.alignment = std::gcd(part.alignment, begin);
    PLIMSOLL_TRY(Product product, Product::make(part, options));
    out.pieces_.push_back({std::move(product), a, b, c, bias, adds, biased});
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

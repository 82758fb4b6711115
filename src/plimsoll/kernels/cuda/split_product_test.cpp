#include "plimsoll/kernels/cuda/split_product.h"

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

namespace plimsoll::kernels::cuda {
namespace {

constexpr std::int64_t kReach = std::numeric_limits<std::int32_t>::max();

TEST(ExtentPieces, AreMultiplesAndARest) {
  using Pieces = std::vector<ExtentPiece>;
  EXPECT_EQ(extent_pieces(50257, 8, 1 << 20), (Pieces{{0, 50256}, {50256, 1}}));
  EXPECT_EQ(extent_pieces(50304, 8, 1 << 20), (Pieces{{0, 50304}}));
  EXPECT_EQ(extent_pieces(7, 8, 1 << 20), (Pieces{{0, 7}}));
  EXPECT_EQ(extent_pieces(100, 8, 50), (Pieces{{0, 48}, {48, 48}, {96, 4}}));
  EXPECT_EQ(extent_pieces(10, 1, 4), (Pieces{{0, 4}, {4, 4}, {8, 2}}));
  EXPECT_EQ(extent_pieces(0, 8, 50), (Pieces{{0, 0}}));
}

// How far the piece's last row begins from its first.
std::int64_t reach(bool along, std::int64_t size, std::int64_t row) {
  return along ? (size - 1) * row : 0;
}

void expect_covered_within_reach(const ProductShape& shape, bool tf32) {
  const std::vector<ProductPiece> pieces = product_pieces(shape, tf32);
  std::int64_t covered = 0;
  for (const ProductPiece& piece : pieces) {
    covered += piece.m.size * piece.n.size * piece.k.size;
    const bool comes_later = std::ranges::any_of(pieces, [&](const ProductPiece& other) {
      return other.m == piece.m && other.n == piece.n && other.k.begin > piece.k.begin;
    });
    EXPECT_EQ(piece.adds, comes_later) << "the last along k comes first";
    EXPECT_EQ(piece.biased, shape.bias && piece.k.begin == 0);
    EXPECT_LE(reach(true, piece.m.size, shape.row_c), kReach);
    EXPECT_LE(reach(!shape.turned_a, piece.m.size, shape.row_a), kReach);
    EXPECT_LE(reach(shape.turned_b, piece.n.size, shape.row_b), kReach);
    if (piece.m.size > 1 && piece.n.size > 1) continue;
    EXPECT_LE(reach(shape.turned_a, piece.k.size, shape.row_a), kReach);
    EXPECT_LE(reach(!shape.turned_b, piece.k.size, shape.row_b), kReach);
  }
  EXPECT_EQ(covered, shape.m * shape.n * shape.k);
}

// The three products around the logits of gpt2, 96 x 1024 tokens, rows padded to 50,304.
TEST(ProductPieces, OfLargeLogitsStayWithinReachOf32Bits) {
  constexpr std::int64_t kTokens = 96 * 1024;
  constexpr std::int64_t kWords = 50257;
  constexpr std::int64_t kRow = 50304;
  for (const ir::DType dtype : {ir::DType::kF32, ir::DType::kBF16}) {
    for (const bool bias : {false, true}) {
      ProductShape logits{dtype, dtype, false, true, kTokens, kWords, 768, 768, 768, kRow};
      logits.bias = bias;
      expect_covered_within_reach(logits, true);
      EXPECT_GT(product_pieces(logits, true).size(), 2U);
    }
    expect_covered_within_reach({dtype, dtype, false, false, kTokens, 768, kWords, kRow, 768, 768},
                                true);
    expect_covered_within_reach({dtype, dtype, true, false, kWords, 768, kTokens, kRow, 768, 768},
                                true);
  }
}

TEST(ProductPieces, OfOrdinaryProductsAreOne) {
  const ProductShape shape{
      ir::DType::kF32, ir::DType::kF32, false, true, 4096, 768, 768, 768, 768, 768};
  const std::vector<ProductPiece> pieces = product_pieces(shape, true);
  ASSERT_EQ(pieces.size(), 1U);
  EXPECT_FALSE(pieces.front().adds);
  expect_covered_within_reach(shape, true);
  expect_covered_within_reach(shape, false);
}

}  // namespace
}  // namespace plimsoll::kernels::cuda

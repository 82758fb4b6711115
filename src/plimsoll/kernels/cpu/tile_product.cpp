#include "plimsoll/kernels/cpu/tile_product.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "plimsoll/kernels/cpu/vectorize.h"

namespace plimsoll::kernels {
namespace {

constexpr int kLanes = 16;
constexpr int kPanel = 2 * kLanes;  // columns of B packed at a time
constexpr int kRows = 8;            // of A held in registers

using Vector [[gnu::vector_size(kLanes * sizeof(float))]] = float;

PLIMSOLL_INLINE void load_into(Vector& to, const float* from) {
  std::memcpy(&to, from, sizeof(Vector));
}

// One step of a transposition by halves: swaps the off-diagonal kWidth x kWidth blocks.
template <int kWidth, int... kLane>
PLIMSOLL_INLINE void swap_blocks(Vector (&rows)[kLanes], std::integer_sequence<int, kLane...>) {
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    if ((i & kWidth) != 0) continue;
    const Vector a = rows[i];
    const Vector b = rows[i + kWidth];
    rows[i] =
        __builtin_shufflevector(a, b, (kLane & kWidth) == 0 ? kLane : kLane - kWidth + kLanes...);
    rows[i + kWidth] =
        __builtin_shufflevector(a, b, (kLane & kWidth) == 0 ? kLane + kWidth : kLane + kLanes...);
  }
}

// 16 rows of 16 elements, `step` apart, to the columns of `to`, whose rows are a panel's.
PLIMSOLL_INLINE void turn_block(const float* from, std::int64_t step, float* to) {
  Vector rows[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) load_into(rows[i], from + i * step);
  constexpr auto kAll = std::make_integer_sequence<int, kLanes>();
  swap_blocks<8>(rows, kAll);
  swap_blocks<4>(rows, kAll);
  swap_blocks<2>(rows, kAll);
  swap_blocks<1>(rows, kAll);
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) std::memcpy(to + i * kPanel, &rows[i], sizeof(Vector));
}

// Columns [0, columns) of B, at most a panel, as [inner][kPanel], zeros behind.
PLIMSOLL_INLINE void pack_panel(const float* b, MatrixSteps steps, std::int64_t inner,
                                std::int64_t columns, float* panel) {
  if (columns < kPanel)
    std::memset(panel, 0, static_cast<std::size_t>(inner * kPanel) * sizeof(float));
  if (steps.along == 1) {
    for (std::int64_t p = 0; p < inner; ++p) {
      std::memcpy(panel + p * kPanel, b + p * steps.down,
                  static_cast<std::size_t>(columns) * sizeof(float));
    }
    return;
  }
  const std::int64_t whole_columns = columns / kLanes * kLanes;
  const std::int64_t whole_inner = steps.down == 1 ? inner / kLanes * kLanes : 0;
  for (std::int64_t j = 0; j < whole_columns; j += kLanes) {
    for (std::int64_t p = 0; p < whole_inner; p += kLanes)
      turn_block(b + j * steps.along + p, steps.along, panel + p * kPanel + j);
  }
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t p = j < whole_columns ? whole_inner : 0; p < inner; ++p)
      panel[p * kPanel + j] = b[p * steps.down + j * steps.along];
  }
}

// kCount rows of A times the packed panel.
template <int kCount>
PLIMSOLL_INLINE void multiply_rows(const float* a, MatrixSteps steps, const float* panel,
                                   std::int64_t inner, std::int64_t columns, float* c,
                                   std::int64_t c_row, bool accumulate) {
  Vector sums[kCount][2] = {};
  for (std::int64_t p = 0; p < inner; ++p) {
    Vector left;
    Vector right;
    load_into(left, panel + p * kPanel);
    load_into(right, panel + p * kPanel + kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) {
      const float factor = a[i * steps.down + p * steps.along];
      sums[i][0] += factor * left;
      sums[i][1] += factor * right;
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i) {
    float row[kPanel];
    std::memcpy(row, sums[i], sizeof row);
    float* to = c + i * c_row;
    if (accumulate) {
      for (std::int64_t j = 0; j < columns; ++j) to[j] += row[j];
    } else {
      std::memcpy(to, row, static_cast<std::size_t>(columns) * sizeof(float));
    }
  }
}

struct Product {
  TileProduct::Sizes sizes;
  MatrixSteps a;
  MatrixSteps b;
  std::int64_t c_row;
  bool accumulate;
};

PLIMSOLL_VECTORIZED void multiply(const Product& how, const float* a, const float* b, float* c,
                                  float* panel) {
  const auto [rows, inner, columns] = how.sizes;
  for (std::int64_t j = 0; j < columns; j += kPanel) {
    const std::int64_t width = std::min<std::int64_t>(kPanel, columns - j);
    pack_panel(b + j * how.b.along, how.b, inner, width, panel);
    std::int64_t i = 0;
    for (; i + kRows <= rows; i += kRows) {
      multiply_rows<kRows>(a + i * how.a.down, how.a, panel, inner, width, c + i * how.c_row + j,
                           how.c_row, how.accumulate);
    }
    for (; i < rows; ++i) {
      multiply_rows<1>(a + i * how.a.down, how.a, panel, inner, width, c + i * how.c_row + j,
                       how.c_row, how.accumulate);
    }
  }
}

}  // namespace

Bytes TileProduct::scratch() const {
  return Bytes(sizes_.inner * kPanel * static_cast<std::int64_t>(sizeof(float)));
}

void TileProduct::run(const float* a, const float* b, float* c, std::byte* scratch) const {
  multiply({sizes_, a_, b_, c_row_, accumulate_}, a, b, c, reinterpret_cast<float*>(scratch));
}

}  // namespace plimsoll::kernels

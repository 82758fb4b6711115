// Layer normalisation: every row of x (the axes from `axis` on) by its own mean and deviation; and
// the same without mean and shift, by the root of the mean square (rms_norm).
//
// A row is read from memory once; mean, deviation and result come from the cache. The gradients of
// gamma and beta are sums over rows, taken per chunk of rows and joined in order (column_sums.h
// says why).
#include <algorithm>
#include <cmath>

#include "plimsoll/base/checked.h"
#include "plimsoll/kernels/cpu/column_sums.h"
#include "plimsoll/kernels/cpu/parallel.h"
#include "plimsoll/kernels/cpu/row_math.h"
#include "plimsoll/kernels/cpu/table.h"
#include "plimsoll/kernels/cpu/vectorize.h"

namespace plimsoll::kernels {
namespace {

PLIMSOLL_VECTORIZED float inverse_root_mean_square(const float* x, std::int64_t n, float epsilon) {
  float squares = 0;
#pragma omp simd reduction(+ : squares)
  for (std::int64_t i = 0; i < n; ++i) squares += x[i] * x[i];
  return 1.0F / std::sqrt(squares / static_cast<float>(n) + epsilon);
}

template <bool kCentred>
PLIMSOLL_INLINE float normalized(float x, RowMoments m) {
  return (kCentred ? x - m.mean : x) * m.rstd;
}

template <bool kCentred>
PLIMSOLL_VECTORIZED void normalize_row(const float* x, std::int64_t n, const float* gamma,
                                       const float* beta, RowMoments m, float* y) {
  if (beta == nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = normalized<kCentred>(x[i], m) * gamma[i];
    return;
  }
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = normalized<kCentred>(x[i], m) * gamma[i] + beta[i];
}

// One row of dx, and its share of dgamma and dbeta added to the chunk's. Without a mean there is no
// dbeta.
template <bool kCentred>
PLIMSOLL_VECTORIZED void normalize_row_gradient(const float* dy, const float* x, std::int64_t n,
                                                const float* gamma, RowMoments m, float* dx,
                                                float* dgamma, float* dbeta) {
  float sum = 0;
  float product = 0;
#pragma omp simd reduction(+ : sum, product)
  for (std::int64_t i = 0; i < n; ++i) {
    const float hat = normalized<kCentred>(x[i], m);
    const float g = dy[i] * gamma[i];
    product += g * hat;
    dgamma[i] += dy[i] * hat;
    if (kCentred) {
      sum += g;
      dbeta[i] += dy[i];
    }
  }
  const float average = sum / static_cast<float>(n);
  const float slope = product / static_cast<float>(n);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float hat = normalized<kCentred>(x[i], m);
    const float g = dy[i] * gamma[i];
    dx[i] = m.rstd * ((kCentred ? g - average : g) - hat * slope);
  }
}

struct Rows {
  std::int64_t count;
  std::int64_t width;
};

Rows rows_of(const ir::Shape& shape, const ops::AttributeReader& attributes) {
  const auto given = static_cast<int>(attributes.integer("axis"));
  const int axis = given < 0 ? given + shape.rank() : given;
  return {shape.elements(0, axis), shape.elements(axis, shape.rank())};
}

// norm(x, gamma, beta?) -> y, mean where one is taken off, rstd
template <bool kCentred>
std::unique_ptr<Kernel> make_row_norm(const Site& site) {
  if (!all_f32(site) || !all_row_major(site)) return nullptr;
  const Rows rows = rows_of(site.in(0).shape, site.attributes());
  const auto epsilon = static_cast<float>(site.attributes().real("epsilon"));
  const bool shifted = site.has(2);
  if (rows.width == 0) return nullptr;
  return make_kernel(site, [=](const Arguments& a) {
    const float* beta = shifted ? input<float>(a, 2) : nullptr;
    parallel_rows(rows.count, rows.width, [&](std::int64_t r) {
      const float* x = input<float>(a, 0) + r * rows.width;
      const RowMoments m = kCentred
                               ? row_moments(x, rows.width, epsilon)
                               : RowMoments{0, inverse_root_mean_square(x, rows.width, epsilon)};
      if (kCentred) output<float>(a, 1)[r] = m.mean;
      output<float>(a, kCentred ? 2 : 1)[r] = m.rstd;
      normalize_row<kCentred>(x, rows.width, input<float>(a, 1), beta, m,
                              output<float>(a, 0) + r * rows.width);
    });
  });
}

// The gradient of rows [first, first + count), its sums written or added to what is there. `room`
// is scratch: the chunks' sums, and a row for each sum of all of them.
template <bool kCentred>
void normalize_rows_gradient(const Arguments& a, std::int64_t first, std::int64_t count,
                             std::int64_t width, bool adds) {
  const ColumnSums chunks(count, width);
  float* dgamma = scratch<float>(a);
  float* dbeta = kCentred ? dgamma + chunks.chunks() * width : dgamma;
  parallel_chunks(
      count, chunks.grain(), [&](std::int64_t chunk, std::int64_t begin, std::int64_t end) {
        float* own_dgamma = dgamma + chunk * width;
        float* own_dbeta = dbeta + chunk * width;
        std::fill(own_dgamma, own_dgamma + width, 0.0F);
        std::fill(own_dbeta, own_dbeta + width, 0.0F);
        for (std::int64_t r = first + begin; r < first + end; ++r) {
          const RowMoments m{kCentred ? input<float>(a, 3)[r] : 0.0F,
                             input<float>(a, kCentred ? 4 : 3)[r]};
          normalize_row_gradient<kCentred>(
              input<float>(a, 0) + r * width, input<float>(a, 1) + r * width, width,
              input<float>(a, 2), m, output<float>(a, 0) + r * width, own_dgamma, own_dbeta);
        }
      });
  const auto sum_up = [&](const float* rows, float* out) {
    if (!adds) return add_rows(rows, chunks.chunks(), width, out);
    float* sum = dbeta + chunks.chunks() * width;
    add_rows(rows, chunks.chunks(), width, sum);
    add_range(sum, out, width);
  };
  sum_up(dgamma, output<float>(a, 1));
  if (kCentred) sum_up(dbeta, output<float>(a, 2));
}

// norm_grad(dy, x, gamma, mean where one was taken off, rstd) -> dx, dgamma, dbeta with a mean.
// Sums over many rows are made of those of ops::kProductGranule rows each, in order, whoever asks.
template <bool kCentred>
std::unique_ptr<Kernel> make_row_norm_grad(const Site& site) {
  if (!all_f32(site) || !all_row_major(site)) return nullptr;
  const Rows rows = rows_of(site.in(1).shape, site.attributes());
  if (rows.width == 0) return nullptr;
  constexpr int kBefore = kCentred ? 5 : 4;
  const bool goes_on = site.has(kBefore);
  const std::int64_t piece = std::min(rows.count, ops::kProductGranule);
  std::int64_t chunks = ColumnSums(piece, rows.width).chunks();
  if (piece > 0) chunks = std::max(chunks, ColumnSums(rows.count % piece, rows.width).chunks());
  return make_kernel(
      site,
      [=](const Arguments& a) {
        for (int i = 1; goes_on && i < (kCentred ? 3 : 2); ++i) {
          const float* before = input<float>(a, kBefore + i - 1);
          if (before != output<float>(a, i))
            std::copy(before, before + rows.width, output<float>(a, i));
        }
        std::int64_t first = 0;
        do {
          normalize_rows_gradient<kCentred>(a, first, std::min(piece, rows.count - first),
                                            rows.width, goes_on || first > 0);
          first += piece;
        } while (first < rows.count);
      },
      Bytes((chunks * (kCentred ? 2 : 1) + 1) * rows.width * 4));
}

}  // namespace

std::span<const TableEntry> layer_norm_kernels() {
  static constexpr TableEntry kRows[] = {
      {"layer_norm", make_row_norm<true>},
      {"layer_norm_grad", make_row_norm_grad<true>},
      {"rms_norm", make_row_norm<false>},
      {"rms_norm_grad", make_row_norm_grad<false>},
  };
  return kRows;
}

}  // namespace plimsoll::kernels

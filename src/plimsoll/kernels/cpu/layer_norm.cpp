// Layer normalisation: every row of x (the axes from `axis` on) by its own mean and deviation; and
// its plainer sister without mean and shift, by the root of the mean square.
//
// A row is read from memory once; mean, deviation and result come from the cache. The gradients of
// gamma and beta are sums over rows, taken per chunk of rows and joined in order (column_sums.h
// says why).
#include <cmath>

#include "plimsoll/base/checked.h"
#include "plimsoll/kernels/cpu/column_sums.h"
#include "plimsoll/kernels/cpu/factories.h"
#include "plimsoll/kernels/cpu/parallel.h"
#include "plimsoll/kernels/cpu/row_math.h"
#include "plimsoll/kernels/cpu/vectorize.h"

namespace plimsoll::kernels {
namespace {

PLIMSOLL_VECTORIZED void normalize_row(const float* x, std::int64_t n, const float* gamma,
                                       const float* beta, RowMoments m, float* y) {
  if (beta == nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - m.mean) * m.rstd * gamma[i];
    return;
  }
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - m.mean) * m.rstd * gamma[i] + beta[i];
}

// One row of dx, and its share of dgamma and dbeta added to the chunk's.
PLIMSOLL_VECTORIZED void normalize_row_gradient(const float* dy, const float* x, std::int64_t n,
                                                const float* gamma, float mean, float rstd,
                                                float* dx, float* dgamma, float* dbeta) {
  float sum = 0;
  float product = 0;
#pragma omp simd reduction(+ : sum, product)
  for (std::int64_t i = 0; i < n; ++i) {
    const float hat = (x[i] - mean) * rstd;
    const float g = dy[i] * gamma[i];
    sum += g;
    product += g * hat;
    dgamma[i] += dy[i] * hat;
    dbeta[i] += dy[i];
  }
  const float average = sum / static_cast<float>(n);
  const float slope = product / static_cast<float>(n);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float hat = (x[i] - mean) * rstd;
    dx[i] = rstd * (dy[i] * gamma[i] - average - hat * slope);
  }
}

PLIMSOLL_VECTORIZED float rms_row(const float* x, std::int64_t n, const float* gamma, float epsilon,
                                  float* y) {
  float squares = 0;
#pragma omp simd reduction(+ : squares)
  for (std::int64_t i = 0; i < n; ++i) squares += x[i] * x[i];
  const float scale = 1.0F / std::sqrt(squares / static_cast<float>(n) + epsilon);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * scale * gamma[i];
  return scale;
}

PLIMSOLL_VECTORIZED void rms_row_gradient(const float* dy, const float* x, std::int64_t n,
                                          const float* gamma, float rstd, float* dx,
                                          float* dgamma) {
  float product = 0;
#pragma omp simd reduction(+ : product)
  for (std::int64_t i = 0; i < n; ++i) {
    const float hat = x[i] * rstd;
    product += dy[i] * gamma[i] * hat;
    dgamma[i] += dy[i] * hat;
  }
  const float slope = product / static_cast<float>(n);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) dx[i] = rstd * (dy[i] * gamma[i] - x[i] * rstd * slope);
}

struct Rows {
  std::int64_t count;
  std::int64_t width;
};

Rows rows_of(const ir::Shape& shape, const ir::Attributes& attributes) {
  const auto given = static_cast<int>(attributes.integer("axis", -1));
  const int axis = given < 0 ? given + shape.rank() : given;
  return {shape.elements(0, axis), shape.elements(axis, shape.rank())};
}

}  // namespace

std::unique_ptr<Kernel> make_layer_norm(const Site& site) {
  if (!all_f32(site) || !all_row_major(site)) return nullptr;
  const Rows rows = rows_of(site.in(0).shape, site.attributes());
  const auto epsilon = static_cast<float>(site.attributes().real("epsilon", 1e-5));
  const bool shifted = site.has(2);
  if (rows.width == 0) return nullptr;
  return make_kernel(site, [=](const Arguments& a) {
    const float* beta = shifted ? input<float>(a, 2) : nullptr;
    parallel_ranges(rows.count, row_grain(rows.width), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const float* x = input<float>(a, 0) + r * rows.width;
        const RowMoments m = row_moments(x, rows.width, epsilon);
        output<float>(a, 1)[r] = m.mean;
        output<float>(a, 2)[r] = m.rstd;
        normalize_row(x, rows.width, input<float>(a, 1), beta, m,
                      output<float>(a, 0) + r * rows.width);
      }
    });
  });
}

std::unique_ptr<Kernel> make_layer_norm_grad(const Site& site) {
  if (!all_f32(site) || !all_row_major(site)) return nullptr;
  const Rows rows = rows_of(site.in(1).shape, site.attributes());
  if (rows.width == 0) return nullptr;
  const ColumnSums chunks(rows.count, rows.width);
  const Bytes scratch_bytes = chunks.scratch() * 2;
  return make_kernel(
      site,
      [=](const Arguments& a) {
        float* dgamma = scratch<float>(a);
        float* dbeta = dgamma + chunks.chunks() * rows.width;
        parallel_chunks(rows.count, chunks.grain(),
                        [&](std::int64_t chunk, std::int64_t begin, std::int64_t end) {
                          float* chunk_dgamma = dgamma + chunk * rows.width;
                          float* chunk_dbeta = dbeta + chunk * rows.width;
                          std::fill(chunk_dgamma, chunk_dgamma + rows.width, 0.0F);
                          std::fill(chunk_dbeta, chunk_dbeta + rows.width, 0.0F);
                          for (std::int64_t r = begin; r < end; ++r) {
                            normalize_row_gradient(
                                input<float>(a, 0) + r * rows.width,
                                input<float>(a, 1) + r * rows.width, rows.width, input<float>(a, 2),
                                input<float>(a, 3)[r], input<float>(a, 4)[r],
                                output<float>(a, 0) + r * rows.width, chunk_dgamma, chunk_dbeta);
                          }
                        });
        add_rows(dgamma, chunks.chunks(), rows.width, output<float>(a, 1));
        add_rows(dbeta, chunks.chunks(), rows.width, output<float>(a, 2));
      },
      scratch_bytes);
}

std::unique_ptr<Kernel> make_rms_norm(const Site& site) {
  if (!all_f32(site) || !all_row_major(site)) return nullptr;
  const Rows rows = rows_of(site.in(0).shape, site.attributes());
  const auto epsilon = static_cast<float>(site.attributes().real("epsilon", 1e-5));
  if (rows.width == 0) return nullptr;
  return make_kernel(site, [=](const Arguments& a) {
    parallel_ranges(rows.count, row_grain(rows.width), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        output<float>(a, 1)[r] =
            rms_row(input<float>(a, 0) + r * rows.width, rows.width, input<float>(a, 1), epsilon,
                    output<float>(a, 0) + r * rows.width);
      }
    });
  });
}

std::unique_ptr<Kernel> make_rms_norm_grad(const Site& site) {
  if (!all_f32(site) || !all_row_major(site)) return nullptr;
  const Rows rows = rows_of(site.in(1).shape, site.attributes());
  if (rows.width == 0) return nullptr;
  const ColumnSums chunks(rows.count, rows.width);
  return make_kernel(
      site,
      [=](const Arguments& a) {
        float* dgamma = scratch<float>(a);
        parallel_chunks(rows.count, chunks.grain(),
                        [&](std::int64_t chunk, std::int64_t begin, std::int64_t end) {
                          float* own = dgamma + chunk * rows.width;
                          std::fill(own, own + rows.width, 0.0F);
                          for (std::int64_t r = begin; r < end; ++r) {
                            rms_row_gradient(input<float>(a, 0) + r * rows.width,
                                             input<float>(a, 1) + r * rows.width, rows.width,
                                             input<float>(a, 2), input<float>(a, 3)[r],
                                             output<float>(a, 0) + r * rows.width, own);
                          }
                        });
        add_rows(dgamma, chunks.chunks(), rows.width, output<float>(a, 1));
      },
      chunks.scratch());
}

}  // namespace plimsoll::kernels

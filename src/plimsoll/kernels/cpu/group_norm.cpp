// Group normalisation (instance normalisation is one channel a group): every group of channels of
// every sample by its own mean and deviation. Row-major [N,C,plane]: a group is one contiguous row.
//
// The gradients of gamma and beta are first summed per sample and channel into scratch, then over
// the samples in order: the bits do not depend on threads.
#include "plimsoll/kernels/cpu/column_sums.h"
#include "plimsoll/kernels/cpu/parallel.h"
#include "plimsoll/kernels/cpu/row_math.h"
#include "plimsoll/kernels/cpu/table.h"
#include "plimsoll/kernels/cpu/vectorize.h"

namespace plimsoll::kernels {
namespace {

struct Groups {
  std::int64_t batch;
  std::int64_t groups;
  std::int64_t members;  // channels of a group
  std::int64_t plane;

  std::int64_t rows() const { return batch * groups; }
  std::int64_t width() const { return members * plane; }
  std::int64_t channels() const { return groups * members; }
  std::int64_t first_channel(std::int64_t row) const { return row % groups * members; }
};

Groups groups_of(const Site& site) {
  const ir::Shape& x = site.in(0).shape;
  const std::int64_t groups = site.attributes().integer("groups");
  return {x[0], groups, x[1] / groups, x.elements(2, x.rank())};
}

PLIMSOLL_VECTORIZED void scale_and_shift(const float* x, std::int64_t n, float factor, float shift,
                                         float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * factor + shift;
}

struct ChannelSums {
  float dy;
  float product;  // of dy and the normalised x
};

PLIMSOLL_VECTORIZED ChannelSums sums_of(const float* dy, const float* x, std::int64_t n,
                                        RowMoments m) {
  float sum = 0;
  float product = 0;
#pragma omp simd reduction(+ : sum, product)
  for (std::int64_t i = 0; i < n; ++i) {
    sum += dy[i];
    product += dy[i] * (x[i] - m.mean) * m.rstd;
  }
  return {sum, product};
}

// dx = rstd * (gamma dy - average - xhat * slope)
PLIMSOLL_VECTORIZED void plane_gradient(const float* dy, const float* x, std::int64_t n,
                                        float gamma, RowMoments m, float average, float slope,
                                        float* dx) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float hat = (x[i] - m.mean) * m.rstd;
    dx[i] = m.rstd * (dy[i] * gamma - average - hat * slope);
  }
}

void normalize_group(const Groups& g, std::int64_t row, const Arguments& a, float epsilon) {
  const float* x = input<float>(a, 0) + row * g.width();
  const RowMoments m = row_moments(x, g.width(), epsilon);
  output<float>(a, 1)[row] = m.mean;
  output<float>(a, 2)[row] = m.rstd;
  for (std::int64_t member = 0; member < g.members; ++member) {
    const std::int64_t channel = g.first_channel(row) + member;
    const float factor = m.rstd * input<float>(a, 1)[channel];
    scale_and_shift(x + member * g.plane, g.plane, factor,
                    input<float>(a, 2)[channel] - m.mean * factor,
                    output<float>(a, 0) + row * g.width() + member * g.plane);
  }
}

// `dgamma` and `dbeta` are those of the row's sample.
void differentiate_group(const Groups& g, std::int64_t row, const Arguments& a, float* dgamma,
                         float* dbeta) {
  const float* dy = input<float>(a, 0) + row * g.width();
  const float* x = input<float>(a, 1) + row * g.width();
  const float* gamma = input<float>(a, 2) + g.first_channel(row);
  const RowMoments m{input<float>(a, 3)[row], input<float>(a, 4)[row]};
  float sum = 0;
  float product = 0;
  for (std::int64_t member = 0; member < g.members; ++member) {
    const auto [plain, weighted] = sums_of(dy + member * g.plane, x + member * g.plane, g.plane, m);
    dbeta[g.first_channel(row) + member] = plain;
    dgamma[g.first_channel(row) + member] = weighted;
    sum += plain * gamma[member];
    product += weighted * gamma[member];
  }
  const auto count = static_cast<float>(g.width());
  for (std::int64_t member = 0; member < g.members; ++member) {
    plane_gradient(dy + member * g.plane, x + member * g.plane, g.plane, gamma[member], m,
                   sum / count, product / count,
                   output<float>(a, 0) + row * g.width() + member * g.plane);
  }
}

bool group_norm_supported(const Site& site) {
  return all_f32(site) && all_row_major(site) && site.in(0).shape.elements() > 0;
}

std::unique_ptr<Kernel> make_group_norm(const Site& site) {
  if (!group_norm_supported(site)) return nullptr;
  const auto epsilon = static_cast<float>(site.attributes().real("epsilon"));
  return make_kernel(site, [g = groups_of(site), epsilon](const Arguments& a) {
    parallel_rows(g.rows(), g.width(),
                  [&](std::int64_t row) { normalize_group(g, row, a, epsilon); });
  });
}

std::unique_ptr<Kernel> make_group_norm_grad(const Site& site) {
  if (!group_norm_supported(site)) return nullptr;
  const Groups g = groups_of(site);
  const std::int64_t sums = g.batch * g.channels();
  return make_kernel(
      site,
      [=](const Arguments& a) {
        float* dgamma = scratch<float>(a);
        float* dbeta = dgamma + sums;
        parallel_rows(g.rows(), g.width(), [&](std::int64_t row) {
          const std::int64_t sample = row / g.groups * g.channels();
          differentiate_group(g, row, a, dgamma + sample, dbeta + sample);
        });
        add_rows(dgamma, g.batch, g.channels(), output<float>(a, 1));
        add_rows(dbeta, g.batch, g.channels(), output<float>(a, 2));
      },
      Bytes(2 * sums * 4));
}

}  // namespace

std::span<const TableEntry> group_norm_kernels() {
  static constexpr TableEntry kRows[] = {
      {"group_norm", make_group_norm},
      {"group_norm_grad", make_group_norm_grad},
  };
  return kRows;
}

}  // namespace plimsoll::kernels

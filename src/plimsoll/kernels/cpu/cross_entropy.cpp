// Cross-entropy of logits against labels, with log-softmax inside: the probabilities are never
// stored.
#include <cmath>
#include <limits>

#include "plimsoll/kernels/cpu/parallel.h"
#include "plimsoll/kernels/cpu/row_math.h"
#include "plimsoll/kernels/cpu/table.h"
#include "plimsoll/kernels/cpu/vectorize.h"

namespace plimsoll::kernels {
namespace {

struct Problem {
  std::int64_t rows;
  std::int64_t classes;
  std::int64_t ignored;
  bool counts(std::int64_t label) const { return label != ignored; }
  bool exists(std::int64_t label) const { return label >= 0 && label < classes; }
};

std::optional<Problem> problem_of(const Site& site, int logits) {
  const ir::TensorType& type = site.in(logits);
  if (!is_f32(type) || !all_row_major(site) || type.shape.elements() == 0) return std::nullopt;
  if (site.in(logits + 1).dtype != ir::DType::kI64) return std::nullopt;
  const std::int64_t classes = type.shape[type.shape.rank() - 1];
  return Problem{type.shape.elements() / classes, classes,
                 site.attributes().integer("ignore_index")};
}

std::int64_t counted(std::int64_t rows, std::int64_t ignored, const std::int64_t* labels) {
  std::int64_t out = 0;
  for (std::int64_t r = 0; r < rows; ++r) out += labels[r] != ignored;
  return out;
}

// The mean over rows that count of loss(row).
template <typename Loss>
float mean_of_rows(std::int64_t rows, std::int64_t ignored, const std::int64_t* labels, Loss loss) {
  double sum = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    if (labels[r] != ignored) sum += loss(r);
  }
  return static_cast<float>(sum / static_cast<double>(counted(rows, ignored, labels)));
}

PLIMSOLL_VECTORIZED void gradient_row(const float* x, float* dx, std::int64_t n, float lse,
                                      float scale) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) dx[i] = vector_exp(x[i] - lse) * scale;
}

PLIMSOLL_VECTORIZED void fill_row(float* x, std::int64_t n, float value) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = value;
}

std::unique_ptr<Kernel> make_cross_entropy(const Site& site) {
  const auto problem = problem_of(site, 0);
  if (!problem) return nullptr;
  const bool per_row = site.attributes().integer("per_row") != 0;
  return make_kernel(site, [p = *problem, per_row](const Arguments& a) {
    const float* logits = input<float>(a, 0);
    const auto* labels = input<std::int64_t>(a, 1);
    float* lse = output<float>(a, 1);
    parallel_each(p.rows, [&](std::int64_t r) {
      const float* row = logits + r * p.classes;
      const float most = row_max(row, p.classes);
      lse[r] = most + std::log(row_sum_exp(row, p.classes, most));
    });
    const auto loss = [&](std::int64_t r) {
      // A label that names no class has no loss: the mistake must show.
      return p.exists(labels[r]) ? lse[r] - logits[r * p.classes + labels[r]]
                                 : std::numeric_limits<float>::quiet_NaN();
    };
    float* out = output<float>(a, 0);
    if (!per_row) {
      *out = mean_of_rows(p.rows, p.ignored, labels, loss);
      return;
    }
    for (std::int64_t r = 0; r < p.rows; ++r) out[r] = p.counts(labels[r]) ? loss(r) : 0;
  });
}

std::unique_ptr<Kernel> make_mean_loss(const Site& site) {
  if (!is_f32(site.in(0)) || !all_row_major(site) || site.in(1).dtype != ir::DType::kI64)
    return nullptr;
  return make_kernel(
      site, [rows = site.in(0).shape.elements(),
             ignored = site.attributes().integer("ignore_index")](const Arguments& a) {
        const float* losses = input<float>(a, 0);
        *output<float>(a, 0) = mean_of_rows(rows, ignored, input<std::int64_t>(a, 1),
                                            [&](std::int64_t r) { return losses[r]; });
      });
}

std::unique_ptr<Kernel> make_cross_entropy_grad(const Site& site) {
  const auto problem = problem_of(site, 1);
  if (!problem) return nullptr;
  const int all = site.inputs() > 4 && site.has(4) ? 4 : 2;  // whose labels are counted
  if (site.in(all).dtype != ir::DType::kI64) return nullptr;
  const std::int64_t all_rows = site.in(all).shape.elements();
  return make_kernel(site, [p = *problem, all, all_rows](const Arguments& a) {
    const float* logits = input<float>(a, 1);
    const auto* labels = input<std::int64_t>(a, 2);
    const float* lse = input<float>(a, 3);
    float* out = output<float>(a);
    const float scale =
        *input<float>(a, 0) /
        static_cast<float>(counted(all_rows, p.ignored, input<std::int64_t>(a, all)));
    parallel_each(p.rows, [&](std::int64_t r) {
      float* row = out + r * p.classes;
      if (!p.counts(labels[r])) return fill_row(row, p.classes, 0);
      // A label that names no class has no loss, and no gradient either.
      if (!p.exists(labels[r]))
        return fill_row(row, p.classes, std::numeric_limits<float>::quiet_NaN());
      gradient_row(logits + r * p.classes, row, p.classes, lse[r], scale);
      row[labels[r]] -= scale;
    });
  });
}

}  // namespace

std::span<const TableEntry> cross_entropy_kernels() {
  static constexpr TableEntry kRows[] = {
      {"cross_entropy", make_cross_entropy},
      {"cross_entropy_grad", make_cross_entropy_grad},
      {"mean_loss", make_mean_loss},
  };
  return kRows;
}

}  // namespace plimsoll::kernels

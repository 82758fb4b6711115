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

std::int64_t counted(const Problem& problem, const std::int64_t* labels) {
  std::int64_t out = 0;
  for (std::int64_t r = 0; r < problem.rows; ++r) out += problem.counts(labels[r]);
  return out;
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
  return make_kernel(site, [p = *problem](const Arguments& a) {
    const float* logits = input<float>(a, 0);
    const auto* labels = input<std::int64_t>(a, 1);
    float* lse = output<float>(a, 1);
    parallel_each(p.rows, [&](std::int64_t r) {
      const float* row = logits + r * p.classes;
      const float most = row_max(row, p.classes);
      lse[r] = most + std::log(row_sum_exp(row, p.classes, most));
    });
    double sum = 0;
    for (std::int64_t r = 0; r < p.rows; ++r) {
      if (!p.counts(labels[r])) continue;
      // A label that names no class has no loss: the mistake must show.
      sum += p.exists(labels[r]) ? static_cast<double>(lse[r]) - logits[r * p.classes + labels[r]]
                                 : std::numeric_limits<double>::quiet_NaN();
    }
    *output<float>(a, 0) = static_cast<float>(sum / static_cast<double>(counted(p, labels)));
  });
}

std::unique_ptr<Kernel> make_cross_entropy_grad(const Site& site) {
  const auto problem = problem_of(site, 1);
  if (!problem) return nullptr;
  return make_kernel(site, [p = *problem](const Arguments& a) {
    const float* logits = input<float>(a, 1);
    const auto* labels = input<std::int64_t>(a, 2);
    const float* lse = input<float>(a, 3);
    float* out = output<float>(a);
    const float scale = *input<float>(a, 0) / static_cast<float>(counted(p, labels));
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
  };
  return kRows;
}

}  // namespace plimsoll::kernels

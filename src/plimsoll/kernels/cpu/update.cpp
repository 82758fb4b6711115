// The optimizers' updates, each one pass over its tensors, in place. Formulas as PyTorch's.
#include <algorithm>
#include <cmath>
#include <optional>

#include "plimsoll/kernels/cpu/elementwise.h"
#include "plimsoll/kernels/cpu/table.h"
#include "plimsoll/ops/update/update.h"

namespace plimsoll::kernels {
namespace {

// All tensors but the scalars lie alike, so an update is flat whatever the layout.
bool flat(const Site& site, int tensors) {
  for (int i = 0; i < tensors; ++i) {
    if (site.in(i) != site.in(0) || !is_f32(site.in(i))) return false;
  }
  for (int i = 0; i < site.outputs(); ++i) {
    if (site.out(i) != site.in(0)) return false;
  }
  return true;
}

// Which elements of the weight an update is of; moments have none but those.
struct Updated {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t rest = 0;  // other elements of the weight, which stay as they are
};

// Plans and executors lay results over what they update; nobody else has to.
void keep_rest(const Updated& part, const Arguments& a) {
  const float* const from = input<float>(a, 0);
  float* const to = output<float>(a, 0);
  if (part.rest == 0 || from == to) return;
  std::copy_n(from, part.rest + part.count, to);
}

// Nothing where its `moments` do not lie as the weight does.
std::optional<Updated> updated(const Site& site, int moments) {
  const auto first = ops::first_of_update(site.attributes());
  if (!first) {
    if (!flat(site, 2 + moments)) return std::nullopt;
    return Updated{0, stored_elements(site.in(0)), 0};
  }
  for (int i = 0; i < 2 + moments; ++i) {
    if (!is_f32(site.in(i))) return std::nullopt;
  }
  const std::int64_t count = stored_elements(site.in(2));
  return Updated{*first, count, stored_elements(site.in(0)) - count};
}

float scale_at(const Arguments& a, bool has_scale, int index) {
  return has_scale ? *input<float>(a, index) : 1.0F;
}

// A weight that is not decayed must not reach the moments: 0 times infinity is NaN.
PLIMSOLL_INLINE float decayed(float gradient, float decay, float weight) {
  return decay == 0.0F ? gradient : gradient + decay * weight;
}

PLIMSOLL_VECTORIZED void sgd_range(const float* w, const float* g, float* out, std::int64_t n,
                                   float lr, float decay, float scale) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) out[i] = w[i] - lr * decayed(g[i] * scale, decay, w[i]);
}

PLIMSOLL_VECTORIZED void momentum_range(const float* w, const float* g, const float* m,
                                        float* w_out, float* m_out, std::int64_t n, float lr,
                                        float momentum, float decay, float scale) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float moved = momentum * m[i] + decayed(g[i] * scale, decay, w[i]);
    m_out[i] = moved;
    w_out[i] = w[i] - lr * moved;
  }
}

struct AdamStep {
  float lr;
  float beta1;
  float beta2;
  float epsilon;
  float decay;      // added to the gradient (adam)
  float shrink;     // the weight is multiplied by it first (adamw)
  float step_size;  // lr / (1 - beta1^t)
  float root_bias;  // 1 / sqrt(1 - beta2^t)
  float scale;
};

PLIMSOLL_VECTORIZED void adam_range(const float* w, const float* g, const float* m, const float* v,
                                    float* w_out, float* m_out, float* v_out, std::int64_t n,
                                    const AdamStep s) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float gradient = decayed(g[i] * s.scale, s.decay, w[i]);
    const float first = s.beta1 * m[i] + (1.0F - s.beta1) * gradient;
    const float second = s.beta2 * v[i] + (1.0F - s.beta2) * gradient * gradient;
    m_out[i] = first;
    v_out[i] = second;
    w_out[i] =
        w[i] * s.shrink - s.step_size * first / (std::sqrt(second) * s.root_bias + s.epsilon);
  }
}

float real(const Site& site, std::string_view name) {
  return static_cast<float>(site.attributes().real(name));
}

std::unique_ptr<Kernel> make_sgd(const Site& site) {
  if (!flat(site, 2)) return nullptr;
  const std::int64_t count = stored_elements(site.in(0));
  const float lr = real(site, "lr");
  const float decay = real(site, "weight_decay");
  const bool has_scale = site.has(2);
  return make_kernel(site, [=](const Arguments& a) {
    const float scale = scale_at(a, has_scale, 2);
    parallel_ranges(count, kElementGrain, [&](std::int64_t begin, std::int64_t end) {
      sgd_range(input<float>(a, 0) + begin, input<float>(a, 1) + begin, output<float>(a) + begin,
                end - begin, lr, decay, scale);
    });
  });
}

std::unique_ptr<Kernel> make_momentum(const Site& site) {
  const auto part = updated(site, 1);
  if (!part) return nullptr;
  const float lr = real(site, "lr");
  const float momentum = real(site, "momentum");
  const float decay = real(site, "weight_decay");
  const bool has_scale = site.has(3);
  return make_kernel(site, [=](const Arguments& a) {
    const float scale = scale_at(a, has_scale, 3);
    keep_rest(*part, a);
    parallel_ranges(part->count, kElementGrain, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t at = part->first + begin;
      momentum_range(input<float>(a, 0) + at, input<float>(a, 1) + at, input<float>(a, 2) + begin,
                     output<float>(a, 0) + at, output<float>(a, 1) + begin, end - begin, lr,
                     momentum, decay, scale);
    });
  });
}

template <bool decoupled>  // the weight decay
std::unique_ptr<Kernel> make_adam(const Site& site) {
  const auto part = updated(site, 2);
  if (!part || site.in(4).dtype != ir::DType::kI64) return nullptr;
  const double lr = site.attributes().real("lr");
  const double beta1 = site.attributes().real("beta1");
  const double beta2 = site.attributes().real("beta2");
  const double decay = site.attributes().real("weight_decay");
  AdamStep fixed{};
  fixed.lr = static_cast<float>(lr);
  fixed.beta1 = static_cast<float>(beta1);
  fixed.beta2 = static_cast<float>(beta2);
  fixed.epsilon = real(site, "epsilon");
  fixed.decay = decoupled ? 0.0F : static_cast<float>(decay);
  fixed.shrink = decoupled ? static_cast<float>(1 - lr * decay) : 1.0F;
  const bool has_scale = site.has(5);
  return make_kernel(site, [=](const Arguments& a) {
    AdamStep step = fixed;
    const auto t = static_cast<double>(*input<std::int64_t>(a, 4));
    step.step_size = static_cast<float>(lr / (1 - std::pow(beta1, t)));
    step.root_bias = static_cast<float>(1 / std::sqrt(1 - std::pow(beta2, t)));
    step.scale = scale_at(a, has_scale, 5);
    keep_rest(*part, a);
    parallel_ranges(part->count, kElementGrain, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t at = part->first + begin;
      adam_range(input<float>(a, 0) + at, input<float>(a, 1) + at, input<float>(a, 2) + begin,
                 input<float>(a, 3) + begin, output<float>(a, 0) + at, output<float>(a, 1) + begin,
                 output<float>(a, 2) + begin, end - begin, step);
    });
  });
}

std::unique_ptr<Kernel> make_increment(const Site& site) {
  const ir::DType dtype = site.out().dtype;
  if (dtype != ir::DType::kI64 && dtype != ir::DType::kU64) return nullptr;
  const auto by = static_cast<std::uint64_t>(site.attributes().integer("by"));
  const std::int64_t count = site.out().shape.elements();
  return make_kernel(site, [=](const Arguments& a) {
    for (std::int64_t i = 0; i < count; ++i)
      output<std::uint64_t>(a)[i] = input<std::uint64_t>(a, 0)[i] + by;
  });
}

}  // namespace

std::span<const TableEntry> update_kernels() {
  static constexpr TableEntry kRows[] = {
      {"adam", make_adam<false>, false, true}, {"adamw", make_adam<true>, false, true},
      {"increment", make_increment},           {"momentum", make_momentum, false, true},
      {"sgd", make_sgd, false, true},
  };
  return kRows;
}

}  // namespace plimsoll::kernels

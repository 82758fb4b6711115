// Local response normalisation: every element by the squares of its neighbours along the channels.
//
//   d = k + alpha/size * (sum of x^2 over the channel's window)      y = x d^-beta
//   dx = dy d^-beta - 2 alpha beta / size * x * (sum of dy x d^(-beta-1) over the windows with x)
//
// Work is cut into blocks of up to 64 positions of a sample with all their channels; a block's
// denominators and terms lie in the lane's scratch. Channels-last is the same with blocks of one
// position.
#include <omp.h>

#include <cmath>

#include "plimsoll/kernels/cpu/parallel.h"
#include "plimsoll/kernels/cpu/table.h"
#include "plimsoll/kernels/cpu/vectorize.h"

namespace plimsoll::kernels {
namespace {

constexpr std::int64_t kLrnBlock = 64;

struct Lrn {
  std::int64_t batch;
  std::int64_t channels;
  std::int64_t plane;
  std::int64_t below;  // channels of the window before its own
  std::int64_t above;
  float scale;  // alpha / size
  float beta;
  float k;

  std::int64_t blocks() const { return (plane + kLrnBlock - 1) / kLrnBlock; }
  std::int64_t block_elements() const { return channels * std::min(plane, kLrnBlock); }
};

Lrn lrn_of(const Site& site) {
  const ir::Shape& x = site.in(0).shape;
  const ops::AttributeReader attributes = site.attributes();
  const std::int64_t size = attributes.integer("size");
  Lrn out{x[0],
          x[1],
          x.elements(2, x.rank()),
          std::min((size - 1) / 2, x[1]),
          std::min(size / 2, x[1]),
          static_cast<float>(attributes.real("alpha") / static_cast<double>(size)),
          static_cast<float>(attributes.real("beta")),
          static_cast<float>(attributes.real("k"))};
  if (!site.in(0).layout.is_row_major()) {
    out.batch *= out.plane;
    out.plane = 1;
  }
  return out;
}

// d^-beta; the usual beta of 3/4 needs two square roots only.
PLIMSOLL_VECTORIZED void inverse_powers(const float* d, std::int64_t n, float beta, float* y) {
  if (beta == 0.75F) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = 1.0F / std::sqrt(d[i] * std::sqrt(d[i]));
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) y[i] = std::pow(d[i], -beta);
}

PLIMSOLL_VECTORIZED void add_squares(const float* x, std::int64_t n, float scale, float* d) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) d[i] += scale * x[i] * x[i];
}

// The denominators of a block of `n` positions from `first` on, as [channels][n].
void denominators(const Lrn& lrn, const float* x, std::int64_t n, float* d) {
  for (std::int64_t c = 0; c < lrn.channels; ++c) {
    std::fill(d + c * n, d + (c + 1) * n, lrn.k);
    const std::int64_t last = std::min(c + lrn.above, lrn.channels - 1);
    for (std::int64_t other = std::max<std::int64_t>(c - lrn.below, 0); other <= last; ++other)
      add_squares(x + other * lrn.plane, n, lrn.scale, d + c * n);
  }
}

PLIMSOLL_VECTORIZED void gradient_terms(const float* dy, const float* x, const float* d,
                                        const float* power, std::int64_t n, float* terms) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) terms[i] = dy[i] * x[i] * power[i] / d[i];
}

PLIMSOLL_VECTORIZED void subtract_terms(const float* x, const float* terms, std::int64_t n,
                                        float factor, float* dx) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) dx[i] -= factor * x[i] * terms[i];
}

PLIMSOLL_VECTORIZED void multiply(const float* a, const float* b, std::int64_t n, float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = a[i] * b[i];
}

void normalize_block(const Lrn& lrn, const float* x, std::int64_t n, float* y, float* work) {
  denominators(lrn, x, n, work);
  for (std::int64_t c = 0; c < lrn.channels; ++c) {
    inverse_powers(work + c * n, n, lrn.beta, work + c * n);
    multiply(x + c * lrn.plane, work + c * n, n, y + c * lrn.plane);
  }
}

// `work` holds three blocks: denominators, their powers, the terms.
void differentiate_block(const Lrn& lrn, const float* dy, const float* x, std::int64_t n, float* dx,
                         float* work) {
  float* power = work + lrn.block_elements();
  float* terms = power + lrn.block_elements();
  denominators(lrn, x, n, work);
  inverse_powers(work, lrn.channels * n, lrn.beta, power);
  for (std::int64_t c = 0; c < lrn.channels; ++c) {
    gradient_terms(dy + c * lrn.plane, x + c * lrn.plane, work + c * n, power + c * n, n,
                   terms + c * n);
  }
  const float factor = 2 * lrn.scale * lrn.beta;
  for (std::int64_t c = 0; c < lrn.channels; ++c) {
    multiply(dy + c * lrn.plane, power + c * n, n, dx + c * lrn.plane);
    // c is in the window of other when other - below <= c <= other + above.
    const std::int64_t last = std::min(c + lrn.below, lrn.channels - 1);
    for (std::int64_t other = std::max<std::int64_t>(c - lrn.above, 0); other <= last; ++other)
      subtract_terms(x + c * lrn.plane, terms + other * n, n, factor, dx + c * lrn.plane);
  }
}

// Calls body(first element, positions, the lane's scratch) for every block.
template <typename Body>
void for_each_block(const Lrn& lrn, float* work, std::int64_t lane_elements, const Body& body) {
  const std::int64_t units = lrn.batch * lrn.blocks();
#pragma omp parallel for schedule(static) if (units > 1)
  for (std::int64_t unit = 0; unit < units; ++unit) {
    const std::int64_t first = unit % lrn.blocks() * kLrnBlock;
    body(unit / lrn.blocks() * lrn.channels * lrn.plane + first,
         std::min(kLrnBlock, lrn.plane - first), work + omp_get_thread_num() * lane_elements);
  }
}

bool lrn_supported(const Site& site) {
  if (!all_f32(site) || site.in(0).shape.elements() == 0) return false;
  const ir::Layout& layout = site.out().layout;
  for (int i = 0; i < site.inputs(); ++i) {
    if (site.in(i).layout != layout) return false;
  }
  return layout.is_row_major() || layout == ir::Layout::channels_last(site.out().shape.rank());
}

template <bool kGradient>
std::unique_ptr<Kernel> make_lrn(const Site& site) {
  if (!lrn_supported(site)) return nullptr;
  const Lrn lrn = lrn_of(site);
  const std::int64_t lane = (kGradient ? 3 : 1) * lrn.block_elements();
  return make_kernel(
      site,
      [=](const Arguments& a) {
        for_each_block(lrn, scratch<float>(a), lane,
                       [&](std::int64_t first, std::int64_t n, float* work) {
                         float* out = output<float>(a) + first;
                         if constexpr (kGradient) {
                           differentiate_block(lrn, input<float>(a, 0) + first,
                                               input<float>(a, 1) + first, n, out, work);
                         } else {
                           normalize_block(lrn, input<float>(a, 0) + first, n, out, work);
                         }
                       });
      },
      Bytes(lane * 4 * site.threads));
}

}  // namespace

std::span<const TableEntry> lrn_kernels() {
  static constexpr TableEntry kRows[] = {
      {"lrn", make_lrn<false>},
      {"lrn_grad", make_lrn<true>},
  };
  return kRows;
}

}  // namespace plimsoll::kernels

// Batch normalisation, with ReLU on top when asked for, on NCHW and on channels-last tensors.
//
// Statistics are taken chunk by chunk: a chunk (some rows of a channels-last tensor, or one plane
// of an NCHW one) fits the cache, so its mean and then the squares about *that* mean cost one trip
// to memory; the chunks are joined by  M2 = sum of M2_k + n_k (mean_k - mean)^2.  Sums for means
// are taken of differences to the first element, so that a large mean costs no digits. The chunks
// depend on the shape alone: the bits do not depend on threads.
#include <cmath>
#include <cstring>

#include "plimsoll/base/checked.h"
#include "plimsoll/kernels/cpu/channels.h"
#include "plimsoll/kernels/cpu/column_sums.h"
#include "plimsoll/kernels/cpu/factories.h"
#include "plimsoll/kernels/cpu/parallel.h"
#include "plimsoll/kernels/cpu/vectorize.h"
#include "plimsoll/ops/elementwise/fused_relu.h"

namespace plimsoll::kernels {
namespace {

// Mean and sum of squares about it, per channel, of `rows` rows.
PLIMSOLL_VECTORIZED void row_moments(const float* x, std::int64_t rows, std::int64_t channels,
                                     float* mean, float* squares) {
  for (std::int64_t c = 0; c < channels; ++c) mean[c] = squares[c] = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
#pragma omp simd
    for (std::int64_t c = 0; c < channels; ++c) mean[c] += x[r * channels + c] - x[c];
  }
  const float scale = 1.0F / static_cast<float>(rows);
  for (std::int64_t c = 0; c < channels; ++c) mean[c] = mean[c] * scale + x[c];
  for (std::int64_t r = 0; r < rows; ++r) {
#pragma omp simd
    for (std::int64_t c = 0; c < channels; ++c) {
      const float d = x[r * channels + c] - mean[c];
      squares[c] += d * d;
    }
  }
}

PLIMSOLL_VECTORIZED void plane_moments(const float* x, std::int64_t n, float* mean,
                                       float* squares) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += x[i] - x[0];
  const float middle = sum / static_cast<float>(n) + x[0];
  float total = 0;
#pragma omp simd reduction(+ : total)
  for (std::int64_t i = 0; i < n; ++i) total += (x[i] - middle) * (x[i] - middle);
  *mean = middle;
  *squares = total;
}

// Joins chunk moments [chunks][channels]; all chunks but the last have `each` elements a channel.
PLIMSOLL_VECTORIZED void join_moments(const float* means, const float* squares, std::int64_t chunks,
                                      std::int64_t channels, std::int64_t each, std::int64_t total,
                                      float* mean, float* variance) {
  const float last = static_cast<float>(total - (chunks - 1) * each);
  const float scale = 1.0F / static_cast<float>(total);
  for (std::int64_t c = 0; c < channels; ++c) mean[c] = variance[c] = 0;
  for (std::int64_t k = 0; k < chunks; ++k) {
    const float weight = k + 1 < chunks ? static_cast<float>(each) : last;
    for (std::int64_t c = 0; c < channels; ++c)
      mean[c] += (means[k * channels + c] - means[c]) * weight;
  }
  for (std::int64_t c = 0; c < channels; ++c) mean[c] = mean[c] * scale + means[c];
  for (std::int64_t k = 0; k < chunks; ++k) {
    const float weight = k + 1 < chunks ? static_cast<float>(each) : last;
    for (std::int64_t c = 0; c < channels; ++c) {
      const float d = means[k * channels + c] - mean[c];
      variance[c] += squares[k * channels + c] + weight * d * d;
    }
  }
  for (std::int64_t c = 0; c < channels; ++c) variance[c] *= scale;
}

template <bool kRelu>
PLIMSOLL_VECTORIZED void normalize_rows(const float* x, std::int64_t rows, std::int64_t channels,
                                        const float* mean, const float* slope, const float* beta,
                                        float* y) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* from = x + r * channels;
    float* to = y + r * channels;
#pragma omp simd
    for (std::int64_t c = 0; c < channels; ++c) {
      const float value = (from[c] - mean[c]) * slope[c] + beta[c];
      to[c] = kRelu && value < 0.0F ? 0.0F : value;
    }
  }
}

template <bool kRelu>
PLIMSOLL_VECTORIZED void normalize_plane(const float* x, std::int64_t n, float mean, float slope,
                                         float beta, float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float value = (x[i] - mean) * slope + beta;
    y[i] = kRelu && value < 0.0F ? 0.0F : value;
  }
}

template <bool kRelu>
void normalize(const Channels& shape, const float* x, const float* mean, const float* slope,
               const float* beta, float* y) {
  if (shape.last) {
    parallel_ranges(shape.rows(), row_grain(shape.channels),
                    [&](std::int64_t begin, std::int64_t end) {
                      normalize_rows<kRelu>(x + begin * shape.channels, end - begin, shape.channels,
                                            mean, slope, beta, y + begin * shape.channels);
                    });
    return;
  }
  parallel_ranges(shape.planes(), row_grain(shape.plane),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t p = begin; p < end; ++p) {
                      const std::int64_t c = p % shape.channels;
                      normalize_plane<kRelu>(x + p * shape.plane, shape.plane, mean[c], slope[c],
                                             beta[c], y + p * shape.plane);
                    }
                  });
}

void normalize(bool relu, const Channels& shape, const float* x, const float* mean,
               const float* slope, const float* beta, float* y) {
  if (relu) {
    normalize<true>(shape, x, mean, slope, beta, y);
  } else {
    normalize<false>(shape, x, mean, slope, beta, y);
  }
}

// The chunks of statistics: how many elements of a channel each has, and how many there are.
struct Chunks {
  std::int64_t each;
  std::int64_t count;
};

constexpr std::int64_t kRowChunkElements = 32768;

Chunks chunks_of(const Channels& shape) {
  if (!shape.last) return {shape.plane, shape.batch};
  const std::int64_t each = std::max<std::int64_t>(8, kRowChunkElements / shape.channels);
  return {each, ceil_div(shape.rows(), each)};
}

void take_moments(const Channels& shape, const Chunks& chunks, const float* x, float* means,
                  float* squares) {
  if (shape.last) {
    parallel_chunks(shape.rows(), chunks.each,
                    [&](std::int64_t k, std::int64_t begin, std::int64_t end) {
                      row_moments(x + begin * shape.channels, end - begin, shape.channels,
                                  means + k * shape.channels, squares + k * shape.channels);
                    });
    return;
  }
  parallel_ranges(shape.planes(), row_grain(shape.plane),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t p = begin; p < end; ++p)
                      plane_moments(x + p * shape.plane, shape.plane, means + p, squares + p);
                  });
}

PLIMSOLL_VECTORIZED void slopes(const float* gamma, const float* variance, float epsilon,
                                std::int64_t channels, float* slope) {
  for (std::int64_t c = 0; c < channels; ++c)
    slope[c] = gamma[c] / std::sqrt(variance[c] + epsilon);
}

bool supported(const Site& site, const Channels& shape) {
  return shape.valid && all_f32(site) && site.in(0).shape.elements() > 0;
}

struct Settings {
  float epsilon;
  bool relu;
};

Settings settings_of(const Site& site) {
  return {static_cast<float>(site.attributes().real("epsilon", 1e-5)),
          ops::has_relu(site.attributes())};
}

}  // namespace

std::unique_ptr<Kernel> make_batch_norm(const Site& site) {
  const Channels shape = channels_of(site.in(0));
  if (!supported(site, shape) || site.in(0) != site.out(0)) return nullptr;
  const Chunks chunks = chunks_of(shape);
  const Settings settings = settings_of(site);
  const std::int64_t partials = chunks.count * shape.channels;
  return make_kernel(
      site,
      [=](const Arguments& a) {
        float* means = scratch<float>(a);
        float* squares = means + partials;
        float* slope = squares + partials;
        float* mean = output<float>(a, 1);
        float* variance = output<float>(a, 2);
        take_moments(shape, chunks, input<float>(a, 0), means, squares);
        join_moments(means, squares, chunks.count, shape.channels, chunks.each, shape.rows(), mean,
                     variance);
        slopes(input<float>(a, 1), variance, settings.epsilon, shape.channels, slope);
        normalize(settings.relu, shape, input<float>(a, 0), mean, slope, input<float>(a, 2),
                  output<float>(a, 0));
      },
      Bytes((2 * partials + shape.channels) * 4));
}

std::unique_ptr<Kernel> make_batch_norm_inference(const Site& site) {
  const Channels shape = channels_of(site.in(0));
  if (!supported(site, shape) || site.in(0) != site.out(0)) return nullptr;
  const Settings settings = settings_of(site);
  return make_kernel(
      site,
      [=](const Arguments& a) {
        slopes(input<float>(a, 1), input<float>(a, 4), settings.epsilon, shape.channels,
               scratch<float>(a));
        normalize(settings.relu, shape, input<float>(a, 0), input<float>(a, 3), scratch<float>(a),
                  input<float>(a, 2), output<float>(a));
      },
      Bytes(shape.channels * 4));
}

std::unique_ptr<Kernel> make_batch_norm_update(const Site& site) {
  if (!all_f32(site)) return nullptr;
  const std::int64_t channels = site.in(0).shape.elements();
  const auto momentum = static_cast<float>(site.attributes().real("momentum", 0.1));
  const auto count = static_cast<float>(site.attributes().integer("count", 0));
  const float unbias = count > 1 ? count / (count - 1) : 1.0F;
  return make_kernel(site, [=](const Arguments& a) {
    for (std::int64_t c = 0; c < channels; ++c) {
      output<float>(a, 0)[c] =
          (1 - momentum) * input<float>(a, 0)[c] + momentum * input<float>(a, 2)[c];
      output<float>(a, 1)[c] =
          (1 - momentum) * input<float>(a, 1)[c] + momentum * unbias * input<float>(a, 3)[c];
    }
  });
}

namespace {

// What the backward loops need per channel.
struct Coefficients {
  const float* mean;
  const float* slope;  // gamma / sqrt(var + eps)
  const float* beta;
  const float* shift;    // slope * mean of dy
  const float* scaling;  // slope * rstd^2 * mean of dy (x - mean)
};

// Adds sum of dy and sum of dy (x - mean), dy being 0 where ReLU was.
template <bool kRelu>
PLIMSOLL_VECTORIZED void row_gradient_sums(const float* dy, const float* x, std::int64_t rows,
                                           std::int64_t channels, const float* mean,
                                           const float* slope, const float* beta, float* sum,
                                           float* product) {
  for (std::int64_t c = 0; c < channels; ++c) sum[c] = product[c] = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* from = x + r * channels;
    const float* back = dy + r * channels;
#pragma omp simd
    for (std::int64_t c = 0; c < channels; ++c) {
      const float d = from[c] - mean[c];
      const float g = kRelu && !(d * slope[c] + beta[c] > 0.0F) ? 0.0F : back[c];
      sum[c] += g;
      product[c] += g * d;
    }
  }
}

template <bool kRelu>
PLIMSOLL_VECTORIZED void plane_gradient_sums(const float* dy, const float* x, std::int64_t n,
                                             float mean, float slope, float beta, float* sum,
                                             float* product) {
  float s = 0;
  float p = 0;
#pragma omp simd reduction(+ : s, p)
  for (std::int64_t i = 0; i < n; ++i) {
    const float d = x[i] - mean;
    const float g = kRelu && !(d * slope + beta > 0.0F) ? 0.0F : dy[i];
    s += g;
    p += g * d;
  }
  *sum = s;
  *product = p;
}

template <bool kRelu>
PLIMSOLL_VECTORIZED void row_gradients(const float* dy, const float* x, std::int64_t rows,
                                       std::int64_t channels, const Coefficients& k, float* dx) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* from = x + r * channels;
    const float* back = dy + r * channels;
    float* to = dx + r * channels;
#pragma omp simd
    for (std::int64_t c = 0; c < channels; ++c) {
      const float d = from[c] - k.mean[c];
      const float g = kRelu && !(d * k.slope[c] + k.beta[c] > 0.0F) ? 0.0F : back[c];
      to[c] = g * k.slope[c] - k.shift[c] - d * k.scaling[c];
    }
  }
}

template <bool kRelu>
PLIMSOLL_VECTORIZED void plane_gradients(const float* dy, const float* x, std::int64_t n,
                                         float mean, float slope, float beta, float shift,
                                         float scaling, float* dx) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float d = x[i] - mean;
    const float g = kRelu && !(d * slope + beta > 0.0F) ? 0.0F : dy[i];
    dx[i] = g * slope - shift - d * scaling;
  }
}

template <bool kRelu>
void gradient_sums(const Channels& shape, const Chunks& chunks, const float* dy, const float* x,
                   const Coefficients& k, float* sums, float* products) {
  if (shape.last) {
    parallel_chunks(
        shape.rows(), chunks.each, [&](std::int64_t chunk, std::int64_t begin, std::int64_t end) {
          row_gradient_sums<kRelu>(dy + begin * shape.channels, x + begin * shape.channels,
                                   end - begin, shape.channels, k.mean, k.slope, k.beta,
                                   sums + chunk * shape.channels,
                                   products + chunk * shape.channels);
        });
    return;
  }
  parallel_ranges(
      shape.planes(), row_grain(shape.plane), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t p = begin; p < end; ++p) {
          const std::int64_t c = p % shape.channels;
          plane_gradient_sums<kRelu>(dy + p * shape.plane, x + p * shape.plane, shape.plane,
                                     k.mean[c], k.slope[c], k.beta[c], sums + p, products + p);
        }
      });
}

template <bool kRelu>
void input_gradients(const Channels& shape, const float* dy, const float* x, const Coefficients& k,
                     float* dx) {
  if (shape.last) {
    parallel_ranges(
        shape.rows(), row_grain(shape.channels), [&](std::int64_t begin, std::int64_t end) {
          row_gradients<kRelu>(dy + begin * shape.channels, x + begin * shape.channels, end - begin,
                               shape.channels, k, dx + begin * shape.channels);
        });
    return;
  }
  parallel_ranges(shape.planes(), row_grain(shape.plane),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t p = begin; p < end; ++p) {
                      const std::int64_t c = p % shape.channels;
                      plane_gradients<kRelu>(dy + p * shape.plane, x + p * shape.plane, shape.plane,
                                             k.mean[c], k.slope[c], k.beta[c], k.shift[c],
                                             k.scaling[c], dx + p * shape.plane);
                    }
                  });
}

// dgamma and dbeta from the sums, and what the input's gradient needs of them.
PLIMSOLL_VECTORIZED void finish_sums(const float* variance, const float* slope, float epsilon,
                                     std::int64_t channels, float scale, float* dgamma,
                                     const float* dbeta, float* shift, float* scaling) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const float rstd = 1.0F / std::sqrt(variance[c] + epsilon);
    shift[c] = slope[c] * dbeta[c] * scale;
    scaling[c] = slope[c] * dgamma[c] * rstd * rstd * scale;
    dgamma[c] *= rstd;
  }
}

template <bool kRelu>
void batch_norm_backward(const Arguments& a, const Channels& shape, const Chunks& chunks,
                         float epsilon) {
  const std::int64_t channels = shape.channels;
  const std::int64_t partials = chunks.count * channels;
  float* sums = scratch<float>(a);
  float* products = sums + partials;
  float* slope = products + partials;
  float* shift = slope + channels;
  float* scaling = shift + channels;
  const float* dy = input<float>(a, 0);
  const float* x = input<float>(a, 1);
  const float* variance = input<float>(a, 5);
  float* dgamma = output<float>(a, 1);
  float* dbeta = output<float>(a, 2);
  slopes(input<float>(a, 2), variance, epsilon, channels, slope);
  const Coefficients k{input<float>(a, 4), slope, input<float>(a, 3), shift, scaling};
  gradient_sums<kRelu>(shape, chunks, dy, x, k, sums, products);
  add_rows(sums, chunks.count, channels, dbeta);
  add_rows(products, chunks.count, channels, dgamma);
  finish_sums(variance, slope, epsilon, channels, 1.0F / static_cast<float>(shape.rows()), dgamma,
              dbeta, shift, scaling);
  input_gradients<kRelu>(shape, dy, x, k, output<float>(a, 0));
}

}  // namespace

std::unique_ptr<Kernel> make_batch_norm_grad(const Site& site) {
  const Channels shape = channels_of(site.in(0));
  if (!supported(site, shape) || site.in(0) != site.in(1) || site.in(0) != site.out(0))
    return nullptr;
  const Chunks chunks = chunks_of(shape);
  const Settings settings = settings_of(site);
  const Bytes scratch_bytes((2 * chunks.count + 3) * shape.channels * 4);
  if (settings.relu) {
    return make_kernel(
        site,
        [=](const Arguments& a) { batch_norm_backward<true>(a, shape, chunks, settings.epsilon); },
        scratch_bytes);
  }
  return make_kernel(
      site,
      [=](const Arguments& a) { batch_norm_backward<false>(a, shape, chunks, settings.epsilon); },
      scratch_bytes);
}

}  // namespace plimsoll::kernels

// Batch normalisation, with ReLU on top when asked for, on NCHW and on channels-last tensors.
//
// Statistics are taken chunk by chunk: a chunk (some rows of a channels-last tensor, or one plane
// of an NCHW one) fits the cache, so its mean and then the squares about *that* mean cost one trip
// to memory; the chunks are joined by  M2 = sum of M2_k + n_k (mean_k - mean)^2.  Sums for means
// are taken of differences to the first element, so that a large mean costs no digits. The chunks
// depend on the shape alone: the bits do not depend on threads.
#include <cmath>

#include "plimsoll/base/checked.h"
#include "plimsoll/kernels/cpu/channels.h"
#include "plimsoll/kernels/cpu/column_sums.h"
#include "plimsoll/kernels/cpu/parallel.h"
#include "plimsoll/kernels/cpu/table.h"
#include "plimsoll/kernels/cpu/vectorize.h"
#include "plimsoll/ops/elementwise/fused_relu.h"

namespace plimsoll::kernels {
namespace {

// A parameter of every element of a plane: one number, where a row has one for each channel.
struct Same {
  float value;
  PLIMSOLL_INLINE float operator[](std::int64_t) const { return value; }
};

// What one call of an inner loop works on: rows of a channels-last tensor, with parameters by
// channel, or one plane of an NCHW one, with parameters that are the same all along.
struct RowBlock {
  std::int64_t first;  // element
  std::int64_t rows;
  std::int64_t width;
  std::int64_t place;  // of its sums among those of all blocks
  const float* operator()(const float* by_channel) const { return by_channel; }
};
struct PlaneBlock {
  std::int64_t first;
  std::int64_t rows;
  std::int64_t width;
  std::int64_t place;
  std::int64_t channel;
  Same operator()(const float* by_channel) const { return {by_channel[channel]}; }
};

// Calls body(block) for blocks that cover the tensor.
template <typename Body>
void for_each_block(const Channels& shape, std::int64_t rows_each, const Body& body) {
  if (shape.last) {
    parallel_chunks(shape.rows(), rows_each,
                    [&](std::int64_t chunk, std::int64_t begin, std::int64_t end) {
                      body(RowBlock{begin * shape.channels, end - begin, shape.channels,
                                    chunk * shape.channels});
                    });
    return;
  }
  parallel_rows(shape.planes(), shape.plane, [&](std::int64_t p) {
    body(PlaneBlock{p * shape.plane, 1, shape.plane, p, p % shape.channels});
  });
}

// Mean and sum of squares about it, per channel, of `rows` rows.
PLIMSOLL_VECTORIZED void moments_of_rows(const float* x, std::int64_t rows, std::int64_t channels,
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

PLIMSOLL_VECTORIZED void moments_of_plane(const float* x, std::int64_t n, float* mean,
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

template <bool kRelu, typename Parameter>
PLIMSOLL_VECTORIZED void normalize_rows(const float* x, std::int64_t rows, std::int64_t width,
                                        Parameter mean, Parameter slope, Parameter beta, float* y) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* from = x + r * width;
    float* to = y + r * width;
#pragma omp simd
    for (std::int64_t c = 0; c < width; ++c) {
      const float value = (from[c] - mean[c]) * slope[c] + beta[c];
      to[c] = kRelu && value < 0.0F ? 0.0F : value;
    }
  }
}

template <bool kRelu>
void normalize(const Channels& shape, const float* x, const float* mean, const float* slope,
               const float* beta, float* y) {
  for_each_block(shape, row_grain(shape.channels), [&](const auto& block) {
    normalize_rows<kRelu>(x + block.first, block.rows, block.width, block(mean), block(slope),
                          block(beta), y + block.first);
  });
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
  for_each_block(shape, chunks.each, [&](const auto& block) {
    if (shape.last) {
      moments_of_rows(x + block.first, block.rows, block.width, means + block.place,
                      squares + block.place);
    } else {
      moments_of_plane(x + block.first, block.width, means + block.place, squares + block.place);
    }
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
  return {static_cast<float>(site.attributes().real("epsilon")), ops::has_relu(site.attributes())};
}

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
        const auto apply = settings.relu ? normalize<true> : normalize<false>;
        apply(shape, input<float>(a, 0), mean, slope, input<float>(a, 2), output<float>(a, 0));
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
        const auto apply = settings.relu ? normalize<true> : normalize<false>;
        apply(shape, input<float>(a, 0), input<float>(a, 3), scratch<float>(a), input<float>(a, 2),
              output<float>(a));
      },
      Bytes(shape.channels * 4));
}

std::unique_ptr<Kernel> make_batch_norm_update(const Site& site) {
  if (!all_f32(site)) return nullptr;
  const std::int64_t channels = site.in(0).shape.elements();
  const auto momentum = static_cast<float>(site.attributes().real("momentum"));
  const auto count = static_cast<float>(site.attributes().integer("count"));
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

// What the backward loops need per channel.
struct Coefficients {
  const float* mean;
  const float* slope;  // gamma / sqrt(var + eps)
  const float* beta;
  const float* shift;    // slope * mean of dy
  const float* scaling;  // slope * rstd^2 * mean of dy (x - mean)
};

// dy where the normalised value, slope * d + beta, got through ReLU.
template <bool kRelu>
PLIMSOLL_INLINE float passed(float dy, float d, float slope, float beta) {
  return kRelu && !(d * slope + beta > 0.0F) ? 0.0F : dy;
}

// Adds sum of dy and sum of dy (x - mean), dy being 0 where ReLU was.
template <bool kRelu>
PLIMSOLL_VECTORIZED void gradient_sums_of(const float* dy, const float* x, std::int64_t rows,
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
      const float g = passed<kRelu>(back[c], d, slope[c], beta[c]);
      sum[c] += g;
      product[c] += g * d;
    }
  }
}

template <bool kRelu>
PLIMSOLL_VECTORIZED void gradient_sums_of(const float* dy, const float* x, std::int64_t,
                                          std::int64_t n, Same mean, Same slope, Same beta,
                                          float* sum, float* product) {
  float s = 0;
  float p = 0;
#pragma omp simd reduction(+ : s, p)
  for (std::int64_t i = 0; i < n; ++i) {
    const float d = x[i] - mean.value;
    const float g = passed<kRelu>(dy[i], d, slope.value, beta.value);
    s += g;
    p += g * d;
  }
  *sum = s;
  *product = p;
}

template <bool kRelu, typename Parameter>
PLIMSOLL_VECTORIZED void gradients_of(const float* dy, const float* x, std::int64_t rows,
                                      std::int64_t width, Parameter mean, Parameter slope,
                                      Parameter beta, Parameter shift, Parameter scaling,
                                      float* dx) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* from = x + r * width;
    const float* back = dy + r * width;
    float* to = dx + r * width;
#pragma omp simd
    for (std::int64_t c = 0; c < width; ++c) {
      const float d = from[c] - mean[c];
      const float g = passed<kRelu>(back[c], d, slope[c], beta[c]);
      to[c] = g * slope[c] - shift[c] - d * scaling[c];
    }
  }
}

template <bool kRelu>
void gradient_sums(const Channels& shape, const Chunks& chunks, const float* dy, const float* x,
                   const Coefficients& k, float* sums, float* products) {
  for_each_block(shape, chunks.each, [&](const auto& block) {
    gradient_sums_of<kRelu>(dy + block.first, x + block.first, block.rows, block.width,
                            block(k.mean), block(k.slope), block(k.beta), sums + block.place,
                            products + block.place);
  });
}

template <bool kRelu>
void input_gradients(const Channels& shape, const float* dy, const float* x, const Coefficients& k,
                     float* dx) {
  for_each_block(shape, row_grain(shape.channels), [&](const auto& block) {
    gradients_of<kRelu>(dy + block.first, x + block.first, block.rows, block.width, block(k.mean),
                        block(k.slope), block(k.beta), block(k.shift), block(k.scaling),
                        dx + block.first);
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

std::unique_ptr<Kernel> make_batch_norm_grad(const Site& site) {
  const Channels shape = channels_of(site.in(0));
  if (!supported(site, shape) || site.in(0) != site.in(1) || site.in(0) != site.out(0))
    return nullptr;
  const Chunks chunks = chunks_of(shape);
  const Settings settings = settings_of(site);
  const Bytes scratch_bytes((2 * chunks.count + 3) * shape.channels * 4);
  const auto run = settings.relu ? batch_norm_backward<true> : batch_norm_backward<false>;
  return make_kernel(
      site, [=](const Arguments& a) { run(a, shape, chunks, settings.epsilon); }, scratch_bytes);
}

}  // namespace

std::span<const TableEntry> batch_norm_kernels() {
  static constexpr TableEntry kRows[] = {
      {"batch_norm", make_batch_norm},
      {"batch_norm_grad", make_batch_norm_grad},
      {"batch_norm_inference", make_batch_norm_inference},
      {"batch_norm_update", make_batch_norm_update},
  };
  return kRows;
}

}  // namespace plimsoll::kernels

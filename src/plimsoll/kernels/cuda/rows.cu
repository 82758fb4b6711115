// Kernels that take a row of a tensor at a time: normalisation, softmax, running sums.
#include <cmath>

#include "plimsoll/kernels/cuda/elements.cuh"

namespace plimsoll::kernels::cuda {
namespace {

template <typename Body, typename Merge>
__device__ float over_row(std::int64_t width, float start, float* shared, const Merge& merge,
                          const Body& body) {
  float mine = start;
#pragma unroll 4  // loads of several elements at once
  for (std::int64_t i = threadIdx.x; i < width; i += kBlockThreads) mine = merge(mine, body(i));
  return merge_block(mine, shared, merge);
}

// Normalisation -----------------------------------------------------------------------------------

__device__ __forceinline__ std::int64_t parameter_at(const NormRows& rows, std::int64_t row,
                                                     std::int64_t i) {
  if (rows.plane == 1 && rows.groups == 1) return i;
  return row % rows.groups * (rows.width / rows.plane) + i / rows.plane;
}

template <typename T, typename P>
__global__ void normalise(NormRows rows, float epsilon, const T* x, const P* gamma, const P* beta,
                          T* y, float* mean, float* rstd) {
  __shared__ float shared[kBlockThreads / 32];
  const std::int64_t row = blockIdx.x;
  const T* from = x + row * rows.width;
  T* to = y + row * rows.width;
  const float share = 1.0F / static_cast<float>(rows.width > 0 ? rows.width : 1);
  float centre = 0;
  if (mean != nullptr) {
    centre = share *
             over_row(rows.width, 0, shared, Plus(), [&](std::int64_t i) { return wide(from[i]); });
  }
  const float variance = share * over_row(rows.width, 0, shared, Plus(), [&](std::int64_t i) {
                           const float centred = wide(from[i]) - centre;
                           return centred * centred;
                         });
  const float scale = 1 / sqrtf(variance + epsilon);
  if (threadIdx.x == 0) {
    if (mean != nullptr) mean[row] = centre;
    rstd[row] = scale;
  }
  for (std::int64_t i = threadIdx.x; i < rows.width; i += kBlockThreads) {
    const std::int64_t at = parameter_at(rows, row, i);
    float value = (wide(from[i]) - centre) * scale * wide(gamma[at]);
    if (beta != nullptr) value += wide(beta[at]);
    to[i] = narrow<T>(value);
  }
}

template <typename T, typename P>
__global__ void normalise_gradient(NormRows rows, const T* dy, const T* x, const P* gamma,
                                   const float* mean, const float* rstd, T* dx) {
  __shared__ float shared[kBlockThreads / 32];
  const std::int64_t row = blockIdx.x;
  const std::int64_t first = row * rows.width;
  const float centre = mean == nullptr ? 0 : mean[row];
  const float scale = rstd[row];
  const float share = 1.0F / static_cast<float>(rows.width > 0 ? rows.width : 1);
  const auto adjoint = [&](std::int64_t i) {
    return wide(dy[first + i]) * wide(gamma[parameter_at(rows, row, i)]);
  };
  const auto normal = [&](std::int64_t i) { return (wide(x[first + i]) - centre) * scale; };
  float sum = 0;
  if (mean != nullptr) sum = share * over_row(rows.width, 0, shared, Plus(), adjoint);
  const float product = share * over_row(rows.width, 0, shared, Plus(),
                                         [&](std::int64_t i) { return adjoint(i) * normal(i); });
  for (std::int64_t i = threadIdx.x; i < rows.width; i += kBlockThreads)
    dx[first + i] = narrow<T>(scale * (adjoint(i) - sum - normal(i) * product));
}

// Softmax -----------------------------------------------------------------------------------------

// A block to a line of neighbours.
template <typename T>
__global__ void soften_rows(std::int64_t width, bool as_logarithm, const T* x, T* y) {
  __shared__ float shared[kBlockThreads / 32];
  const T* from = x + blockIdx.x * width;
  T* to = y + blockIdx.x * width;
  const float largest =
      over_row(width, -INFINITY, shared, Larger(), [&](std::int64_t i) { return wide(from[i]); });
  const float sum = over_row(width, 0, shared, Plus(),
                             [&](std::int64_t i) { return expf(wide(from[i]) - largest); });
  const float logarithm = logf(sum);
  for (std::int64_t i = threadIdx.x; i < width; i += kBlockThreads) {
    const float shifted = wide(from[i]) - largest;
    to[i] = narrow<T>(as_logarithm ? shifted - logarithm : expf(shifted) / sum);
  }
}

// A thread to a line whose elements lie `inner` apart; neighbouring lines are neighbours.
template <typename T>
__global__ void soften_columns(Lines lines, bool as_logarithm, const T* x, T* y) {
  PLIMSOLL_GRID_LOOP(line, lines.outer * lines.inner) {
    const std::int64_t first = line / lines.inner * lines.inner * lines.count + line % lines.inner;
    float largest = -INFINITY;
    for (std::int64_t i = 0; i < lines.count; ++i)
      largest = Larger()(largest, wide(x[first + i * lines.inner]));
    float sum = 0;
    for (std::int64_t i = 0; i < lines.count; ++i)
      sum += expf(wide(x[first + i * lines.inner]) - largest);
    const float logarithm = logf(sum);
    for (std::int64_t i = 0; i < lines.count; ++i) {
      const float shifted = wide(x[first + i * lines.inner]) - largest;
      y[first + i * lines.inner] =
          narrow<T>(as_logarithm ? shifted - logarithm : expf(shifted) / sum);
    }
  }
}

template <typename T>
__device__ float softened_gradient(bool of_logarithm, float dy, float y, float sum) {
  return of_logarithm ? dy - expf(y) * sum : y * (dy - sum);
}

template <typename T>
__global__ void soften_gradient_rows(std::int64_t width, bool of_logarithm, const T* dy, const T* y,
                                     T* dx) {
  __shared__ float shared[kBlockThreads / 32];
  const std::int64_t first = blockIdx.x * width;
  const float sum = over_row(width, 0, shared, Plus(), [&](std::int64_t i) {
    const float adjoint = wide(dy[first + i]);
    return of_logarithm ? adjoint : adjoint * wide(y[first + i]);
  });
  for (std::int64_t i = threadIdx.x; i < width; i += kBlockThreads) {
    dx[first + i] =
        narrow<T>(softened_gradient<T>(of_logarithm, wide(dy[first + i]), wide(y[first + i]), sum));
  }
}

template <typename T>
__global__ void soften_gradient_columns(Lines lines, bool of_logarithm, const T* dy, const T* y,
                                        T* dx) {
  PLIMSOLL_GRID_LOOP(line, lines.outer * lines.inner) {
    const std::int64_t first = line / lines.inner * lines.inner * lines.count + line % lines.inner;
    const std::int64_t end = first + lines.count * lines.inner;
    float sum = 0;
    for (std::int64_t i = first; i < end; i += lines.inner)
      sum += of_logarithm ? wide(dy[i]) : wide(dy[i]) * wide(y[i]);
    for (std::int64_t i = first; i < end; i += lines.inner)
      dx[i] = narrow<T>(softened_gradient<T>(of_logarithm, wide(dy[i]), wide(y[i]), sum));
  }
}

// Running sums and the best of a line -------------------------------------------------------------

template <typename T>
__global__ void sum_along(Lines lines, bool exclusive, bool reverse, const T* x, T* y) {
  PLIMSOLL_GRID_LOOP(line, lines.outer * lines.inner) {
    const std::int64_t first = line / lines.inner * lines.inner * lines.count + line % lines.inner;
    WideOf<T> sum = 0;
    for (std::int64_t i = 0; i < lines.count; ++i) {
      const std::int64_t at = first + (reverse ? lines.count - 1 - i : i) * lines.inner;
      const WideOf<T> next = sum + wide(x[at]);
      y[at] = narrow<T>(exclusive ? sum : next);
      sum = next;
    }
  }
}

template <typename Number>
__device__ bool is_less(Number a, Number b) {
  return a < b || (b != b && a == a);
}

// By selection: the best that stands behind the one found last in the order wanted.
template <typename T>
__global__ void select_best(Lines lines, std::int64_t k, bool largest, const T* x, T* y,
                            std::int64_t* places) {
  PLIMSOLL_GRID_LOOP(line, lines.outer * lines.inner) {
    const std::int64_t group = line / lines.inner;
    const std::int64_t inside = line % lines.inner;
    const std::int64_t first = group * lines.inner * lines.count + inside;
    std::int64_t before = -1;
    for (std::int64_t rank = 0; rank < k; ++rank) {
      std::int64_t best = -1;
      for (std::int64_t i = 0; i < lines.count; ++i) {
        const WideOf<T> value = wide(x[first + i * lines.inner]);
        if (before >= 0) {
          const WideOf<T> bound = wide(x[first + before * lines.inner]);
          const bool behind = largest ? is_less(value, bound) : is_less(bound, value);
          const bool ahead = largest ? is_less(bound, value) : is_less(value, bound);
          if (ahead || (!behind && i <= before)) continue;
        }
        if (best < 0) {
          best = i;
          continue;
        }
        const WideOf<T> leader = wide(x[first + best * lines.inner]);
        if (largest ? is_less(leader, value) : is_less(value, leader)) best = i;
      }
      const std::int64_t to = group * lines.inner * k + rank * lines.inner + inside;
      y[to] = x[first + best * lines.inner];
      places[to] = best;
      before = best;
    }
  }
}

__global__ void add_to(std::int64_t count, const float* from, float* to) {
  const std::int64_t i = blockIdx.x * std::int64_t{kBlockThreads} + threadIdx.x;
  if (i < count) to[i] += from[i];
}

unsigned grid(std::int64_t rows) {
  return static_cast<unsigned>(rows);
}

}  // namespace

void norm_rows(Element type, Element parameter, const NormRows& rows, double epsilon, const void* x,
               const void* gamma, const void* beta, void* y, float* mean, float* rstd,
               cudaStream_t stream) {
  if (rows.rows == 0) return;
  for_parameter(type, parameter, [&](auto element, auto own) {
    using T = decltype(element);
    using P = decltype(own);
    normalise<T, P><<<grid(rows.rows), kBlockThreads, 0, stream>>>(
        rows, static_cast<float>(epsilon), static_cast<const T*>(x), static_cast<const P*>(gamma),
        static_cast<const P*>(beta), static_cast<T*>(y), mean, rstd);
  });
}

void norm_rows_gradient(Element type, Element parameter, const NormRows& rows, const void* dy,
                        const void* x, const void* gamma, const float* mean, const float* rstd,
                        void* dx, cudaStream_t stream) {
  if (rows.rows == 0) return;
  for_parameter(type, parameter, [&](auto element, auto own) {
    using T = decltype(element);
    using P = decltype(own);
    normalise_gradient<T, P><<<grid(rows.rows), kBlockThreads, 0, stream>>>(
        rows, static_cast<const T*>(dy), static_cast<const T*>(x), static_cast<const P*>(gamma),
        mean, rstd, static_cast<T*>(dx));
  });
}

void softmax_lines(Element type, const Lines& lines, bool as_logarithm, const void* x, void* y,
                   cudaStream_t stream) {
  for_float(type, [&](auto element) {
    using T = decltype(element);
    const auto* from = static_cast<const T*>(x);
    auto* to = static_cast<T*>(y);
    if (lines.inner == 1) {
      soften_rows<T>
          <<<grid(lines.outer), kBlockThreads, 0, stream>>>(lines.count, as_logarithm, from, to);
    } else {
      soften_columns<T><<<blocks_for(lines.outer * lines.inner), kBlockThreads, 0, stream>>>(
          lines, as_logarithm, from, to);
    }
  });
}

void softmax_gradient_lines(Element type, const Lines& lines, bool of_logarithm, const void* dy,
                            const void* y, void* dx, cudaStream_t stream) {
  for_float(type, [&](auto element) {
    using T = decltype(element);
    const auto* adjoint = static_cast<const T*>(dy);
    const auto* from = static_cast<const T*>(y);
    auto* to = static_cast<T*>(dx);
    if (lines.inner == 1) {
      soften_gradient_rows<T><<<grid(lines.outer), kBlockThreads, 0, stream>>>(
          lines.count, of_logarithm, adjoint, from, to);
    } else {
      soften_gradient_columns<T>
          <<<blocks_for(lines.outer * lines.inner), kBlockThreads, 0, stream>>>(lines, of_logarithm,
                                                                                adjoint, from, to);
    }
  });
}

void running_sums(Element type, const Lines& lines, bool exclusive, bool reverse, const void* x,
                  void* y, cudaStream_t stream) {
  for_element(type, [&](auto element) {
    using T = decltype(element);
    sum_along<T><<<blocks_for(lines.outer * lines.inner), kBlockThreads, 0, stream>>>(
        lines, exclusive, reverse, static_cast<const T*>(x), static_cast<T*>(y));
  });
}

void best_of_lines(Element type, const Lines& lines, std::int64_t k, bool largest, const void* x,
                   void* y, std::int64_t* places, cudaStream_t stream) {
  for_element(type, [&](auto element) {
    using T = decltype(element);
    select_best<T><<<blocks_for(lines.outer * lines.inner), kBlockThreads, 0, stream>>>(
        lines, k, largest, static_cast<const T*>(x), static_cast<T*>(y), places);
  });
}

void add_floats(std::int64_t count, const float* from, float* to, cudaStream_t stream) {
  if (count > 0) add_to<<<blocks_for(count), kBlockThreads, 0, stream>>>(count, from, to);
}

}  // namespace plimsoll::kernels::cuda

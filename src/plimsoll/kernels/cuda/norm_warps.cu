// Row norms of rows that a warp holds in registers: every element is read once, 16 bytes at a time,
// and nobody waits for other warps. rows.cu takes what does not fit.
#include "plimsoll/kernels/cuda/vectors.cuh"

namespace plimsoll::kernels::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kWarpsOfBlock = 4;

__device__ __forceinline__ float sum_of_warp(float mine) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    mine += __shfl_xor_sync(0xffffffffU, mine, distance);
  return mine;
}

// A warp's row: `count` vectors for each lane, those behind the row's end empty.
template <typename T, int count>
struct RowOfWarp {
  static constexpr int kSize = kVectorSize<T>;
  Vector<T> part[count];

  static __device__ int place(int i) { return (i * kWarp + static_cast<int>(threadIdx.x)) * kSize; }
  __device__ void load(const T* from, int width) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (place(i) < width) part[i].load(from + place(i));
    }
  }
  // The sum of body(i, v) over the row's elements.
  template <typename Body>
  static __device__ float sum(int width, const Body& body) {
    float mine = 0;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (place(i) >= width) continue;
#pragma unroll
      for (int v = 0; v < kSize; ++v) mine += body(i, v);
    }
    return sum_of_warp(mine);
  }
};

template <typename T, typename P, int count>
__global__ void __launch_bounds__(kWarp* kWarpsOfBlock)
    normalise_by_warps(std::int64_t rows, int width, float epsilon, const T* x, const P* gamma,
                       const P* beta, T* y, float* mean, float* rstd) {
  using Row = RowOfWarp<T, count>;
  const std::int64_t row = blockIdx.x * static_cast<std::int64_t>(kWarpsOfBlock) + threadIdx.y;
  if (row >= rows) return;
  Row own;
  own.load(x + row * width, width);
  const float share = 1.0F / static_cast<float>(width);
  float centre = 0;
  if (mean != nullptr)
    centre = share * Row::sum(width, [&](int i, int v) { return own.part[i].at(v); });
  const float variance = share * Row::sum(width, [&](int i, int v) {
                           const float centred = own.part[i].at(v) - centre;
                           return centred * centred;
                         });
  const float scale = 1 / sqrtf(variance + epsilon);
  if (threadIdx.x == 0) {
    if (mean != nullptr) mean[row] = centre;
    rstd[row] = scale;
  }
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const int at = Row::place(i);
    if (at >= width) continue;
    Vector<T> out;
#pragma unroll
    for (int v = 0; v < Row::kSize; ++v) {
      float value = (own.part[i].at(v) - centre) * scale * wide(gamma[at + v]);
      if (beta != nullptr) value += wide(beta[at + v]);
      out.set(v, value);
    }
    out.store(y + row * width + at);
  }
}

template <typename T, typename P, int count>
__global__ void __launch_bounds__(kWarp* kWarpsOfBlock)
    normalise_gradient_by_warps(std::int64_t rows, int width, const T* dy, const T* x,
                                const P* gamma, const float* mean, const float* rstd,
                                const T* other, T* dx) {
  using Row = RowOfWarp<T, count>;
  const std::int64_t row = blockIdx.x * static_cast<std::int64_t>(kWarpsOfBlock) + threadIdx.y;
  if (row >= rows) return;
  Row own;
  Row slopes;
  own.load(x + row * width, width);
  slopes.load(dy + row * width, width);
  const float centre = mean == nullptr ? 0 : mean[row];
  const float scale = rstd[row];
  const float share = 1.0F / static_cast<float>(width);
  const auto adjoint = [&](int i, int v) {
    return slopes.part[i].at(v) * wide(gamma[Row::place(i) + v]);
  };
  const auto normal = [&](int i, int v) { return (own.part[i].at(v) - centre) * scale; };
  const float sum = mean == nullptr ? 0 : share * Row::sum(width, adjoint);
  const float product =
      share * Row::sum(width, [&](int i, int v) { return adjoint(i, v) * normal(i, v); });
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const int at = Row::place(i);
    if (at >= width) continue;
    Vector<T> out;
    Vector<T> added;
    if (other != nullptr) added.load(other + row * width + at);
#pragma unroll
    for (int v = 0; v < Row::kSize; ++v) {
      const float slope = scale * (adjoint(i, v) - sum - normal(i, v) * product);
      out.set(v, other != nullptr ? slope + added.at(v) : slope);
    }
    out.store(dx + row * width + at);
  }
}

// Calls make with the number of vectors that a lane holds, as a constant.
template <typename Make>
void for_vectors(std::int64_t vectors, const Make& make) {
  const std::int64_t count = (vectors + kWarp - 1) / kWarp;
  if (count <= 1) return make(std::integral_constant<int, 1>());
  if (count <= 2) return make(std::integral_constant<int, 2>());
  if (count <= 3) return make(std::integral_constant<int, 3>());
  if (count <= 4) return make(std::integral_constant<int, 4>());
  if (count <= 6) return make(std::integral_constant<int, 6>());
  make(std::integral_constant<int, kMostVectorsOfLane>());
}

dim3 block_of_warps() {
  return {kWarp, kWarpsOfBlock, 1};
}
unsigned blocks_of_warps(std::int64_t rows) {
  return static_cast<unsigned>((rows + kWarpsOfBlock - 1) / kWarpsOfBlock);
}

}  // namespace

bool warps_take_rows(const NormRows& rows, std::int64_t width_of_element) {
  const std::int64_t size = 16 / width_of_element;
  return rows.plane == 1 && rows.groups == 1 && rows.width > 0 && rows.width % size == 0 &&
         rows.width / size <= kMostVectorsOfLane * kWarp;
}

void norm_rows_by_warps(Element type, Element parameter, const NormRows& rows, double epsilon,
                        const void* x, const void* gamma, const void* beta, void* y, float* mean,
                        float* rstd, cudaStream_t stream) {
  if (rows.rows == 0) return;
  for_parameter(type, parameter, [&](auto element, auto own) {
    using T = decltype(element);
    using P = decltype(own);
    for_vectors(rows.width / kVectorSize<T>, [&](auto count) {
      normalise_by_warps<T, P, decltype(count)::value>
          <<<blocks_of_warps(rows.rows), block_of_warps(), 0, stream>>>(
              rows.rows, static_cast<int>(rows.width), static_cast<float>(epsilon),
              static_cast<const T*>(x), static_cast<const P*>(gamma), static_cast<const P*>(beta),
              static_cast<T*>(y), mean, rstd);
    });
  });
}

void norm_rows_gradient_by_warps(Element type, Element parameter, const NormRows& rows,
                                 const void* dy, const void* x, const void* gamma,
                                 const float* mean, const float* rstd, const void* other, void* dx,
                                 cudaStream_t stream) {
  if (rows.rows == 0) return;
  for_parameter(type, parameter, [&](auto element, auto own) {
    using T = decltype(element);
    using P = decltype(own);
    for_vectors(rows.width / kVectorSize<T>, [&](auto count) {
      normalise_gradient_by_warps<T, P, decltype(count)::value>
          <<<blocks_of_warps(rows.rows), block_of_warps(), 0, stream>>>(
              rows.rows, static_cast<int>(rows.width), static_cast<const T*>(dy),
              static_cast<const T*>(x), static_cast<const P*>(gamma), mean, rstd,
              static_cast<const T*>(other), static_cast<T*>(dx));
    });
  });
}

}  // namespace plimsoll::kernels::cuda

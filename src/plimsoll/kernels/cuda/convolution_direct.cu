// Convolutions by their definition, a thread for every result: for what cuDNN has no engine for
// (paddings that differ in front and behind, tiny or odd shapes). Right, deterministic and slow.
#include "plimsoll/kernels/cuda/elements.cuh"

namespace plimsoll::kernels::cuda {
namespace {

using Shape = DirectConvolution;

__device__ std::int64_t at(const std::int64_t* steps, std::int64_t a, std::int64_t b,
                           const std::int64_t* place) {
  return a * steps[0] + b * steps[1] + place[0] * steps[2] + place[1] * steps[3] +
         place[2] * steps[4];
}

__device__ void cut(std::int64_t i, const std::int64_t* volume, std::int64_t* place) {
  place[2] = i % volume[2];
  place[1] = i / volume[2] % volume[1];
  place[0] = i / volume[2] / volume[1];
}

// The data position that a place of the kernel reads for a result; false in the padding.
__device__ bool data_at(const Shape& s, const std::int64_t* result, const std::int64_t* kernel,
                        std::int64_t* data) {
  for (int axis = 0; axis < 3; ++axis) {
    data[axis] = result[axis] * s.strides[axis] + kernel[axis] * s.dilations[axis] - s.begins[axis];
    if (data[axis] < 0 || data[axis] >= s.data[axis]) return false;
  }
  return true;
}

// The result that reads a data position by a place of the kernel; false where there is none.
__device__ bool result_at(const Shape& s, const std::int64_t* data, const std::int64_t* kernel,
                          std::int64_t* result) {
  for (int axis = 0; axis < 3; ++axis) {
    const std::int64_t shifted = data[axis] + s.begins[axis] - kernel[axis] * s.dilations[axis];
    if (shifted < 0 || shifted % s.strides[axis] != 0) return false;
    result[axis] = shifted / s.strides[axis];
    if (result[axis] >= s.results[axis]) return false;
  }
  return true;
}

__host__ __device__ std::int64_t volume(const std::int64_t* extents) {
  return extents[0] * extents[1] * extents[2];
}

template <typename T>
__global__ void convolve(Shape s, std::int64_t count, const T* x, const T* w, T* y) {
  PLIMSOLL_GRID_LOOP(i, count) {
    std::int64_t result[3];
    cut(i % volume(s.results), s.results, result);
    const std::int64_t m = i / volume(s.results) % (s.group * s.outputs);
    const std::int64_t n = i / volume(s.results) / (s.group * s.outputs);
    const std::int64_t first = m / s.outputs * s.inputs;
    float sum = 0;
    for (std::int64_t k = 0; k < volume(s.kernel); ++k) {
      std::int64_t kernel[3];
      std::int64_t data[3];
      cut(k, s.kernel, kernel);
      if (!data_at(s, result, kernel, data)) continue;
      for (std::int64_t c = 0; c < s.inputs; ++c)
        sum += wide(x[at(s.x_steps, n, first + c, data)]) * wide(w[at(s.w_steps, m, c, kernel)]);
    }
    y[at(s.y_steps, n, m, result)] = narrow<T>(sum);
  }
}

template <typename T>
__global__ void flow_to_data(Shape s, std::int64_t count, const T* dy, const T* w, T* dx) {
  PLIMSOLL_GRID_LOOP(i, count) {
    std::int64_t data[3];
    cut(i % volume(s.data), s.data, data);
    const std::int64_t channel = i / volume(s.data) % (s.group * s.inputs);
    const std::int64_t n = i / volume(s.data) / (s.group * s.inputs);
    const std::int64_t first = channel / s.inputs * s.outputs;
    const std::int64_t c = channel % s.inputs;
    float sum = 0;
    for (std::int64_t k = 0; k < volume(s.kernel); ++k) {
      std::int64_t kernel[3];
      std::int64_t result[3];
      cut(k, s.kernel, kernel);
      if (!result_at(s, data, kernel, result)) continue;
      for (std::int64_t m = first; m < first + s.outputs; ++m)
        sum += wide(dy[at(s.y_steps, n, m, result)]) * wide(w[at(s.w_steps, m, c, kernel)]);
    }
    dx[at(s.x_steps, n, channel, data)] = narrow<T>(sum);
  }
}

// A block to a weight.
template <typename T>
__global__ void flow_to_weight(Shape s, const T* x, const T* dy, T* dw) {
  __shared__ float shared[kBlockThreads / 32];
  std::int64_t kernel[3];
  cut(blockIdx.x % volume(s.kernel), s.kernel, kernel);
  const std::int64_t c = blockIdx.x / volume(s.kernel) % s.inputs;
  const std::int64_t m = blockIdx.x / volume(s.kernel) / s.inputs;
  const std::int64_t channel = m / s.outputs * s.inputs + c;
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < s.batch * volume(s.results); i += blockDim.x) {
    std::int64_t result[3];
    std::int64_t data[3];
    cut(i % volume(s.results), s.results, result);
    if (!data_at(s, result, kernel, data)) continue;
    const std::int64_t n = i / volume(s.results);
    sum += wide(x[at(s.x_steps, n, channel, data)]) * wide(dy[at(s.y_steps, n, m, result)]);
  }
  const float all = merge_block(sum, shared, [](float a, float b) { return a + b; });
  if (threadIdx.x == 0) dw[at(s.w_steps, m, c, kernel)] = narrow<T>(all);
}

}  // namespace

void direct_convolution(Element type, const Shape& s, const void* x, const void* w, void* y,
                        cudaStream_t stream) {
  const std::int64_t count = s.batch * s.group * s.outputs * volume(s.results);
  for_float(type, [&](auto element) {
    using T = decltype(element);
    convolve<T><<<blocks_for(count), kBlockThreads, 0, stream>>>(
        s, count, static_cast<const T*>(x), static_cast<const T*>(w), static_cast<T*>(y));
  });
}

void direct_data_gradient(Element type, const Shape& s, const void* dy, const void* w, void* dx,
                          cudaStream_t stream) {
  const std::int64_t count = s.batch * s.group * s.inputs * volume(s.data);
  for_float(type, [&](auto element) {
    using T = decltype(element);
    flow_to_data<T><<<blocks_for(count), kBlockThreads, 0, stream>>>(
        s, count, static_cast<const T*>(dy), static_cast<const T*>(w), static_cast<T*>(dx));
  });
}

void direct_weight_gradient(Element type, const Shape& s, const void* x, const void* dy, void* dw,
                            cudaStream_t stream) {
  const std::int64_t weights = s.group * s.outputs * s.inputs * volume(s.kernel);
  for_float(type, [&](auto element) {
    using T = decltype(element);
    flow_to_weight<T><<<static_cast<unsigned>(weights), kBlockThreads, 0, stream>>>(
        s, static_cast<const T*>(x), static_cast<const T*>(dy), static_cast<T*>(dw));
  });
}

}  // namespace plimsoll::kernels::cuda

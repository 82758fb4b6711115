// Pooling: a thread for every result, or for every element that a gradient flows to (it looks at
// the windows that cover it, in order, so that no sum depends on a race).
#include <cmath>

#include "plimsoll/kernels/cuda/elements.cuh"

namespace plimsoll::kernels::cuda {
namespace {

struct At {
  std::int64_t batch, channel, place[3];
};

// Element i of [batch, channels, volume] in the order of memory that `channels_last` says.
__device__ At at_index(const PoolShape& shape, const std::int64_t* volume, bool channels_last,
                       std::int64_t i) {
  At out;
  if (channels_last) {
    out.channel = i % shape.channels;
    i /= shape.channels;
  }
  for (int axis = 2; axis >= 0; --axis) {
    out.place[axis] = i % volume[axis];
    i /= volume[axis];
  }
  if (!channels_last) {
    out.channel = i % shape.channels;
    i /= shape.channels;
  }
  out.batch = i;
  return out;
}

__device__ std::int64_t offset(const std::int64_t* steps, const At& at, std::int64_t z,
                               std::int64_t y, std::int64_t x) {
  return at.batch * steps[0] + at.channel * steps[1] + z * steps[2] + y * steps[3] + x * steps[4];
}
__device__ std::int64_t offset(const std::int64_t* steps, const At& at) {
  return offset(steps, at, at.place[0], at.place[1], at.place[2]);
}

__device__ std::int64_t place_at(const PoolShape& shape, const void* places, std::int64_t at) {
  return shape.wide_places ? static_cast<const std::int32_t*>(places)[at]
                           : static_cast<const std::uint8_t*>(places)[at];
}

__device__ void set_place(const PoolShape& shape, void* places, std::int64_t at,
                          std::int64_t place) {
  if (shape.wide_places) {
    static_cast<std::int32_t*>(places)[at] = static_cast<std::int32_t>(place);
  } else {
    static_cast<std::uint8_t*>(places)[at] = static_cast<std::uint8_t>(place);
  }
}

// Calls body(place in the kernel, offset in the data) for every element of a result's window that
// is no padding.
template <typename Body>
__device__ void for_each_tap(const PoolShape& s, const At& at, const Body& body) {
  std::int64_t place = 0;
  for (std::int64_t kz = 0; kz < s.kernel[0]; ++kz) {
    const std::int64_t z = at.place[0] * s.strides[0] + kz * s.dilations[0] - s.begins[0];
    for (std::int64_t ky = 0; ky < s.kernel[1]; ++ky) {
      const std::int64_t y = at.place[1] * s.strides[1] + ky * s.dilations[1] - s.begins[1];
      for (std::int64_t kx = 0; kx < s.kernel[2]; ++kx, ++place) {
        const std::int64_t x = at.place[2] * s.strides[2] + kx * s.dilations[2] - s.begins[2];
        if (z < 0 || z >= s.data[0] || y < 0 || y >= s.data[1] || x < 0 || x >= s.data[2]) continue;
        body(place, offset(s.data_steps, at, z, y, x));
      }
    }
  }
}

// Whether place k of an axis' kernel reads data position p, and for which result.
__device__ __forceinline__ bool result_reading(const PoolShape& s, int axis, std::int64_t p,
                                               std::int64_t k, std::int64_t& result) {
  const std::int64_t shifted = p + s.begins[axis] - k * s.dilations[axis];
  result = shifted / s.strides[axis];
  return shifted >= 0 && shifted % s.strides[axis] == 0 && result < s.results[axis];
}

// Calls body(place in the kernel, the result's At) for every window that covers an element.
template <typename Body>
__device__ void for_each_window(const PoolShape& s, const At& at, const Body& body) {
  std::int64_t place = 0;
  At result = at;
  for (std::int64_t kz = 0; kz < s.kernel[0]; ++kz) {
    const bool in_z = result_reading(s, 0, at.place[0], kz, result.place[0]);
    for (std::int64_t ky = 0; ky < s.kernel[1]; ++ky) {
      const bool in_y = in_z && result_reading(s, 1, at.place[1], ky, result.place[1]);
      for (std::int64_t kx = 0; kx < s.kernel[2]; ++kx, ++place) {
        if (in_y && result_reading(s, 2, at.place[2], kx, result.place[2])) body(place, result);
      }
    }
  }
}

__device__ float divisor(const PoolShape& s, const At& result) {
  float out = 1;
  for (int axis = 0; axis < 3; ++axis) {
    const std::int64_t begin = result.place[axis] * s.strides[axis] - s.begins[axis];
    const std::int64_t limit = s.data[axis] + (s.counts_pads ? s.ends[axis] : 0);
    std::int64_t end = begin + s.kernel[axis];
    end = end < limit ? end : limit;
    const std::int64_t counted = end - (s.counts_pads || begin > 0 ? begin : 0);
    out *= static_cast<float>(counted > 0 ? counted : 0);
  }
  return out;
}

template <typename T>
__global__ void pool_max(PoolShape s, bool last, std::int64_t count, const T* x, T* y,
                         void* places) {
  PLIMSOLL_GRID_LOOP(i, count) {
    const At at = at_index(s, s.results, last, i);
    float best = -INFINITY;
    std::int64_t winner = -1;
    for_each_tap(s, at, [&](std::int64_t place, std::int64_t from) {
      const float value = wide(x[from]);
      if (winner >= 0 && !(value > best || value != value)) return;
      winner = place;
      best = value;
    });
    const std::int64_t to = offset(s.result_steps, at);
    y[to] = narrow<T>(best);
    set_place(s, places, to, winner < 0 ? 0 : winner);
  }
}

template <typename T>
__global__ void pool_max_gradient(PoolShape s, bool last, std::int64_t count, const T* dy,
                                  const void* places, T* dx) {
  PLIMSOLL_GRID_LOOP(i, count) {
    const At at = at_index(s, s.data, last, i);
    float sum = 0;
    for_each_window(s, at, [&](std::int64_t place, const At& result) {
      const std::int64_t from = offset(s.result_steps, result);
      if (place_at(s, places, from) == place) sum += wide(dy[from]);
    });
    dx[offset(s.data_steps, at)] = narrow<T>(sum);
  }
}

template <typename T>
__global__ void pool_select(PoolShape s, bool last, std::int64_t count, const T* x,
                            const void* places, T* y) {
  PLIMSOLL_GRID_LOOP(i, count) {
    const At at = at_index(s, s.results, last, i);
    const std::int64_t to = offset(s.result_steps, at);
    const std::int64_t chosen = place_at(s, places, to);
    float value = 0;
    for_each_tap(s, at, [&](std::int64_t place, std::int64_t from) {
      if (place == chosen) value = wide(x[from]);
    });
    y[to] = narrow<T>(value);
  }
}

template <typename T>
__global__ void pool_average(PoolShape s, bool last, std::int64_t count, const T* x, T* y) {
  PLIMSOLL_GRID_LOOP(i, count) {
    const At at = at_index(s, s.results, last, i);
    float sum = 0;
    for_each_tap(s, at, [&](std::int64_t, std::int64_t from) { sum += wide(x[from]); });
    const float counted = divisor(s, at);
    y[offset(s.result_steps, at)] = narrow<T>(counted > 0 ? sum / counted : sum);
  }
}

template <typename T>
__global__ void pool_average_gradient(PoolShape s, bool last, std::int64_t count, const T* dy,
                                      T* dx) {
  PLIMSOLL_GRID_LOOP(i, count) {
    const At at = at_index(s, s.data, last, i);
    float sum = 0;
    for_each_window(s, at, [&](std::int64_t, const At& result) {
      sum += wide(dy[offset(s.result_steps, result)]) / divisor(s, result);
    });
    dx[offset(s.data_steps, at)] = narrow<T>(sum);
  }
}

std::int64_t elements(const PoolShape& s, const std::int64_t* volume) {
  return s.batch * s.channels * volume[0] * volume[1] * volume[2];
}
bool is_last(const std::int64_t* steps) {
  return steps[1] == 1;
}

}  // namespace

void max_pool(Element type, const PoolShape& s, const void* x, void* y, void* places,
              cudaStream_t stream) {
  const std::int64_t count = elements(s, s.results);
  for_float(type, [&](auto element) {
    using T = decltype(element);
    pool_max<T><<<blocks_for(count), kBlockThreads, 0, stream>>>(
        s, is_last(s.result_steps), count, static_cast<const T*>(x), static_cast<T*>(y), places);
  });
}

void max_pool_gradient(Element type, const PoolShape& s, const void* dy, const void* places,
                       void* dx, cudaStream_t stream) {
  const std::int64_t count = elements(s, s.data);
  for_float(type, [&](auto element) {
    using T = decltype(element);
    pool_max_gradient<T><<<blocks_for(count), kBlockThreads, 0, stream>>>(
        s, is_last(s.data_steps), count, static_cast<const T*>(dy), places, static_cast<T*>(dx));
  });
}

void max_pool_select(Element type, const PoolShape& s, const void* x, const void* places, void* y,
                     cudaStream_t stream) {
  const std::int64_t count = elements(s, s.results);
  for_float(type, [&](auto element) {
    using T = decltype(element);
    pool_select<T><<<blocks_for(count), kBlockThreads, 0, stream>>>(
        s, is_last(s.result_steps), count, static_cast<const T*>(x), places, static_cast<T*>(y));
  });
}

void average_pool(Element type, const PoolShape& s, const void* x, void* y, cudaStream_t stream) {
  const std::int64_t count = elements(s, s.results);
  for_float(type, [&](auto element) {
    using T = decltype(element);
    pool_average<T><<<blocks_for(count), kBlockThreads, 0, stream>>>(
        s, is_last(s.result_steps), count, static_cast<const T*>(x), static_cast<T*>(y));
  });
}

void average_pool_gradient(Element type, const PoolShape& s, const void* dy, void* dx,
                           cudaStream_t stream) {
  const std::int64_t count = elements(s, s.data);
  for_float(type, [&](auto element) {
    using T = decltype(element);
    pool_average_gradient<T><<<blocks_for(count), kBlockThreads, 0, stream>>>(
        s, is_last(s.data_steps), count, static_cast<const T*>(dy), static_cast<T*>(dx));
  });
}

}  // namespace plimsoll::kernels::cuda

// Pooling: a thread for every result, or for every element that a gradient flows to (it looks at
// the windows that cover it, in order, so that no sum depends on a race). The usual case, pictures
// whose channels lie last in whole vectors, has kernels of its own: a thread to 16 bytes of
// channels, and indices of 32 bits.
#include <cmath>

#include "plimsoll/kernels/cuda/vectors.cuh"

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

// Pictures whose channels lie last: [batch, rows, columns, groups of kVectorSize<T> channels].
struct PicturePool {
  int groups;  // of channels
  int rows, columns, result_rows, result_columns;
  int kernel[2], strides[2], begins[2];
};

// Places of a vector's channels, one byte each.
template <int size>
struct alignas(size) Places {
  std::uint8_t at[size];
};

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    pool_max_pictures(PicturePool s, unsigned count, const T* x, T* y, std::uint8_t* places) {
  constexpr int kSize = kVectorSize<T>;
  const unsigned i = blockIdx.x * kBlockThreads + threadIdx.x;
  if (i >= count) return;
  const int group = static_cast<int>(i % s.groups);
  unsigned rest = i / s.groups;
  const int column = static_cast<int>(rest % s.result_columns);
  rest /= s.result_columns;
  const int row = static_cast<int>(rest % s.result_rows);
  const int picture = static_cast<int>(rest / s.result_rows);
  float best[kSize];
  int winner[kSize];
#pragma unroll
  for (int v = 0; v < kSize; ++v) {
    best[v] = -INFINITY;
    winner[v] = -1;
  }
  const int top = row * s.strides[0] - s.begins[0];
  const int left = column * s.strides[1] - s.begins[1];
  for (int ky = 0; ky < s.kernel[0]; ++ky) {
    if (top + ky < 0 || top + ky >= s.rows) continue;
    const std::int64_t line =
        (static_cast<std::int64_t>(picture) * s.rows + top + ky) * s.columns + left;
#pragma unroll 3
    for (int kx = 0; kx < s.kernel[1]; ++kx) {
      if (left + kx < 0 || left + kx >= s.columns) continue;
      Vector<T> part;
      part.load(x + ((line + kx) * s.groups + group) * kSize);
      const int place = ky * s.kernel[1] + kx;
#pragma unroll
      for (int v = 0; v < kSize; ++v) {
        const float value = part.at(v);
        if (winner[v] >= 0 && !(value > best[v] || value != value)) continue;
        winner[v] = place;
        best[v] = value;
      }
    }
  }
  Vector<T> out;
  Places<kSize> chosen;
#pragma unroll
  for (int v = 0; v < kSize; ++v) {
    out.set(v, best[v]);
    chosen.at[v] = static_cast<std::uint8_t>(winner[v] < 0 ? 0 : winner[v]);
  }
  const std::int64_t to = static_cast<std::int64_t>(i) * kSize;
  out.store(y + to);
  *reinterpret_cast<Places<kSize>*>(places + to) = chosen;
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    pool_max_gradient_pictures(PicturePool s, unsigned count, const T* dy,
                               const std::uint8_t* places, T* dx) {
  constexpr int kSize = kVectorSize<T>;
  const unsigned i = blockIdx.x * kBlockThreads + threadIdx.x;
  if (i >= count) return;
  const int group = static_cast<int>(i % s.groups);
  unsigned rest = i / s.groups;
  const int column = static_cast<int>(rest % s.columns) + s.begins[1];
  rest /= s.columns;
  const int row = static_cast<int>(rest % s.rows) + s.begins[0];
  const std::int64_t picture = static_cast<std::int64_t>(rest / s.rows) * s.result_rows;
  float sum[kSize] = {};
  // The results whose windows cover this place, the first place in a window first.
  for (int ky = row % s.strides[0]; ky < s.kernel[0]; ky += s.strides[0]) {
    const int result_row = (row - ky) / s.strides[0];
    if (row < ky || result_row >= s.result_rows) continue;
    for (int kx = column % s.strides[1]; kx < s.kernel[1]; kx += s.strides[1]) {
      const int result_column = (column - kx) / s.strides[1];
      if (column < kx || result_column >= s.result_columns) continue;
      const std::int64_t from =
          (((picture + result_row) * s.result_columns + result_column) * s.groups + group) * kSize;
      Vector<T> part;
      part.load(dy + from);
      const auto chosen = *reinterpret_cast<const Places<kSize>*>(places + from);
      const int place = ky * s.kernel[1] + kx;
#pragma unroll
      for (int v = 0; v < kSize; ++v) sum[v] += chosen.at[v] == place ? part.at(v) : 0;
    }
  }
  Vector<T> out;
#pragma unroll
  for (int v = 0; v < kSize; ++v) out.set(v, sum[v]);
  out.store(dx + static_cast<std::int64_t>(i) * kSize);
}

// Whether the kernels for pictures take it; both tensors lie channels last.
bool takes_pictures(const PoolShape& s, int size) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  const bool one_plane = s.data[0] == 1 && s.kernel[0] == 1 && s.results[0] == 1;
  const bool plain = s.dilations[1] == 1 && s.dilations[2] == 1 && !s.wide_places;
  const bool last = s.data_steps[1] == 1 && s.result_steps[1] == 1 &&
                    s.data_steps[4] == s.channels && s.result_steps[4] == s.channels;
  return one_plane && plain && last && s.channels % size == 0 &&
         s.batch * s.channels * s.data[1] * s.data[2] / size < kMost &&
         s.batch * s.channels * s.results[1] * s.results[2] / size < kMost;
}

PicturePool picture_pool(const PoolShape& s, int size) {
  PicturePool out{};
  out.groups = static_cast<int>(s.channels / size);
  out.rows = static_cast<int>(s.data[1]);
  out.columns = static_cast<int>(s.data[2]);
  out.result_rows = static_cast<int>(s.results[1]);
  out.result_columns = static_cast<int>(s.results[2]);
  for (int axis = 0; axis < 2; ++axis) {
    out.kernel[axis] = static_cast<int>(s.kernel[axis + 1]);
    out.strides[axis] = static_cast<int>(s.strides[axis + 1]);
    out.begins[axis] = static_cast<int>(s.begins[axis + 1]);
  }
  return out;
}

unsigned block_for_each(std::int64_t count) {
  return static_cast<unsigned>((count + kBlockThreads - 1) / kBlockThreads);
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
    constexpr int kSize = kVectorSize<T>;
    if (takes_pictures(s, kSize)) {
      if (count == 0) return;
      pool_max_pictures<T><<<block_for_each(count / kSize), kBlockThreads, 0, stream>>>(
          picture_pool(s, kSize), static_cast<unsigned>(count / kSize), static_cast<const T*>(x),
          static_cast<T*>(y), static_cast<std::uint8_t*>(places));
      return;
    }
    pool_max<T><<<blocks_for(count), kBlockThreads, 0, stream>>>(
        s, is_last(s.result_steps), count, static_cast<const T*>(x), static_cast<T*>(y), places);
  });
}

void max_pool_gradient(Element type, const PoolShape& s, const void* dy, const void* places,
                       void* dx, cudaStream_t stream) {
  const std::int64_t count = elements(s, s.data);
  for_float(type, [&](auto element) {
    using T = decltype(element);
    constexpr int kSize = kVectorSize<T>;
    if (takes_pictures(s, kSize)) {
      if (count == 0) return;
      pool_max_gradient_pictures<T><<<block_for_each(count / kSize), kBlockThreads, 0, stream>>>(
          picture_pool(s, kSize), static_cast<unsigned>(count / kSize), static_cast<const T*>(dy),
          static_cast<const std::uint8_t*>(places), static_cast<T*>(dx));
      return;
    }
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

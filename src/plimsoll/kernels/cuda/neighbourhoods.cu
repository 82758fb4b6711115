// Kernels that look at an element's neighbours: pads by mode, windows of channels, resizing.
#include <cmath>

#include "plimsoll/kernels/cuda/elements.cuh"

namespace plimsoll::kernels::cuda {
namespace {

// Pads --------------------------------------------------------------------------------------------

__device__ std::int64_t modulo(std::int64_t a, std::int64_t n) {
  const std::int64_t rest = a % n;
  return rest < 0 ? rest + n : rest;
}

__device__ std::int64_t origin(PadMode mode, std::int64_t i, std::int64_t n) {
  if (i >= 0 && i < n) return i;
  if (mode == PadMode::kEdge) return i < 0 ? 0 : n - 1;
  if (mode == PadMode::kWrap) return modulo(i, n);
  if (n == 1) return 0;
  const std::int64_t period = 2 * (n - 1);
  const std::int64_t place = modulo(i, period);
  return place < n ? place : period - place;
}

template <typename Word>
__global__ void pad_words(PadMode mode, PadShape s, std::int64_t count, const Word* x, Word* y) {
  PLIMSOLL_GRID_LOOP(i, count) {
    std::int64_t rest = i;
    std::int64_t at = 0;
    std::int64_t step = 1;
    for (int axis = s.rank - 1; axis >= 0; --axis) {
      at += origin(mode, rest % s.y[axis] - s.before[axis], s.x[axis]) * step;
      rest /= s.y[axis];
      step *= s.x[axis];
    }
    y[i] = x[at];
  }
}

// Windows of channels -----------------------------------------------------------------------------

struct ChannelPlace {
  std::int64_t first, channel;  // of channel 0
};
__device__ ChannelPlace channel_place(const ChannelWindows& s, std::int64_t i) {
  // In the order of memory.
  std::int64_t channel;
  std::int64_t inside;
  if (s.channel_step == 1) {
    channel = i % s.channels;
    inside = i / s.channels % s.plane;
  } else {
    inside = i % s.plane;
    channel = i / s.plane % s.channels;
  }
  return {i / (s.plane * s.channels) * s.batch_step + inside * s.plane_step, channel};
}

// k + alpha/size * the sum of squares over c's window.
template <typename T>
__device__ float denominator(const ChannelWindows& s, const T* x, std::int64_t first,
                             std::int64_t c) {
  const std::int64_t begin = c - s.below > 0 ? c - s.below : 0;
  const std::int64_t end = c + s.above < s.channels - 1 ? c + s.above : s.channels - 1;
  float sum = 0;
  for (std::int64_t other = begin; other <= end; ++other) {
    const float value = wide(x[first + other * s.channel_step]);
    sum += value * value;
  }
  return static_cast<float>(s.k) + static_cast<float>(s.alpha_each) * sum;
}

template <typename T>
__global__ void normalise_windows(ChannelWindows s, const T* x, T* y) {
  PLIMSOLL_GRID_LOOP(i, s.batch * s.channels * s.plane) {
    const ChannelPlace place = channel_place(s, i);
    const std::int64_t at = place.first + place.channel * s.channel_step;
    const float below = denominator(s, x, place.first, place.channel);
    y[at] = narrow<T>(wide(x[at]) * powf(below, -static_cast<float>(s.beta)));
  }
}

template <typename T>
__global__ void window_terms(ChannelWindows s, const T* dy, const T* x, float* terms) {
  PLIMSOLL_GRID_LOOP(i, s.batch * s.channels * s.plane) {
    const ChannelPlace place = channel_place(s, i);
    const std::int64_t at = place.first + place.channel * s.channel_step;
    const float below = denominator(s, x, place.first, place.channel);
    terms[at] = wide(dy[at]) * wide(x[at]) * powf(below, -static_cast<float>(s.beta) - 1);
  }
}

// The turned window: the channels whose window has c.
template <typename T>
__global__ void normalise_windows_gradient(ChannelWindows s, const T* dy, const T* x,
                                           const float* terms, T* dx) {
  PLIMSOLL_GRID_LOOP(i, s.batch * s.channels * s.plane) {
    const ChannelPlace place = channel_place(s, i);
    const std::int64_t c = place.channel;
    const std::int64_t at = place.first + c * s.channel_step;
    const std::int64_t begin = c - s.above > 0 ? c - s.above : 0;
    const std::int64_t end = c + s.below < s.channels - 1 ? c + s.below : s.channels - 1;
    float sum = 0;
    for (std::int64_t other = begin; other <= end; ++other)
      sum += terms[place.first + other * s.channel_step];
    const float below = denominator(s, x, place.first, c);
    const float factor = 2 * static_cast<float>(s.alpha_each) * static_cast<float>(s.beta);
    dx[at] = narrow<T>(wide(dy[at]) * powf(below, -static_cast<float>(s.beta)) -
                       factor * wide(x[at]) * sum);
  }
}

// Resizing ----------------------------------------------------------------------------------------

struct Tap {
  std::int64_t first, second;
  float weight;  // of the second
};

// ops::taps_of in the same arithmetic.
__device__ Tap tap_of(const ResizeShape& s, int axis, std::int64_t i) {
  const auto n = static_cast<double>(s.from[axis]);
  const auto m = static_cast<double>(s.to[axis]);
  const auto at = static_cast<double>(i);
  double place;
  if (s.from[axis] == s.to[axis]) {
    place = at;
  } else if (s.place == ResizePlace::kAsymmetric) {
    place = at * n / m;
  } else if (s.place == ResizePlace::kAlignCorners) {
    place = s.to[axis] == 1 ? 0 : at * (n - 1) / (m - 1);
  } else if (s.place == ResizePlace::kPytorchHalfPixel && s.to[axis] == 1) {
    place = 0;
  } else {
    place = (at + 0.5) * n / m - 0.5;
  }
  if (!s.linear) {
    switch (s.rounding) {
      case ResizeRounding::kFloor:
        place = floor(place);
        break;
      case ResizeRounding::kCeil:
        place = ceil(place);
        break;
      case ResizeRounding::kPreferCeil:
        place = floor(place + 0.5);
        break;
      case ResizeRounding::kPreferFloor:
        place = ceil(place - 0.5);
        break;
    }
  }
  const double inside = place < 0 ? 0 : place > n - 1 ? n - 1 : place;
  const auto first = static_cast<std::int64_t>(inside);
  const std::int64_t second = first + 1 < s.from[axis] ? first + 1 : s.from[axis] - 1;
  return {first, second, static_cast<float>(inside - static_cast<double>(first))};
}

template <typename T>
__global__ void resize_elements(ResizeShape s, std::int64_t count, const T* x, T* y) {
  PLIMSOLL_GRID_LOOP(i, count) {
    Tap taps[8];
    std::int64_t rest = i;
    int corners = 0;  // bit per axis that is interpolated
    for (int axis = s.rank - 1; axis >= 0; --axis) {
      taps[axis] = tap_of(s, axis, rest % s.to[axis]);
      rest /= s.to[axis];
      if (taps[axis].weight != 0) corners |= 1 << axis;
    }
    float sum = 0;
    for (int corner = 0; corner < 1 << s.rank; ++corner) {
      if ((corner & ~corners) != 0) continue;
      std::int64_t at = 0;
      std::int64_t step = 1;
      float weight = 1;
      for (int axis = s.rank - 1; axis >= 0; --axis) {
        const bool second = (corner >> axis) & 1;
        at += (second ? taps[axis].second : taps[axis].first) * step;
        weight *= second ? taps[axis].weight : 1 - taps[axis].weight;
        step *= s.from[axis];
      }
      sum += weight * wide(x[at]);
    }
    y[i] = narrow<T>(sum);
  }
}

// What position p of the data gets from result i of an axis.
__device__ float share_of(const ResizeShape& s, int axis, std::int64_t p, std::int64_t i) {
  const Tap tap = tap_of(s, axis, i);
  float out = 0;
  if (tap.first == p) out += 1 - tap.weight;
  if (tap.second == p) out += tap.weight;
  return out;
}

// The results [begin, end) that may read position p: places grow with i, so a margin of two
// positions on either side holds them.
__device__ void readers_of(const ResizeShape& s, int axis, std::int64_t p, std::int64_t& begin,
                           std::int64_t& end) {
  const double scale = static_cast<double>(s.to[axis]) / static_cast<double>(s.from[axis]);
  const double stretch =
      s.place == ResizePlace::kAlignCorners && s.from[axis] > 1
          ? static_cast<double>(s.to[axis] - 1) / static_cast<double>(s.from[axis] - 1)
          : scale;
  // The edges collect everything outside.
  begin = p == 0 ? 0 : static_cast<std::int64_t>(floor((static_cast<double>(p) - 2) * stretch)) - 1;
  end = p == s.from[axis] - 1
            ? s.to[axis]
            : static_cast<std::int64_t>(ceil((static_cast<double>(p) + 3) * stretch)) + 1;
  begin = begin < 0 ? 0 : begin;
  end = end > s.to[axis] ? s.to[axis] : end;
}

template <typename T>
__global__ void resize_elements_gradient(ResizeShape s, std::int64_t count, const T* dy, T* dx) {
  PLIMSOLL_GRID_LOOP(i, count) {
    std::int64_t at[8];
    std::int64_t begin[8];
    std::int64_t end[8];
    std::int64_t index[8];
    std::int64_t rest = i;
    bool any = true;
    for (int axis = s.rank - 1; axis >= 0; --axis) {
      at[axis] = rest % s.from[axis];
      rest /= s.from[axis];
      if (s.from[axis] == s.to[axis]) {
        begin[axis] = at[axis];
        end[axis] = at[axis] + 1;
      } else {
        readers_of(s, axis, at[axis], begin[axis], end[axis]);
      }
      index[axis] = begin[axis];
      any = any && begin[axis] < end[axis];
    }
    float sum = 0;
    while (any) {
      float weight = 1;
      std::int64_t from = 0;
      for (int axis = 0; axis < s.rank; ++axis) {
        if (s.from[axis] != s.to[axis] && weight != 0)
          weight *= share_of(s, axis, at[axis], index[axis]);
        from = from * s.to[axis] + index[axis];
      }
      if (weight != 0) sum += weight * wide(dy[from]);
      int axis = s.rank - 1;
      for (; axis >= 0; --axis) {
        if (++index[axis] < end[axis]) break;
        index[axis] = begin[axis];
      }
      any = axis >= 0;
    }
    dx[i] = narrow<T>(sum);
  }
}

std::int64_t elements(int rank, const std::int64_t* extents) {
  std::int64_t out = 1;
  for (int axis = 0; axis < rank; ++axis) out *= extents[axis];
  return out;
}

}  // namespace

void pad_by_mode(PadMode mode, const PadShape& s, std::int64_t width, const void* x, void* y,
                 cudaStream_t stream) {
  const std::int64_t count = elements(s.rank, s.y);
  for_width(width, [&](auto word) {
    using Word = decltype(word);
    pad_words<Word><<<blocks_for(count), kBlockThreads, 0, stream>>>(
        mode, s, count, static_cast<const Word*>(x), static_cast<Word*>(y));
  });
}

void normalise_channels(Element type, const ChannelWindows& s, const void* x, void* y,
                        cudaStream_t stream) {
  const unsigned blocks = blocks_for(s.batch * s.channels * s.plane);
  for_float(type, [&](auto element) {
    using T = decltype(element);
    normalise_windows<T>
        <<<blocks, kBlockThreads, 0, stream>>>(s, static_cast<const T*>(x), static_cast<T*>(y));
  });
}

void normalise_channels_gradient(Element type, const ChannelWindows& s, const void* dy,
                                 const void* x, void* dx, float* terms, cudaStream_t stream) {
  const unsigned blocks = blocks_for(s.batch * s.channels * s.plane);
  for_float(type, [&](auto element) {
    using T = decltype(element);
    const auto* adjoint = static_cast<const T*>(dy);
    const auto* from = static_cast<const T*>(x);
    window_terms<T><<<blocks, kBlockThreads, 0, stream>>>(s, adjoint, from, terms);
    normalise_windows_gradient<T>
        <<<blocks, kBlockThreads, 0, stream>>>(s, adjoint, from, terms, static_cast<T*>(dx));
  });
}

void resize(Element type, const ResizeShape& s, const void* x, void* y, cudaStream_t stream) {
  const std::int64_t count = elements(s.rank, s.to);
  for_float(type, [&](auto element) {
    using T = decltype(element);
    resize_elements<T><<<blocks_for(count), kBlockThreads, 0, stream>>>(
        s, count, static_cast<const T*>(x), static_cast<T*>(y));
  });
}

void resize_gradient(Element type, const ResizeShape& s, const void* dy, void* dx,
                     cudaStream_t stream) {
  const std::int64_t count = elements(s.rank, s.from);
  for_float(type, [&](auto element) {
    using T = decltype(element);
    resize_elements_gradient<T><<<blocks_for(count), kBlockThreads, 0, stream>>>(
        s, count, static_cast<const T*>(dy), static_cast<T*>(dx));
  });
}

}  // namespace plimsoll::kernels::cuda

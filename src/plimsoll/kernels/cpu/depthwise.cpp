#include "plimsoll/kernels/cpu/depthwise.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "plimsoll/base/checked.h"
#include "plimsoll/base/interval.h"
#include "plimsoll/kernels/cpu/column_sums.h"
#include "plimsoll/kernels/cpu/image_axes.h"
#include "plimsoll/kernels/cpu/parallel.h"
#include "plimsoll/kernels/cpu/vectorize.h"
#include "plimsoll/ops/elementwise/fused_relu.h"

namespace plimsoll::kernels {
namespace {

constexpr std::int64_t kBlock = 64;       // channels of a task
constexpr std::int64_t kLeastTasks = 32;  // of a weights' gradient

template <int kWidth>
struct LanesOf {
  typedef float Type __attribute__((vector_size(kWidth * sizeof(float))));
};
template <>
struct LanesOf<1> {
  using Type = float;
};
template <int kWidth>
using Lanes = typename LanesOf<kWidth>::Type;

template <typename V>
PLIMSOLL_INLINE void load_lanes(V& to, const float* from) {
  std::memcpy(&to, from, sizeof(V));
}
template <typename V>
PLIMSOLL_INLINE void store_lanes(float* to, const V& from) {
  std::memcpy(to, &from, sizeof(V));
}

// --- Results: y, and dx at stride 1 -------------------------------------------------------------

struct ResultRow {
  const float* x;     // the image
  const float* w;     // [tap][channel]
  const float* bias;  // by channel
  float least;        // of a result: 0 with ReLU
  float* y;           // the row
  std::int64_t row;
};

// `kPlaces` neighbours of `kVectors` vectors of channels each, taps [first, last) of every row.
template <int kWidth, int kVectors, int kPlaces>
PLIMSOLL_INLINE void sum_places(const Images& g, const ResultRow& r, std::int64_t c,
                                std::int64_t column, std::int64_t first, std::int64_t last) {
  using V = Lanes<kWidth>;
  V sums[kPlaces][kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    load_lanes(sums[0][v], r.bias + c + v * kWidth);
#pragma GCC unroll 8
    for (int p = 1; p < kPlaces; ++p) sums[p][v] = sums[0][v];
  }
  const std::int64_t step = g.columns.stride * g.channels;
  const std::int64_t top = g.rows.last_tap(r.row);
  for (std::int64_t i = g.rows.first_tap(r.row); i < top; ++i) {
    const float* x = r.x + g.rows.place(r.row, i) * g.data_row() +
                     g.columns.place(column, first) * g.channels + c;
    const float* w = r.w + (i * g.columns.taps + first) * g.channels + c;
    for (std::int64_t j = first; j < last; ++j) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        V weight;
        load_lanes(weight, w + v * kWidth);
#pragma GCC unroll 8
        for (int p = 0; p < kPlaces; ++p) {
          V data;
          load_lanes(data, x + p * step + v * kWidth);
          sums[p][v] += data * weight;
        }
      }
      x += g.columns.dilation * g.channels;
      w += g.channels;
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < kPlaces; ++p) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const V bounded = sums[p][v] < r.least ? V{} + r.least : sums[p][v];
      store_lanes(r.y + (column + p) * g.channels + c + v * kWidth, bounded);
    }
  }
}

template <int kWidth, int kVectors>
PLIMSOLL_INLINE void sum_row(const Images& g, const ResultRow& r, std::int64_t c) {
  constexpr int kPlaces = 6;
  const ImageAxis& columns = g.columns;
  const std::int64_t begin = columns.first_whole(0);
  const std::int64_t end = std::max(begin, columns.last_whole(columns.taps));
  std::int64_t column = 0;
  const auto alone = [&](std::int64_t until) __attribute__((always_inline)) {
    for (; column < until; ++column)
      sum_places<kWidth, kVectors, 1>(g, r, c, column, columns.first_tap(column),
                                      columns.last_tap(column));
  };
  alone(begin);
  for (; column + kPlaces <= end; column += kPlaces) {
    for (int v = 0; v < kVectors; ++v)
      sum_places<kWidth, 1, kPlaces>(g, r, c + v * kWidth, column, 0, columns.taps);
  }
  alone(columns.results);
}

PLIMSOLL_VECTORIZED void depthwise_row(const Images& g, const ResultRow& r) {
  std::int64_t c = 0;
  for (; c + 64 <= g.channels; c += 64) sum_row<16, 4>(g, r, c);
  for (; c + 16 <= g.channels; c += 16) sum_row<16, 1>(g, r, c);
  if (c + 8 <= g.channels) {
    sum_row<8, 1>(g, r, c);
    c += 8;
  }
  for (; c < g.channels; ++c) sum_row<1, 1>(g, r, c);
}

// --- The data gradient at other strides ---------------------------------------------------------

// Row `row` of dx: at each place, the results that read it. No dilation here.
template <int kWidth, int kVectors>
PLIMSOLL_INLINE void gather_row(const Images& g, const float* dy, const float* w, float* dx,
                                std::int64_t row, std::int64_t c) {
  using V = Lanes<kWidth>;
  const auto readers =
      [](const ImageAxis& axis, std::int64_t place) __attribute__((always_inline)) {
    const std::int64_t missing = place + axis.before - (axis.taps - 1);
    struct {
      std::int64_t begin, end;
    } out{missing <= 0 ? 0 : ceil_div(missing, axis.stride),
          std::min(axis.results, (place + axis.before) / axis.stride + 1)};
    return out;
  };
  const auto rows = readers(g.rows, row);
  for (std::int64_t column = 0; column < g.columns.data; ++column) {
    const auto columns = readers(g.columns, column);
    V sums[kVectors] = {};
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
      const std::int64_t down = row + g.rows.before - i * g.rows.stride;
      for (std::int64_t j = columns.begin; j < columns.end; ++j) {
        const std::int64_t along = column + g.columns.before - j * g.columns.stride;
        const float* from = dy + i * g.result_row() + j * g.channels + c;
        const float* filter = w + (down * g.columns.taps + along) * g.channels + c;
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          V result;
          V weight;
          load_lanes(result, from + v * kWidth);
          load_lanes(weight, filter + v * kWidth);
          sums[v] += result * weight;
        }
      }
    }
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v)
      store_lanes(dx + column * g.channels + c + v * kWidth, sums[v]);
  }
}

PLIMSOLL_VECTORIZED void depthwise_gather_row(const Images& g, const float* dy, const float* w,
                                              float* dx, std::int64_t row) {
  std::int64_t c = 0;
  for (; c + 64 <= g.channels; c += 64) gather_row<16, 4>(g, dy, w, dx, row, c);
  for (; c + 16 <= g.channels; c += 16) gather_row<16, 1>(g, dy, w, dx, row, c);
  if (c + 8 <= g.channels) {
    gather_row<8, 1>(g, dy, w, dx, row, c);
    c += 8;
  }
  for (; c < g.channels; ++c) gather_row<1, 1>(g, dy, w, dx, row, c);
}

// --- The weights' gradient ----------------------------------------------------------------------

// One row of results and one row of the filter. Sums lie [tap][kBlock].
struct TapRow {
  const float* x;   // the row of data under this row of the filter, at the first channel
  const float* dy;  // the row of results, at the first channel
  float* sums;      // of this row of the filter
};

// Taps [first, first + kTaps) of `kVectors` vectors.
template <int kWidth, int kVectors, int kTaps>
PLIMSOLL_INLINE void add_taps(const Images& g, const TapRow& r, std::int64_t first) {
  using V = Lanes<kWidth>;
  const ImageAxis& columns = g.columns;
  const std::int64_t begin = columns.first_whole(first);
  const std::int64_t end = std::max(begin, columns.last_whole(first + kTaps));
  const std::int64_t apart = columns.dilation * g.channels;
  V sums[kTaps][kVectors];
#pragma GCC unroll 8
  for (int k = 0; k < kTaps; ++k) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v)
      load_lanes(sums[k][v], r.sums + (first + k) * kBlock + v * kWidth);
  }
  for (std::int64_t column = begin; column < end; ++column) {
    const float* x = r.x + columns.place(column, first) * g.channels;
    const float* dy = r.dy + column * g.channels;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      V result;
      load_lanes(result, dy + v * kWidth);
#pragma GCC unroll 8
      for (int k = 0; k < kTaps; ++k) {
        V data;
        load_lanes(data, x + k * apart + v * kWidth);
        sums[k][v] += data * result;
      }
    }
  }
#pragma GCC unroll 8
  for (int k = 0; k < kTaps; ++k) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v)
      store_lanes(r.sums + (first + k) * kBlock + v * kWidth, sums[k][v]);
  }
  const auto alone = [&](std::int64_t column, std::int64_t until) __attribute__((always_inline)) {
    for (; column < until; ++column) {
      const std::int64_t last = std::min(first + kTaps, columns.last_tap(column));
      for (std::int64_t k = std::max(first, columns.first_tap(column)); k < last; ++k) {
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          V data;
          V result;
          V sum;
          float* at = r.sums + k * kBlock + v * kWidth;
          load_lanes(data, r.x + columns.place(column, k) * g.channels + v * kWidth);
          load_lanes(result, r.dy + column * g.channels + v * kWidth);
          load_lanes(sum, at);
          sum += data * result;
          store_lanes(at, sum);
        }
      }
    }
  };
  alone(0, begin);
  alone(end, columns.results);
}

template <int kWidth, int kVectors>
PLIMSOLL_INLINE void add_tap_row(const Images& g, const TapRow& r) {
  const auto at = [&](int v) __attribute__((always_inline)) {
    return TapRow{r.x + v * kWidth, r.dy + v * kWidth, r.sums + v * kWidth};
  };
  const std::int64_t taps = g.columns.taps;
  std::int64_t first = 0;
  // Few sums to a row of the filter: two vectors at a time hide the latency of adding.
  constexpr int kPair = kVectors % 2 == 0 ? 2 : 1;
  for (; first + 7 <= taps; first += 7) {
    for (int v = 0; v < kVectors; ++v) add_taps<kWidth, 1, 7>(g, at(v), first);
  }
  if (first + 5 <= taps) {
    for (int v = 0; v < kVectors; ++v) add_taps<kWidth, 1, 5>(g, at(v), first);
    first += 5;
  }
  if (first + 3 <= taps) {
    for (int v = 0; v < kVectors; v += kPair) add_taps<kWidth, kPair, 3>(g, at(v), first);
    first += 3;
  }
  for (; first < taps; ++first) {
    for (int v = 0; v < kVectors; v += kPair) add_taps<kWidth, kPair, 1>(g, at(v), first);
  }
}

template <int kWidth, int kVectors>
PLIMSOLL_INLINE void add_bias_row(const Images& g, const float* dy, float* to) {
  using V = Lanes<kWidth>;
  V sums[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) load_lanes(sums[v], to + v * kWidth);
  for (std::int64_t column = 0; column < g.columns.results; ++column) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      V result;
      load_lanes(result, dy + column * g.channels + v * kWidth);
      sums[v] += result;
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) store_lanes(to + v * kWidth, sums[v]);
}

struct WeightTask {
  const float* x;
  const float* dy;
  float* sums;  // [tap][kBlock], then the bias's row where asked
  bool bias;
  Interval<std::int64_t> rows;  // of results, over all images
  Interval<std::int64_t> channels;
};

// `kVectors` vectors from channel c on, all rows of the task.
template <int kWidth, int kVectors>
PLIMSOLL_INLINE void add_channels(const Images& g, const WeightTask& task, std::int64_t c) {
  const std::int64_t lane = c - task.channels.begin;
  for (std::int64_t r = task.rows.begin; r < task.rows.end; ++r) {
    const std::int64_t image = r / g.rows.results;
    const std::int64_t row = r % g.rows.results;
    const float* x = task.x + image * g.rows.data * g.data_row() + c;
    const float* dy = task.dy + r * g.result_row() + c;
    const std::int64_t last = g.rows.last_tap(row);
    for (std::int64_t i = g.rows.first_tap(row); i < last; ++i) {
      add_tap_row<kWidth, kVectors>(g, {x + g.rows.place(row, i) * g.data_row(), dy,
                                        task.sums + i * g.columns.taps * kBlock + lane});
    }
    if (task.bias) add_bias_row<kWidth, kVectors>(g, dy, task.sums + g.taps() * kBlock + lane);
  }
}

PLIMSOLL_VECTORIZED void depthwise_weight_sums(const Images& g, const WeightTask& task) {
  std::int64_t c = task.channels.begin;
  for (; c + 64 <= task.channels.end; c += 64) add_channels<16, 4>(g, task, c);
  for (; c + 32 <= task.channels.end; c += 32) add_channels<16, 2>(g, task, c);
  for (; c + 16 <= task.channels.end; c += 16) add_channels<16, 1>(g, task, c);
  if (c + 8 <= task.channels.end) {
    add_channels<8, 1>(g, task, c);
    c += 8;
  }
  for (; c < task.channels.end; ++c) add_channels<1, 1>(g, task, c);
}

// Channel blocks times ranges of rows, enough for many threads, as the shape says.
struct WeightTasks {
  std::int64_t blocks = 1;
  std::int64_t chunks = 1;
  std::int64_t grain = 1;     // rows of a chunk
  std::int64_t elements = 0;  // of the sums of a task

  WeightTasks(const Images& g, bool bias) : blocks(ceil_div(g.channels, kBlock)) {
    const std::int64_t rows = g.batch * g.rows.results;
    grain = ceil_div(rows, std::clamp<std::int64_t>(ceil_div(kLeastTasks, blocks), 1, rows));
    chunks = ceil_div(rows, grain);
    elements = (g.taps() + (bias ? 1 : 0)) * kBlock;
  }
  Bytes scratch() const { return Bytes(blocks * chunks * elements * 4); }
};

void run_weights(const Images& g, const WeightTasks& tasks, const Arguments& a) {
  const bool bias = a.outputs.size() > 1;
  const std::int64_t rows = g.batch * g.rows.results;
  auto* partial = scratch<float>(a);
  parallel_each(tasks.blocks * tasks.chunks, [&](std::int64_t t) {
    const std::int64_t chunk = t / tasks.blocks;
    const std::int64_t block = t % tasks.blocks;
    float* sums = partial + t * tasks.elements;
    std::memset(sums, 0, static_cast<std::size_t>(tasks.elements) * sizeof(float));
    depthwise_weight_sums(g, {input<float>(a, 0),
                              input<float>(a, 1),
                              sums,
                              bias,
                              {chunk * tasks.grain, std::min(rows, (chunk + 1) * tasks.grain)},
                              {block * kBlock, std::min(g.channels, (block + 1) * kBlock)}});
  });
  parallel_each(tasks.blocks, [&](std::int64_t block) {
    float* sums = partial + block * tasks.elements;
    for (std::int64_t chunk = 1; chunk < tasks.chunks; ++chunk)
      add_range(partial + (chunk * tasks.blocks + block) * tasks.elements, sums, tasks.elements);
    const std::int64_t first = block * kBlock;
    const std::int64_t count = std::min(kBlock, g.channels - first);
    for (std::int64_t c = 0; c < count; ++c) {
      float* out = output<float>(a) + (first + c) * g.taps();
      for (std::int64_t tap = 0; tap < g.taps(); ++tap) out[tap] = sums[tap * kBlock + c];
    }
    if (bias) {
      std::memcpy(output<float>(a, 1) + first, sums + g.taps() * kBlock,
                  static_cast<std::size_t>(count) * sizeof(float));
    }
  });
}

// --- What a node says ---------------------------------------------------------------------------

// [channel][tap] to [tap][channel], the taps from last to first where `backwards`.
void turn_filters(const Images& g, const float* w, float* to, bool backwards) {
  const std::int64_t taps = g.taps();
  parallel_ranges(g.channels, std::max<std::int64_t>(1, kElementGrain / taps),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t tap = 0; tap < taps; ++tap) {
                      float* row = to + (backwards ? taps - 1 - tap : tap) * g.channels;
                      for (std::int64_t c = begin; c < end; ++c) row[c] = w[c * taps + tap];
                    }
                  });
}

void run_rows(const Images& g, const float* x, const float* w, const float* bias, float least,
              float* y) {
  parallel_each(g.batch * g.rows.results, [&](std::int64_t r) {
    const std::int64_t image = r / g.rows.results;
    depthwise_row(g, {x + image * g.rows.data * g.data_row(), w, bias, least,
                      y + r * g.result_row(), r % g.rows.results});
  });
}

std::unique_ptr<Kernel> make_results(const Site& site) {
  const Images g = images_of(site, ConvolutionDirection::kForward);
  const bool bias = site.has(2);
  const float least =
      ops::has_relu(site.attributes()) ? 0.0F : -std::numeric_limits<float>::infinity();
  return make_kernel(
      site,
      [=](const Arguments& a) {
        auto* filters = scratch<float>(a);
        float* zeros = filters + g.taps() * g.channels;
        turn_filters(g, input<float>(a, 1), filters, false);
        if (!bias) std::memset(zeros, 0, static_cast<std::size_t>(g.channels) * sizeof(float));
        run_rows(g, input<float>(a, 0), filters, bias ? input<float>(a, 2) : zeros, least,
                 output<float>(a));
      },
      Bytes((g.taps() + (bias ? 0 : 1)) * g.channels * 4));
}

std::unique_ptr<Kernel> make_data_gradient(const Site& site) {
  const Images g = images_of(site, ConvolutionDirection::kInputGradient);
  const Images back = turned(g);
  const bool plain = g.rows.stride == 1 && g.columns.stride == 1;
  return make_kernel(
      site,
      [=](const Arguments& a) {
        auto* filters = scratch<float>(a);
        float* zeros = filters + g.taps() * g.channels;
        turn_filters(g, input<float>(a, 1), filters, plain);
        const auto* dy = input<float>(a, 0);
        auto* dx = output<float>(a);
        if (plain) {
          std::memset(zeros, 0, static_cast<std::size_t>(g.channels) * sizeof(float));
          run_rows(back, dy, filters, zeros, -std::numeric_limits<float>::infinity(), dx);
          return;
        }
        parallel_each(g.batch * g.rows.data, [&](std::int64_t r) {
          depthwise_gather_row(g, dy + r / g.rows.data * g.rows.results * g.result_row(), filters,
                               dx + r * g.data_row(), r % g.rows.data);
        });
      },
      Bytes((g.taps() + 1) * g.channels * 4));
}

std::unique_ptr<Kernel> make_weight_gradient(const Site& site) {
  const Images g = images_of(site, ConvolutionDirection::kWeightGradient);
  const WeightTasks tasks(g, site.outputs() > 1);
  return make_kernel(
      site, [=](const Arguments& a) { run_weights(g, tasks, a); }, tasks.scratch());
}

}  // namespace

bool is_depthwise(const Site& site, ConvolutionDirection direction) {
  const ConvolutionTensors t = convolution_tensors(site, direction);
  if (!are_plain_images(t)) return false;
  const std::int64_t group = site.attributes().integer("group");
  if (group < 8 || t.x.shape[1] != group || t.w.shape[0] != group || t.w.shape[1] != 1)
    return false;
  const Images g = images_of(site, direction);
  const bool strides = g.rows.stride > 1 || g.columns.stride > 1;
  return direction != ConvolutionDirection::kInputGradient || !strides ||
         (g.rows.dilation == 1 && g.columns.dilation == 1);
}

std::unique_ptr<Kernel> make_depthwise(const Site& site, ConvolutionDirection direction) {
  switch (direction) {
    case ConvolutionDirection::kForward:
      return make_results(site);
    case ConvolutionDirection::kInputGradient:
      return make_data_gradient(site);
    case ConvolutionDirection::kWeightGradient:
      break;
  }
  return make_weight_gradient(site);
}

}  // namespace plimsoll::kernels

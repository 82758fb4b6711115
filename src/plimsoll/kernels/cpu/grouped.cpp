#include "plimsoll/kernels/cpu/grouped.h"

#include <cstring>
#include <limits>

#include "plimsoll/base/interval.h"
#include "plimsoll/kernels/cpu/column_sums.h"
#include "plimsoll/kernels/cpu/image_axes.h"
#include "plimsoll/kernels/cpu/parallel.h"
#include "plimsoll/kernels/cpu/vectorize.h"
#include "plimsoll/ops/elementwise/fused_relu.h"

namespace plimsoll::kernels {
namespace {

constexpr int kEight = 8;
constexpr int kMostVectors = 4;
constexpr int kChannelTile = 4;
constexpr std::int64_t kLeastGroupTasks = 32;

using Eight [[gnu::vector_size(kEight * sizeof(float))]] = float;

// A convolution in groups: of each, how many channels of the data and filters.
struct GroupedImages {
  Images images;
  std::int64_t count = 1;
  std::int64_t in = 0;
  std::int64_t out = 0;

  GroupedImages(const Images& g, std::int64_t groups)
      : images(g), count(groups), in(g.channels / groups), out(g.filters / groups) {}
  int vectors() const { return static_cast<int>(ceil_div(out, kEight)); }
  std::int64_t padded() const { return vectors() * kEight; }
  std::int64_t filter_elements() const { return images.taps() * in * padded(); }  // of one group
};

// Filters come in fours: the last vector of a group is whole or half.
PLIMSOLL_INLINE void load_eight(Eight& to, const float* from, bool half) {
  if (half) {
    to = Eight{};
    std::memcpy(&to, from, sizeof(Eight) / 2);
  } else {
    std::memcpy(&to, from, sizeof(Eight));
  }
}
PLIMSOLL_INLINE void store_eight(float* to, const Eight& from, bool half) {
  std::memcpy(to, &from, half ? sizeof(Eight) / 2 : sizeof(Eight));
}

struct GroupRow {
  const float* x;     // the image, at the group's first channel
  const float* w;     // [tap][channel][padded filters]
  const float* bias;  // padded
  float least;        // of a result: 0 with ReLU
  float* y;           // the row, at the group's first filter
  std::int64_t row;
};

template <int kVectors, int kPlaces>
PLIMSOLL_INLINE void sum_group(const GroupedImages& g, const GroupRow& r, std::int64_t column,
                               Interval<std::int64_t> taps) {
  constexpr std::int64_t kPadded = kVectors * kEight;
  const Images& images = g.images;
  Eight sums[kPlaces][kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    load_eight(sums[0][v], r.bias + v * kEight, false);
#pragma GCC unroll 8
    for (int p = 1; p < kPlaces; ++p) sums[p][v] = sums[0][v];
  }
  const std::int64_t step = images.columns.stride * images.channels;
  const std::int64_t last = images.rows.last_tap(r.row);
  for (std::int64_t i = images.rows.first_tap(r.row); i < last; ++i) {
    const float* row = r.x + images.rows.place(r.row, i) * images.data_row();
    for (std::int64_t j = taps.begin; j < taps.end; ++j) {
      const float* x = row + images.columns.place(column, j) * images.channels;
      const float* w = r.w + (i * images.columns.taps + j) * g.in * kPadded;
      for (std::int64_t c = 0; c < g.in; ++c, w += kPadded) {
        Eight filters[kVectors];
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) load_eight(filters[v], w + v * kEight, false);
#pragma GCC unroll 8
        for (int p = 0; p < kPlaces; ++p) {
          const Eight data = Eight{} + x[p * step + c];
#pragma GCC unroll 8
          for (int v = 0; v < kVectors; ++v) sums[p][v] += data * filters[v];
        }
      }
    }
  }
  const bool half = g.out % kEight != 0;
#pragma GCC unroll 8
  for (int p = 0; p < kPlaces; ++p) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const Eight bounded = sums[p][v] < r.least ? Eight{} + r.least : sums[p][v];
      store_eight(r.y + (column + p) * images.filters + v * kEight, bounded,
                  half && v == kVectors - 1);
    }
  }
}

template <int kVectors>
PLIMSOLL_INLINE void sum_group_row(const GroupedImages& g, const GroupRow& r) {
  constexpr int kPlaces = kVectors == 1 ? 8 : kVectors == 2 ? 6 : 4;
  const ImageAxis& columns = g.images.columns;
  const std::int64_t begin = columns.first_whole(0);
  const std::int64_t end = std::max(begin, columns.last_whole(columns.taps));
  std::int64_t column = 0;
  while (column < columns.results) {
    if (column >= begin && column + kPlaces <= end) {
      sum_group<kVectors, kPlaces>(g, r, column, {0, columns.taps});
      column += kPlaces;
    } else {
      sum_group<kVectors, 1>(g, r, column, {columns.first_tap(column), columns.last_tap(column)});
      ++column;
    }
  }
}

// One row of results of all groups.
PLIMSOLL_VECTORIZED void grouped_row(const GroupedImages& g, GroupRow r) {
  for (std::int64_t group = 0; group < g.count; ++group) {
    switch (g.vectors()) {
      case 1:
        sum_group_row<1>(g, r);
        break;
      case 2:
        sum_group_row<2>(g, r);
        break;
      case 3:
        sum_group_row<3>(g, r);
        break;
      default:
        sum_group_row<kMostVectors>(g, r);
    }
    r.x += g.in;
    r.y += g.out;
    r.w += g.filter_elements();
    r.bias += g.padded();
  }
}

// --- The weights' gradient ----------------------------------------------------------------------

struct GroupTask {
  const float* x;   // at the group's first channel
  const float* dy;  // at the group's first filter
  float* sums;      // [tap][channel][padded filters], then the bias's where asked
  bool bias;
  Interval<std::int64_t> rows;  // of results, over all images
};

// One tap, kChannelTile channels from `channel` on.
template <int kVectors>
PLIMSOLL_INLINE void add_group_tap(const GroupedImages& g, const GroupTask& task, std::int64_t i,
                                   std::int64_t j, std::int64_t channel) {
  const Images& images = g.images;
  const bool half = g.out % kEight != 0;
  const std::int64_t begin = images.columns.first_whole(j);
  const std::int64_t end = images.columns.last_whole(j + 1);
  const std::int64_t step = images.columns.stride * images.channels;
  Eight sums[kChannelTile][kVectors] = {};
  for (std::int64_t r = task.rows.begin; r < task.rows.end; ++r) {
    const std::int64_t row = images.rows.place(r % images.rows.results, i);
    if (row < 0 || row >= images.rows.data) continue;
    const float* x = task.x + channel +
                     (r / images.rows.results * images.rows.data + row) * images.data_row() +
                     images.columns.place(begin, j) * images.channels;
    const float* dy = task.dy + r * images.result_row() + begin * images.filters;
    for (std::int64_t column = begin; column < end; ++column) {
      Eight results[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v)
        load_eight(results[v], dy + v * kEight, half && v == kVectors - 1);
#pragma GCC unroll 8
      for (int c = 0; c < kChannelTile; ++c) {
        const Eight data = Eight{} + x[c];
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) sums[c][v] += data * results[v];
      }
      x += step;
      dy += images.filters;
    }
  }
  float* to = task.sums + ((i * images.columns.taps + j) * g.in + channel) * g.padded();
#pragma GCC unroll 8
  for (int c = 0; c < kChannelTile; ++c) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v)
      store_eight(to + (c * kVectors + v) * kEight, sums[c][v], false);
  }
}

template <int kVectors>
PLIMSOLL_INLINE void add_group_bias(const GroupedImages& g, const GroupTask& task) {
  const Images& images = g.images;
  const bool half = g.out % kEight != 0;
  Eight sums[kVectors] = {};
  const float* dy = task.dy + task.rows.begin * images.result_row();
  for (std::int64_t n = (task.rows.end - task.rows.begin) * images.columns.results; n > 0; --n) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      Eight results;
      load_eight(results, dy + v * kEight, half && v == kVectors - 1);
      sums[v] += results;
    }
    dy += images.filters;
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v)
    store_eight(task.sums + g.filter_elements() + v * kEight, sums[v], false);
}

template <int kVectors>
PLIMSOLL_INLINE void add_group(const GroupedImages& g, const GroupTask& task) {
  for (std::int64_t i = 0; i < g.images.rows.taps; ++i) {
    for (std::int64_t j = 0; j < g.images.columns.taps; ++j) {
      for (std::int64_t channel = 0; channel < g.in; channel += kChannelTile)
        add_group_tap<kVectors>(g, task, i, j, channel);
    }
  }
  if (task.bias) add_group_bias<kVectors>(g, task);
}

PLIMSOLL_VECTORIZED void grouped_weights(const GroupedImages& g, const GroupTask& task) {
  switch (g.vectors()) {
    case 1:
      return add_group<1>(g, task);
    case 2:
      return add_group<2>(g, task);
    case 3:
      return add_group<3>(g, task);
    default:
      return add_group<kMostVectors>(g, task);
  }
}

// GroupedImages times ranges of rows, enough for many threads, as the shape says.
struct GroupTasks {
  std::int64_t chunks = 1;
  std::int64_t grain = 1;     // rows of a chunk
  std::int64_t elements = 0;  // of the sums of a task
  std::int64_t all = 0;

  GroupTasks(const GroupedImages& g, bool bias) {
    const std::int64_t rows = g.images.batch * g.images.rows.results;
    grain = ceil_div(rows, std::clamp<std::int64_t>(ceil_div(kLeastGroupTasks, g.count), 1, rows));
    chunks = ceil_div(rows, grain);
    elements = g.filter_elements() + (bias ? g.padded() : 0);
    all = g.count * chunks;
  }
  Bytes scratch() const { return Bytes(all * elements * 4); }
};

void write_group_weights(const GroupedImages& g, const float* sums, float* dw) {
  const std::int64_t taps = g.images.taps();
  for (std::int64_t o = 0; o < g.out; ++o) {
    for (std::int64_t c = 0; c < g.in; ++c) {
      for (std::int64_t tap = 0; tap < taps; ++tap) *dw++ = sums[(tap * g.in + c) * g.padded() + o];
    }
  }
}

void run_group_weights(const GroupedImages& g, const GroupTasks& tasks, const Arguments& a) {
  const bool bias = a.outputs.size() > 1;
  const std::int64_t rows = g.images.batch * g.images.rows.results;
  auto* partial = scratch<float>(a);
  parallel_each(tasks.all, [&](std::int64_t t) {
    const std::int64_t chunk = t / g.count;
    const std::int64_t group = t % g.count;
    grouped_weights(g, {input<float>(a, 0) + group * g.in,
                        input<float>(a, 1) + group * g.out,
                        partial + t * tasks.elements,
                        bias,
                        {chunk * tasks.grain, std::min(rows, (chunk + 1) * tasks.grain)}});
  });
  parallel_each(g.count, [&](std::int64_t group) {
    float* sums = partial + group * tasks.elements;
    for (std::int64_t chunk = 1; chunk < tasks.chunks; ++chunk)
      add_range(partial + (chunk * g.count + group) * tasks.elements, sums, tasks.elements);
    write_group_weights(g, sums, output<float>(a) + group * g.out * g.in * g.images.taps());
    if (bias) {
      std::memcpy(output<float>(a, 1) + group * g.out, sums + g.filter_elements(),
                  static_cast<std::size_t>(g.out) * sizeof(float));
    }
  });
}

// --- What a node says ---------------------------------------------------------------------------

// Row-major [filters][channels of a group][tap] to [group][tap][channel][padded filters] of `g`.
// `backwards`: for the data gradient, whose channels are the filters and whose taps are reversed.
void pack_filters(const GroupedImages& g, const float* w, float* to, bool backwards) {
  const std::int64_t taps = g.images.taps();
  parallel_each(g.count, [&](std::int64_t group) {
    const float* from = w + group * g.in * g.out * taps;
    float* packed = to + group * g.filter_elements();
    std::memset(packed, 0, static_cast<std::size_t>(g.filter_elements()) * sizeof(float));
    for (std::int64_t c = 0; c < g.in; ++c) {
      for (std::int64_t o = 0; o < g.out; ++o) {
        const float* filter = from + (backwards ? c * g.out + o : o * g.in + c) * taps;
        for (std::int64_t tap = 0; tap < taps; ++tap) {
          const std::int64_t place = backwards ? taps - 1 - tap : tap;
          packed[(place * g.in + c) * g.padded() + o] = filter[tap];
        }
      }
    }
  });
}

std::unique_ptr<Kernel> make_group_results(const Site& site, const GroupedImages& g,
                                           bool backwards) {
  const bool bias = !backwards && site.has(2);
  const bool relu = !backwards && ops::has_relu(site.attributes());
  const float least = relu ? 0.0F : -std::numeric_limits<float>::infinity();
  return make_kernel(
      site,
      [=](const Arguments& a) {
        auto* filters = scratch<float>(a);
        float* shifts = filters + g.count * g.filter_elements();
        pack_filters(g, input<float>(a, 1), filters, backwards);
        std::memset(shifts, 0, static_cast<std::size_t>(g.count * g.padded()) * sizeof(float));
        for (std::int64_t group = 0; bias && group < g.count; ++group) {
          std::memcpy(shifts + group * g.padded(), input<float>(a, 2) + group * g.out,
                      static_cast<std::size_t>(g.out) * sizeof(float));
        }
        const ImageAxis& rows = g.images.rows;
        parallel_each(g.images.batch * rows.results, [&](std::int64_t r) {
          grouped_row(
              g, {input<float>(a, 0) + r / rows.results * rows.data * g.images.data_row(), filters,
                  shifts, least, output<float>(a) + r * g.images.result_row(), r % rows.results});
        });
      },
      Bytes(g.count * (g.filter_elements() + g.padded()) * 4));
}

}  // namespace

bool is_grouped(const Site& site, ConvolutionDirection direction) {
  const ConvolutionTensors t = convolution_tensors(site, direction);
  if (!are_plain_images(t)) return false;
  const std::int64_t count = site.attributes().integer("group");
  const std::int64_t in = t.w.shape[1];
  const std::int64_t out = t.w.shape[0] / count;
  const auto fits = [](std::int64_t n) { return n % 4 == 0 && n <= kMostVectors * kEight; };
  if (count < 2 || !fits(in) || !fits(out) || (in % 16 == 0 && out % 16 == 0)) return false;
  const Images g = images_of(site, direction);
  return direction != ConvolutionDirection::kInputGradient ||
         (g.rows.stride == 1 && g.columns.stride == 1);
}

std::unique_ptr<Kernel> make_grouped(const Site& site, ConvolutionDirection direction) {
  const std::int64_t count = site.attributes().integer("group");
  const Images images = images_of(site, direction);
  if (direction == ConvolutionDirection::kForward)
    return make_group_results(site, GroupedImages(images, count), false);
  if (direction == ConvolutionDirection::kInputGradient)
    return make_group_results(site, GroupedImages(turned(images), count), true);
  const GroupedImages g(images, count);
  const GroupTasks tasks(g, site.outputs() > 1);
  return make_kernel(
      site, [=](const Arguments& a) { run_group_weights(g, tasks, a); }, tasks.scratch());
}

}  // namespace plimsoll::kernels

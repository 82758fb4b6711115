// Max and average pooling over one or two spatial axes, on NCHW and channels-last tensors.
//
// Max pooling remembers where in its window each maximum lay (one byte), so its gradient reads
// neither the input nor the output. On channels-last tensors everything runs along the channels:
// the gradient visits each place of the window and adds dy where the index names that place.
#include <cstring>

#include "plimsoll/kernels/cpu/channels.h"
#include "plimsoll/kernels/cpu/parallel.h"
#include "plimsoll/kernels/cpu/table.h"
#include "plimsoll/kernels/cpu/vectorize.h"

namespace plimsoll::kernels {
namespace {

// One spatial axis; where there is only one, the other has extent 1.
struct Axis {
  std::int64_t in = 1;
  std::int64_t out = 1;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t dilation = 1;
};

struct Window {
  Channels channels;
  Axis rows;
  Axis columns;
  bool count_padding = false;

  std::int64_t places() const { return rows.kernel * columns.kernel; }
  std::int64_t in_plane() const { return rows.in * columns.in; }
  std::int64_t out_plane() const { return rows.out * columns.out; }
};

Axis axis_of(const ops::AttributeReader& attributes, int which, int spatial, std::int64_t in,
             std::int64_t out) {
  const auto at = static_cast<std::size_t>(which);
  const auto n = static_cast<std::size_t>(spatial);
  const ir::Ints pads = attributes.integers("pads", ir::Ints(2 * n, 0));
  return {
      in,
      out,
      attributes.integers("kernel")[at],
      attributes.integers("strides", ir::Ints(n, 1))[at],
      pads[at],
      pads[n + at],
      attributes.declares("dilations") ? attributes.integers("dilations", ir::Ints(n, 1))[at] : 1};
}

// x and y are the large and the small tensor (or their gradients), whichever the node reads.
std::optional<Window> window_of(const Site& site, const ir::TensorType& x,
                                const ir::TensorType& y) {
  const int spatial = x.shape.rank() - 2;
  if (spatial < 1 || spatial > 2 || !is_f32(x) || !is_f32(y) || x.layout != y.layout)
    return std::nullopt;
  Window out;
  out.channels = channels_of(x);
  if (!out.channels.valid || y.shape.elements() == 0) return std::nullopt;
  if (spatial == 2) out.rows = axis_of(site.attributes(), 0, 2, x.shape[2], y.shape[2]);
  const int last = x.shape.rank() - 1;
  out.columns = axis_of(site.attributes(), spatial - 1, spatial, x.shape[last], y.shape[last]);
  out.count_padding = site.attributes().declares("count_include_pad") &&
                      site.attributes().integer("count_include_pad") != 0;
  return out;
}

// Calls body(place in the window, position in the input plane) for the places that are inside.
template <typename Body>
PLIMSOLL_INLINE void for_each_place(const Window& w, std::int64_t row, std::int64_t column,
                                    const Body& body) {
  for (std::int64_t i = 0; i < w.rows.kernel; ++i) {
    const std::int64_t r = row * w.rows.stride - w.rows.begin + i * w.rows.dilation;
    if (r < 0 || r >= w.rows.in) continue;
    for (std::int64_t j = 0; j < w.columns.kernel; ++j) {
      const std::int64_t c = column * w.columns.stride - w.columns.begin + j * w.columns.dilation;
      if (c < 0 || c >= w.columns.in) continue;
      body(i * w.columns.kernel + j, r * w.columns.in + c);
    }
  }
}

// The largest of the first places of a window, all of them in one pass over the channels: what is
// largest so far and where stay in registers.
constexpr int kAtOnce = 9;

struct FirstPlaces {
  int count = 0;
  const float* x[kAtOnce];
  std::int32_t place[kAtOnce];
};

template <int Count>
PLIMSOLL_VECTORIZED void first_places(const FirstPlaces& first, std::int64_t n, float* y,
                                      std::uint8_t* index) {
  const FirstPlaces p = first;
#pragma omp simd
  for (std::int64_t c = 0; c < n; ++c) {
    float best = p.x[0][c];
    std::int32_t where = p.place[0];
#pragma GCC unroll 9
    for (int k = 1; k < Count; ++k) {
      const float x = p.x[k][c];
      const bool larger = x > best || x != x;
      best = larger ? x : best;
      where = larger ? p.place[k] : where;
    }
    y[c] = best;
    index[c] = static_cast<std::uint8_t>(where);
  }
}

constexpr void (*kFirstPlaces[kAtOnce])(const FirstPlaces&, std::int64_t, float*, std::uint8_t*) = {
    first_places<1>, first_places<2>, first_places<3>, first_places<4>, first_places<5>,
    first_places<6>, first_places<7>, first_places<8>, first_places<9>};

PLIMSOLL_VECTORIZED void next_place(const float* x, std::int64_t n, std::uint8_t place, float* y,
                                    std::uint8_t* index) {
#pragma omp simd
  for (std::int64_t c = 0; c < n; ++c) {
    const bool larger = x[c] > y[c] || x[c] != x[c];
    y[c] = larger ? x[c] : y[c];
    index[c] = larger ? place : index[c];
  }
}

PLIMSOLL_VECTORIZED void add_where(const float* dy, const std::uint8_t* index, std::int64_t n,
                                   std::uint8_t place, float* dx) {
#pragma omp simd
  for (std::int64_t c = 0; c < n; ++c) dx[c] += index[c] == place ? dy[c] : 0.0F;
}

PLIMSOLL_VECTORIZED void add_scaled(const float* x, std::int64_t n, float factor, float* y) {
#pragma omp simd
  for (std::int64_t c = 0; c < n; ++c) y[c] += x[c] * factor;
}

// Calls body(image, output row) in parallel: an output row writes nothing another one does.
template <typename Body>
void for_each_output_row(const Window& w, const Body& body) {
  parallel_each(w.channels.batch * w.rows.out,
                [&](std::int64_t i) { body(i / w.rows.out, i % w.rows.out); });
}

void max_pool_last(const Window& w, const float* x, float* y, std::uint8_t* index) {
  const std::int64_t n = w.channels.channels;
  for_each_output_row(w, [&](std::int64_t image, std::int64_t row) {
    for (std::int64_t column = 0; column < w.columns.out; ++column) {
      const std::int64_t to = ((image * w.rows.out + row) * w.columns.out + column) * n;
      FirstPlaces first;
      const auto finish_first = [&] {
        kFirstPlaces[first.count - 1](first, n, y + to, index + to);
      };
      std::int64_t seen = 0;
      for_each_place(w, row, column, [&](std::int64_t place, std::int64_t position) {
        const float* from = x + (image * w.in_plane() + position) * n;
        if (seen++ < kAtOnce) {
          first.x[first.count] = from;
          first.place[first.count++] = static_cast<std::int32_t>(place);
          return;
        }
        if (seen == kAtOnce + 1) finish_first();
        next_place(from, n, static_cast<std::uint8_t>(place), y + to, index + to);
      });
      if (first.count > 0 && seen <= kAtOnce) finish_first();
    }
  });
}

void max_pool_planes(const Window& w, const float* x, float* y, std::uint8_t* index) {
  parallel_each(w.channels.planes(), [&](std::int64_t plane) {
    const float* from = x + plane * w.in_plane();
    std::int64_t to = plane * w.out_plane();
    for (std::int64_t row = 0; row < w.rows.out; ++row) {
      for (std::int64_t column = 0; column < w.columns.out; ++column, ++to) {
        float best = -std::numeric_limits<float>::infinity();
        std::int64_t where = -1;
        for_each_place(w, row, column, [&](std::int64_t place, std::int64_t position) {
          const float value = from[position];
          if (where >= 0 && !(value > best || value != value)) return;
          best = value;
          where = place;
        });
        y[to] = best;
        index[to] = static_cast<std::uint8_t>(std::max<std::int64_t>(where, 0));
      }
    }
  });
}

// A whole image at a time: windows of neighbouring rows overlap.
void max_pool_gradient_last(const Window& w, const float* dy, const std::uint8_t* index,
                            float* dx) {
  const std::int64_t n = w.channels.channels;
  parallel_each(w.channels.batch, [&](std::int64_t image) {
    float* out = dx + image * w.in_plane() * n;
    std::memset(out, 0, static_cast<std::size_t>(w.in_plane() * n) * sizeof(float));
    for (std::int64_t row = 0; row < w.rows.out; ++row) {
      for (std::int64_t column = 0; column < w.columns.out; ++column) {
        const std::int64_t from = ((image * w.rows.out + row) * w.columns.out + column) * n;
        for_each_place(w, row, column, [&](std::int64_t place, std::int64_t position) {
          add_where(dy + from, index + from, n, static_cast<std::uint8_t>(place),
                    out + position * n);
        });
      }
    }
  });
}

void max_pool_gradient_planes(const Window& w, const float* dy, const std::uint8_t* index,
                              float* dx) {
  parallel_each(w.channels.planes(), [&](std::int64_t plane) {
    float* out = dx + plane * w.in_plane();
    std::memset(out, 0, static_cast<std::size_t>(w.in_plane()) * sizeof(float));
    std::int64_t from = plane * w.out_plane();
    for (std::int64_t row = 0; row < w.rows.out; ++row) {
      for (std::int64_t column = 0; column < w.columns.out; ++column, ++from) {
        const std::int64_t r =
            row * w.rows.stride - w.rows.begin + index[from] / w.columns.kernel * w.rows.dilation;
        const std::int64_t c = column * w.columns.stride - w.columns.begin +
                               index[from] % w.columns.kernel * w.columns.dilation;
        if (r >= 0 && r < w.rows.in && c >= 0 && c < w.columns.in)
          out[r * w.columns.in + c] += dy[from];
      }
    }
  });
}

// Elements an average divides by along one axis. Padding counts up to the padded extent only.
std::int64_t counted(const Axis& axis, std::int64_t at, bool padding) {
  const std::int64_t first = at * axis.stride - axis.begin;
  const std::int64_t last = std::min(first + axis.kernel, axis.in + (padding ? axis.end : 0));
  return last - std::max<std::int64_t>(first, padding ? first : 0);
}

float average_factor(const Window& w, std::int64_t row, std::int64_t column) {
  return 1.0F / static_cast<float>(counted(w.rows, row, w.count_padding) *
                                   counted(w.columns, column, w.count_padding));
}

void avg_pool_last(const Window& w, const float* x, float* y) {
  const std::int64_t n = w.channels.channels;
  for_each_output_row(w, [&](std::int64_t image, std::int64_t row) {
    for (std::int64_t column = 0; column < w.columns.out; ++column) {
      float* to = y + ((image * w.rows.out + row) * w.columns.out + column) * n;
      std::memset(to, 0, static_cast<std::size_t>(n) * sizeof(float));
      const float factor = average_factor(w, row, column);
      for_each_place(w, row, column, [&](std::int64_t, std::int64_t position) {
        add_scaled(x + (image * w.in_plane() + position) * n, n, factor, to);
      });
    }
  });
}

void avg_pool_planes(const Window& w, const float* x, float* y) {
  parallel_each(w.channels.planes(), [&](std::int64_t plane) {
    float* to = y + plane * w.out_plane();
    for (std::int64_t row = 0; row < w.rows.out; ++row) {
      for (std::int64_t column = 0; column < w.columns.out; ++column) {
        float sum = 0;
        for_each_place(w, row, column, [&](std::int64_t, std::int64_t position) {
          sum += x[plane * w.in_plane() + position];
        });
        *to++ = sum * average_factor(w, row, column);
      }
    }
  });
}

void avg_pool_gradient(const Window& w, const float* dy, float* dx) {
  // Channels last: an image at a time, rows of C. NCHW: a plane at a time, rows of one.
  const std::int64_t n = w.channels.last ? w.channels.channels : 1;
  parallel_each(w.channels.last ? w.channels.batch : w.channels.planes(), [&](std::int64_t plane) {
    float* out = dx + plane * w.in_plane() * n;
    std::memset(out, 0, static_cast<std::size_t>(w.in_plane() * n) * sizeof(float));
    for (std::int64_t row = 0; row < w.rows.out; ++row) {
      for (std::int64_t column = 0; column < w.columns.out; ++column) {
        const float* from = dy + ((plane * w.rows.out + row) * w.columns.out + column) * n;
        const float factor = average_factor(w, row, column);
        for_each_place(w, row, column, [&](std::int64_t, std::int64_t position) {
          add_scaled(from, n, factor, out + position * n);
        });
      }
    }
  });
}

std::unique_ptr<Kernel> make_max_pool(const Site& site) {
  const auto window = window_of(site, site.in(0), site.out(0));
  if (!window || site.out(1).dtype != ir::DType::kU8 || site.out(1).layout != site.out(0).layout)
    return nullptr;
  return make_kernel(site, [w = *window](const Arguments& a) {
    (w.channels.last ? max_pool_last : max_pool_planes)(w, input<float>(a, 0), output<float>(a, 0),
                                                        output<std::uint8_t>(a, 1));
  });
}

std::unique_ptr<Kernel> make_max_pool_grad(const Site& site) {
  const auto window = window_of(site, site.out(0), site.in(0));
  if (!window || site.in(1).dtype != ir::DType::kU8 || site.in(1).layout != site.in(0).layout)
    return nullptr;
  return make_kernel(site, [w = *window](const Arguments& a) {
    (w.channels.last ? max_pool_gradient_last : max_pool_gradient_planes)(
        w, input<float>(a, 0), input<std::uint8_t>(a, 1), output<float>(a));
  });
}

std::unique_ptr<Kernel> make_avg_pool(const Site& site) {
  const auto window = window_of(site, site.in(0), site.out(0));
  if (!window) return nullptr;
  return make_kernel(site, [w = *window](const Arguments& a) {
    (w.channels.last ? avg_pool_last : avg_pool_planes)(w, input<float>(a, 0), output<float>(a));
  });
}

std::unique_ptr<Kernel> make_avg_pool_grad(const Site& site) {
  const auto window = window_of(site, site.out(0), site.in(0));
  if (!window) return nullptr;
  return make_kernel(site, [w = *window](const Arguments& a) {
    avg_pool_gradient(w, input<float>(a, 0), output<float>(a));
  });
}

}  // namespace

std::span<const TableEntry> pooling_kernels() {
  static constexpr TableEntry kRows[] = {
      {"avg_pool", make_avg_pool},
      {"avg_pool_grad", make_avg_pool_grad},
      {"max_pool", make_max_pool},
      {"max_pool_grad", make_max_pool_grad},
  };
  return kRows;
}

}  // namespace plimsoll::kernels

// Resizing the last two axes, nearest or linear, and its transpose; other axes stay.
//
// Each axis is a list of taps (ops/movement/resize.h), made once. A plane is one thread's work, so
// the sums of the gradient have one order.
#include "plimsoll/ops/movement/resize.h"
#include "plimsoll/kernels/cpu/parallel.h"
#include "plimsoll/kernels/cpu/table.h"

namespace plimsoll::kernels {
namespace {

struct FloatTap {
  std::int64_t first;
  std::int64_t second;
  float weight;
};

struct Planes {
  std::int64_t count;
  std::int64_t from_rows, from_columns;  // of the small sense: x of the forward
  std::vector<FloatTap> rows, columns;   // one per row and column of y
};

std::vector<FloatTap> float_taps(std::int64_t n, std::int64_t m, const ops::AttributeReader& how) {
  std::vector<FloatTap> out;
  for (const ops::Tap& tap : ops::taps_of(n, m, how))
    out.push_back({tap.first, tap.second, static_cast<float>(tap.weight)});
  return out;
}

// x and y in the sense of the forward; nothing where an axis before the last two changes.
std::optional<Planes> planes_of(const ir::Shape& x, const ir::Shape& y,
                                const ops::AttributeReader& attributes) {
  const int rank = x.rank();
  if (rank < 2 || x.elements() == 0) return std::nullopt;
  for (int axis = 0; axis < rank - 2; ++axis) {
    if (x[axis] != y[axis]) return std::nullopt;
  }
  return Planes{x.elements(0, rank - 2), x[rank - 2], x[rank - 1],
                float_taps(x[rank - 2], y[rank - 2], attributes),
                float_taps(x[rank - 1], y[rank - 1], attributes)};
}

// What has no weight has no part, not even when it is infinite or NaN.
float between(float a, float b, float weight) {
  return weight == 0.0F ? a : (1.0F - weight) * a + weight * b;
}

void resize_plane(const Planes& p, const float* x, float* y) {
  for (const FloatTap& row : p.rows) {
    const float* upper = x + row.first * p.from_columns;
    const float* lower = x + row.second * p.from_columns;
    for (const FloatTap& column : p.columns) {
      const float above = between(upper[column.first], upper[column.second], column.weight);
      const float below = between(lower[column.first], lower[column.second], column.weight);
      *y++ = between(above, below, row.weight);
    }
  }
}

void add_share(float dy, const FloatTap& column, float* dx) {
  dx[column.first] += dy * (1.0F - column.weight);
  if (column.weight != 0.0F) dx[column.second] += dy * column.weight;
}

void spread_plane(const Planes& p, const float* dy, float* dx) {
  std::fill(dx, dx + p.from_rows * p.from_columns, 0.0F);
  for (const FloatTap& row : p.rows) {
    float* upper = dx + row.first * p.from_columns;
    float* lower = dx + row.second * p.from_columns;
    for (const FloatTap& column : p.columns) {
      add_share(*dy * (1.0F - row.weight), column, upper);
      if (row.weight != 0.0F) add_share(*dy * row.weight, column, lower);
      ++dy;
    }
  }
}

// Calls body(plane of x, plane of y) with the first element of each.
template <typename Body>
std::unique_ptr<Kernel> for_planes(const Site& site, const ir::Shape& x, const ir::Shape& y,
                                   Body body) {
  if (!all_f32(site) || !all_row_major(site)) return nullptr;
  std::optional<Planes> planes = planes_of(x, y, site.attributes());
  if (!planes) return nullptr;
  return make_kernel(site, [p = std::move(*planes), body](const Arguments& a) {
    const std::int64_t small = p.from_rows * p.from_columns;
    const auto large = static_cast<std::int64_t>(p.rows.size() * p.columns.size());
    parallel_rows(p.count, std::max(small, large),
                  [&](std::int64_t i) { body(p, a, i * small, i * large); });
  });
}

std::unique_ptr<Kernel> make_resize(const Site& site) {
  return for_planes(
      site, site.in(0).shape, site.out().shape,
      [](const Planes& p, const Arguments& a, std::int64_t small, std::int64_t large) {
        resize_plane(p, input<float>(a, 0) + small, output<float>(a) + large);
      });
}

std::unique_ptr<Kernel> make_resize_grad(const Site& site) {
  return for_planes(
      site, site.out().shape, site.in(0).shape,
      [](const Planes& p, const Arguments& a, std::int64_t small, std::int64_t large) {
        spread_plane(p, input<float>(a, 0) + large, output<float>(a) + small);
      });
}

}  // namespace

std::span<const TableEntry> resize_kernels() {
  static constexpr TableEntry kRows[] = {
      {"resize", make_resize},
      {"resize_grad", make_resize_grad},
  };
  return kRows;
}

}  // namespace plimsoll::kernels

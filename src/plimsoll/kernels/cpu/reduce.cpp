// Sums, means, maxima and minima along any axes.
//
// Whatever the axes, a tensor in memory order is first brought to  [K1, R1, K2, R2]:  kept,
// reduced, kept, reduced, each possibly of extent 1 (strided.h joins neighbours). Then either the
// last axis is reduced, and rows are summed, or it is kept, and rows are added to each other. More
// alternations than that go to the reference evaluation; no model here has any.
#include "plimsoll/base/checked.h"
#include "plimsoll/kernels/cpu/column_sums.h"
#include "plimsoll/kernels/cpu/parallel.h"
#include "plimsoll/kernels/cpu/strided.h"
#include "plimsoll/kernels/cpu/table.h"
#include "plimsoll/kernels/cpu/vectorize.h"

namespace plimsoll::kernels {
namespace {

struct Alternation {
  std::int64_t kept_outer = 1;
  std::int64_t reduced_outer = 1;
  std::int64_t kept_inner = 1;
  std::int64_t reduced_inner = 1;
  std::int64_t kept() const { return kept_outer * kept_inner; }
  std::int64_t reduced() const { return reduced_outer * reduced_inner; }
};

std::vector<bool> reduced_axes(const ir::Shape& shape, const ops::AttributeReader& attributes) {
  std::vector<bool> out(static_cast<std::size_t>(shape.rank()), !attributes.has("axes"));
  for (std::int64_t axis : attributes.integers("axes", {}))
    out[static_cast<std::size_t>(axis < 0 ? axis + shape.rank() : axis)] = true;
  return out;
}

// The result's stride along each axis of x, 0 where it is reduced.
std::array<std::int64_t, ir::kMaxRank> result_strides(const ir::TensorType& x,
                                                      const ir::TensorType& y,
                                                      const std::vector<bool>& reduced) {
  std::array<std::int64_t, ir::kMaxRank> own = broadcast_strides_in(y, y.shape);
  const bool keepdims = y.shape.rank() == x.shape.rank();
  std::array<std::int64_t, ir::kMaxRank> out{};
  std::size_t at = 0;
  for (std::size_t axis = 0; axis < reduced.size(); ++axis) {
    if (!reduced[axis]) out[axis] = own[keepdims ? axis : at++];
  }
  return out;
}

std::optional<Alternation> alternation_of(const ir::TensorType& x, const ir::TensorType& y,
                                          const std::vector<bool>& reduced) {
  if (x.layout.block_count > 0 || y.layout.block_count > 0) return std::nullopt;
  const StridedLoop loop =
      make_strided_loop(x, {broadcast_strides_in(x, x.shape), result_strides(x, y, reduced)});
  if (x.shape.elements() == 1) return Alternation{};
  Alternation out;
  std::int64_t* const slots[] = {&out.kept_outer, &out.reduced_outer, &out.kept_inner,
                                 &out.reduced_inner};
  const std::size_t n = loop.extents.size();
  // Fill from the back: an innermost reduced axis goes to slot 3, a kept one to slot 2.
  int slot = loop.steps[1][n - 1] == 0 ? 3 : 2;
  std::int64_t expected = 1;
  for (std::size_t i = n; i-- > 0; --slot) {
    if (slot < 0) return std::nullopt;
    *slots[slot] = loop.extents[i];
    if (loop.steps[1][i] == 0) continue;
    if (loop.steps[1][i] != expected) return std::nullopt;
    expected *= loop.extents[i];
  }
  return out;
}

struct Sum {
  static constexpr float kStart = 0;
  PLIMSOLL_INLINE static float join(float a, float b) { return a + b; }
};
struct Max {
  static constexpr float kStart = -std::numeric_limits<float>::infinity();
  PLIMSOLL_INLINE static float join(float a, float b) { return b > a || b != b ? b : a; }
};
struct Min {
  static constexpr float kStart = std::numeric_limits<float>::infinity();
  PLIMSOLL_INLINE static float join(float a, float b) { return b < a || b != b ? b : a; }
};
struct SumSquares {
  static constexpr float kStart = 0;
  PLIMSOLL_INLINE static float join(float a, float b) { return a + b; }
};

// Sixteen running results side by side, joined at the end: vectorises for any kind of join.
template <typename Kind>
PLIMSOLL_VECTORIZED float reduce_row(const float* x, std::int64_t n) {
  constexpr std::int64_t kLanes = 32;
  float lanes[kLanes];
  for (float& lane : lanes) lane = Kind::kStart;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t j = 0; j < kLanes; ++j) {
      const float value = x[i + j];
      lanes[j] = Kind::join(lanes[j], std::is_same_v<Kind, SumSquares> ? value * value : value);
    }
  }
  float out = Kind::kStart;
  for (const float lane : lanes) out = Kind::join(out, lane);
  for (; i < n; ++i) out = Kind::join(out, std::is_same_v<Kind, SumSquares> ? x[i] * x[i] : x[i]);
  return out;
}

template <typename Kind>
PLIMSOLL_VECTORIZED void join_row(const float* x, float* y, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = Kind::join(y[i], x[i]);
}

PLIMSOLL_VECTORIZED void scale_row(float* x, std::int64_t n, float factor) {
  for (std::int64_t i = 0; i < n; ++i) x[i] *= factor;
}

template <typename Kind>
void reduce_rows(const Alternation& s, const float* x, float* y) {
  parallel_rows(s.kept(), s.reduced(), [&](std::int64_t k) {
    const float* from = x + (k / s.kept_inner * s.reduced_outer * s.kept_inner + k % s.kept_inner) *
                                s.reduced_inner;
    float out = Kind::kStart;
    for (std::int64_t r = 0; r < s.reduced_outer; ++r) {
      out = Kind::join(
          out, reduce_row<Kind>(from + r * s.kept_inner * s.reduced_inner, s.reduced_inner));
    }
    y[k] = out;
  });
}

template <typename Kind>
void join_rows(const Alternation& s, const float* x, float* y) {
  constexpr std::int64_t kColumns = 256;
  const std::int64_t blocks = ceil_div(s.kept_inner, kColumns);
  parallel_each(s.kept_outer * blocks, [&](std::int64_t i) {
    const std::int64_t outer = i / blocks;
    const std::int64_t begin = i % blocks * kColumns;
    const std::int64_t width = std::min(kColumns, s.kept_inner - begin);
    float* to = y + outer * s.kept_inner + begin;
    std::fill(to, to + width, Kind::kStart);
    for (std::int64_t r = 0; r < s.reduced_outer; ++r) {
      join_row<Kind>(x + (outer * s.reduced_outer + r) * s.kept_inner + begin, to, width);
    }
  });
}

// One number out of a whole tensor: chunks first, their results in order after.
template <typename Kind>
void reduce_all(std::int64_t count, const float* x, float* y, float* partials) {
  parallel_chunks(count, kElementGrain,
                  [&](std::int64_t chunk, std::int64_t begin, std::int64_t end) {
                    partials[chunk] = reduce_row<Kind>(x + begin, end - begin);
                  });
  const std::int64_t chunks = ceil_div(count, kElementGrain);
  if constexpr (std::is_same_v<Kind, Sum> || std::is_same_v<Kind, SumSquares>) {
    double sum = 0;
    for (std::int64_t k = 0; k < chunks; ++k) sum += partials[k];
    *y = static_cast<float>(sum);
  } else {
    float out = Kind::kStart;
    for (std::int64_t k = 0; k < chunks; ++k) out = Kind::join(out, partials[k]);
    *y = out;
  }
}

template <typename Kind>
std::unique_ptr<Kernel> make_reduction(const Site& site, const Alternation& s, float factor) {
  const ColumnSums columns(s.reduced_outer, s.kept_inner);
  const bool down = std::is_same_v<Kind, Sum> && s.kept_outer == 1 && s.reduced_inner == 1 &&
                    s.reduced_outer > 64;
  const bool all = s.kept() == 1;
  const Bytes scratch_bytes = all    ? Bytes(ceil_div(s.reduced(), kElementGrain) * 4)
                              : down ? columns.scratch()
                                     : Bytes(0);
  return make_kernel(
      site,
      [=](const Arguments& a) {
        const float* x = input<float>(a, 0);
        float* y = output<float>(a);
        if (all) {
          reduce_all<Kind>(s.reduced(), x, y, scratch<float>(a));
        } else if (down) {
          columns.run(x, y, scratch<float>(a));
        } else if (s.reduced_inner > 1) {
          reduce_rows<Kind>(s, x, y);
        } else {
          join_rows<Kind>(s, x, y);
        }
        if (factor != 1.0F) scale_row(y, s.kept(), factor);
      },
      scratch_bytes);
}

template <typename Reduction, bool mean = false>
std::unique_ptr<Kernel> make_reduce(const Site& site) {
  if (!all_f32(site) || site.in(0).shape.elements() == 0) return nullptr;
  const auto s =
      alternation_of(site.in(0), site.out(), reduced_axes(site.in(0).shape, site.attributes()));
  if (!s) return nullptr;
  return make_reduction<Reduction>(site, *s, mean ? 1.0F / static_cast<float>(s->reduced()) : 1.0F);
}

std::unique_ptr<Kernel> make_sum_squares(const Site& site) {
  if (!all_f32(site) || site.in(0).shape.elements() == 0) return nullptr;
  Alternation all;
  all.reduced_inner = ir::bytes_of(site.in(0)).value / 4;
  return make_reduction<SumSquares>(site, all, 1.0F);
}

}  // namespace

std::span<const TableEntry> reduce_kernels() {
  static constexpr TableEntry kRows[] = {
      {"reduce_max", make_reduce<Max>},  {"reduce_mean", make_reduce<Sum, true>},
      {"reduce_min", make_reduce<Min>},  {"reduce_sum", make_reduce<Sum>},
      {"sum_squares", make_sum_squares},
  };
  return kRows;
}

}  // namespace plimsoll::kernels

// gather along an axis (embedding lookup) and its gradient, a scatter-add into zeros or, in place,
// into another gradient of the same table.
//
// An index outside names nothing (ops/movement/indexing.h): what it reads is zero, and its gradient
// goes nowhere. Indices that a user gives are checked before they come here
// (runtime/index_ranges.h).
//
// Of a large table it may be only some rows (`rows`); indices of others are outside then.
//
// The gradient walks the indices in order; threads share the work by columns, so two equal indices
// are always added by the same thread, in the same order.
#include <cstring>

#include "plimsoll/base/checked.h"
#include "plimsoll/kernels/cpu/column_sums.h"
#include "plimsoll/kernels/cpu/parallel.h"
#include "plimsoll/kernels/cpu/table.h"
#include "plimsoll/ops/movement/scatter_reduction.h"

namespace plimsoll::kernels {
namespace {

// data is [outer, extent, inner], the result [outer, indices, inner].
struct Gathering {
  std::int64_t outer;
  std::int64_t extent;
  std::int64_t inner;
  std::int64_t indices;
  ops::TableRows rows;
};

Gathering gathering_of(const ir::Shape& data, const ir::Shape& indices,
                       const ops::AttributeReader& attributes, bool gradient) {
  const auto given = static_cast<int>(attributes.integer("axis"));
  const int axis = given < 0 ? given + data.rank() : given;
  const ops::TableRows rows = gradient ? ops::table_rows(attributes, data[axis])
                                       : ops::TableRows{0, data[axis], data[axis]};
  return {data.elements(0, axis), data[axis], data.elements(axis + 1, data.rank()),
          indices.elements(), rows};
}

// Where an index points to; -1 outside.
template <typename Index>
std::int64_t row_of(const Gathering& g, Index index) {
  return g.rows.place(static_cast<std::int64_t>(index));
}

template <typename Index>
std::unique_ptr<Kernel> make_gather_of(const Site& site, const Gathering& g) {
  const auto width = static_cast<std::size_t>(g.inner * ir::bits(site.out().dtype) / 8);
  return make_kernel(site, [=](const Arguments& a) {
    const auto* indices = input<Index>(a, 1);
    const std::byte* data = a.inputs[0];
    std::byte* out = a.outputs[0];
    parallel_rows(g.outer * g.indices, g.inner, [&](std::int64_t i) {
      std::byte* to = out + static_cast<std::size_t>(i) * width;
      const std::int64_t row = row_of(g, indices[i % g.indices]);
      if (row < 0) {
        std::memset(to, 0, width);
        return;
      }
      const std::int64_t from = i / g.indices * g.extent + row;
      std::memcpy(to, data + static_cast<std::size_t>(from) * width, width);
    });
  });
}

template <typename Index>
std::unique_ptr<Kernel> make_gather_grad_of(const Site& site, const Gathering& g) {
  constexpr std::int64_t kColumns = 64;
  const std::int64_t total = g.outer * g.extent * g.inner;
  const bool into_sum = site.has(2);
  return make_kernel(site, [=](const Arguments& a) {
    const float* dy = input<float>(a, 0);
    const auto* indices = input<Index>(a, 1);
    float* dx = output<float>(a);
    const float* sum = into_sum ? input<float>(a, 2) : nullptr;
    parallel_ranges(total, 16 * kElementGrain, [&](std::int64_t begin, std::int64_t end) {
      const std::size_t bytes = static_cast<std::size_t>(end - begin) * sizeof(float);
      if (sum == nullptr) std::memset(dx + begin, 0, bytes);
      if (sum != nullptr && sum != dx) std::memcpy(dx + begin, sum + begin, bytes);
    });
    parallel_ranges(g.inner, kColumns, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = 0; i < g.outer * g.indices; ++i) {
        const std::int64_t row = row_of(g, indices[i % g.indices]);
        if (row < 0) continue;
        const std::int64_t to = i / g.indices * g.extent + row;
        add_range(dy + i * g.inner + begin, dx + to * g.inner + begin, end - begin);
      }
    });
  });
}

std::unique_ptr<Kernel> make_gather(const Site& site) {
  if (!all_row_major(site) || ir::bits(site.out().dtype) % 8 != 0 ||
      site.in(0).shape.elements() == 0)
    return nullptr;
  const Gathering g = gathering_of(site.in(0).shape, site.in(1).shape, site.attributes(), false);
  if (site.in(1).dtype == ir::DType::kI64) return make_gather_of<std::int64_t>(site, g);
  if (site.in(1).dtype == ir::DType::kI32) return make_gather_of<std::int32_t>(site, g);
  return nullptr;
}

std::unique_ptr<Kernel> make_gather_grad(const Site& site) {
  if (!all_row_major(site) || !is_f32(site.out()) || site.out().shape.elements() == 0)
    return nullptr;
  const Gathering g = gathering_of(site.out().shape, site.in(1).shape, site.attributes(), true);
  if (site.in(1).dtype == ir::DType::kI64) return make_gather_grad_of<std::int64_t>(site, g);
  if (site.in(1).dtype == ir::DType::kI32) return make_gather_grad_of<std::int32_t>(site, g);
  return nullptr;
}

}  // namespace

std::span<const TableEntry> gather_kernels() {
  static constexpr TableEntry kRows[] = {
      {"gather", make_gather},
      {"gather_grad", make_gather_grad},
  };
  return kRows;
}

}  // namespace plimsoll::kernels

// Reading and writing at places that a tensor of indices names, and running sums.
//
// An index outside names nothing: nothing is written there, and what is read stays zero. Reads are
// shared among threads; writes are not, because two of them may meet at one place and the last, in
// the order of the indices, has to win.
#include <cstring>

#include "plimsoll/kernels/cpu/parallel.h"
#include "plimsoll/kernels/cpu/table.h"
#include "plimsoll/ops/movement/scatter_reduction.h"

namespace plimsoll::kernels {
namespace {

using ops::Reduction;
using ops::resolve;

// One form for both families. The indices name `places`, place i lies at offset_of(i) of the data,
// -1 for outside, and stands for `block` elements.
struct Naming {
  std::int64_t places;
  std::int64_t block;
  // gather_elements and scatter_elements: indices [outer, count, inner] of data [.., extent, ..].
  bool elements;
  ir::Shape data;
  std::array<std::int64_t, ir::kMaxRank> strides;  // of data
  ir::Shape indices;
  int axis;
  // gather_nd and scatter_nd: rows of `depth` indices after `batch` shared axes.
  int batch;
  int depth;
};

template <typename Index>
std::int64_t element_offset(const Naming& how, const Index* indices, std::int64_t place) {
  std::int64_t offset = 0;
  std::int64_t rest = place;
  for (int axis = how.data.rank(); axis-- > 0;) {
    std::int64_t at = rest % how.indices[axis];
    rest /= how.indices[axis];
    if (axis == how.axis) at = resolve(static_cast<std::int64_t>(indices[place]), how.data[axis]);
    if (at < 0) return -1;
    offset += at * how.strides[static_cast<std::size_t>(axis)];
  }
  return offset;
}

template <typename Index>
std::int64_t row_offset(const Naming& how, const Index* indices, std::int64_t row) {
  const std::int64_t batches = how.data.elements(0, how.batch);
  std::int64_t offset =
      row / (how.places / batches) * how.data.elements(how.batch, how.data.rank());
  for (int d = 0; d < how.depth; ++d) {
    const int axis = how.batch + d;
    const std::int64_t at =
        resolve(static_cast<std::int64_t>(indices[row * how.depth + d]), how.data[axis]);
    if (at < 0) return -1;
    offset += at * how.strides[static_cast<std::size_t>(axis)];
  }
  return offset;
}

template <typename Index>
std::int64_t offset_of(const Naming& how, const Index* indices, std::int64_t place) {
  return how.elements ? element_offset(how, indices, place) : row_offset(how, indices, place);
}

template <bool elements>
Naming naming_of(const Site& site, const ir::Shape& moved) {
  Naming out{};
  out.data = site.in(0).shape;
  out.strides = out.data.strides();
  out.indices = site.in(1).shape;
  out.elements = elements;
  if (out.elements) {
    const auto axis = static_cast<int>(site.attributes().integer("axis"));
    out.axis = axis < 0 ? axis + out.data.rank() : axis;
    out.block = 1;
  } else {
    out.batch = static_cast<int>(site.attributes().integer("batch_dims"));
    out.depth = static_cast<int>(out.indices[out.indices.rank() - 1]);
    out.block = out.data.elements(out.batch + out.depth, out.data.rank());
  }
  out.places = moved.elements() / out.block;
  return out;
}

template <typename Index>
std::unique_ptr<Kernel> make_read(const Site& site, const Naming& how) {
  const auto width = static_cast<std::size_t>(ir::bits(site.out().dtype) / 8);
  const std::size_t bytes = static_cast<std::size_t>(how.block) * width;
  return make_kernel(site, [=](const Arguments& a) {
    parallel_rows(how.places, how.block, [&](std::int64_t place) {
      std::byte* to = a.outputs[0] + static_cast<std::size_t>(place) * bytes;
      const std::int64_t from = offset_of(how, input<Index>(a, 1), place);
      if (from < 0) {
        std::memset(to, 0, bytes);
      } else {
        std::memcpy(to, a.inputs[0] + static_cast<std::size_t>(from) * width, bytes);
      }
    });
  });
}

template <typename Index>
std::unique_ptr<Kernel> make_write(const Site& site, const Naming& how, bool add) {
  const auto width = static_cast<std::size_t>(ir::bits(site.out().dtype) / 8);
  const auto total = static_cast<std::size_t>(ir::bytes_of(site.out()).value);
  return make_kernel(site, [=](const Arguments& a) {
    if (a.outputs[0] != a.inputs[0]) std::memcpy(a.outputs[0], a.inputs[0], total);
    for (std::int64_t place = 0; place < how.places; ++place) {
      const std::int64_t to = offset_of(how, input<Index>(a, 1), place);
      if (to < 0) continue;
      if (add) {
        for (std::int64_t k = 0; k < how.block; ++k)
          output<float>(a)[to + k] += input<float>(a, 2)[place * how.block + k];
      } else {
        const std::size_t bytes = static_cast<std::size_t>(how.block) * width;
        std::memcpy(a.outputs[0] + static_cast<std::size_t>(to) * width,
                    a.inputs[2] + static_cast<std::size_t>(place) * bytes, bytes);
      }
    }
  });
}

bool indexing_supported(const Site& site) {
  return all_row_major(site) && ir::bits(site.out().dtype) % 8 == 0;
}

template <typename T>
std::unique_ptr<Kernel> make_running_sum_of(const Site& site) {
  const ir::Shape& shape = site.out().shape;
  const auto given = static_cast<int>(site.attributes().integer("axis"));
  const int axis = given < 0 ? given + shape.rank() : given;
  const std::int64_t count = shape[axis];
  const std::int64_t inner = shape.elements(axis + 1, shape.rank());
  const bool exclusive = site.attributes().integer("exclusive") != 0;
  const bool reverse = site.attributes().integer("reverse") != 0;
  return make_kernel(site, [=, lines = shape.elements() / count](const Arguments& a) {
    parallel_rows(lines, count, [&](std::int64_t line) {
      const std::int64_t first =
          line / inner * inner * count + line % inner + (reverse ? (count - 1) * inner : 0);
      const std::int64_t step = reverse ? -inner : inner;
      T sum = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        const T next = sum + input<T>(a, 0)[first + i * step];
        output<T>(a)[first + i * step] = exclusive ? sum : next;
        sum = next;
      }
    });
  });
}

template <bool elements>
std::unique_ptr<Kernel> make_indexed_read(const Site& site) {
  if (!indexing_supported(site) || site.out().shape.elements() == 0) return nullptr;
  const Naming how = naming_of<elements>(site, site.out().shape);
  if (site.in(1).dtype == ir::DType::kI64) return make_read<std::int64_t>(site, how);
  if (site.in(1).dtype == ir::DType::kI32) return make_read<std::int32_t>(site, how);
  return nullptr;
}

template <bool elements>
std::unique_ptr<Kernel> make_indexed_write(const Site& site) {
  if (!indexing_supported(site) || site.in(2).shape.elements() == 0) return nullptr;
  const auto reduction = ops::reduction_of(site.attributes());
  const bool add = reduction == Reduction::kAdd && is_f32(site.out());
  if (reduction != Reduction::kNone && !add) return nullptr;
  const Naming how = naming_of<elements>(site, site.in(2).shape);
  if (site.in(1).dtype == ir::DType::kI64) return make_write<std::int64_t>(site, how, add);
  if (site.in(1).dtype == ir::DType::kI32) return make_write<std::int32_t>(site, how, add);
  return nullptr;
}

std::unique_ptr<Kernel> make_running_sum(const Site& site) {
  if (!all_row_major(site) || site.out().shape.elements() == 0) return nullptr;
  if (is_f32(site.out())) return make_running_sum_of<float>(site);
  // Sums of integers wrap around.
  if (site.out().dtype == ir::DType::kI64) return make_running_sum_of<std::uint64_t>(site);
  if (site.out().dtype == ir::DType::kI32) return make_running_sum_of<std::uint32_t>(site);
  return nullptr;
}

}  // namespace

std::span<const TableEntry> indexing_kernels() {
  static constexpr TableEntry kRows[] = {
      {"cumsum", make_running_sum},
      {"gather_elements", make_indexed_read<true>},
      {"gather_nd", make_indexed_read<false>},
      {"scatter_elements", make_indexed_write<true>},
      {"scatter_nd", make_indexed_write<false>},
  };
  return kRows;
}

}  // namespace plimsoll::kernels

// Elements that are made from attributes, from their place or from another type: cast, fill, iota,
// one_hot, triangle, dropout.
#include "plimsoll/kernels/cuda/pointwise.h"
#include "plimsoll/kernels/cuda/source_math.h"
#include "plimsoll/kernels/cuda/table.h"
#include "plimsoll/ops/elementwise/dropout_mask.h"
#include "plimsoll/ops/evaluation/array.h"

namespace plimsoll::kernels::cuda {
namespace {

int axis_of(const Site& site, int rank) {
  const auto axis = static_cast<int>(site.attributes().integer("axis"));
  return axis < 0 ? axis + rank : axis;
}

// A real attribute as a number of the dtype; an integer attribute is taken exactly.
std::string constant(const Site& site, std::string_view name) {
  const double real = site.attributes().real(name);
  if (ir::is_float(site.out().dtype)) return literal(real);
  return integer_literal(site.attributes().integer(name, ops::to_integer(real)));
}

Made make_cast(const Site& site) {
  const ir::DType to = site.out().dtype;
  if (to == ir::DType::kBool) return make_expression_kernel(site, "a != 0");
  const bool rounds = ir::is_float(site.in(0).dtype) && !ir::is_float(to);
  return make_expression_kernel(site, rounds ? "whole(a)" : "a");
}

Made make_fill(const Site& site) {
  return make_expression_kernel(site, constant(site, "value").c_str());
}

Made make_iota(const Site& site) {
  if (!all_row_major(site)) return no_kernel();
  Pointwise pointwise = pointwise_of(site);
  Strides along{};
  along[static_cast<std::size_t>(axis_of(site, site.out().shape.rank()))] = 1;
  pointwise.positions = {along};
  // In double: the reference rounds once.
  pointwise.results = {
      ir::is_float(site.out().dtype)
          ? fmt::format("{:.17g} + {:.17g} * (double)p0", site.attributes().real("start"),
                        site.attributes().real("step"))
          : fmt::format("{} + {} * p0", constant(site, "start"), constant(site, "step"))};
  return make_pointwise(site, pointwise);
}

// The index stands still along the axis of the classes.
Made make_one_hot(const Site& site) {
  if (!all_row_major(site)) return no_kernel();
  const ir::Shape& shape = site.out().shape;
  const int axis = axis_of(site, shape.rank());
  const Strides own = strides_in_memory(site.in(0));
  Strides indices{};
  Strides classes{};
  for (int i = 0, from = 0; i < shape.rank(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (i == axis) {
      classes[at] = 1;
    } else {
      indices[at] = own[static_cast<std::size_t>(from++)];
    }
  }
  Pointwise pointwise{.space = site.out(),
                      .inputs = {{site.in(0).dtype, indices}},
                      .outputs = {{site.out().dtype, strides_in_memory(site.out())}},
                      .results = {}};
  pointwise.positions = {classes};
  const auto number = [&](std::string_view name) {
    const double real = site.attributes().real(name);
    return ir::is_float(site.out().dtype) ? literal(real) : integer_literal(ops::to_integer(real));
  };
  pointwise.results = {fmt::format("(a < 0 ? a + {} : a) == p0 ? {} : {}", shape[axis],
                                   number("on"), number("off"))};
  return make_pointwise(site, pointwise);
}

Made make_triangle(const Site& site) {
  if (!all_row_major(site)) return no_kernel();
  const auto rank = static_cast<std::size_t>(site.out().shape.rank());
  Strides above{};
  above[rank - 1] = 1;
  above[rank - 2] = -1;
  Pointwise pointwise = pointwise_of(site);
  pointwise.positions = {above};
  pointwise.results = {fmt::format("p0 {} {} ? a : decltype(a)(0)",
                                   site.attributes().integer("upper") != 0 ? ">=" : "<=",
                                   integer_literal(site.attributes().integer("diagonal")))};
  return make_pointwise(site, pointwise);
}

// Elements are counted row-major whatever the layout.
Made make_dropout(const Site& site) {
  if (!all_unblocked(site) || site.in(1).dtype != ir::DType::kU64) return no_kernel();
  const double ratio = site.attributes().real("ratio");
  Pointwise pointwise = pointwise_of(site);
  pointwise.positions = {site.out().shape.strides()};
  pointwise.once = fmt::format("  const auto key = dropout_key({}ULL, *at_b);\n",
                               static_cast<std::uint64_t>(site.attributes().integer("seed")));
  const std::int64_t first = site.attributes().integer("first");
  pointwise.results = {fmt::format("dropout_hash(key, {}p0) >= {}U ? a * {} : Real(0)",
                                   first > 0 ? fmt::format("{}ULL + ", first) : "",
                                   ops::dropout_threshold(ratio), literal(1.0 / (1.0 - ratio)))};
  return make_pointwise(site, pointwise);
}

}  // namespace

std::span<const TableEntry> value_kernels() {
  static constexpr TableEntry kRows[] = {
      {"cast", make_cast}, {"dropout", make_dropout}, {"fill", make_fill},
      {"iota", make_iota}, {"one_hot", make_one_hot}, {"triangle", make_triangle},
  };
  return kRows;
}

}  // namespace plimsoll::kernels::cuda

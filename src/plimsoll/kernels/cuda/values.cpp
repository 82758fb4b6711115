// Elements that are made from attributes, from their place or from another type: cast, fill, iota,
// one_hot, triangle, dropout, random_uniform.
#include "plimsoll/kernels/cuda/pointwise.h"
#include "plimsoll/kernels/cuda/reduction.h"
#include "plimsoll/kernels/cuda/source_math.h"
#include "plimsoll/kernels/cuda/table.h"
#include "plimsoll/ops/elementwise/cast.h"
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

// Of fp32 to 16 bits in one launch; anything else one after the other.
Made make_cast_group(const Site& site) {
  static_assert(CastGroup::kTensors == ops::kCastGroup);
  constexpr int kTensors = CastGroup::kTensors;
  const ir::DType to = site.out().dtype;
  bool narrows = to == ir::DType::kBF16 || to == ir::DType::kF16;
  CastGroup group{};
  for (int i = 0; i < kTensors; ++i) {
    narrows = narrows && is_f32(site.in(i)) && site.in(i).layout == site.out(i).layout;
    group.count[i] = site.in(i).shape.elements();
  }
  if (!all_unblocked(site)) return no_kernel();
  if (narrows) {
    return make_kernel([group, type = element_of(to)](const Arguments& a, cudaStream_t stream) {
      CastGroup now = group;
      for (int i = 0; i < kTensors; ++i) {
        now.from[i] = input<float>(a, i);
        now.to[i] = a.outputs[static_cast<std::size_t>(i)];
      }
      cast_group(type, now, stream);
    });
  }
  std::vector<PointwiseKernel> each;
  for (int i = 0; i < kTensors; ++i) {
    const bool rounds = ir::is_float(site.in(i).dtype) && !ir::is_float(to);
    Pointwise one;
    one.space = site.out(i);
    one.inputs = {{site.in(i).dtype, strides_in_memory(site.in(i))}};
    one.outputs = {{to, strides_in_memory(site.out(i))}};
    one.results = {to == ir::DType::kBool ? "a != 0" : rounds ? "whole(a)" : "a"};
    PLIMSOLL_TRY(PointwiseKernel kernel, PointwiseKernel::make(one));
    each.push_back(std::move(kernel));
  }
  return make_kernel([each = std::move(each)](const Arguments& a, cudaStream_t stream) {
    for (std::size_t i = 0; i < each.size(); ++i)
      each[i].launch(stream, a.inputs.subspan(i, 1), a.outputs.subspan(i, 1));
  });
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

// Elements are counted row-major whatever the layout. add_dropout has what is added in front.
template <bool adds>
Made make_dropout(const Site& site) {
  constexpr int kData = adds ? 1 : 0;
  if (!all_unblocked(site) || site.in(kData + 1).dtype != ir::DType::kU64) return no_kernel();
  const double ratio = site.attributes().real("ratio");
  Pointwise pointwise = pointwise_of(site);
  pointwise.positions = {site.out().shape.strides()};
  pointwise.once = fmt::format("  const auto key = dropout_key({}ULL, *at_{});\n",
                               static_cast<std::uint64_t>(site.attributes().integer("seed")),
                               input_name(kData + 1));
  const std::int64_t first = site.attributes().integer("first");
  const std::string kept =
      fmt::format("(dropout_hash(key, {}p0) >= {}U ? {} * {} : Real(0))",
                  first > 0 ? fmt::format("{}ULL + ", first) : "", ops::dropout_threshold(ratio),
                  input_name(kData), literal(1.0 / (1.0 - ratio)));
  pointwise.results = {adds ? "a + " + kept : kept};
  return make_pointwise(site, pointwise);
}

Made make_random_uniform(const Site& site) {
  if (!all_row_major(site) || site.in(0).dtype != ir::DType::kU64) return no_kernel();
  const double low = site.attributes().real("low");
  Pointwise pointwise = pointwise_of(site);
  pointwise.positions = {site.out().shape.strides()};
  pointwise.once = fmt::format("  const auto key = dropout_key({}ULL, *at_a);\n",
                               static_cast<std::uint64_t>(site.attributes().integer("seed")));
  pointwise.results = {
      fmt::format("{} + {} * Real((dropout_hash(key, p0) >> 8) * 5.9604644775390625e-8f)",
                  literal(low), literal(site.attributes().real("high") - low))};
  return make_pointwise(site, pointwise);
}

}  // namespace

std::span<const TableEntry> value_kernels() {
  static constexpr TableEntry kRows[] = {
      {"add_dropout", make_dropout<true>},
      {"cast", make_cast},
      {"cast_group", make_cast_group},
      {"dropout", make_dropout<false>},
      {"fill", make_fill},
      {"iota", make_iota},
      {"one_hot", make_one_hot},
      {"random_uniform", make_random_uniform},
      {"triangle", make_triangle},
  };
  return kRows;
}

}  // namespace plimsoll::kernels::cuda

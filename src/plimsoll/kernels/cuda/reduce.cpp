// Reductions over axes: sums, means, products, extremes and their places.
#include "plimsoll/kernels/cuda/reduction.h"
#include "plimsoll/kernels/cuda/table.h"
#include "plimsoll/ops/definition/attribute_rules.h"

namespace plimsoll::kernels::cuda {
namespace {

std::vector<int> reduced_axes(const Site& site) {
  const auto axes = ops::axes_attribute(site.attributes(), "axes", site.in(0).shape.rank());
  PLIMSOLL_CHECK(axes.has_value(), "{} was not verified", site.node.op);
  return *axes;
}

Made make_folded(const Site& site, Fold how, const ReducePlan& plan, double scale,
                 std::int64_t divisor) {
  const Element type = element_of(site.in(0).dtype);
  return make_kernel(
      [=](const Arguments& a, cudaStream_t stream) {
        fold(how, type, plan, a.inputs[0], a.outputs[0], scale, divisor, a.scratch, stream);
      },
      {scratch_of(plan)});
}

bool takes_reduction(const Site& site) {
  const ir::TensorType& out = site.out();
  return is_kernel_element(site.in(0).dtype) && all_unblocked(site) &&
         (out.layout.is_row_major() || out.shape.rank() < 2);
}

template <Fold how>
Made make_fold(const Site& site) {
  if (!takes_reduction(site)) return no_kernel();
  return make_folded(site, how, make_reduce_plan(site.in(0), reduced_axes(site)), 1, 1);
}

Made make_mean(const Site& site) {
  if (!takes_reduction(site)) return no_kernel();
  const ReducePlan plan = make_reduce_plan(site.in(0), reduced_axes(site));
  // Of nothing: 0 times infinity for reals, 0 for integers.
  const double scale = 1.0 / static_cast<double>(plan.count);
  return make_folded(site, Fold::kSum, plan, scale, plan.count);
}

// A sum over all elements does not ask in which order they lie.
Made make_sum_squares(const Site& site) {
  if (!is_kernel_float(site.in(0).dtype) || !all_unblocked(site)) return no_kernel();
  return make_folded(
      site, Fold::kSumSquares,
      make_reduce_plan(std::vector<ReduceAxis>(), {{site.in(0).shape.elements(), 1}}), 1, 1);
}

template <bool largest>
Made make_arg(const Site& site) {
  if (!is_kernel_element(site.in(0).dtype) || !all_row_major(site)) return no_kernel();
  const ir::Shape& shape = site.in(0).shape;
  auto axis = static_cast<int>(site.attributes().integer("axis"));
  if (axis < 0) axis += shape.rank();
  const ReducePlan plan = make_reduce_plan(site.in(0), {axis});
  const bool last = site.attributes().integer("last") != 0;
  const Element type = element_of(site.in(0).dtype);
  return make_kernel(
      [=](const Arguments& a, cudaStream_t stream) {
        find_extreme(largest, last, type, plan, a.inputs[0], output<std::int64_t>(a), a.scratch,
                     stream);
      },
      {scratch_of(plan)});
}

}  // namespace

std::span<const TableEntry> reduce_kernels() {
  static constexpr TableEntry kRows[] = {
      {"argmax", make_arg<true>},
      {"argmin", make_arg<false>},
      {"reduce_max", make_fold<Fold::kMax>},
      {"reduce_mean", make_mean},
      {"reduce_min", make_fold<Fold::kMin>},
      {"reduce_prod", make_fold<Fold::kProduct>},
      {"reduce_sum", make_fold<Fold::kSum>},
      {"sum_squares", make_sum_squares},
  };
  return kRows;
}

}  // namespace plimsoll::kernels::cuda

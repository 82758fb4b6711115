// Reductions over axes, and the plans of all reductions.
#include <algorithm>
#include <limits>

#include "plimsoll/kernels/cuda/reduction.h"
#include "plimsoll/kernels/cuda/table.h"
#include "plimsoll/ops/definition/attribute_rules.h"

namespace plimsoll::kernels::cuda {
namespace {

// Reductions are cut until this many blocks are at work, but not into pieces shorter than these.
constexpr std::int64_t kEnoughBlocks = 1024;
constexpr std::int64_t kLeastOfRow = 4096;
constexpr std::int64_t kLeastOfColumn = 64;
constexpr std::int64_t kColumnsOfBlock = 32;
constexpr std::int64_t kShortRow = 64;

Walk walk_of(const std::vector<ReduceAxis>& axes) {
  std::vector<ReduceAxis> joined;
  for (const ReduceAxis& axis : axes) {
    if (axis.extent == 1) continue;
    if (!joined.empty() && joined.back().step == axis.step * axis.extent &&
        joined.back().also == axis.also * axis.extent) {
      joined.back() = {joined.back().extent * axis.extent, axis.step, axis.also};
    } else {
      joined.push_back(axis);
    }
  }
  if (joined.empty()) joined.push_back({1, 0, 0});
  PLIMSOLL_CHECK(joined.size() <= static_cast<std::size_t>(Walk::kMostAxes));
  Walk out{};
  out.rank = static_cast<int>(joined.size());
  for (std::size_t i = 0; i < joined.size(); ++i) {
    out.extents[i] = static_cast<unsigned>(joined[i].extent);
    out.steps[i] = joined[i].step;
    out.also[i] = joined[i].also;
  }
  return out;
}

std::int64_t product_of(const std::vector<ReduceAxis>& axes) {
  std::int64_t out = 1;
  for (const ReduceAxis& axis : axes) out *= axis.extent;
  return out;
}

}  // namespace

ReducePlan make_reduce_plan(const std::vector<ReduceAxis>& kept,
                            const std::vector<ReduceAxis>& reduced) {
  std::vector<ReduceAxis> ordered = reduced;
  std::ranges::stable_sort(ordered, std::greater<>(), &ReduceAxis::step);
  ReducePlan plan{};
  plan.kept = walk_of(kept);
  plan.reduced = walk_of(ordered);
  plan.outputs = product_of(kept);
  plan.count = product_of(reduced);
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  PLIMSOLL_CHECK(plan.outputs <= kMost && plan.count <= kMost, "a reduction of {} to {} elements",
                 plan.count, plan.outputs);
  const bool neighbours = plan.kept.steps[plan.kept.rank - 1] == 1 && plan.outputs > 1;
  plan.by_columns = neighbours || plan.count < kShortRow;
  const std::int64_t blocks =
      plan.by_columns ? (plan.outputs + kColumnsOfBlock - 1) / kColumnsOfBlock : plan.outputs;
  const std::int64_t least = plan.by_columns ? kLeastOfColumn : kLeastOfRow;
  plan.splits = static_cast<int>(std::clamp<std::int64_t>(
      std::min(kEnoughBlocks / std::max<std::int64_t>(blocks, 1), plan.count / least), 1,
      kEnoughBlocks));
  return plan;
}

ReducePlan make_reduce_plan(const ir::TensorType& type, const std::vector<int>& axes) {
  const Strides strides = strides_in_memory(type);
  std::vector<ReduceAxis> kept;
  std::vector<ReduceAxis> reduced;
  for (int axis = 0; axis < type.shape.rank(); ++axis) {
    const bool is_reduced = std::ranges::find(axes, axis) != axes.end();
    (is_reduced ? reduced : kept)
        .push_back({type.shape[axis], strides[static_cast<std::size_t>(axis)]});
  }
  return make_reduce_plan(kept, reduced);
}

Bytes scratch_of(const ReducePlan& plan) {
  return Bytes(plan.splits > 1 ? plan.splits * plan.outputs * kPartialBytes : 0);
}

Element element_of(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kBF16:
      return Element::kBF16;
    case ir::DType::kF16:
      return Element::kF16;
    case ir::DType::kI64:
      return Element::kI64;
    case ir::DType::kI32:
      return Element::kI32;
    default:
      return Element::kF32;
  }
}

bool is_kernel_element(ir::DType dtype) {
  return is_kernel_float(dtype) || dtype == ir::DType::kI64 || dtype == ir::DType::kI32;
}

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

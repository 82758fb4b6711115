#include "plimsoll/kernels/cuda/reduction.h"

#include <algorithm>
#include <limits>

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

}  // namespace plimsoll::kernels::cuda

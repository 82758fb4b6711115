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

constexpr std::int64_t kGroupBytes = 16;       // of one load
constexpr std::int64_t kMostAcross = 32;       // groups side by side in a block
constexpr std::int64_t kThreadsOfBlock = 256;  // as in columns.cu
constexpr std::int64_t kColumnBlocks = 396;    // three for each multiprocessor of an H200
constexpr std::int64_t kLeastRowsOfThread = 4;
constexpr std::int64_t kMostGridRows = std::int64_t{65535} * 16;

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

std::optional<ColumnShape> column_shape(std::int64_t rows, std::int64_t columns, std::int64_t step,
                                        ir::DType dtype) {
  if (!is_kernel_float(dtype)) return std::nullopt;
  const std::int64_t size = kGroupBytes / width_of(dtype);
  if (rows < 1 || columns < 1 || columns % size != 0 || step % size != 0) return std::nullopt;
  const std::int64_t groups = columns / size;
  std::int64_t across = 1;
  while (across < groups && across < kMostAcross) across *= 2;
  const std::int64_t lanes = kThreadsOfBlock / across;
  // Grids end at 65,535 blocks along their second axis; a thread of a pass takes 16 rows.
  if (rows / lanes >= kMostGridRows) return std::nullopt;
  const std::int64_t blocks = (groups + across - 1) / across;
  const std::int64_t splits = std::clamp<std::int64_t>(
      std::min((kColumnBlocks + blocks - 1) / blocks, rows / (lanes * kLeastRowsOfThread)), 1,
      kColumnBlocks);
  return ColumnShape{rows, columns, step, static_cast<int>(across), static_cast<int>(splits)};
}

Bytes scratch_of(const ColumnShape& shape) {
  return Bytes(shape.splits * shape.columns * kPartialBytes);
}

std::optional<ColumnShape> channel_columns(const ir::TensorType& data) {
  const int rank = data.shape.rank();
  if (rank < 2 || (rank > 2 && data.layout != ir::Layout::channels_last(rank)) ||
      (rank == 2 && !data.layout.is_row_major()))
    return std::nullopt;
  const std::int64_t channels = data.shape[1];
  if (channels == 0) return std::nullopt;
  return column_shape(data.shape.elements() / channels, channels, channels, data.dtype);
}

ColumnSums::ColumnSums(std::int64_t rows, std::int64_t columns, std::int64_t step, ir::DType dtype)
    : columns_(column_shape(rows, columns, step, dtype)), type_(element_of(dtype)) {
  if (!columns_) plan_ = make_reduce_plan({{columns, 1}}, {{rows, step}});
}

Bytes ColumnSums::scratch() const {
  return columns_ ? scratch_of(*columns_) : scratch_of(plan_);
}

void ColumnSums::run(cudaStream_t stream, const std::byte* x, std::byte* y,
                     std::byte* scratch) const {
  if (columns_) return column_sums(type_, *columns_, x, y, scratch, stream);
  fold(Fold::kSum, type_, plan_, x, y, 1, 1, scratch, stream);
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

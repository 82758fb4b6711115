#include "plimsoll/kernels/cpu/strided.h"

#include "plimsoll/kernels/cpu/onednn.h"

namespace plimsoll::kernels {

std::array<std::int64_t, ir::kMaxRank> broadcast_strides_in(const ir::TensorType& operand,
                                                            const ir::Shape& out) {
  const auto own = physical_strides(operand);
  std::array<std::int64_t, ir::kMaxRank> strides{};
  const int shift = out.rank() - operand.shape.rank();
  for (int axis = 0; axis < operand.shape.rank(); ++axis) {
    if (operand.shape[axis] != 1)
      strides[static_cast<std::size_t>(axis + shift)] = own[static_cast<std::size_t>(axis)];
  }
  return strides;
}

StridedLoop make_strided_loop(const ir::TensorType& order,
                              const std::vector<std::array<std::int64_t, ir::kMaxRank>>& strides) {
  StridedLoop loop;
  loop.steps.resize(strides.size());
  const int rank = order.shape.rank();
  for (int i = 0; i < rank; ++i) {
    const auto axis = static_cast<std::size_t>(
        order.layout.is_row_major() ? i : order.layout.order[static_cast<std::size_t>(i)]);
    const std::int64_t extent = order.shape[static_cast<int>(axis)];
    if (extent == 1) continue;
    // The axis before joins this one when a step of it is a whole run through this one, for
    // everybody.
    bool joins = !loop.extents.empty();
    for (std::size_t k = 0; joins && k < strides.size(); ++k)
      joins = loop.steps[k].back() == strides[k][axis] * extent;
    if (joins) {
      loop.extents.back() *= extent;
      for (std::size_t k = 0; k < strides.size(); ++k) loop.steps[k].back() = strides[k][axis];
    } else {
      loop.extents.push_back(extent);
      for (std::size_t k = 0; k < strides.size(); ++k) loop.steps[k].push_back(strides[k][axis]);
    }
  }
  if (loop.extents.empty()) {
    loop.extents.push_back(1);
    for (auto& steps : loop.steps) steps.push_back(1);
  }
  return loop;
}

StridedLoop broadcast_loop(const Site& site) {
  const ir::TensorType& out = site.out();
  std::vector<std::array<std::int64_t, ir::kMaxRank>> strides{broadcast_strides_in(out, out.shape)};
  for (int i = 0; i < site.inputs(); ++i)
    strides.push_back(broadcast_strides_in(site.in(i), out.shape));
  return make_strided_loop(out, strides);
}

}  // namespace plimsoll::kernels

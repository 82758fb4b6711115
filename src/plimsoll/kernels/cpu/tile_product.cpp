#include "plimsoll/kernels/cpu/tile_product.h"

#include "plimsoll/kernels/cpu/onednn.h"

namespace plimsoll::kernels {
namespace {

dnnl::memory::desc matrix(std::int64_t rows, std::int64_t columns, MatrixSteps steps) {
  return describe(ir::DType::kF32, {rows, columns}, {steps.down, steps.along});
}

dnnl::memory unbound(const dnnl::memory::desc& desc) {
  return dnnl::memory(desc, onednn_engine(), DNNL_MEMORY_NONE);
}

}  // namespace

TileProduct::TileProduct(const Sizes& sizes, MatrixSteps a, MatrixSteps b, MatrixSteps c,
                         bool accumulate, int lanes) {
  const auto left = matrix(sizes.rows, sizes.inner, a);
  const auto right = matrix(sizes.inner, sizes.columns, b);
  const auto result = matrix(sizes.rows, sizes.columns, c);
  dnnl::primitive_attr attributes = user_scratchpad();
  if (accumulate) {
    dnnl::post_ops after;
    after.append_sum(1.0F);
    attributes.set_post_ops(after);
  }
  use_threads(1);
  const auto pd = preferred(dnnl::matmul::primitive_desc(dnnl::matmul::desc(left, right, result),
                                                         attributes, onednn_engine()));
  primitive_ = dnnl::matmul(pd);
  use_threads(lanes);
  scratch_ = Bytes(static_cast<std::int64_t>(pd.scratchpad_desc().get_size()));
  for (int i = 0; i < lanes; ++i) {
    Lane lane{dnnl::stream(onednn_engine()),
              unbound(left),
              unbound(right),
              unbound(result),
              unbound(pd.scratchpad_desc()),
              {}};
    lane.arguments = {{DNNL_ARG_SRC, lane.a}, {DNNL_ARG_WEIGHTS, lane.b}, {DNNL_ARG_DST, lane.c}};
    if (scratch_.value > 0) lane.arguments.emplace(DNNL_ARG_SCRATCHPAD, lane.scratch);
    lanes_.push_back(std::move(lane));
  }
}

void TileProduct::run(int lane_index, const float* a, const float* b, float* c,
                      std::byte* scratch) {
  Lane& lane = lanes_[static_cast<std::size_t>(lane_index)];
  lane.a.set_data_handle(const_cast<float*>(a));
  lane.b.set_data_handle(const_cast<float*>(b));
  lane.c.set_data_handle(c);
  if (scratch_.value > 0) lane.scratch.set_data_handle(scratch);
  primitive_.execute(lane.stream, lane.arguments);
}

}  // namespace plimsoll::kernels

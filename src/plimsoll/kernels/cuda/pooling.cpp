// Pooling in any layout without blocks.
#include "plimsoll/kernels/cuda/reduction.h"
#include "plimsoll/kernels/cuda/table.h"
#include "plimsoll/kernels/cuda/volume_steps.h"
#include "plimsoll/ops/reduction/window.h"

namespace plimsoll::kernels::cuda {
namespace {

PoolShape pool_shape(const Site& site, const ir::TensorType& data, const ir::TensorType& results) {
  const ops::AttributeReader attributes = site.attributes();
  const auto window = ops::read_window(attributes, attributes.integers("kernel"));
  PLIMSOLL_CHECK(window.has_value(), "{} was not verified", site.node.op);
  PoolShape out{};
  out.batch = data.shape[0];
  out.channels = data.shape[1];
  const ops::Volume from = ops::volume_of(data.shape);
  const ops::Volume to = ops::volume_of(results.shape);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    out.data[axis] = from[axis];
    out.results[axis] = to[axis];
    out.kernel[axis] = window->kernel[axis];
    out.strides[axis] = window->strides[axis];
    out.dilations[axis] = window->dilations[axis];
    out.begins[axis] = window->begins[axis];
    out.ends[axis] = window->ends[axis];
  }
  set_volume_steps(data, out.data_steps);
  set_volume_steps(results, out.result_steps);
  out.counts_pads =
      attributes.declares("count_include_pad") && attributes.integer("count_include_pad") != 0;
  return out;
}

bool takes_pooling(const Site& site) {
  return is_kernel_float(site.in(0).dtype) && all_unblocked(site);
}

// Results and places lie alike.
bool lie_together(const ir::TensorType& a, const ir::TensorType& b) {
  return a.layout == b.layout;
}

bool has_wide_places(const ir::TensorType& places) {
  return places.dtype != ir::DType::kU8;
}

Made make_max_pool(const Site& site) {
  if (!takes_pooling(site) || !lie_together(site.out(0), site.out(1))) return no_kernel();
  PoolShape shape = pool_shape(site, site.in(0), site.out());
  shape.wide_places = has_wide_places(site.out(1));
  return make_kernel(
      [shape, type = element_of(site.in(0).dtype)](const Arguments& a, cudaStream_t stream) {
        max_pool(type, shape, a.inputs[0], a.outputs[0], a.outputs[1], stream);
      });
}

Made make_max_pool_grad(const Site& site) {
  if (!takes_pooling(site) || !lie_together(site.in(0), site.in(1))) return no_kernel();
  PoolShape shape = pool_shape(site, site.out(), site.in(0));
  shape.wide_places = has_wide_places(site.in(1));
  return make_kernel(
      [shape, type = element_of(site.in(0).dtype)](const Arguments& a, cudaStream_t stream) {
        max_pool_gradient(type, shape, a.inputs[0], a.inputs[1], a.outputs[0], stream);
      });
}

Made make_max_pool_select(const Site& site) {
  if (!takes_pooling(site) || !lie_together(site.out(), site.in(1))) return no_kernel();
  PoolShape shape = pool_shape(site, site.in(0), site.out());
  shape.wide_places = has_wide_places(site.in(1));
  return make_kernel(
      [shape, type = element_of(site.in(0).dtype)](const Arguments& a, cudaStream_t stream) {
        max_pool_select(type, shape, a.inputs[0], a.inputs[1], a.outputs[0], stream);
      });
}

Made make_avg_pool(const Site& site) {
  if (!takes_pooling(site)) return no_kernel();
  return make_kernel(
      [shape = pool_shape(site, site.in(0), site.out()), type = element_of(site.in(0).dtype)](
          const Arguments& a, cudaStream_t stream) {
        average_pool(type, shape, a.inputs[0], a.outputs[0], stream);
      });
}

Made make_avg_pool_grad(const Site& site) {
  if (!takes_pooling(site)) return no_kernel();
  return make_kernel(
      [shape = pool_shape(site, site.out(), site.in(0)), type = element_of(site.in(0).dtype)](
          const Arguments& a, cudaStream_t stream) {
        average_pool_gradient(type, shape, a.inputs[0], a.outputs[0], stream);
      });
}

}  // namespace

std::span<const TableEntry> pooling_kernels() {
  static constexpr TableEntry kRows[] = {
      {"avg_pool", make_avg_pool},
      {"avg_pool_grad", make_avg_pool_grad},
      {"max_pool", make_max_pool},
      {"max_pool_grad", make_max_pool_grad},
      {"max_pool_select", make_max_pool_select},
  };
  return kRows;
}

}  // namespace plimsoll::kernels::cuda

// Gathers, scatters and the gradient of gather (indexing.cu); row-major.
#include "plimsoll/kernels/cuda/reduction.h"
#include "plimsoll/kernels/cuda/table.h"
#include "plimsoll/ops/movement/scatter_reduction.h"

namespace plimsoll::kernels::cuda {
namespace {

bool takes_indices(const Site& site, int indices) {
  const ir::DType dtype = site.in(indices).dtype;
  return all_row_major(site) && (dtype == ir::DType::kI64 || dtype == ir::DType::kI32);
}

bool wide_indices(const Site& site, int indices) {
  return site.in(indices).dtype == ir::DType::kI64;
}

GatherShape gather_shape(const Site& site, const ir::Shape& data) {
  auto axis = static_cast<int>(site.attributes().integer("axis"));
  if (axis < 0) axis += data.rank();
  return {data.elements(0, axis), data[axis], data.elements(axis + 1, data.rank()),
          site.in(1).shape.elements(), wide_indices(site, 1)};
}

Made make_gather(const Site& site) {
  if (!takes_indices(site, 1) || ir::bits(site.out().dtype) < 8) return no_kernel();
  return make_kernel([shape = gather_shape(site, site.in(0).shape),
                      width = width_of(site.out().dtype)](const Arguments& a, cudaStream_t stream) {
    gather(shape, width, a.inputs[0], a.inputs[1], a.outputs[0], stream);
  });
}

Made make_gather_grad(const Site& site) {
  if (!takes_indices(site, 1) || !is_kernel_float(site.out().dtype)) return no_kernel();
  if (!site.attributes().integers("rows", {}).empty()) return no_kernel();
  const GatherShape shape = gather_shape(site, site.out().shape);
  // Places are sorted as 32 bits; a grid has 65,535 rows of blocks.
  constexpr std::int64_t kMostPlaces = std::int64_t{1} << 31;
  constexpr std::int64_t kMostOuter = 65535;
  if (shape.count >= kMostPlaces || shape.extent >= kMostPlaces || shape.outer > kMostOuter)
    return no_kernel();
  return make_kernel(
      [shape, type = element_of(site.out().dtype), adds = site.has(2)](const Arguments& a,
                                                                       cudaStream_t stream) {
        gather_gradient(type, shape, a.inputs[0], a.inputs[1], adds ? a.inputs[2] : nullptr,
                        a.outputs[0], a.scratch, stream);
      },
      {Bytes(gather_gradient_scratch(shape))});
}

ElementIndexShape element_shape(const Site& site) {
  const ir::Shape& data = site.in(0).shape;
  ElementIndexShape out{};
  out.rank = data.rank();
  out.axis = static_cast<int>(site.attributes().integer("axis"));
  if (out.axis < 0) out.axis += out.rank;
  for (int axis = 0; axis < out.rank; ++axis) {
    out.data[axis] = data[axis];
    out.indices[axis] = site.in(1).shape[axis];
  }
  out.wide_indices = wide_indices(site, 1);
  return out;
}

Made make_gather_elements(const Site& site) {
  if (!takes_indices(site, 1) || ir::bits(site.out().dtype) < 8) return no_kernel();
  return make_kernel([shape = element_shape(site), width = width_of(site.out().dtype)](
                         const Arguments& a, cudaStream_t stream) {
    gather_elements(shape, width, a.inputs[0], a.inputs[1], a.outputs[0], stream);
  });
}

Combine combine_of(const Site& site) {
  switch (ops::reduction_of(site.attributes())) {
    case ops::Reduction::kAdd:
      return Combine::kAdd;
    case ops::Reduction::kMul:
      return Combine::kMultiply;
    case ops::Reduction::kMax:
      return Combine::kMax;
    case ops::Reduction::kMin:
      return Combine::kMin;
    case ops::Reduction::kNone:
      break;
  }
  return Combine::kReplace;
}

// The data as they were, then the updates over them.
template <typename Scatter>
Made make_scattered(const Site& site, const Scatter& scatter) {
  const auto bytes = static_cast<std::size_t>(ir::bytes_of(site.out()).value);
  return make_kernel([scatter, bytes](const Arguments& a, cudaStream_t stream) {
    if (a.outputs[0] != a.inputs[0])
      cudaMemcpyAsync(a.outputs[0], a.inputs[0], bytes, cudaMemcpyDeviceToDevice, stream);
    scatter(a, stream);
  });
}

Made make_scatter_elements(const Site& site) {
  if (!takes_indices(site, 1) || !is_kernel_element(site.out().dtype)) return no_kernel();
  return make_scattered(
      site, [shape = element_shape(site), how = combine_of(site),
             type = element_of(site.out().dtype)](const Arguments& a, cudaStream_t stream) {
        scatter_elements(type, how, shape, a.inputs[1], a.inputs[2], a.outputs[0], stream);
      });
}

NdShape nd_shape(const Site& site) {
  const ir::Shape& data = site.in(0).shape;
  const ir::Shape& indices = site.in(1).shape;
  const auto batch_dims = static_cast<int>(site.attributes().integer("batch_dims"));
  NdShape out{};
  out.depth = static_cast<int>(indices[indices.rank() - 1]);
  out.rows = indices.elements(0, indices.rank() - 1);
  out.rows_each = std::max<std::int64_t>(1, indices.elements(batch_dims, indices.rank() - 1));
  out.block = data.elements(batch_dims + out.depth, data.rank());
  out.batch_size = data.elements(batch_dims, data.rank());
  const Strides strides = data.strides();
  for (int d = 0; d < out.depth; ++d) {
    out.extents[d] = data[batch_dims + d];
    out.steps[d] = strides[static_cast<std::size_t>(batch_dims + d)];
  }
  out.wide_indices = wide_indices(site, 1);
  return out;
}

Made make_gather_nd(const Site& site) {
  if (!takes_indices(site, 1) || ir::bits(site.out().dtype) < 8) return no_kernel();
  return make_kernel([shape = nd_shape(site), width = width_of(site.out().dtype)](
                         const Arguments& a, cudaStream_t stream) {
    gather_blocks(shape, width, a.inputs[0], a.inputs[1], a.outputs[0], stream);
  });
}

Made make_scatter_nd(const Site& site) {
  if (!takes_indices(site, 1) || !is_kernel_element(site.out().dtype)) return no_kernel();
  return make_scattered(
      site, [shape = nd_shape(site), how = combine_of(site), type = element_of(site.out().dtype)](
                const Arguments& a, cudaStream_t stream) {
        scatter_blocks(type, how, shape, a.inputs[1], a.inputs[2], a.outputs[0], stream);
      });
}

}  // namespace

std::span<const TableEntry> indexing_kernels() {
  static constexpr TableEntry kRows[] = {
      {"gather", make_gather},
      {"gather_elements", make_gather_elements},
      {"gather_grad", make_gather_grad},
      {"gather_nd", make_gather_nd},
      {"scatter_elements", make_scatter_elements},
      {"scatter_nd", make_scatter_nd},
  };
  return kRows;
}

}  // namespace plimsoll::kernels::cuda

// Layer, root-mean-square and group normalisation: a block takes a row (rows.cu), parameter
// gradients are sums over rows (reduction.cu).
#include "plimsoll/base/checked.h"
#include "plimsoll/kernels/cuda/reduction.h"
#include "plimsoll/kernels/cuda/table.h"

namespace plimsoll::kernels::cuda {
namespace {

// The rows of a tensor and how parameters and statistics lie along its elements.
struct NormGeometry {
  NormRows rows{};
  std::vector<ReduceAxis> kept;     // the parameters
  std::vector<ReduceAxis> reduced;  // the elements of each
};

NormGeometry layer_geometry(const Site& site, const ir::Shape& x) {
  auto axis = static_cast<int>(site.attributes().integer("axis"));
  if (axis < 0) axis += x.rank();
  NormGeometry out;
  out.rows = {x.elements(0, axis), x.elements(axis, x.rank()), 1, 1};
  out.kept = {{out.rows.width, 1, 0}};
  out.reduced = {{out.rows.rows, out.rows.width, 1}};
  return out;
}

NormGeometry group_geometry(const Site& site, const ir::Shape& x) {
  const std::int64_t groups = site.attributes().integer("groups");
  const std::int64_t plane = x.elements(2, x.rank());
  const std::int64_t each = x[1] / groups;
  NormGeometry out;
  out.rows = {x[0] * groups, each * plane, plane, groups};
  out.kept = {{groups, each * plane, 1}, {each, plane, 0}};
  out.reduced = {{x[0], x[1] * plane, groups}, {plane, 1, 0}};
  return out;
}

using Geometry = NormGeometry (*)(const Site&, const ir::Shape&);

// Statistics are fp32, parameters the data's type or fp32.
bool takes_rows(const Site& site, int parameter) {
  return is_kernel_float(site.in(0).dtype) && all_row_major(site) &&
         (site.in(parameter).dtype == site.in(0).dtype || is_f32(site.in(parameter)));
}

// norm(x, gamma, beta?) -> y, mean where there is one, rstd
template <Geometry geometry, bool centred>
Made make_norm(const Site& site) {
  if (!takes_rows(site, 1)) return no_kernel();
  const NormGeometry shape = geometry(site, site.in(0).shape);
  return make_kernel([rows = shape.rows, type = element_of(site.in(0).dtype),
                      parameter = element_of(site.in(1).dtype), has_beta = site.has(2),
                      epsilon = site.attributes().real("epsilon")](const Arguments& a,
                                                                   cudaStream_t stream) {
    norm_rows(type, parameter, rows, epsilon, a.inputs[0], a.inputs[1],
              has_beta ? a.inputs[2] : nullptr, a.outputs[0],
              centred ? output<float>(a, 1) : nullptr, output<float>(a, centred ? 2 : 1), stream);
  });
}

// norm_grad(dy, x, gamma, mean where there is one, rstd) -> dx, dgamma, dbeta where there is a mean
template <Geometry geometry, bool centred>
Made make_norm_grad(const Site& site) {
  if (!takes_rows(site, 2)) return no_kernel();
  const NormGeometry shape = geometry(site, site.in(0).shape);
  const ReducePlan plan = make_reduce_plan(shape.kept, shape.reduced);
  // In parts of rows the sums go on from those of the rows before.
  constexpr std::size_t kBefore = centred ? 5 : 4;
  const bool goes_on = site.has(kBefore);
  if (goes_on && !is_f32(site.in(2))) return no_kernel();
  const std::int64_t sum_bytes = round_up(scratch_of(plan).value, 256);
  const std::int64_t width = site.in(2).shape.elements();
  return make_kernel(
      [rows = shape.rows, plan, goes_on, sum_bytes, width, type = element_of(site.in(0).dtype),
       parameter = element_of(site.in(2).dtype)](const Arguments& a, cudaStream_t stream) {
        std::byte* sums[2] = {a.outputs[1], centred ? a.outputs[2] : nullptr};
        for (std::size_t i = 0; goes_on && i < (centred ? 2 : 1); ++i) {
          if (a.outputs[1 + i] != a.inputs[kBefore + i])
            cudaMemcpyAsync(a.outputs[1 + i], a.inputs[kBefore + i],
                            static_cast<std::size_t>(width) * 4, cudaMemcpyDeviceToDevice, stream);
          sums[i] = a.scratch + sum_bytes + static_cast<std::int64_t>(i) * round_up(width * 4, 256);
        }
        const float* mean = centred ? input<float>(a, 3) : nullptr;
        const float* rstd = input<float>(a, centred ? 4 : 3);
        // Before dx, which may lie over dy.
        row_norm_sums(type, parameter, plan,
                      {a.inputs[0], a.inputs[1], mean, rstd, sums[0], sums[1]}, a.scratch, stream);
        for (std::size_t i = 0; goes_on && i < (centred ? 2 : 1); ++i)
          add_floats(width, reinterpret_cast<const float*>(sums[i]),
                     output<float>(a, static_cast<int>(1 + i)), stream);
        norm_rows_gradient(type, parameter, rows, a.inputs[0], a.inputs[1], a.inputs[2], mean, rstd,
                           a.outputs[0], stream);
      },
      {Bytes(sum_bytes + (goes_on ? 2 * round_up(width * 4, 256) : 0))});
}

}  // namespace

std::span<const TableEntry> row_norm_kernels() {
  static constexpr TableEntry kRows[] = {
      {"group_norm", make_norm<group_geometry, true>},
      {"group_norm_grad", make_norm_grad<group_geometry, true>},
      {"layer_norm", make_norm<layer_geometry, true>},
      {"layer_norm_grad", make_norm_grad<layer_geometry, true>},
      {"rms_norm", make_norm<layer_geometry, false>},
      {"rms_norm_grad", make_norm_grad<layer_geometry, false>},
  };
  return kRows;
}

}  // namespace plimsoll::kernels::cuda

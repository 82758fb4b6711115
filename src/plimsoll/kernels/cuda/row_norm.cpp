// Layer, root-mean-square and group normalisation: a warp takes a row, or where it is too long for
// one, a block (norm_warps.cu, rows.cu); parameter gradients are sums over rows (columns.cu,
// reduction.cu).
#include "plimsoll/base/checked.h"
#include "plimsoll/kernels/cuda/pointwise.h"
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
  const bool warps = warps_take_rows(shape.rows, width_of(site.in(0).dtype));
  return make_kernel(
      [rows = shape.rows, warps, type = element_of(site.in(0).dtype),
       parameter = element_of(site.in(1).dtype), has_beta = site.has(2),
       epsilon = site.attributes().real("epsilon")](const Arguments& a, cudaStream_t stream) {
        const auto run = warps ? norm_rows_by_warps : norm_rows;
        run(type, parameter, rows, epsilon, a.inputs[0], a.inputs[1],
            has_beta ? a.inputs[2] : nullptr, a.outputs[0], centred ? output<float>(a, 1) : nullptr,
            output<float>(a, centred ? 2 : 1), stream);
      });
}

// The sum of a gradient and another tensor, for rows that no warp holds.
Result<PointwiseKernel> make_addition(const Site& site) {
  Pointwise sum;
  sum.space = site.out();
  const PointwiseTensor all{site.out().dtype, strides_in_memory(site.out())};
  sum.inputs = {all, all};
  sum.outputs = {all};
  sum.results = {"a + b"};
  return PointwiseKernel::make(sum);
}

// norm_grad in parts of rows: the sums go on from those of the rows before, which come last.
template <Geometry geometry, bool centred>
Made make_norm_grad_going_on(const Site& site) {
  constexpr std::size_t kSums = centred ? 2 : 1;
  constexpr std::size_t kBefore = 3 + kSums;
  if (!takes_rows(site, 2) || !is_f32(site.in(2))) return no_kernel();
  const NormGeometry shape = geometry(site, site.in(0).shape);
  const ReducePlan plan = make_reduce_plan(shape.kept, shape.reduced);
  const std::int64_t sum_bytes = round_up(scratch_of(plan).value, 256);
  const std::int64_t width = site.in(2).shape.elements();
  const std::int64_t each = round_up(width * 4, 256);
  return make_kernel(
      [rows = shape.rows, plan, sum_bytes, width, each, type = element_of(site.in(0).dtype),
       parameter = element_of(site.in(2).dtype)](const Arguments& a, cudaStream_t stream) {
        std::byte* sums[2] = {a.scratch + sum_bytes,
                              centred ? a.scratch + sum_bytes + each : nullptr};
        const float* mean = centred ? input<float>(a, 3) : nullptr;
        const float* rstd = input<float>(a, centred ? 4 : 3);
        row_norm_sums(type, parameter, plan,
                      {a.inputs[0], a.inputs[1], mean, rstd, sums[0], sums[1]}, a.scratch, stream);
        for (std::size_t i = 0; i < kSums; ++i) {
          if (a.outputs[1 + i] != a.inputs[kBefore + i])
            cudaMemcpyAsync(a.outputs[1 + i], a.inputs[kBefore + i],
                            static_cast<std::size_t>(width) * 4, cudaMemcpyDeviceToDevice, stream);
          add_floats(width, reinterpret_cast<const float*>(sums[i]),
                     output<float>(a, static_cast<int>(1 + i)), stream);
        }
        // Last: dx may lie over dy.
        norm_rows_gradient(type, parameter, rows, a.inputs[0], a.inputs[1], a.inputs[2], mean, rstd,
                           a.outputs[0], stream);
      },
      {Bytes(sum_bytes + static_cast<std::int64_t>(kSums) * each)});
}

// norm_grad(dy, x, gamma, mean where there is one, rstd) -> dx, dgamma, dbeta where there is a
// mean; with another tensor behind them that is added to dx
template <Geometry geometry, bool centred, bool adds = false>
Made make_norm_grad(const Site& site) {
  if (!adds && site.has(centred ? 5 : 4)) return make_norm_grad_going_on<geometry, centred>(site);
  if (!takes_rows(site, 2)) return no_kernel();
  const NormGeometry shape = geometry(site, site.in(0).shape);
  const ReducePlan plan = make_reduce_plan(shape.kept, shape.reduced);
  const bool warps = warps_take_rows(shape.rows, width_of(site.in(0).dtype));
  std::optional<ColumnShape> columns;
  if (shape.rows.plane == 1 && shape.rows.groups == 1) {
    columns = column_shape(shape.rows.rows, shape.rows.width, shape.rows.width, site.in(0).dtype);
  }
  PointwiseKernel addition;
  if (adds && !warps) {
    PLIMSOLL_TRY(addition, make_addition(site));
  }
  return make_kernel(
      [rows = shape.rows, plan, warps, columns, addition = std::move(addition),
       type = element_of(site.in(0).dtype),
       parameter = element_of(site.in(2).dtype)](const Arguments& a, cudaStream_t stream) {
        const float* mean = centred ? input<float>(a, 3) : nullptr;
        const float* rstd = input<float>(a, centred ? 4 : 3);
        // Before dx, which may lie over dy.
        const RowNormGradient sums{a.inputs[0], a.inputs[1],  mean,
                                   rstd,        a.outputs[1], centred ? a.outputs[2] : nullptr};
        if (columns) {
          column_row_norm_sums(type, parameter, *columns, sums, a.scratch, stream);
        } else {
          row_norm_sums(type, parameter, plan, sums, a.scratch, stream);
        }
        const std::byte* other = adds ? a.inputs[centred ? 5 : 4] : nullptr;
        if (warps) {
          norm_rows_gradient_by_warps(type, parameter, rows, a.inputs[0], a.inputs[1], a.inputs[2],
                                      mean, rstd, other, a.outputs[0], stream);
          return;
        }
        norm_rows_gradient(type, parameter, rows, a.inputs[0], a.inputs[1], a.inputs[2], mean, rstd,
                           a.outputs[0], stream);
        if (adds) {
          const std::array<const std::byte*, 2> both{a.outputs[0], other};
          addition.launch(stream, both, a.outputs.first(1));
        }
      },
      // dx that lies over what is added would be gone before it is.
      {columns ? scratch_of(*columns) : scratch_of(plan), !adds || warps});
}

}  // namespace

std::span<const TableEntry> row_norm_kernels() {
  static constexpr TableEntry kRows[] = {
      {"group_norm", make_norm<group_geometry, true>},
      {"group_norm_grad", make_norm_grad<group_geometry, true>},
      {"layer_norm", make_norm<layer_geometry, true>},
      {"layer_norm_grad", make_norm_grad<layer_geometry, true>},
      {"layer_norm_grad_add", make_norm_grad<layer_geometry, true, true>},
      {"rms_norm", make_norm<layer_geometry, false>},
      {"rms_norm_grad", make_norm_grad<layer_geometry, false>},
  };
  return kRows;
}

}  // namespace plimsoll::kernels::cuda

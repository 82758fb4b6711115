// Batch normalisation: sums over each channel, then one pass over the elements. Forward:
// statistics, then y; gradient: the two sums, then dx. Channels that lie last are columns
// (columns.cu); other layouts are summed by reduction.cu and passed over by a generated kernel.
#include "plimsoll/kernels/cuda/pointwise.h"
#include "plimsoll/kernels/cuda/reduction.h"
#include "plimsoll/kernels/cuda/source_math.h"
#include "plimsoll/kernels/cuda/table.h"
#include "plimsoll/ops/elementwise/fused_relu.h"
#include "plimsoll/ops/normalization/norm.h"

namespace plimsoll::kernels::cuda {
namespace {

// A channel's number, to every element of [N, C, ...].
PointwiseTensor along_channels(ir::DType dtype) {
  return {dtype, Strides{0, 1}};
}
PointwiseTensor all_elements(const ir::TensorType& type) {
  return {type.dtype, strides_in_memory(type)};
}

ReducePlan channel_plan(const ir::TensorType& x) {
  std::vector<int> axes;
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    if (axis != 1) axes.push_back(axis);
  }
  return make_reduce_plan(x, axes);
}

bool takes_batch_norm(const Site& site) {
  return is_kernel_float(site.in(0).dtype) && all_unblocked(site);
}

// x at a; gamma, beta, mean and variance at b, c, d, e.
Pointwise line_of(const Site& site, const ir::TensorType& x, ir::DType parameter,
                  ir::DType statistic) {
  Pointwise out;
  out.space = x;
  out.inputs = {all_elements(x), along_channels(parameter), along_channels(parameter),
                along_channels(statistic), along_channels(statistic)};
  out.statements = fmt::format(
      "      const Real rstd = Real(1) / real_sqrt(e + {});\n"
      "      const Real normal = (a - d) * rstd;\n"
      "      const Real line = normal * b + c;\n",
      literal(site.attributes().real("epsilon")));
  return out;
}

Pointwise forward_line(const Site& site, ir::DType statistic) {
  Pointwise out = line_of(site, site.in(0), site.in(1).dtype, statistic);
  out.outputs = {all_elements(site.out())};
  out.results = {ops::has_relu(site.attributes()) ? "no_less_than_0(line)" : "line"};
  return out;
}

// Of batch_norm_add_relu: the other tensor comes last.
Pointwise forward_sum(const Site& site) {
  Pointwise out = forward_line(site, ir::DType::kF32);
  out.inputs.push_back(all_elements(site.in(3)));
  out.results = {"no_less_than_0(line + f)"};
  return out;
}

// Whether all tensors of the data's size lie as the first of them, with parameters of one type.
bool lies_in_columns(const Site& site, int parameter) {
  return site.every_type([&](const ir::TensorType& type) {
    return type.shape.rank() < 2 || type == site.in(0);
  }) && site.in(parameter).dtype == site.in(parameter + 1).dtype &&
         (site.in(parameter).dtype == site.in(0).dtype || is_f32(site.in(parameter)));
}

BatchNormParameters parameters_at(const Arguments& a, int gamma, const float* mean,
                                  const float* variance, double epsilon) {
  const auto at = static_cast<std::size_t>(gamma);
  return {a.inputs[at], a.inputs[at + 1], mean, variance, static_cast<float>(epsilon)};
}

// batch_norm, or batch_norm_add_relu with the other tensor behind its parameters.
template <bool adds>
Made make_batch_norm_in_columns(const Site& site) {
  if (!takes_batch_norm(site) || !lies_in_columns(site, 1)) return no_kernel();
  const std::optional<ColumnShape> columns = channel_columns(site.in(0));
  if (!columns) return no_kernel();
  return make_kernel(
      [shape = *columns, relu = adds || ops::has_relu(site.attributes()),
       epsilon = site.attributes().real("epsilon"), type = element_of(site.in(0).dtype),
       parameter = element_of(site.in(1).dtype)](const Arguments& a, cudaStream_t stream) {
        column_moments(type, shape, a.inputs[0], output<float>(a, 1), output<float>(a, 2),
                       a.scratch, stream);
        column_batch_norm(type, parameter, shape,
                          parameters_at(a, 1, output<float>(a, 1), output<float>(a, 2), epsilon),
                          a.inputs[0], adds ? a.inputs[3] : nullptr, relu, a.outputs[0], stream);
      },
      {scratch_of(*columns)});
}

Made make_batch_norm_grad_in_columns(const Site& site) {
  if (!takes_batch_norm(site) || !lies_in_columns(site, 2)) return no_kernel();
  const std::optional<ColumnShape> columns = channel_columns(site.in(0));
  if (!columns) return no_kernel();
  ScratchLayout scratch;
  const std::int64_t partial = scratch.add(scratch_of(*columns).value);
  const std::int64_t exact = scratch.add(2 * columns->columns * 4);
  return make_kernel(
      [shape = *columns, partial, exact, relu = ops::has_relu(site.attributes()),
       epsilon = site.attributes().real("epsilon"), type = element_of(site.in(0).dtype),
       parameter = element_of(site.in(2).dtype)](const Arguments& a, cudaStream_t stream) {
        column_batch_norm_gradient(
            type, parameter, shape,
            parameters_at(a, 2, input<float>(a, 4), input<float>(a, 5), epsilon),
            {a.inputs[0], a.inputs[1], relu, a.outputs[0], a.outputs[1], a.outputs[2],
             reinterpret_cast<float*>(a.scratch + exact)},
            a.scratch + partial, stream);
      },
      {scratch.size()});
}

template <bool adds>
Made make_batch_norm(const Site& site) {
  if (!takes_batch_norm(site)) return no_kernel();
  const ReducePlan plan = channel_plan(site.in(0));
  const Pointwise line = adds ? forward_sum(site) : forward_line(site, ir::DType::kF32);
  PLIMSOLL_TRY(PointwiseKernel apply, PointwiseKernel::make(line));
  const bool in_place = !adds || site.in(site.inputs() - 1).layout == site.out().layout;
  return make_kernel(
      [apply = std::move(apply), plan, type = element_of(site.in(0).dtype)](const Arguments& a,
                                                                            cudaStream_t stream) {
        moments(type, plan, a.inputs[0], output<float>(a, 1), output<float>(a, 2), a.scratch,
                stream);
        const std::array<const std::byte*, 6> inputs{a.inputs[0],  a.inputs[1],
                                                     a.inputs[2],  a.outputs[1],
                                                     a.outputs[2], adds ? a.inputs[3] : nullptr};
        apply.launch(stream, {inputs.data(), adds ? std::size_t{6} : std::size_t{5}},
                     a.outputs.first(1));
      },
      {scratch_of(plan), in_place});
}

Made make_batch_norm_inference(const Site& site) {
  if (!takes_batch_norm(site) || site.in(3).dtype != site.in(4).dtype ||
      site.in(1).dtype != site.in(2).dtype)
    return no_kernel();
  return make_pointwise(site, forward_line(site, site.in(3).dtype));
}

// dx = gamma * rstd * (dy' - (dbeta + normal * dgamma) / count), dy' cut where relu was.
Made make_batch_norm_grad(const Site& site) {
  if (!takes_batch_norm(site)) return no_kernel();
  const ir::TensorType& x = site.in(1);
  const ReducePlan plan = channel_plan(x);
  const std::int64_t channels = x.shape[1];
  const bool relu = ops::has_relu(site.attributes());
  Pointwise pointwise = line_of(site, x, site.in(2).dtype, ir::DType::kF32);
  pointwise.inputs.push_back(all_elements(site.in(0)));         // f: dy
  pointwise.inputs.push_back(along_channels(ir::DType::kF32));  // g: dgamma
  pointwise.inputs.push_back(along_channels(ir::DType::kF32));  // h: dbeta
  pointwise.statements += relu ? "      const Real adjoint = line > 0 ? f : Real(0);\n"
                               : "      const Real adjoint = f;\n";
  pointwise.outputs = {all_elements(site.out())};
  pointwise.results = {fmt::format("b * rstd * (adjoint - (h + normal * g) * {})",
                                   literal(1.0 / static_cast<double>(plan.count)))};
  PLIMSOLL_TRY(PointwiseKernel apply, PointwiseKernel::make(pointwise));
  const bool in_place = site.in(0).layout == site.out().layout;
  ScratchLayout scratch;
  const std::int64_t partial = scratch.add(scratch_of(plan).value);
  const std::int64_t exact = scratch.add(2 * channels * 4);
  return make_kernel(
      [apply = std::move(apply), plan, partial, exact, channels, relu,
       epsilon = site.attributes().real("epsilon"), type = element_of(x.dtype),
       parameter = element_of(site.in(2).dtype)](const Arguments& a, cudaStream_t stream) {
        auto* sums = reinterpret_cast<float*>(a.scratch + exact);
        batch_norm_sums(type, parameter, plan,
                        {a.inputs[0], a.inputs[1], a.inputs[2], a.inputs[3], input<float>(a, 4),
                         input<float>(a, 5), epsilon, relu, a.outputs[1], a.outputs[2], sums},
                        a.scratch + partial, stream);
        const std::array<const std::byte*, 8> inputs{
            a.inputs[1], a.inputs[2], a.inputs[3],       a.inputs[4],
            a.inputs[5], a.inputs[0], a.scratch + exact, a.scratch + exact + channels * 4};
        apply.launch(stream, inputs, a.outputs.first(1));
      },
      {scratch.size(), in_place});
}

Made make_batch_norm_update(const Site& site) {
  const double step = site.attributes().real("momentum");
  const auto count = static_cast<double>(site.attributes().integer("count"));
  const double unbiased = count > 1 ? count / (count - 1) : 1;
  Pointwise pointwise = pointwise_of(site);
  pointwise.results = {fmt::format("{} * a + {} * c", literal(1 - step), literal(step)),
                       fmt::format("{} * b + {} * d", literal(1 - step), literal(step * unbiased))};
  return make_pointwise(site, pointwise);
}

Made make_batch_norm_update_group(const Site& site) {
  static_assert(StatisticsGroup::kNorms == ops::kStatisticsGroup);
  constexpr int kNorms = StatisticsGroup::kNorms;
  if (!site.every_type([](const ir::TensorType& type) { return is_f32(type); })) return no_kernel();
  const double step = site.attributes().real("momentum");
  const ir::Ints counts = site.attributes().integers("counts");
  StatisticsGroup group{};
  for (int i = 0; i < kNorms; ++i) {
    constexpr std::int64_t kMost = std::int64_t{1} << 30;
    const std::int64_t channels = site.in(i).shape.elements();
    if (channels > kMost) return no_kernel();
    const auto count = static_cast<double>(counts[static_cast<std::size_t>(i)]);
    group.channels[i] = static_cast<int>(channels);
    group.step_of_variance[i] = static_cast<float>(step * (count > 1 ? count / (count - 1) : 1));
  }
  return make_kernel([group, keep = static_cast<float>(1 - step), step = static_cast<float>(step)](
                         const Arguments& a, cudaStream_t stream) {
    StatisticsGroup now = group;
    for (int i = 0; i < kNorms; ++i) {
      now.running_mean[i] = input<float>(a, i);
      now.running_variance[i] = input<float>(a, kNorms + i);
      now.mean[i] = input<float>(a, 2 * kNorms + i);
      now.variance[i] = input<float>(a, 3 * kNorms + i);
      now.to_mean[i] = output<float>(a, i);
      now.to_variance[i] = output<float>(a, kNorms + i);
    }
    statistics_group(now, keep, step, stream);
  });
}

}  // namespace

std::span<const TableEntry> batch_norm_kernels() {
  static constexpr TableEntry kRows[] = {
      {"batch_norm", make_batch_norm_in_columns<false>},
      {"batch_norm", make_batch_norm<false>},
      {"batch_norm_add_relu", make_batch_norm_in_columns<true>},
      {"batch_norm_add_relu", make_batch_norm<true>},
      {"batch_norm_grad", make_batch_norm_grad_in_columns},
      {"batch_norm_grad", make_batch_norm_grad},
      {"batch_norm_inference", make_batch_norm_inference},
      {"batch_norm_update", make_batch_norm_update},
      {"batch_norm_update_group", make_batch_norm_update_group},
  };
  return kRows;
}

}  // namespace plimsoll::kernels::cuda

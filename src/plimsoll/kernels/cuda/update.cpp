// The optimizers' updates, each one pass over its tensors, in place. Formulas as
// ops/update/update.cpp and PyTorch have them; the factors of a step are computed in double, once
// in every thread.
#include <cmath>
#include <optional>

#include "plimsoll/kernels/cuda/pointwise.h"
#include "plimsoll/kernels/cuda/reduction.h"
#include "plimsoll/kernels/cuda/source_math.h"
#include "plimsoll/kernels/cuda/table.h"
#include "plimsoll/ops/update/update.h"

namespace plimsoll::kernels::cuda {
namespace {

// All tensors but the scalars have one shape and lie alike.
bool lie_alike(const Site& site, int tensors) {
  for (int i = 0; i < tensors; ++i) {
    if (site.in(i).shape != site.in(0).shape || site.in(i).layout != site.in(0).layout)
      return false;
  }
  return all_unblocked(site);
}

// An update of the whole weight, or of the part of it that `moments` have the elements of; nothing
// computed yet. None where tensors do not lie alike.
std::optional<Pointwise> update_of(const Site& site, int moments) {
  const auto first = ops::first_of_update(site.attributes());
  if (!first)
    return lie_alike(site, 2 + moments) ? std::optional(pointwise_of(site)) : std::nullopt;
  if (!all_unblocked(site)) return std::nullopt;
  Pointwise out;
  out.space = site.in(2);
  const auto add = [&](std::vector<PointwiseTensor>& to, const ir::TensorType& type, bool whole) {
    const bool moves = type.shape.rank() > 0;
    to.push_back({type.dtype, Strides{moves ? 1 : 0}, whole ? *first : 0});
  };
  for (int i = 0; i < site.outputs(); ++i) add(out.outputs, site.out(i), i == 0);
  for (int i = 0; i < site.inputs(); ++i) {
    if (site.has(i)) add(out.inputs, site.in(i), i < 2);
  }
  return out;
}

// An update of a part leaves the rest of the weight as it is, wherever the result lies.
Made make_update(const Site& site, const Pointwise& pointwise) {
  PLIMSOLL_TRY(std::unique_ptr<Kernel> update, make_pointwise(site, pointwise));
  if (!update || !ops::first_of_update(site.attributes())) return update;
  const KernelNeeds needs{update->scratch(), update->in_place()};
  const auto bytes = static_cast<std::size_t>(ir::bytes_of(site.in(0)).value);
  return make_kernel(
      [update = std::move(update), bytes](const Arguments& a, cudaStream_t stream) {
        if (a.outputs[0] != a.inputs[0])
          cudaMemcpyAsync(a.outputs[0], a.inputs[0], bytes, cudaMemcpyDeviceToDevice, stream);
        update->run(a);
      },
      needs);
}

std::string real(const Site& site, std::string_view name) {
  return literal(site.attributes().real(name));
}

// g scaled, and with the weight's share where decay is added to the gradient. A weight that is not
// decayed must not reach the moments: 0 times infinity is NaN.
std::string gradient(const Site& site, int scale_input, bool decays) {
  std::string out = "b";
  if (site.has(scale_input)) out += " * " + input_name(scale_input);
  if (decays && site.attributes().real("weight_decay") != 0)
    out += fmt::format(" + {} * a", real(site, "weight_decay"));
  return fmt::format("      const Real g_all = {};\n", out);
}

Made make_sgd(const Site& site) {
  if (!lie_alike(site, 2)) return no_kernel();
  Pointwise pointwise = pointwise_of(site);
  pointwise.statements = gradient(site, 2, true);
  pointwise.results = {fmt::format("a - {} * g_all", real(site, "lr"))};
  return make_pointwise(site, pointwise);
}

Made make_momentum(const Site& site) {
  std::optional<Pointwise> pointwise = update_of(site, 1);
  if (!pointwise) return no_kernel();
  pointwise->statements =
      gradient(site, 3, true) +
      fmt::format("      const Real moved = {} * c + g_all;\n", real(site, "momentum"));
  pointwise->results = {fmt::format("a - {} * moved", real(site, "lr")), "moved"};
  return make_update(site, *pointwise);
}

// 1 - beta^t: pow() would take longer than a small tensor's update.
std::string one_without_power(double beta) {
  if (beta <= 0) return "1.0";
  return fmt::format("-expm1(t * ({:.17g}))", std::log(beta));
}

template <bool decoupled>  // the weight decay
Made make_adam(const Site& site) {
  std::optional<Pointwise> pointwise = update_of(site, 2);
  if (!pointwise || site.in(4).dtype != ir::DType::kI64) return no_kernel();
  const ops::AttributeReader attributes = site.attributes();
  const double beta1 = attributes.real("beta1");
  const double beta2 = attributes.real("beta2");
  const double lr = attributes.real("lr");
  const double shrink = decoupled ? 1 - lr * attributes.real("weight_decay") : 1;
  pointwise->once = fmt::format(
      "  const double t = (double)*at_e;\n"
      "  const Real step_size = {:.17g} / {};\n"
      "  const Real root_bias = 1 / sqrt({});\n",
      lr, one_without_power(beta1), one_without_power(beta2));
  pointwise->statements =
      gradient(site, 5, !decoupled) +
      fmt::format(
          "      const Real first = {} * c + {} * g_all;\n"
          "      const Real second = {} * d + {} * g_all * g_all;\n",
          literal(beta1), literal(1 - beta1), literal(beta2), literal(1 - beta2));
  pointwise->results = {
      fmt::format("a * {} - step_size * first / (real_sqrt(second) * root_bias + {})",
                  literal(shrink), real(site, "epsilon")),
      "first", "second"};
  return make_update(site, *pointwise);
}

Made make_adamw_group(const Site& site) {
  static_assert(AdamWGroup::kWeights == ops::kUpdateGroup);
  constexpr int kWeights = AdamWGroup::kWeights;
  const ops::AttributeReader attributes = site.attributes();
  const double beta1 = attributes.real("beta1");
  const double beta2 = attributes.real("beta2");
  const double lr = attributes.real("lr");
  if (!(beta1 > 0 && beta2 > 0) || !all_unblocked(site) ||
      site.in(4 * kWeights).dtype != ir::DType::kI64)
    return no_kernel();
  AdamWGroup group{};
  for (int i = 0; i < kWeights; ++i) {
    const ir::TensorType& weight = site.in(i);
    const ir::TensorType& gradient = site.in(kWeights + i);
    constexpr std::int64_t kMost = std::int64_t{1} << 26;  // all of them: fewer than 2^31
    if (!is_f32(weight) || !is_kernel_float(gradient.dtype) ||
        gradient.dtype != site.in(kWeights).dtype || gradient.layout != weight.layout ||
        site.in(2 * kWeights + i) != weight || site.in(3 * kWeights + i) != weight ||
        weight.shape.elements() > kMost)
      return no_kernel();
    group.count[i] = static_cast<int>(weight.shape.elements());
  }
  const AdamWFactors factors{.rate = lr,
                             .log_beta1 = std::log(beta1),
                             .log_beta2 = std::log(beta2),
                             .beta1 = static_cast<float>(beta1),
                             .rest1 = static_cast<float>(1 - beta1),
                             .beta2 = static_cast<float>(beta2),
                             .rest2 = static_cast<float>(1 - beta2),
                             .shrink = static_cast<float>(1 - lr * attributes.real("weight_decay")),
                             .epsilon = static_cast<float>(attributes.real("epsilon"))};
  return make_kernel([group, factors, type = element_of(site.in(kWeights).dtype)](
                         const Arguments& a, cudaStream_t stream) {
    AdamWGroup now = group;
    for (int i = 0; i < kWeights; ++i) {
      now.gradient[i] = a.inputs[static_cast<std::size_t>(kWeights + i)];
      now.weight[i] = input<float>(a, i);
      now.first[i] = input<float>(a, 2 * kWeights + i);
      now.second[i] = input<float>(a, 3 * kWeights + i);
      now.to_weight[i] = output<float>(a, i);
      now.to_first[i] = output<float>(a, kWeights + i);
      now.to_second[i] = output<float>(a, 2 * kWeights + i);
    }
    adamw_group(type, now, factors, input<std::int64_t>(a, 4 * kWeights), stream);
  });
}

Made make_increment(const Site& site) {
  const std::string by = integer_literal(site.attributes().integer("by"));
  return make_expression_kernel(site, ("a + " + by).c_str());
}

}  // namespace

std::span<const TableEntry> update_kernels() {
  static constexpr TableEntry kRows[] = {
      {"adam", make_adam<false>},    {"adamw", make_adam<true>},  {"adamw_group", make_adamw_group},
      {"increment", make_increment}, {"momentum", make_momentum}, {"sgd", make_sgd},
  };
  return kRows;
}

}  // namespace plimsoll::kernels::cuda

#include "plimsoll/report/memory_laws.h"

#include <algorithm>
#include <map>

#include "plimsoll/base/checked.h"
#include "plimsoll/ops/in_place_pairs.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/schedule/workload/tensor_alignment.h"

namespace plimsoll::report {
namespace {

using Uses = std::array<Bytes, plan::kUseCount>;

Bytes& at(Uses& uses, plan::Use use) {
  return uses[static_cast<std::size_t>(use)];
}

// Values that have no bytes of their own: views, and results that must lie over an input.
std::vector<bool> borrowed_values(const ir::Graph& graph) {
  std::vector<bool> out(graph.values.size(), false);
  for (const ir::Node& node : graph.nodes) {
    const ops::OpDefinition& definition = ops::definition_of(node);
    if (definition.in_place.must()) {
      for (const ops::InPlace::Pair& pair : ops::pairs_of(definition.in_place, node))
        out[node.outputs[static_cast<std::size_t>(pair.output)].index()] = true;
    }
    if (definition.views == nullptr) continue;
    for (const ops::View& view :
         definition.views(ops::call_of(graph, node), ops::output_types(graph, node))) {
      if (!view.input_inside)
        out[node.outputs[static_cast<std::size_t>(view.output)].index()] = true;
    }
  }
  return out;
}

Bytes rounded(Bytes bytes) {
  return Bytes(round_up(bytes.value, schedule::kTensorAlignment.value));
}

// Calls visit(layer, use, bytes) for every tensor and every kernel's scratch.
template <typename Visit>
void for_each_use(const ir::Graph& graph, const ops::KernelTable& kernels, Visit visit) {
  std::vector<bool> is_output(graph.values.size(), false);
  for (const ValueId output : graph.outputs) is_output[output.index()] = true;
  const std::vector<bool> borrowed = borrowed_values(graph);
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    if (borrowed[v]) continue;
    const ir::Value& value = graph.values[v];
    std::string layer;
    if (value.producer.valid()) {
      layer = graph.node(value.producer).layer;
    } else {
      layer = value.name.substr(
          0, value.name.find_last_of('.') == std::string::npos ? 0 : value.name.find_last_of('.'));
    }
    visit(layer, plan::use_of(graph, ValueId(v), is_output[v]), ir::bytes_of(value.type));
  }
  if (kernels.facts.empty()) return;
  for (const ir::Node& node : graph.nodes) {
    const Bytes scratch = kernels.of(graph, node).scratch;
    if (scratch.value > 0) visit(node.layer, plan::Use::kTemporary, rounded(scratch));
  }
}

// The parabola through (0, y0), (1, y1), (2, y2) in the variable k where n = start + k * step, in
// n.
std::optional<Polynomial> parabola(std::int64_t start, std::int64_t step,
                                   std::array<std::int64_t, 3> y) {
  const std::int64_t second = y[2] - 2 * y[1] + y[0];
  const std::int64_t first = y[1] - y[0];
  // y(k) = y0 + first*k + second*k*(k-1)/2, and k = (n - start)/step: exact only where step
  // divides.
  if (second % (step * step) != 0) return std::nullopt;
  const std::int64_t q2 = second / (step * step);
  const std::int64_t numerator = 2 * first - second;
  if (numerator % step != 0) return std::nullopt;
  const std::int64_t l2 = numerator / step;
  return Polynomial{2 * y[0] - l2 * start + q2 * start * start, l2 - 2 * q2 * start, q2};
}

}  // namespace

Bytes LayerBytes::total() const {
  Bytes sum;
  for (const Bytes bytes : by_use) sum += bytes;
  return sum;
}

std::string_view use_name(std::size_t use) {
  return plan::name(static_cast<plan::Use>(use));
}

std::array<Bytes, plan::kUseCount> logical_bytes(const ir::Graph& graph,
                                                 const ops::KernelTable& kernels) {
  Uses out{};
  for_each_use(graph, kernels, [&](const std::string&, plan::Use use, Bytes bytes) {
    at(out, use) += rounded(bytes);
  });
  return out;
}

std::vector<LayerBytes> bytes_by_layer(const ir::Graph& graph, const ops::KernelTable& kernels) {
  std::vector<LayerBytes> out;
  std::map<std::string, std::size_t> index;
  for_each_use(graph, kernels, [&](const std::string& layer, plan::Use use, Bytes bytes) {
    const auto [place, fresh] = index.try_emplace(layer, out.size());
    if (fresh) out.push_back({layer, {}});
    at(out[place->second].by_use, use) += rounded(bytes);
  });
  return out;
}

namespace {

using Samples = std::array<Uses, 4>;

Result<Samples> samples_from(std::int64_t start,
                             const std::function<Result<ir::Graph>(std::int64_t)>& build) {
  Samples out{};
  for (std::size_t k = 0; k < out.size(); ++k) {
    PLIMSOLL_TRY(const ir::Graph graph, build(start + static_cast<std::int64_t>(k)));
    for_each_use(graph, {},
                 [&](const std::string&, plan::Use use, Bytes bytes) { at(out[k], use) += bytes; });
  }
  return out;
}

}  // namespace

Result<Law> find_law(const std::string& variable, std::int64_t here,
                     const std::function<Result<ir::Graph>(std::int64_t)>& build) {
  constexpr std::int64_t kStep = 1;
  std::int64_t start = std::max<std::int64_t>(here, 1);
  auto sample = samples_from(start, build);
  if (!sample && start > 3) {
    start -= 3;
    sample = samples_from(start, build);
  }
  if (!sample) return forward(sample);
  Law law;
  law.variable = variable;
  law.here = here;
  for (std::size_t use = 0; use < plan::kUseCount; ++use) {
    // scratch jumps: tabulated instead
    if (use == static_cast<std::size_t>(plan::Use::kTemporary)) continue;
    const Samples& at = *sample;
    const auto found =
        parabola(start, kStep, {at[0][use].value, at[1][use].value, at[2][use].value});
    if (found && found->at(start + 3 * kStep) == at[3][use].value) law.by_use[use] = found;
  }
  return law;
}

}  // namespace plimsoll::report

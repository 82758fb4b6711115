#include "plimsoll/ops/gradient_needs.h"

namespace plimsoll::ops {
namespace {

std::vector<bool> all_floats(const Call& call) {
  std::vector<bool> out;
  for (int i = 0; i < call.size(); ++i)
    out.push_back(call.has(i) && ir::is_float(call.type(i).dtype));
  return out;
}

ValueId id_of(const Var& var) {
  return var ? var.id() : ValueId();
}

std::vector<ValueId> ids_of(const std::vector<Var>& vars) {
  std::vector<ValueId> out;
  for (const Var& var : vars) out.push_back(id_of(var));
  return out;
}

// Marks what the results depend on, walking the nodes backwards.
std::vector<bool> live_values(const GradientSketch& sketch) {
  std::vector<bool> live(sketch.graph.values.size(), false);
  for (const ValueId result : sketch.results) {
    if (result.valid()) live[result.index()] = true;
  }
  for (auto node = sketch.graph.nodes.rbegin(); node != sketch.graph.nodes.rend(); ++node) {
    bool read = false;
    for (const ValueId output : node->outputs) read = read || live[output.index()];
    if (!read) continue;
    for (const ValueId input : node->inputs) {
      if (input.valid()) live[input.index()] = true;
    }
  }
  return live;
}

}  // namespace

Result<GradientSketch> sketch_gradient(const OpDefinition& definition, const Call& call,
                                       const std::vector<bool>& wanted) {
  PLIMSOLL_CHECK(definition.gradient.rule() != nullptr, "{} has no gradient rule", definition.name);
  PLIMSOLL_TRY(const std::vector<TensorType> types, definition.infer(call));
  Builder builder("gradient of " + std::string(definition.name));
  std::vector<Var> inputs;
  std::vector<Var> outputs;
  std::vector<Var> adjoints;
  for (int i = 0; i < call.size(); ++i) {
    inputs.push_back(call.has(i) ? builder.input(fmt::format("in{}", i), call.type(i)) : Var());
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    outputs.push_back(builder.input(fmt::format("out{}", i), types[i]));
    adjoints.push_back(
        ir::is_float(types[i].dtype) ? builder.input(fmt::format("dy{}", i), types[i]) : Var());
  }
  builder.set_phase(ir::Phase::kBackward);
  const std::vector<bool> asked = wanted.empty() ? all_floats(call) : wanted;
  const std::vector<Var> results =
      definition.gradient.rule()({builder, call.attributes(), inputs, outputs, adjoints, asked});
  std::vector<Var> given;
  for (const Var& result : results) {
    if (result) given.push_back(result);
  }
  PLIMSOLL_TRY(ir::Graph graph, builder.finish(given));
  return GradientSketch{std::move(graph), ids_of(inputs), ids_of(outputs), ids_of(adjoints),
                        ids_of(results)};
}

Result<GradientNeeds> gradient_needs(const OpDefinition& definition, const Call& call,
                                     const std::vector<bool>& wanted) {
  GradientNeeds needs;
  if (!definition.gradient.exists() || definition.gradient.by_decomposition()) {
    PLIMSOLL_TRY(const std::vector<TensorType> types, definition.infer(call));
    needs.outputs.assign(types.size(), false);
    for (int i = 0; i < call.size(); ++i)
      needs.inputs.push_back(definition.gradient.exists() && call.has(i));
    return needs;
  }
  PLIMSOLL_TRY(const GradientSketch sketch, sketch_gradient(definition, call, wanted));
  const std::vector<bool> live = live_values(sketch);
  for (const ValueId id : sketch.inputs) needs.inputs.push_back(id.valid() && live[id.index()]);
  for (const ValueId id : sketch.outputs) needs.outputs.push_back(live[id.index()]);
  return needs;
}

Result<GradientNeeds> gradient_needs(const ir::Graph& graph, const ir::Node& node,
                                     const std::vector<bool>& wanted) {
  return gradient_needs(definition_of(node), call_of(graph, node), wanted);
}

std::string to_string(std::string_view op, const GradientNeeds& needs) {
  std::string out = std::string(op) + " reads";
  const std::size_t before = out.size();
  for (std::size_t i = 0; i < needs.inputs.size(); ++i) {
    if (needs.inputs[i]) out += fmt::format(" in{}", i);
  }
  for (std::size_t i = 0; i < needs.outputs.size(); ++i) {
    if (needs.outputs[i]) out += fmt::format(" out{}", i);
  }
  return out.size() == before ? out + " nothing" : out;
}

}  // namespace plimsoll::ops

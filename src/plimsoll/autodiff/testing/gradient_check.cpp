#include "plimsoll/autodiff/testing/gradient_check.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <unordered_map>

#include "plimsoll/autodiff/differentiate.h"
#include "plimsoll/ops/evaluation/evaluate_call.h"
#include "plimsoll/ops/evaluation/interpreter.h"
#include "plimsoll/ops/functions.h"
#include "plimsoll/ops/gradient_needs.h"

namespace plimsoll::autodiff {
namespace {

using ops::Array;
using Sources = std::unordered_map<std::string, Array>;
using Variables = std::vector<std::string>;

std::string title(const OperatorExample& example) {
  return example.what.empty() ? example.op : fmt::format("{} ({})", example.op, example.what);
}

bool is_variable(const OperatorExample& example, std::size_t input) {
  const bool fixed = std::find(example.fixed.begin(), example.fixed.end(),
                               static_cast<int>(input)) != example.fixed.end();
  return !fixed && example.inputs[input] && example.inputs[input]->is_real();
}

// A scalar made of sources; everything below differentiates one of these.
struct Scalar {
  Sources sources;
  Variables variables;                         // names of the sources to differentiate by
  std::function<Result<Var>(Builder&)> build;  // an absent Var: there is nothing to differentiate
};

Var find_source(Builder& builder, const std::string& name) {
  const ir::Graph& graph = builder.graph();
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    if (ir::is_source(graph.values[v].kind) && graph.values[v].name == name) {
      return builder.var(ValueId(v));
    }
  }
  return {};
}

Var source(Builder& builder, const std::string& name, const Array& array) {
  const Var found = find_source(builder, name);
  return found ? found : builder.input(name, array.type);
}

Result<double> evaluate_scalar(const ir::Graph& graph, const Sources& sources) {
  PLIMSOLL_TRY(const ops::Environment values, ops::interpret(graph, sources));
  return values[graph.outputs.front().index()]->reals.front();
}

// The adjoint of every variable by differentiate(); zeros where there is none.
Result<std::vector<Array>> exact_gradient(const Scalar& scalar) {
  Builder builder("exact");
  PLIMSOLL_TRY(const Var y, scalar.build(builder));
  std::vector<Var> variables;
  for (const std::string& name : scalar.variables) variables.push_back(find_source(builder, name));
  PLIMSOLL_TRY(const std::vector<Var> adjoints, differentiate(builder, y, variables));
  std::vector<Var> outputs{y};
  for (const Var& adjoint : adjoints) {
    if (adjoint) outputs.push_back(adjoint);
  }
  PLIMSOLL_TRY(const ir::Graph graph, builder.finish(outputs));
  PLIMSOLL_RETURN_IF_ERROR(ops::verify(graph));
  PLIMSOLL_TRY(const ops::Environment values, ops::interpret(graph, scalar.sources));
  std::vector<Array> out;
  for (std::size_t i = 0; i < adjoints.size(); ++i) {
    out.push_back(adjoints[i] ? *values[adjoints[i].id().index()]
                              : Array(scalar.sources.at(scalar.variables[i]).type));
  }
  return out;
}

Result<double> difference(const ir::Graph& graph, Sources& sources, double& element, double step) {
  const double here = element;
  element = here + step;
  PLIMSOLL_TRY(const double above, evaluate_scalar(graph, sources));
  element = here - step;
  PLIMSOLL_TRY(const double below, evaluate_scalar(graph, sources));
  element = here;
  return (above - below) / (2 * step);
}

bool is_close(double a, double b, double tolerance) {
  return std::abs(a - b) <= tolerance * std::max({1.0, std::abs(a), std::abs(b)});
}

Status compare(const Scalar& scalar, const GradientCheckOptions& options, const std::string& name) {
  Builder builder("differences");
  PLIMSOLL_TRY(const Var y, scalar.build(builder));
  if (!y) return {};
  PLIMSOLL_TRY(const ir::Graph graph, builder.finish({y}));
  auto exact = exact_gradient(scalar);
  if (!exact) return forward(exact, name);
  Sources sources = scalar.sources;
  for (std::size_t v = 0; v < scalar.variables.size(); ++v) {
    const Array& gradient = (*exact)[v];
    std::vector<double>& elements = sources.at(scalar.variables[v]).reals;
    for (std::size_t i = 0; i < elements.size(); ++i) {
      PLIMSOLL_TRY(const double measured, difference(graph, sources, elements[i], options.step));
      if (!is_close(gradient.reals[i], measured, options.tolerance)) {
        return bad_input("{}: d/d{}[{}] is {}, differences say {}", name, scalar.variables[v], i,
                         gradient.reals[i], measured);
      }
    }
  }
  return {};
}

// The loss of one call: sum of y_j * r_j over the float outputs. `inputs` names the sources.
Result<Var> build_loss(Builder& builder, const OperatorExample& example, const Sources& sources,
                       const std::vector<std::string>& inputs, const std::string& weights) {
  std::vector<Var> vars;
  for (const std::string& name : inputs) {
    vars.push_back(name.empty() ? Var() : source(builder, name, sources.at(name)));
  }
  const std::vector<Var> outputs = builder.call(example.op, vars, example.attributes);
  if (builder.error()) return tl::unexpected<Error>(*builder.error());
  Var loss;
  for (std::size_t j = 0; j < outputs.size(); ++j) {
    if (!ir::is_float(outputs[j].dtype())) continue;
    const std::string name = fmt::format("{}{}", weights, j);
    const Var weight = source(builder, name, sources.at(name));
    const Var term =
        ops::sum(ops::cast(outputs[j] * ops::cast(weight, outputs[j].dtype()), ir::DType::kF64));
    loss = loss ? loss + term : term;
  }
  return loss;
}

std::vector<std::string> input_names(const OperatorExample& example) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < example.inputs.size(); ++i) {
    out.push_back(example.inputs[i] ? fmt::format("in{}", i) : "");
  }
  return out;
}

std::vector<const Array*> pointers(const OperatorExample& example) {
  std::vector<const Array*> out;
  for (const auto& input : example.inputs) out.push_back(input ? &*input : nullptr);
  return out;
}

// Inputs, and for every prefix one set of weights for the outputs.
Result<Sources> sources_of(const OperatorExample& example,
                           const std::vector<std::string>& prefixes) {
  Sources out;
  for (std::size_t i = 0; i < example.inputs.size(); ++i) {
    if (example.inputs[i]) out[fmt::format("in{}", i)] = *example.inputs[i];
  }
  auto results = ops::evaluate_call(example.op, pointers(example), example.attributes);
  if (!results) return forward(results, title(example));
  std::uint64_t seed = 1000;
  for (const std::string& prefix : prefixes) {
    for (std::size_t j = 0; j < results->size(); ++j) {
      out[fmt::format("{}{}", prefix, j)] =
          example_signed((*results)[j].type.shape, 0.5, 1.5, seed++);
    }
  }
  return out;
}

Variables variable_inputs(const OperatorExample& example) {
  Variables out;
  for (std::size_t i = 0; i < example.inputs.size(); ++i) {
    if (is_variable(example, i)) out.push_back(fmt::format("in{}", i));
  }
  return out;
}

// op(x, x): both inputs are the first source, where that is possible.
Status check_one_value_twice(const OperatorExample& example, const GradientCheckOptions& options) {
  if (!example.smooth || example.inputs.size() != 2 || !is_variable(example, 0) ||
      !is_variable(example, 1) || example.inputs[0]->type != example.inputs[1]->type) {
    return {};
  }
  Scalar scalar;
  PLIMSOLL_TRY(scalar.sources, sources_of(example, {"r"}));
  scalar.variables = {"in0"};
  scalar.build = [&](Builder& b) {
    return build_loss(b, example, scalar.sources, {"in0", "in0"}, "r");
  };
  return compare(scalar, options, title(example) + ", one value twice");
}

// Floats become NaN, integers something no shape or index expects.
Array poison(const Array& array) {
  Array out = array;
  out.reals.assign(out.reals.size(), std::numeric_limits<double>::quiet_NaN());
  out.integers.assign(out.integers.size(), std::numeric_limits<std::int64_t>::min());
  out.round();
  return out;
}

// The result values of a sketch.
Result<std::vector<Array>> run_sketch(const ops::GradientSketch& sketch, const Sources& sources) {
  PLIMSOLL_TRY(const ops::Environment values, ops::interpret(sketch.graph, sources));
  std::vector<Array> out;
  for (const ValueId result : sketch.results) {
    if (result.valid()) out.push_back(*values[result.index()]);
  }
  return out;
}

}  // namespace

Status check_first_order(const OperatorExample& example, const GradientCheckOptions& options) {
  Scalar scalar;
  PLIMSOLL_TRY(scalar.sources, sources_of(example, {"r"}));
  scalar.variables = variable_inputs(example);
  scalar.build = [&](Builder& b) {
    return build_loss(b, example, scalar.sources, input_names(example), "r");
  };
  return compare(scalar, options, title(example) + ", first order");
}

Status check_second_order(const OperatorExample& example, const GradientCheckOptions& options) {
  Scalar scalar;
  PLIMSOLL_TRY(scalar.sources, sources_of(example, {"r"}));
  const Variables inputs = variable_inputs(example);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    scalar.sources["s" + inputs[i]] =
        example_signed(scalar.sources.at(inputs[i]).type.shape, 0.5, 1.5, 2000 + i);
  }
  scalar.build = [&](Builder& b) -> Result<Var> {
    PLIMSOLL_TRY(const Var loss, build_loss(b, example, scalar.sources, input_names(example), "r"));
    std::vector<Var> wrt;
    for (const std::string& name : inputs) wrt.push_back(find_source(b, name));
    PLIMSOLL_TRY(const std::vector<Var> adjoints, differentiate(b, loss, wrt));
    Var total;
    for (std::size_t i = 0; i < adjoints.size(); ++i) {
      if (!adjoints[i]) continue;
      const std::string name = "s" + inputs[i];
      const Var term = ops::sum(adjoints[i] * source(b, name, scalar.sources.at(name)));
      total = total ? total + term : term;
    }
    return total;
  };
  scalar.variables = inputs;
  Builder probe("probe");
  PLIMSOLL_TRY(const Var loss,
               build_loss(probe, example, scalar.sources, input_names(example), "r"));
  for (int j = 0; find_source(probe, fmt::format("r{}", j)); ++j) {
    scalar.variables.push_back(fmt::format("r{}", j));
  }
  return loss ? compare(scalar, options, title(example) + ", second order") : Status{};
}

Status check_used_twice(const OperatorExample& example, const GradientCheckOptions& options) {
  Scalar scalar;
  PLIMSOLL_TRY(scalar.sources, sources_of(example, {"r", "q"}));
  scalar.variables = variable_inputs(example);
  scalar.build = [&](Builder& b) -> Result<Var> {
    const auto names = input_names(example);
    PLIMSOLL_TRY(const Var first, build_loss(b, example, scalar.sources, names, "r"));
    PLIMSOLL_TRY(const Var second, build_loss(b, example, scalar.sources, names, "q"));
    return first + second;
  };
  PLIMSOLL_RETURN_IF_ERROR(compare(scalar, options, title(example) + ", used twice"));
  return check_one_value_twice(example, options);
}

Status check_poisoned(const OperatorExample& example) {
  const ops::OpDefinition* definition = ops::find_definition(example.op);
  PLIMSOLL_CHECK(definition != nullptr, "no operator '{}'", example.op);
  if (definition->gradient.rule() == nullptr) return {};
  std::vector<const ir::TensorType*> types;
  std::vector<bool> wanted;
  for (std::size_t i = 0; i < example.inputs.size(); ++i) {
    types.push_back(example.inputs[i] ? &example.inputs[i]->type : nullptr);
    wanted.push_back(is_variable(example, i));
  }
  const ops::Call call(types, definition->read(example.attributes));
  PLIMSOLL_TRY(const ops::GradientSketch sketch, ops::sketch_gradient(*definition, call, wanted));
  PLIMSOLL_TRY(const ops::GradientNeeds needs, ops::gradient_needs(*definition, call, wanted));
  PLIMSOLL_TRY(Sources clean, sources_of(example, {"dy"}));
  PLIMSOLL_TRY(const std::vector<Array> outputs,
               ops::evaluate_call(example.op, pointers(example), example.attributes));
  for (std::size_t j = 0; j < outputs.size(); ++j) {
    clean[fmt::format("out{}", j)] = outputs[j];
    Array& dy = clean.at(fmt::format("dy{}", j));
    if (outputs[j].is_real()) dy = Array::of_reals(dy.type.shape, dy.reals, outputs[j].type.dtype);
  }
  Sources poisoned = clean;
  for (std::size_t i = 0; i < needs.inputs.size(); ++i) {
    if (example.inputs[i] && !needs.inputs[i])
      poisoned[fmt::format("in{}", i)] = poison(*example.inputs[i]);
  }
  for (std::size_t j = 0; j < needs.outputs.size(); ++j) {
    if (!needs.outputs[j]) poisoned[fmt::format("out{}", j)] = poison(outputs[j]);
  }
  PLIMSOLL_TRY(const std::vector<Array> expected, run_sketch(sketch, clean));
  PLIMSOLL_TRY(const std::vector<Array> found, run_sketch(sketch, poisoned));
  if (expected != found) {
    return bad_input("{}: its gradient reads more than it says: {}", title(example),
                     ops::to_string(example.op, needs));
  }
  return {};
}

Status check_decomposition(const OperatorExample& example, double tolerance) {
  const ops::OpDefinition* definition = ops::find_definition(example.op);
  PLIMSOLL_CHECK(definition != nullptr, "no operator '{}'", example.op);
  if (definition->decompose == nullptr) return {};
  PLIMSOLL_TRY(const Sources sources, sources_of(example, {}));
  PLIMSOLL_TRY(const std::vector<Array> fused,
               ops::evaluate_call(example.op, pointers(example), example.attributes));
  Builder builder("decomposition");
  std::vector<Var> inputs;
  for (const std::string& name : input_names(example)) {
    inputs.push_back(name.empty() ? Var() : source(builder, name, sources.at(name)));
  }
  const std::vector<Var> parts =
      definition->decompose({builder, definition->read(example.attributes), inputs});
  PLIMSOLL_TRY(const ir::Graph graph, builder.finish(parts));
  PLIMSOLL_TRY(const ops::Environment values, ops::interpret(graph, sources));
  for (std::size_t j = 0; j < parts.size(); ++j) {
    const Array& simple = *values[parts[j].id().index()];
    if (simple.type != fused[j].type) {
      return bad_input("{}: output {} is {}, its decomposition makes {}", title(example), j,
                       ir::to_string(fused[j].type), ir::to_string(simple.type));
    }
    for (std::int64_t i = 0; i < simple.elements(); ++i) {
      if (!is_close(simple.number(i), fused[j].number(i), tolerance)) {
        return bad_input("{}: output {}[{}] is {}, its decomposition says {}", title(example), j, i,
                         fused[j].number(i), simple.number(i));
      }
    }
  }
  return {};
}

Status check_gradient(const OperatorExample& example, const GradientCheckOptions& options) {
  PLIMSOLL_RETURN_IF_ERROR(check_first_order(example, options));
  PLIMSOLL_RETURN_IF_ERROR(check_used_twice(example, options));
  PLIMSOLL_RETURN_IF_ERROR(check_poisoned(example));
  PLIMSOLL_RETURN_IF_ERROR(check_decomposition(example));
  return example.smooth ? check_second_order(example, options) : Status{};
}

}  // namespace plimsoll::autodiff

#include "plimsoll/ops/builder.h"

#include "plimsoll/ops/registry.h"

namespace plimsoll::ops {

const ir::TensorType& Var::type() const {
  static const ir::TensorType kPlaceholder;
  return builder_ != nullptr && id_.valid() ? builder_->graph().value(id_).type : kPlaceholder;
}

Builder::Scope::Scope(Builder& builder, std::string_view name)
    : builder_(builder), outer_(builder.layer()) {
  builder_.set_layer(outer_.empty() ? std::string(name) : fmt::format("{}.{}", outer_, name));
}

std::string Builder::qualified(std::string_view name) const {
  return layer_.empty() ? std::string(name) : fmt::format("{}.{}", layer_, name);
}

Var Builder::source(std::string_view name, ir::ValueKind kind, const ir::TensorType& type,
                    ir::Init init) {
  return Var(this, graph_.add_source(qualified(name), kind, type, init));
}

Var Builder::input(std::string_view name, const ir::TensorType& type) {
  return source(name, ir::ValueKind::kInput, type);
}

Var Builder::weight(std::string_view name, const ir::TensorType& type, ir::Init init) {
  return source(name, ir::ValueKind::kWeight, type, init);
}

Var Builder::constant(std::string_view name, const Array& array) {
  const Var out = source(name, ir::ValueKind::kConstant, array.type);
  graph_.constants.push_back({out.id(), array.to_bytes()});
  return out;
}

Var Builder::fill(const ir::TensorType& type, double value) {
  return call1("fill", {},
               {{"shape", ir::Ints(type.shape.begin(), type.shape.end())},
                {"dtype", std::string(ir::name(type.dtype))},
                {"value", value}});
}

std::vector<Var> Builder::call(std::string_view op, std::vector<Var> inputs,
                               ir::Attributes attributes) {
  ir::Node node;
  node.op = op;
  node.layer = layer_;
  node.phase = phase_;
  node.attributes = std::move(attributes);
  for (const Var& input : inputs) node.inputs.push_back(input.id());
  std::vector<TensorType> types;
  if (!error_) {
    auto inferred = infer(graph_, node);
    if (inferred) {
      types = std::move(*inferred);
    } else {
      fail(inferred.error().message);
    }
  }
  if (error_) {
    const OpDefinition* definition = find_definition(op);
    const int outputs =
        definition && definition->outputs.most < kMany ? definition->outputs.most : 1;
    const TensorType placeholder = inputs.empty() ? TensorType{} : inputs.front().type();
    types.assign(static_cast<std::size_t>(std::max(outputs, 1)), placeholder);
  }
  const auto kind =
      phase_ == ir::Phase::kForward ? ir::ValueKind::kActivation : ir::ValueKind::kGradient;
  const NodeId id = graph_.add_node(std::move(node), types, kind);
  std::vector<Var> out;
  for (const ValueId value : graph_.node(id).outputs) out.push_back(var(value));
  return out;
}

Var Builder::call1(std::string_view op, std::vector<Var> inputs, ir::Attributes attributes) {
  return call(op, std::move(inputs), std::move(attributes)).front();
}

void Builder::fail(std::string message) {
  if (error_) return;
  error_ = Error{ErrorCode::kBadInput,
                 layer_.empty() ? std::move(message) : fmt::format("{}: {}", layer_, message)};
}

Result<ir::Graph> Builder::finish(std::span<const Var> outputs) {
  if (error_) return tl::unexpected<Error>(*error_);
  graph_.outputs.clear();
  for (const Var& output : outputs) graph_.outputs.push_back(output.id());
  PLIMSOLL_RETURN_IF_ERROR(ir::verify(graph_));
  return std::move(graph_);
}

}  // namespace plimsoll::ops

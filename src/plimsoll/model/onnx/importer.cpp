#include "plimsoll/model/onnx/importer.h"

#include <algorithm>

#include "plimsoll/base/log.h"
#include "plimsoll/model/onnx/fold_batch_norm.h"
#include "plimsoll/model/onnx/without_layer.h"
#include "plimsoll/ops/functions.h"
#include "plimsoll/rewrite/recover.h"

namespace plimsoll::model::onnx {
namespace {

constexpr std::int64_t kNewestOpset = 28;

std::string_view plain_domain(std::string_view domain) {
  return domain == "ai.onnx" ? "" : domain;
}

std::string function_key(std::string_view domain, std::string_view name,
                         std::string_view overload) {
  return fmt::format("{}\n{}\n{}", plain_domain(domain), name, overload);
}

Result<std::int64_t> version_of(const std::vector<OpsetFile>& opsets, std::string_view domain) {
  for (const OpsetFile& opset : opsets) {
    if (plain_domain(opset.domain) == plain_domain(domain)) return opset.version;
  }
  // Exporters forget to import the contrib domains they use.
  if (!plain_domain(domain).empty()) return 1;
  return bad_input("the file imports no operator set of ONNX");
}

// "/encoder/layer.3/attention/MatMul" belongs to encoder.layer.3.attention.
std::string layer_of(std::string_view name) {
  const std::size_t last = name.rfind('/');
  if (last == std::string_view::npos) return std::string(name);
  std::string out(name.substr(0, last));
  out.erase(
      0, out.find_first_not_of('/') == std::string::npos ? out.size() : out.find_first_not_of('/'));
  std::replace(out.begin(), out.end(), '/', '.');
  return out;
}

}  // namespace

TensorId Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer) {
    if (const auto place = scope->names.find(name); place != scope->names.end())
      return place->second;
  }
  return {};
}

Importer::Importer(const ModelFile& file, store::DataFolder* folder, const ImportOptions& options,
                   const OperatorSet& operators)
    : file_(file),
      folder_(folder),
      options_(options),
      operators_(operators),
      builder_(std::string(file.graph.name)) {
  for (const auto& [symbol, value] : options.dims) bound_.emplace(symbol, value);
  for (const FunctionFile& function : file.functions) {
    functions_.emplace(function_key(function.domain, function.name, function.overload), &function);
  }
}

TensorId Importer::add(Tensor tensor) {
  if (tensor.var && tensor.var.id().valid()) {
    ir::Value& value = builder_.graph().value(tensor.var.id());
    if (!ir::is_source(value.kind) && !tensor.name.empty()) value.name = tensor.name;
  }
  tensors_.push_back(std::move(tensor));
  return TensorId(tensors_.size() - 1);
}

TensorId Importer::add_known(std::string name, std::shared_ptr<const ops::Array> array) {
  folded_ += array->elements();
  const ir::TensorType type = array->type;
  return add({.name = std::move(name), .type = type, .known = std::move(array)});
}

Result<TensorId> Importer::add_items(std::string_view name, std::vector<TensorId> items) {
  folded_ += static_cast<std::int64_t>(items.size());
  if (folded_ > kMostFolded) return bad_input("its sequences are too long");
  return add({.name = std::string(name),
              .items = std::make_shared<const std::vector<TensorId>>(std::move(items))});
}

std::string Importer::unique(std::string_view name) {
  std::string out(name.empty() ? "constant" : name);
  for (int i = 1; !used_names_.insert(out).second; ++i) out = fmt::format("{}#{}", name, i);
  return out;
}

ops::Var Importer::random_counter() {
  if (!random_counter_) {
    const WithoutLayer outside(builder_);
    random_counter_ = builder_.source(unique("random_counter"), ir::ValueKind::kState,
                                      {ir::DType::kU64, {}, {}}, {ir::Init::Kind::kConstant, 0, 0});
    at_end_of_step({"increment", {random_counter_}, {}, 1});
  }
  return random_counter_;
}

ops::Var Importer::filled_weight(std::string_view name, const ir::TensorType& type, double value) {
  const WithoutLayer outside(builder_);
  return builder_.weight(unique(name), type, {ir::Init::Kind::kConstant, value, 0});
}

const FunctionFile* Importer::find_function(const NodeFile& node) const {
  const auto place = functions_.find(function_key(node.domain, node.op, node.overload));
  return place == functions_.end() ? nullptr : place->second;
}

Status Importer::convert(const std::vector<WireBytes>& nodes, Scope& scope) {
  if (scope.depth > kMostDepth) return bad_input("bodies are nested more than {} deep", kMostDepth);
  if (options_.capacity.is_limited()) lists_in_parts_.merge(lists_in_parts(nodes));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    auto node = read_node(nodes[i]);
    if (!node) return forward(node, fmt::format("node {}", i));
    if (const Status status = convert_node(*node, scope); !status) {
      const std::string name = node->name.empty() ? fmt::format("#{}", i) : std::string(node->name);
      return forward(status, fmt::format("node '{}' ({})", name, node->op));
    }
  }
  return {};
}

Status Importer::convert_node(const NodeFile& node, Scope& scope) {
  const auto built = static_cast<std::int64_t>(builder_.graph().nodes.size());
  if (++steps_ > kMostSteps || built > kMostSteps)
    return bad_input("more than {} nodes after inlining and unrolling", kMostSteps);
  if (!scope.repeats) place_ = steps_;
  const Operator* op = operators_.find(node.domain, node.op);
  if (op == nullptr) {
    if (const FunctionFile* function = find_function(node))
      return call_function(*function, node, scope);
    return bad_input("operator '{}{}{}' is not supported", node.domain,
                     node.domain.empty() ? "" : ":", node.op);
  }
  PLIMSOLL_RETURN_IF_ERROR(operators_.check(*op, node));
  PLIMSOLL_TRY(const std::int64_t version, version_of(*scope.opsets, node.domain));
  std::vector<TensorId> inputs;
  for (const std::string_view name : node.inputs) {
    TensorId id;
    if (!name.empty()) {
      id = scope.find(name);
      if (!id.valid() && !scope.names.contains(name)) {
        return bad_input("reads '{}', which is no input and is made by no node before it", name);
      }
    }
    inputs.push_back(id);
  }
  builder_.set_layer(layer_of(node.name));
  PLIMSOLL_TRY(const std::vector<TensorId> outputs,
               operators_.convert(*this, node, scope, *op, version, std::move(inputs)));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (!outputs[i].valid())
      return bad_input("output {} ('{}') is not supported", i, node.outputs[i]);
    scope.names.insert_or_assign(node.outputs[i], outputs[i]);
  }
  return {};
}

Status Importer::call_function(const FunctionFile& function, const NodeFile& node, Scope& scope) {
  std::unordered_map<std::string_view, const AttributeFile*> attributes;
  for (const AttributeFile& attribute : function.defaults) attributes[attribute.name] = &attribute;
  for (const AttributeFile& attribute : node.attributes) {
    if (attribute.refers_to.empty()) {
      attributes[attribute.name] = &attribute;
    } else if (scope.attributes != nullptr) {
      const auto place = scope.attributes->find(attribute.refers_to);
      if (place != scope.attributes->end()) attributes[attribute.name] = place->second;
    }
  }
  Scope body;
  body.opsets = function.opsets.empty() ? scope.opsets : &function.opsets;
  body.attributes = &attributes;
  body.depth = scope.depth + 1;
  body.repeats = scope.repeats;
  for (std::size_t i = 0; i < function.inputs.size(); ++i) {
    const std::string_view given = i < node.inputs.size() ? node.inputs[i] : "";
    body.names.insert_or_assign(function.inputs[i], given.empty() ? TensorId() : scope.find(given));
  }
  PLIMSOLL_RETURN_IF_ERROR(convert(function.nodes, body));
  for (std::size_t i = 0; i < std::min(node.outputs.size(), function.outputs.size()); ++i) {
    if (node.outputs[i].empty()) continue;
    const TensorId made = body.find(function.outputs[i]);
    if (!made.valid()) return bad_input("the function makes no '{}'", function.outputs[i]);
    scope.names.insert_or_assign(node.outputs[i], made);
  }
  return {};
}

Result<std::vector<TensorId>> Importer::inline_graph(const GraphFile& graph,
                                                     const std::vector<TensorId>& inputs,
                                                     const Scope& outer) {
  Scope body;
  body.outer = &outer;
  body.opsets = outer.opsets;
  body.attributes = outer.attributes;
  body.depth = outer.depth + 1;
  body.repeats = true;
  PLIMSOLL_RETURN_IF_ERROR(add_initializers(graph, body));
  if (graph.inputs.size() != inputs.size()) {
    return bad_input("its body has {} inputs, {} are given", graph.inputs.size(), inputs.size());
  }
  for (std::size_t i = 0; i < inputs.size(); ++i)
    body.names.insert_or_assign(graph.inputs[i].name, inputs[i]);
  PLIMSOLL_RETURN_IF_ERROR(convert(graph.nodes, body));
  std::vector<TensorId> out;
  for (const ValueFile& value : graph.outputs) {
    const TensorId made = body.find(value.name);
    if (!made.valid()) return bad_input("its body makes no '{}'", value.name);
    out.push_back(made);
  }
  return out;
}

void Importer::build_updates() {
  builder_.set_phase(ir::Phase::kUpdate);
  for (const StateUpdate& update : updates_) {
    const auto next = builder_.call(update.op, update.inputs, update.attributes);
    for (std::size_t i = 0; i < static_cast<std::size_t>(update.states) && i < next.size(); ++i) {
      builder_.update(update.inputs[i], next[i]);
    }
  }
  builder_.set_phase(ir::Phase::kForward);
}

Status Importer::limit(std::size_t found, std::int64_t most) {
  if (limits_.size() == kMostLimits)
    return bad_input("more than {} lists of what NonZero finds are limited", kMostLimits);
  limits_.emplace_back(found, most);
  return {};
}

Result<std::vector<ops::Var>> Importer::limited(std::vector<ops::Var> outputs) {
  if (found_.empty()) return outputs;
  std::vector<ValueId> ids;
  for (const ops::Var& output : outputs) ids.push_back(output.id());
  PLIMSOLL_RETURN_IF_ERROR(check_bounded_axes(builder_.graph(), ids, found_));
  if (limits_.empty()) return outputs;
  // 1 where there is more than room for: (1 - 1) / (1 - 1) is NaN, (0 - 0) / (1 - 0) is zero.
  ops::Var over;
  for (const auto& [found, most] : limits_) {
    const ops::Var count(&builder_, found_[found].count);
    const ops::Var more =
        builder_.call1("less", {ops::number(count, static_cast<double>(most)), count});
    const ops::Var one = ops::cast(more, ir::DType::kF32);
    over = over ? builder_.call1("maximum", {over, one}) : one;
  }
  const ops::Var nan = (over - over) / (ops::number(over, 1) - over);
  bool said = false;
  for (ops::Var& output : outputs) {
    const ir::DType dtype = builder_.graph().value(output.id()).type.dtype;
    if (!ir::is_float(dtype)) continue;
    output = output + (dtype == ir::DType::kF32 ? nan : ops::cast(nan, dtype));
    said = true;
  }
  if (!said)
    return bad_input(
        "no output could say that NonZero found more than there is room for: give no capacity");
  return outputs;
}

Result<ImportedModel> Importer::finish(const Scope& scope) {
  builder_.set_layer("");
  std::vector<ops::Var> outputs;
  std::vector<std::string> names;
  std::unordered_set<std::uint32_t> taken;
  for (const ValueFile& value : file_.graph.outputs) {
    const TensorId id = scope.find(value.name);
    if (!id.valid()) return bad_input("output '{}' is made by no node", value.name);
    PLIMSOLL_TRY(ops::Var var, in_graph(id));
    outputs.push_back(var);
    names.emplace_back(value.name);
  }
  if (outputs.empty()) return bad_input("the graph has no outputs");
  PLIMSOLL_TRY(outputs, limited(std::move(outputs)));
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    // A source, or a value that is an output already, gets a value of its own.
    ops::Var& var = outputs[o];
    const bool source = ir::is_source(builder_.graph().value(var.id()).kind);
    if (source || !taken.insert(var.id().value).second) var = builder_.call1("identity", {var});
    if (builder_.error()) return tl::unexpected<Error>(*builder_.error());
    builder_.graph().value(var.id()).name = names[o];
  }
  build_updates();
  ImportedModel model;
  PLIMSOLL_TRY(ir::Graph graph, builder_.finish(outputs));
  if (!keeps_weights() && options_.recover_patterns) {
    PLIMSOLL_TRY(graph, fold_batch_norm(std::move(graph), weights_));
  }
  if (options_.recover_patterns) {
    PLIMSOLL_TRY(model.graph, rewrite::recover_patterns(std::move(graph), {options_.training}));
  } else {
    model.graph = rewrite::without_dead_nodes(std::move(graph));
  }
  model.weights = std::move(weights_);
  model.outputs = std::move(names);
  if (options_.training) model.trained = trained_initialisers();
  return model;
}

Result<ImportedModel> Importer::run() {
  PLIMSOLL_TRY(const std::int64_t version, version_of(file_.opsets, ""));
  if (version < 1) return bad_input("operator set {} does not exist", version);
  if (version > kNewestOpset) {
    log::warn("made for ONNX operator set {}; the newest known here is {}", version, kNewestOpset);
  }
  if (keeps_weights()) {
    PLIMSOLL_TRY(buffers_, find_buffers(file_.graph, folder_));
  }
  Scope scope;
  scope.opsets = &file_.opsets;
  PLIMSOLL_RETURN_IF_ERROR(add_initializers(file_.graph, scope));
  PLIMSOLL_RETURN_IF_ERROR(add_inputs(scope));
  PLIMSOLL_RETURN_IF_ERROR(convert(file_.graph.nodes, scope));
  return finish(scope);
}

}  // namespace plimsoll::model::onnx

#include "plimsoll/model/onnx/importer.h"

#include <algorithm>
#include <set>

#include <fmt/ranges.h>

#include "plimsoll/base/log.h"
#include "plimsoll/model/onnx/fold_batch_norm.h"
#include "plimsoll/model/onnx/format/tensor_content.h"
#include "plimsoll/ops/functions.h"
#include "plimsoll/rewrite/recover.h"

namespace plimsoll::model::onnx {
namespace {

constexpr std::int64_t kNewestOpset = 28;
// Float initialisers up to this size may be folded when nothing is to be trained.
constexpr std::int64_t kSmallTable = 4096;
// Integer initialisers up to this size lie in the graph as constants, larger ones stay in the file.
constexpr std::int64_t kSmallConstant = 1 << 16;

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

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return out;
}

bool says_batch(std::string_view symbol) {
  const std::string name = lower(symbol);
  return name.find("batch") != std::string::npos || name == "n" || name == "b" || name == "bs";
}

bool says_sequence(std::string_view symbol) {
  const std::string name = lower(symbol);
  return name.find("past") == std::string::npos && name.find("batch") == std::string::npos &&
         (name.find("seq") != std::string::npos || name.find("length") != std::string::npos ||
          name == "s" || name == "t" || name == "time");
}

// Sources are named as in the file, whatever layer is being built.
class WithoutLayer {
 public:
  explicit WithoutLayer(ops::Builder& builder) : builder_(builder), layer_(builder.layer()) {
    builder_.set_layer("");
  }
  ~WithoutLayer() { builder_.set_layer(std::move(layer_)); }
  WithoutLayer(const WithoutLayer&) = delete;
  WithoutLayer& operator=(const WithoutLayer&) = delete;

 private:
  ops::Builder& builder_;
  std::string layer_;
};

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

bool Importer::is_buffer(const Tensor& tensor) const {
  return keeps_weights() && tensor.file != nullptr && buffers_.contains(tensor.file);
}

bool Importer::is_weight(const Tensor& tensor) const {
  const std::int64_t elements = tensor.type.shape.elements();
  // Small ones are constants, and may be folded.
  if (is_buffer(tensor)) return elements > kSmallTable;
  if (!ir::is_float(tensor.type.dtype)) return elements > kSmallConstant;
  return tensor.type.shape.rank() > 0 && (keeps_weights() || elements > 1) &&
         !looks_like_mask(tensor);
}

// Exporters fold attention masks into float tables of zeros and numbers no weight has.
bool Importer::looks_like_mask(const Tensor& tensor) const {
  constexpr std::int64_t kSamples = 4096;
  if (tensor.file == nullptr || tensor.type.shape.rank() < 2 ||
      tensor.type.shape.elements() > kMostFolded / 4)
    return false;
  const auto content = content_of(*tensor.file, folder_);
  if (!content) return false;
  const std::int64_t count = std::min(kSamples, tensor.type.shape.elements());
  const ir::TensorType part{tensor.type.dtype, {count}, {}};
  const auto sample = ops::Array::from_bytes(
      part, content->bytes.first(static_cast<std::size_t>(ir::bytes_of(part).value)));
  if (!sample) return false;
  const double hidden = tensor.type.dtype == ir::DType::kF16 ? -6e4 : -1e30;
  bool any = false;
  for (const double value : sample->reals) {
    if (value != 0 && value > hidden) return false;
    any = any || value <= hidden;
  }
  return any;
}

Result<ops::Var> Importer::add_from_file(const Tensor& tensor, ir::ValueKind kind,
                                         std::string_view called) {
  const WithoutLayer outside(builder_);
  PLIMSOLL_TRY(TensorContent content, content_of(*tensor.file, folder_));
  const std::string name = unique(called);
  if (content.is_owned) {
    weights_.add_owned(name, content.type, std::move(content.owned));
  } else {
    weights_.add(name, content.type, content.bytes);
  }
  return builder_.source(name, kind, tensor.type, {ir::Init::Kind::kFile, 0, 0});
}

// One weight for all places, or one for each.
Result<ops::Var> Importer::place_weight(const Tensor& tensor) {
  Standing& standing = standing_[tensor.file];
  const bool trained = ir::is_float(tensor.type.dtype) && !is_buffer(tensor);
  const bool here = standing.weight && standing.weight_at == place_;
  if (!here) ++standing.places;
  if (!standing.weight || (options_.untie && trained && !here)) {
    const auto kind = is_buffer(tensor) ? ir::ValueKind::kState : ir::ValueKind::kWeight;
    PLIMSOLL_TRY(standing.weight,
                 add_from_file(tensor, kind, options_.untie ? tensor.name : tensor.file->name));
  }
  standing.trained = trained;
  standing.weight_at = place_;
  return standing.weight;
}

Result<ops::Var> Importer::place_state(const Tensor& tensor) {
  Standing& standing = standing_[tensor.file];
  if (!standing.state || standing.state_at != place_) {
    PLIMSOLL_TRY(standing.state, add_from_file(tensor, ir::ValueKind::kState, tensor.name));
    standing.state_at = place_;
  }
  return standing.state;
}

TensorId Importer::renamed(TensorId id, std::string_view name) {
  const Tensor& tensor = tensors_[id.index()];
  if (!keeps_weights() || tensor.file == nullptr || tensor.var || name.empty()) return id;
  return add(
      {.name = std::string(name), .type = tensor.type, .known = tensor.known, .file = tensor.file});
}

Result<ops::Var> Importer::in_graph(TensorId id) {
  Tensor& tensor = tensors_[id.index()];
  if (tensor.var) return tensor.var;
  if (tensor.items != nullptr)
    return bad_input("'{}' is a sequence, which only operators on sequences can read", tensor.name);
  if (tensor.file != nullptr && is_weight(tensor)) {
    if (keeps_weights()) return place_weight(tensor);
    PLIMSOLL_TRY(tensor.var, add_from_file(tensor, ir::ValueKind::kWeight, tensor.name));
    return tensor.var;
  }
  const WithoutLayer outside(builder_);
  PLIMSOLL_TRY(const ops::Array* array, known(id));
  if (array == nullptr) return bad_input("constant '{}' is too large", tensor.name);
  tensor.var = builder_.constant(unique(tensor.name), *array);
  return tensor.var;
}

ops::Var Importer::as_state(TensorId id) {
  Tensor& tensor = tensors_[id.index()];
  if (tensor.file == nullptr) return {};
  if (keeps_weights()) return place_state(tensor).value_or(ops::Var());
  if (!tensor.var) {
    tensor.var = add_from_file(tensor, ir::ValueKind::kState, tensor.name).value_or(ops::Var());
  }
  if (!tensor.var) return {};
  return builder_.graph().value(tensor.var.id()).kind == ir::ValueKind::kState ? tensor.var
                                                                               : ops::Var();
}

Result<const ops::Array*> Importer::known(TensorId id) {
  Tensor& tensor = tensors_[id.index()];
  if (tensor.known != nullptr) return tensor.known.get();
  if (tensor.file == nullptr) return nullptr;
  const std::int64_t elements = tensor.type.shape.elements();
  if (elements > kMostFolded || folded_ + elements > kMostFolded) return nullptr;
  PLIMSOLL_TRY(ops::Array array, array_of(*tensor.file, folder_));
  folded_ += elements;
  tensor.known = std::make_shared<const ops::Array>(std::move(array));
  return tensor.known.get();
}

bool Importer::foldable(TensorId id) const {
  const Tensor& tensor = tensors_[id.index()];
  if (folded_ > kMostFolded) return false;
  if (tensor.file == nullptr) return tensor.known != nullptr;
  const std::int64_t elements = tensor.type.shape.elements();
  if (!ir::is_float(tensor.type.dtype)) {
    return elements <= (ir::bits(tensor.type.dtype) >= 32 || tensor.type.dtype == ir::DType::kBool
                            ? kMostFolded / 4
                            : kSmallTable);
  }
  if (keeps_weights() && !(is_buffer(tensor) && elements <= kSmallTable))
    return tensor.type.shape.rank() == 0 || looks_like_mask(tensor);
  return elements <= kSmallTable;
}

Status Importer::add_initializers(const GraphFile& graph, Scope& scope) {
  if (graph.has_sparse_initializer) return bad_input("sparse initialisers are not supported");
  for (const TensorFile& file : graph.initializers) {
    auto type = type_of(file);
    if (!type) return forward(type, fmt::format("initialiser '{}'", file.name));
    scope.names.insert_or_assign(
        file.name, add({.name = std::string(file.name), .type = *type, .file = &file}));
  }
  return {};
}

Result<std::int64_t> Importer::bind(const ValueFile& value, std::size_t axis,
                                    const ir::Shape* given) {
  const DimFile& dim = value.dims[axis];
  // Some exporters write -1 for what is open.
  if (dim.has_value && dim.value < -1)
    return bad_input("input '{}': dimension {} is {}", value.name, axis, dim.value);
  if (given != nullptr) {
    const std::int64_t size = (*given)[static_cast<int>(axis)];
    if (options_.shapes_of_datasets && axis == 0) {
      const std::int64_t batch =
          dim.has_value && dim.value >= 0 ? dim.value : options_.batch.value_or(size);
      // Examples of a data set: the model takes some of them at once.
      if (batch > 0 && batch < size) return batch;
    }
    if (dim.has_value && dim.value >= 0 && dim.value != size) {
      return bad_input("input '{}': dimension {} is {}, given as {}", value.name, axis, dim.value,
                       size);
    }
    if (!dim.symbol.empty()) {
      const auto [place, fresh] = bound_.emplace(std::string(dim.symbol), size);
      if (!fresh && place->second != size) {
        return bad_input("input '{}': dimension '{}' is {}, given as {}", value.name, dim.symbol,
                         place->second, size);
      }
    }
    return size;
  }
  if (const auto size = size_of(value, axis)) return *size;
  return without_size(value);
}

std::optional<std::int64_t> Importer::size_of(const ValueFile& value, std::size_t axis) const {
  const DimFile& dim = value.dims[axis];
  if (dim.has_value && dim.value >= 0) return dim.value;
  if (!dim.symbol.empty()) {
    if (const auto place = bound_.find(dim.symbol); place != bound_.end()) return place->second;
    if (options_.batch && says_batch(dim.symbol)) return options_.batch;
    if (options_.seq && says_sequence(dim.symbol)) return options_.seq;
  }
  if (const auto place = bound_.find(fmt::format("{}:{}", value.name, axis)); place != bound_.end())
    return place->second;
  return axis == 0 ? options_.batch : std::nullopt;
}

// All that an input leaves open, with the options that say it.
tl::unexpected<Error> Importer::without_size(const ValueFile& value) const {
  std::vector<std::string> names, options;
  for (std::size_t axis = 0; axis < value.dims.size(); ++axis) {
    if (size_of(value, axis)) continue;
    const std::string_view symbol = value.dims[axis].symbol;
    names.push_back(symbol.empty() ? std::to_string(axis) : fmt::format("'{}'", symbol));
    options.push_back(says_batch(symbol)      ? "--batch N"
                      : says_sequence(symbol) ? "--seq N"
                      : symbol.empty()        ? fmt::format("--dim {}:{}=SIZE", value.name, axis)
                                              : fmt::format("--dim {}=SIZE", symbol));
  }
  return bad_input("input '{}': dimension{} {} {} no size; give {} with {}", value.name,
                   names.size() == 1 ? "" : "s", fmt::join(names, " and "),
                   names.size() == 1 ? "has" : "have", names.size() == 1 ? "one" : "them",
                   fmt::join(options, " "));
}

namespace {

// A size that was asked for and that no input has would be ignored: another model would be
// planned than the one that was meant.
Status check_sizes(const ImportOptions& options, const GraphFile& file, const ir::Graph& graph) {
  std::string first = "there is no input";
  bool has_batch = false;
  bool has_seq = false;
  for (const ir::Value& value : graph.values) {
    if (value.kind != ir::ValueKind::kInput) continue;
    const ir::Shape& shape = value.type.shape;
    if (first.starts_with("there"))
      first = fmt::format("input '{}' is {}", value.name, ir::to_string(value.type));
    has_batch = has_batch || (shape.rank() > 0 && shape[0] == options.batch);
    has_seq = has_seq || std::find(shape.begin(), shape.end(), options.seq) != shape.end();
  }
  std::set<std::string> open;
  for (const ValueFile& value : file.inputs) {
    for (std::size_t axis = 0; axis < value.dims.size(); ++axis) {
      const DimFile& dim = value.dims[axis];
      if (dim.has_value && dim.value >= 0) continue;
      open.insert(fmt::format("{}:{}", value.name, axis));
      if (!dim.symbol.empty()) open.emplace(dim.symbol);
      has_batch = has_batch || says_batch(dim.symbol);
      has_seq = has_seq || says_sequence(dim.symbol);
    }
  }
  constexpr const char* kWhy =
      "sizes that the exporter did not leave open (dynamic_axes, dynamic_shapes) are fixed";
  if (options.batch && !has_batch)
    return fail(ErrorCode::kUsage, "no input takes a batch of {}: {}; {}", *options.batch, first,
                kWhy);
  if (options.seq && !has_seq)
    return fail(ErrorCode::kUsage, "no input takes a length of {}: {}; {}", *options.seq, first,
                kWhy);
  for (const auto& [name, size] : options.dims) {
    if (open.contains(name)) continue;
    return fail(ErrorCode::kUsage, "--dim {}={}: no dimension of an input is called so; {}", name,
                size,
                open.empty() ? fmt::format("{}; {}", first, kWhy)
                             : fmt::format("there are {}", fmt::join(open, ", ")));
  }
  return {};
}

}  // namespace

Result<ir::TensorType> Importer::input_type(const ValueFile& value) {
  if (!value.is_tensor)
    return bad_input("input '{}' is no tensor: sequences and maps are not supported", value.name);
  auto dtype = dtype_of(value.element);
  if (!dtype) return forward(dtype, fmt::format("input '{}'", value.name));
  const auto given = options_.shapes.find(std::string(value.name));
  const ir::Shape* shape = given == options_.shapes.end() ? nullptr : &given->second;
  if (!value.has_shape) {
    if (shape == nullptr) return bad_input("input '{}' has no shape in the file", value.name);
    return ir::TensorType{*dtype, *shape, {}};
  }
  if (shape != nullptr && shape->rank() != static_cast<int>(value.dims.size())) {
    return bad_input("input '{}': has {} dimensions, given with {}", value.name, value.dims.size(),
                     shape->rank());
  }
  ir::Ints dims;
  for (std::size_t axis = 0; axis < value.dims.size(); ++axis) {
    PLIMSOLL_TRY(const std::int64_t size, bind(value, axis, shape));
    dims.push_back(size);
  }
  auto made = ir::Shape::make(dims);
  if (!made) return forward(made, fmt::format("input '{}'", value.name));
  const ir::TensorType type{*dtype, *made, {}};
  if (!ir::checked_bytes(type))
    return bad_input("input '{}': {} is too large", value.name, ir::to_string(type));
  return type;
}

Status Importer::add_inputs(Scope& scope) {
  for (const ValueFile& value : file_.graph.inputs) {
    if (scope.names.contains(value.name)) continue;  // an initialiser is its default
    if (value.name.empty()) return bad_input("an input has no name");
    const std::string name(value.name);
    if (const auto given = options_.values.find(name); given != options_.values.end()) {
      scope.names.emplace(value.name,
                          add_known(name, std::make_shared<const ops::Array>(given->second)));
      continue;
    }
    PLIMSOLL_TRY(const ir::TensorType type, input_type(value));
    if (!used_names_.insert(name).second) return bad_input("two inputs are called '{}'", name);
    scope.names.emplace(value.name,
                        add({.name = name, .type = type, .var = builder_.input(name, type)}));
  }
  return check_sizes(options_, file_.graph, builder_.graph());
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

TrainedInitialisers Importer::trained_initialisers() const {
  TrainedInitialisers out;
  for (const auto& [file, standing] : standing_) {
    if (!standing.trained) continue;
    ++out.weights;
    out.places += standing.places;
    out.shared += standing.places > 1;
    if (standing.places <= out.most_places) continue;
    out.most_places = standing.places;
    out.most_shared = file->name;
  }
  for (const auto& [file, why] : buffers_) ++out.not_trained[std::string(why)];
  return out;
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

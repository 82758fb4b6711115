#include "plimsoll/model/onnx/convert/operator_call.h"

#include <cmath>

#include "plimsoll/model/onnx/format/tensor_content.h"
#include "plimsoll/ops/evaluation/interpreter.h"

namespace plimsoll::model::onnx {

OperatorCall::OperatorCall(Importer& importer, const NodeFile& node, Scope& scope,
                           const Operator& op, std::int64_t version, std::vector<TensorId> inputs)
    : importer_(importer),
      node_(node),
      scope_(scope),
      op_(op),
      version_(version),
      inputs_(std::move(inputs)),
      builder_(&importer.builder()),
      made_(node.outputs.size()) {}

Var OperatorCall::in(int i) {
  if (!has(i)) {
    builder_->fail(fmt::format("input {} is missing", i));
    return builder_->fill({}, 0);
  }
  if (folding_) {
    Var& var = scratch_[static_cast<std::size_t>(i)];
    if (!var) {
      const auto array = importer_.known(input(i));
      if (array && *array != nullptr) {
        var = builder_->constant(fmt::format("input{}", i), **array);
      } else {
        builder_->fail("a constant cannot be read");
      }
    }
    return var;
  }
  auto var = importer_.in_graph(input(i));
  if (!var) {
    builder_->fail(var.error().message);
    return builder_->fill(type(i), 0);
  }
  return *var;
}

Status OperatorCall::need(std::initializer_list<int> inputs) const {
  for (const int i : inputs) {
    if (!has(i)) return bad_input("input {} is missing", i);
  }
  return {};
}

const ir::TensorType& OperatorCall::type(int i) const {
  static const ir::TensorType kScalar;
  return has(i) ? importer_.tensor(input(i)).type : kScalar;
}

std::vector<Var> OperatorCall::all_inputs() {
  std::vector<Var> out;
  for (int i = 0; i < inputs(); ++i) out.push_back(in(i));
  return out;
}

const Array* OperatorCall::known(int i) {
  if (!has(i)) return nullptr;
  const auto array = importer_.known(input(i));
  return array ? *array : nullptr;
}

Result<const Array*> OperatorCall::must_know(int i, std::string_view what) {
  if (!has(i)) return bad_input("{} (input {}) is missing", what, i);
  PLIMSOLL_TRY(const Array* array, importer_.known(input(i)));
  if (array == nullptr) {
    return bad_input("{} ('{}') is not a constant: shapes that depend on data are not supported",
                     what, importer_.tensor(input(i)).name);
  }
  return array;
}

Result<ir::Ints> OperatorCall::known_integers(int i, std::string_view what) {
  PLIMSOLL_TRY(const Array* array, must_know(i, what));
  if (array->is_real()) return bad_input("{} is not of integers", what);
  return array->integers;
}

Result<std::int64_t> OperatorCall::known_integer(int i, std::string_view what,
                                                 std::int64_t otherwise) {
  if (!has(i)) return otherwise;
  PLIMSOLL_TRY(const ir::Ints list, known_integers(i, what));
  if (list.size() != 1) return bad_input("{} has {} elements, expects 1", what, list.size());
  return list.front();
}

Result<double> OperatorCall::known_real(int i, std::string_view what, double otherwise) {
  if (!has(i)) return otherwise;
  PLIMSOLL_TRY(const Array* array, must_know(i, what));
  if (array->elements() != 1)
    return bad_input("{} has {} elements, expects 1", what, array->elements());
  return array->number(0);
}

const AttributeFile* OperatorCall::attribute(std::string_view name) const {
  for (const AttributeFile& attribute : node_.attributes) {
    if (attribute.name != name) continue;
    if (attribute.refers_to.empty()) return &attribute;
    if (scope_.attributes == nullptr) return nullptr;
    const auto place = scope_.attributes->find(attribute.refers_to);
    return place == scope_.attributes->end() ? nullptr : place->second;
  }
  return nullptr;
}

const AttributeFile* OperatorCall::typed(std::string_view name, bool AttributeFile::*has,
                                         std::string_view type) {
  const AttributeFile* found = attribute(name);
  if (found == nullptr || found->*has) return found;
  builder_->fail(fmt::format("attribute '{}' is not {}", name, type));
  return nullptr;
}

std::int64_t OperatorCall::integer(std::string_view name, std::int64_t otherwise) {
  const AttributeFile* found = typed(name, &AttributeFile::has_i, "an integer");
  return found != nullptr ? found->i : otherwise;
}

double OperatorCall::real(std::string_view name, double otherwise) {
  const AttributeFile* found = typed(name, &AttributeFile::has_f, "a number");
  return found != nullptr ? static_cast<double>(found->f) : otherwise;
}

std::string OperatorCall::text(std::string_view name, std::string_view otherwise) {
  const AttributeFile* found = typed(name, &AttributeFile::has_s, "a text");
  return std::string(found != nullptr ? found->s : otherwise);
}

ir::Ints OperatorCall::integers(std::string_view name, const ir::Ints& otherwise) {
  const AttributeFile* found = attribute(name);
  if (found == nullptr) return otherwise;
  const bool other = found->has_i || found->has_f || found->has_s || found->has_t || found->has_g;
  if (other || !found->floats.empty() || !found->strings.empty()) {
    builder_->fail(fmt::format("attribute '{}' is not a list of integers", name));
  }
  return found->ints;
}

Result<ir::DType> OperatorCall::attribute_dtype(std::string_view name, ElementType otherwise) {
  const std::int64_t value = integer(name, static_cast<std::int64_t>(otherwise));
  return dtype_of(value > 0 && value < 1024 ? static_cast<ElementType>(value)
                                            : ElementType::kUndefined);
}

void OperatorCall::out(int i, Var var) {
  if (wants(i)) made_[static_cast<std::size_t>(i)].var = var;
}

void OperatorCall::out_known(int i, Array array) {
  if (wants(i))
    made_[static_cast<std::size_t>(i)].known = std::make_shared<const Array>(std::move(array));
}

void OperatorCall::out_alias(int i, TensorId tensor) {
  if (wants(i)) made_[static_cast<std::size_t>(i)].alias = tensor;
}

Status OperatorCall::done(Var var) {
  out(0, var);
  return {};
}

Status OperatorCall::done(Array array) {
  out_known(0, std::move(array));
  return {};
}

Status OperatorCall::done(TensorId tensor) {
  out_alias(0, tensor);
  return {};
}

Var OperatorCall::constant(const Array& array) {
  if (folding_)
    return builder_->constant(fmt::format("made{}", builder_->graph().values.size()), array);
  const std::string layer = builder_->layer();
  builder_->set_layer("");
  const Var out =
      builder_->constant(importer_.unique(fmt::format("{}/constant", node_.name)), array);
  builder_->set_layer(layer);
  return out;
}

bool OperatorCall::may_fold() const {
  if (!op_.fold || inputs_.empty()) return false;
  for (const TensorId input : inputs_) {
    if (input.valid() && !importer_.foldable(input)) return false;
  }
  return true;
}

// Builds the node into a graph of its own and evaluates that, unless it is too large to be worth
// it.
Result<bool> OperatorCall::try_fold() {
  Builder scratch("fold");
  builder_ = &scratch;
  folding_ = true;
  scratch_.assign(inputs_.size(), Var());
  const Status status = op_.convert(*this);
  folding_ = false;
  builder_ = &importer_.builder();
  if (!status) return forward(status);
  if (scratch.error()) return tl::unexpected<Error>(*scratch.error());

  std::int64_t elements = 0;
  double work = 0;
  for (const ir::Value& value : scratch.graph().values) {
    const std::int64_t count = value.type.shape.elements();
    if (count > kMostMade)
      return bad_input("makes {} of constants, which is too large", ir::to_string(value.type));
    if (count > kMostFolded || (elements += count) > kMostFolded) return false;
  }
  for (const ir::Node& node : scratch.graph().nodes)
    work += ops::cost_of(scratch.graph(), node).operations;
  if (work > kMostFoldedWork) return false;

  const ir::Graph& graph = scratch.graph();
  PLIMSOLL_TRY(ops::Environment values, ops::interpret(graph, {}));
  for (Made& made : made_) {
    if (!made.var) continue;
    made.known = std::make_shared<const Array>(*values[made.var.id().index()]);
    made.var = {};
  }
  return true;
}

Status OperatorCall::convert_into_graph() {
  for (Made& made : made_) made = {};
  PLIMSOLL_RETURN_IF_ERROR(op_.convert(*this));
  if (builder_->error()) return tl::unexpected<Error>(*builder_->error());
  return {};
}

std::vector<TensorId> OperatorCall::take_outputs() {
  std::vector<TensorId> out(made_.size());
  for (std::size_t i = 0; i < made_.size(); ++i) {
    Made& made = made_[i];
    if (made.alias.valid()) {
      out[i] = made.alias;
    } else if (made.known != nullptr) {
      out[i] = importer_.add_known(std::string(node_.outputs[i]), made.known);
    } else if (made.var) {
      out[i] = importer_.add(
          {.name = std::string(node_.outputs[i]), .type = made.var.type(), .var = made.var});
    }
  }
  return out;
}

Result<std::vector<TensorId>> OperatorCall::run() {
  if (may_fold()) {
    PLIMSOLL_TRY(const bool folded, try_fold());
    if (folded) return take_outputs();
  }
  PLIMSOLL_RETURN_IF_ERROR(convert_into_graph());
  return take_outputs();
}

}  // namespace plimsoll::model::onnx

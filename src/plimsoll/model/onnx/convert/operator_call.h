// One node of an ONNX graph as the functions of the operator table see it.
//
//   Status convert_trilu(OperatorCall& call) {
//     PLIMSOLL_TRY(const std::int64_t diagonal, call.known_integer(1, "k", 0));
//     call.out(0, call.builder().call1("triangle", {call.in(0)},
//                                      {{"upper", call.integer("upper", 1)}, {"diagonal",
//                                      diagonal}}));
//     return {};
//   }
//
// The builder is the graph's, or a scratch one when the node is being folded: a converter cannot
// tell and need not. Inputs that must be known at import (axes, shapes, repeats) are asked for with
// known_..., which says which input is not constant when it is not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/model/onnx/importer.h"
#include "plimsoll/ops/functions.h"

namespace plimsoll::model::onnx {

using ops::Array;
using ops::Builder;
using ops::Var;

class OperatorCall;
using Convert = Status (*)(OperatorCall&);

// A row of the operator table.
struct Operator {
  std::string name;
  Convert convert;
  // Those the converter honours, in any operator set, separated by spaces.
  std::string attributes = {};
  std::string_view target = {};  // for converters that serve many operators: our operator's name
  // false: control flow, random numbers, what handles constants itself
  bool fold = true;
  std::string_view domain = {};  // "" is ONNX's own
  bool same = false;             // made by same(): the target is this operator

  bool has(std::string_view attribute) const;
};

class OperatorCall {
 public:
  OperatorCall(Importer& importer, const NodeFile& node, Scope& scope, const Operator& op,
               std::int64_t version, std::vector<TensorId> inputs);
  OperatorCall(const OperatorCall&) = delete;
  OperatorCall& operator=(const OperatorCall&) = delete;

  Builder& builder() { return *builder_; }
  Importer& importer() { return importer_; }
  Scope& scope() { return scope_; }
  const NodeFile& node() const { return node_; }
  std::string_view target() const { return op_.target; }
  // Of the operator set the node's domain is imported with.
  std::int64_t version() const { return version_; }

  int inputs() const { return static_cast<int>(inputs_.size()); }
  bool has(int i) const { return i < inputs() && inputs_[static_cast<std::size_t>(i)].valid(); }
  // Invalid when absent.
  TensorId input(int i) const { return has(i) ? inputs_[static_cast<std::size_t>(i)] : TensorId(); }
  // An input the operator must have: when it is absent the builder has an error and a placeholder
  // stands in.
  Var in(int i);
  // An input it may have: an absent Var when it has not.
  Var maybe(int i) { return has(i) ? in(i) : Var(); }
  // Fails when one of these inputs is absent.
  Status need(std::initializer_list<int> inputs) const;
  std::vector<Var> all_inputs();
  // Of an absent input: a scalar.
  const ir::TensorType& type(int i) const;
  const ir::Shape& shape(int i) const { return type(i).shape; }
  ir::DType dtype(int i) const { return type(i).dtype; }
  int rank(int i) const { return shape(i).rank(); }

  // Null when only a run can tell.
  const Array* known(int i);
  Result<const Array*> must_know(int i, std::string_view what);
  Result<ir::Ints> known_integers(int i, std::string_view what);
  Result<std::int64_t> known_integer(int i, std::string_view what, std::int64_t otherwise);
  Result<double> known_real(int i, std::string_view what, double otherwise);

  // A table the converter computed: interpolation weights, indices.
  Var constant(const Array& array);

  const AttributeFile* attribute(std::string_view name) const;
  bool has_attribute(std::string_view name) const { return attribute(name) != nullptr; }
  // An attribute of another type is an error of the builder.
  std::int64_t integer(std::string_view name, std::int64_t otherwise);
  double real(std::string_view name, double otherwise);
  std::string text(std::string_view name, std::string_view otherwise);
  ir::Ints integers(std::string_view name, const ir::Ints& otherwise = {});
  // An attribute that holds an element type.
  Result<ir::DType> attribute_dtype(std::string_view name, ElementType otherwise);

  int outputs() const { return static_cast<int>(node_.outputs.size()); }
  bool wants(int i) const {
    return i < outputs() && !node_.outputs[static_cast<std::size_t>(i)].empty();
  }
  void out(int i, Var var);
  void out_known(int i, Array array);
  // The output is the input, under another name.
  void out_alias(int i, TensorId tensor);
  // The first output, as the last thing a converter does: `return call.done(y);`.
  Status done(Var var);
  Status done(Array array);
  Status done(TensorId tensor);

  // Runs the converter, on the graph or folded; the outputs' tensors, invalid where none was made.
  Result<std::vector<TensorId>> run();

 private:
  // The attribute when it is there; an error when it has not the type.
  const AttributeFile* typed(std::string_view name, bool AttributeFile::*has,
                             std::string_view type);
  struct Made {
    Var var;
    std::shared_ptr<const Array> known;
    TensorId alias;
  };
  bool may_fold() const;
  Result<bool> try_fold();
  Status convert_into_graph();
  std::vector<TensorId> take_outputs();

  Importer& importer_;
  const NodeFile& node_;
  Scope& scope_;
  const Operator& op_;
  std::int64_t version_;
  std::vector<TensorId> inputs_;
  Builder* builder_;
  bool folding_ = false;
  std::vector<Var> scratch_;  // inputs in the scratch builder
  std::vector<Made> made_;
};

}  // namespace plimsoll::model::onnx

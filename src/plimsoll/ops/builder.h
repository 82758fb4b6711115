// Builds graphs node by node: types are inferred as you go, errors are kept until the end.
//
//   Builder b("tiny");
//   Var x = b.input("x", {ir::DType::kF32, {8, 784}});
//   Var w = b.weight("fc.weight", {ir::DType::kF32, {10, 784}}, {Init::Kind::kNormal, 0, 0.02});
//   Var y = softmax(linear(x, w), -1);           // ops/functions.h has one function per operator
//   PLIMSOLL_TRY(ir::Graph graph, b.finish({y}));
//
// Every call goes through the operator's definition, so a wrong shape is found at the line that
// made it. To keep model code readable the error is not returned there: the builder remembers the
// first one, goes on with placeholder values of the first input's type, and finish() reports it
// with the layer's name.
//
// Layers: `auto scope = b.scope("encoder.3");` puts its name in front of what is built while it
// lives. Phase and kind of new nodes are the builder's current ones; autodiff and the optimizer set
// them.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/ops/evaluation/array.h"
#include "plimsoll/ops/var.h"

namespace plimsoll::ops {

class Builder {
 public:
  explicit Builder(std::string graph_name) { graph_.name = std::move(graph_name); }
  // Goes on with a graph that exists.
  explicit Builder(ir::Graph graph) : graph_(std::move(graph)) {}
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  Var input(std::string_view name, const ir::TensorType& type);
  Var weight(std::string_view name, const ir::TensorType& type, ir::Init init);
  Var source(std::string_view name, ir::ValueKind kind, const ir::TensorType& type,
             ir::Init init = {});
  Var constant(std::string_view name, const Array& array);
  // One number of the given dtype in every element, made by a node (no data in the graph).
  Var fill(const ir::TensorType& type, double value);

  // Appends one node; as many Vars as the definition infers.
  std::vector<Var> call(std::string_view op, std::vector<Var> inputs,
                        ir::Attributes attributes = {});
  // The same for an operator whose first output is all one wants.
  Var call1(std::string_view op, std::vector<Var> inputs, ir::Attributes attributes = {});

  Var var(ValueId id) { return Var(this, id); }
  const ir::Graph& graph() const { return graph_; }
  ir::Graph& graph() { return graph_; }

  void set_phase(ir::Phase phase) { phase_ = phase; }
  ir::Phase phase() const { return phase_; }
  // The layer of new nodes and the prefix of new sources' names.
  const std::string& layer() const { return layer_; }
  void set_layer(std::string layer) { layer_ = std::move(layer); }

  class Scope {
   public:
    Scope(Builder& builder, std::string_view name);
    ~Scope() { builder_.set_layer(std::move(outer_)); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Builder& builder_;
    std::string outer_;
  };
  [[nodiscard]] Scope scope(std::string_view name) { return Scope(*this, name); }

  // Says that `next` takes the place of `source` at the end of the step.
  void update(Var source, Var next) { graph_.updates.push_back({source.id(), next.id()}); }

  void fail(std::string message);
  const std::optional<Error>& error() const { return error_; }
  // The graph with these outputs, verified; or the first error.
  Result<ir::Graph> finish(std::span<const Var> outputs);
  Result<ir::Graph> finish(std::initializer_list<Var> outputs) {
    return finish(std::span(outputs.begin(), outputs.size()));
  }

 private:
  std::string qualified(std::string_view name) const;

  ir::Graph graph_;
  std::string layer_;
  ir::Phase phase_ = ir::Phase::kForward;
  std::optional<Error> error_;
};

}  // namespace plimsoll::ops

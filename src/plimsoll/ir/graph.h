// The graph: values, and the operators that make them, in an order in which they can run.
//
//   values   x  w | h  y  | dy dw | w'        (sources first, then what nodes make)
//   nodes             matmul relu | ... | sgd  (forward, backward, update)
//
// Everything that runs here is one Graph: a model, the graph that trains it, a graph of gradients
// of gradients. Operators are pure: they read inputs and make outputs. State (weights, moments,
// running statistics, random counters) is a source value; a node of phase `update` makes its next
// version, and an Update pair says that the new version takes the old one's place at the end of the
// step.
//
// Invariants (verify() checks them and says which is broken):
//  1. nodes are in topological order: an input is a source or made by an earlier node;
//  2. a value has at most one producer, and producer/index agree with the node's outputs;
//  3. sources are of kind input, weight, optimizer, state or constant; no other value lacks a
//     producer;
//  4. a constant has exactly its bytes of data, no other value has any;
//  5. sizes do not overflow, layouts fit their shapes, names of sources are unique and not empty;
//  6. an Update pairs a weight, optimizer or state source with a value of the same type made by a
//     node, once each.
// What an operator demands of its inputs is not known here: ops/registry.h verifies that.
//
// Values are named by id into `values`; there are no pointers, so a Graph can be copied, compared
// and moved freely. Cost: some 200 bytes a value and 200 a node.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/base/units.h"
#include "plimsoll/ir/attributes.h"
#include "plimsoll/ir/tensor_type.h"

namespace plimsoll::ir {

enum class ValueKind : std::uint8_t {
  kInput,       // fed for every step
  kWeight,      // trained, or given by the model file
  kOptimizer,   // moments and the like
  kState,       // running statistics, step and random counters
  kConstant,    // data inside the graph
  kActivation,  // made by a forward node
  kGradient,    // made by a backward node
};
inline constexpr int kValueKindCount = 7;

std::string_view name(ValueKind kind);
constexpr bool is_source(ValueKind kind) {
  return kind <= ValueKind::kConstant;
}
// Sources that outlive a step and may be updated in it.
constexpr bool is_persistent(ValueKind kind) {
  return kind == ValueKind::kWeight || kind == ValueKind::kOptimizer || kind == ValueKind::kState;
}

enum class Phase : std::uint8_t { kForward, kBackward, kUpdate };
inline constexpr int kPhaseCount = 3;
std::string_view name(Phase phase);

// How a source gets its first content.
struct Init {
  enum class Kind : std::uint8_t { kNone, kConstant, kNormal, kUniform, kFile };
  Kind kind = Kind::kNone;
  double a = 0;  // the constant; the mean; the low end
  double b = 0;  // the standard deviation; the high end
  bool operator==(const Init&) const = default;
};

struct Value {
  std::string name;
  TensorType type;
  ValueKind kind = ValueKind::kActivation;
  NodeId producer;           // none for a source
  std::uint32_t output = 0;  // which of the producer's outputs
  Init init;                 // weights, optimizer, state
  bool operator==(const Value&) const = default;
};

struct Node {
  std::string op;
  std::string layer;  // "encoder.3.attention": the module it belongs to, dots between levels
  std::vector<ValueId> inputs;  // an absent optional input is an invalid id
  std::vector<ValueId> outputs;
  Attributes attributes;
  Phase phase = Phase::kForward;
  bool operator==(const Node&) const = default;
};

struct Update {
  ValueId source;
  ValueId next;
  bool operator==(const Update&) const = default;
};

struct Constant {
  ValueId value;
  std::vector<std::byte> data;
  bool operator==(const Constant&) const = default;
};

struct Graph {
  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<ValueId> outputs;
  std::vector<Update> updates;
  std::vector<Constant> constants;

  const Value& value(ValueId id) const { return values[id.index()]; }
  Value& value(ValueId id) { return values[id.index()]; }
  const Node& node(NodeId id) const { return nodes[id.index()]; }
  Node& node(NodeId id) { return nodes[id.index()]; }
  // Null when the value is no constant.
  const std::vector<std::byte>* data(ValueId id) const;

  ValueId add_source(std::string source_name, ValueKind kind, TensorType type, Init init = {});
  // Appends a node and one new value per type; `kind` is theirs.
  NodeId add_node(Node node, const std::vector<TensorType>& types, ValueKind kind);

  bool operator==(const Graph&) const = default;
};

Status verify(const Graph& graph);

// For every value, the nodes that read it, in order (a node that reads it twice stands there once).
std::vector<std::vector<NodeId>> readers(const Graph& graph);

// Whether it has nodes of the phase: with updates it trains.
bool has_phase(const Graph& graph, Phase phase);

}  // namespace plimsoll::ir

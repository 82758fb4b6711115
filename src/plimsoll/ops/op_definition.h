// The definition of an operator: everything the other modules may know about it, in one place.
//
// A memory planner needs many small facts about each operator: the type of its results, its
// gradient and which tensors that gradient reads, whether a result may overwrite an input, what it
// costs, whether it may be run twice. Elsewhere these facts are spread over a dozen switches that
// drift apart. Here an operator is one OpDefinition, its file holds the functions the definition
// names, and the registry lists all definitions. Kernels are not here: the table of a device
// (kernels/cpu/table.h) names them, so that planning builds and runs without any of them.
//
//   OpDefinition{.name = "elu", .inputs = exactly(1), .outputs = exactly(1),
//        .attributes = {attribute::real("alpha", 1)}, .infer = same_as_first_float,
//        .gradient = Gradient(elu_gradient), .in_place = InPlace::over(0),
//        .cost = elementwise_cost, .recompute = Recompute::kCheap, .layout = LayoutRule::kAny,
//        .evaluate = evaluate_elu}
//
// What a gradient needs is not declared a second time: the gradient builds ordinary nodes, so the
// tensors those nodes read *are* the minimum dependencies (gradient_needs in gradient_needs.h
// derives the table, and a test poisons everything else).
//
// A field whose type has no default constructor cannot be left out: it does not compile.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/ops/definition/attribute_spec.h"
#include "plimsoll/ops/evaluation/array.h"
#include "plimsoll/ops/var.h"

namespace plimsoll::ops {

using ir::TensorType;

// One use of an operator, as type rules and costs see it.
class Call {
 public:
  Call(std::vector<const TensorType*> inputs, AttributeReader attributes)
      : inputs_(std::move(inputs)), attributes_(attributes) {}

  int size() const { return static_cast<int>(inputs_.size()); }
  bool has(int index) const {
    return index < size() && inputs_[static_cast<std::size_t>(index)] != nullptr;
  }
  const TensorType& type(int index) const { return *inputs_[static_cast<std::size_t>(index)]; }
  const ir::Shape& shape(int index) const { return type(index).shape; }
  const AttributeReader& attributes() const { return attributes_; }

 private:
  std::vector<const TensorType*> inputs_;  // null for an absent optional input
  AttributeReader attributes_;
};

struct Arity {
  int least;
  int most;
};
inline constexpr int kMany = 1 << 20;
constexpr Arity exactly(int n) {
  return {n, n};
}
constexpr Arity between(int least, int most) {
  return {least, most};
}
constexpr Arity at_least(int n) {
  return {n, kMany};
}

// What a gradient rule sees: the node's inputs and outputs, and the adjoint of each output (absent
// where nothing flows back). It returns one adjoint per input, absent where none is.
struct Backward {
  Builder& builder;
  AttributeReader attributes;
  std::span<const Var> inputs;
  std::span<const Var> outputs;
  std::span<const Var> adjoints;
  const std::vector<bool>& wanted;  // per input: is its adjoint asked for?

  bool wants(int input) const { return wanted[static_cast<std::size_t>(input)]; }
  Var in(int i) const { return inputs[static_cast<std::size_t>(i)]; }
  Var out(int i) const { return outputs[static_cast<std::size_t>(i)]; }
  Var dy(int i = 0) const { return adjoints[static_cast<std::size_t>(i)]; }
};
using GradientRule = std::vector<Var> (*)(const Backward&);

class Gradient {
 public:
  Gradient() = delete;
  explicit Gradient(GradientRule how) : rule_(how) {}
  // Integer results, comparisons, random counters, updates: nothing flows back.
  static Gradient none() { return Gradient(nullptr); }
  // Differentiate the definition's decomposition instead: for fused backward operators, which only
  // a second order asks for.
  static Gradient of_decomposition() {
    Gradient out(nullptr);
    out.decomposed_ = true;
    return out;
  }

  GradientRule rule() const { return rule_; }
  bool by_decomposition() const { return decomposed_; }
  bool exists() const { return rule_ != nullptr || decomposed_; }

 private:
  GradientRule rule_;
  bool decomposed_ = false;
};

// Which output may be written over which input, element by element, when nobody else still reads
// that input and both have the same size in bytes. `must` marks updates: the result is the input's
// next version and always takes its place.
class InPlace {
 public:
  struct Pair {
    int output;
    int input;
    bool operator==(const Pair&) const = default;
  };

  InPlace() = delete;
  static InPlace never() { return InPlace({}, false); }
  // Output 0 over this input.
  static InPlace over(int input) { return InPlace({{0, input}}, false); }
  static InPlace over_any_of(std::vector<Pair> pairs) { return InPlace(std::move(pairs), false); }
  static InPlace update(std::vector<Pair> pairs) { return InPlace(std::move(pairs), true); }

  const std::vector<Pair>& pairs() const { return pairs_; }
  bool must() const { return must_; }

 private:
  InPlace(std::vector<Pair> pairs, bool must) : pairs_(std::move(pairs)), must_(must) {}
  std::vector<Pair> pairs_;
  bool must_;
};

// Bytes that need not be copied. `output lies in input` (reshape, slice along the outer axis,
// split) or `input lies in output` (concat along the outer axis: the producers write into their
// place).
struct View {
  int output = 0;
  int input = 0;
  Bytes offset;               // of the inner one in the outer one
  bool input_inside = false;  // false: the output lies in the input
  bool operator==(const View&) const = default;
};
using ViewRule = std::vector<View> (*)(const Call&, std::span<const TensorType> outputs);

// What one run costs: arithmetic operations, and bytes moved if every tensor is touched once.
struct Cost {
  double operations = 0;
  double bytes_read = 0;
  double bytes_written = 0;
  double bytes() const { return bytes_read + bytes_written; }
};
using CostRule = Cost (*)(const Call&, std::span<const TensorType> outputs);

enum class Recompute : std::uint8_t {
  kFree,       // a view: nothing happens
  kCheap,      // bound by memory: activation, normalisation, pooling
  kExpensive,  // bound by arithmetic: convolution, matrix product
  kNever,      // updates and side effects
};

// How an operator may be computed in parts, each over a range of rows.
//
// The rows are the outermost axes of every tensor that is cut, flattened: rows of a product,
// positions of a loss, elements of an activation. A part of a tensor that is cut is therefore one
// run of its bytes, and needs no copy. What the rows are summed into is added up part by part, in
// order, over what the parts before it made.
//
// Parts have the same bits as the whole because kernels compute `granule` rows at a time, whole or
// not: a part of whole granules is the same calls on the same addresses' contents.
struct Split {
  enum class Input : std::uint8_t { kCut, kWhole };
  enum class Output : std::uint8_t { kCut, kSum };
  std::int64_t rows = 0;
  std::int64_t granule = 1;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  int sums = -1;  // where sums go on: output i adds to the optional input sums + i
  // The attribute that says which element of the whole a part begins with; empty: none needs to.
  std::string_view first_element = {};
};
using SplitRule = std::optional<Split> (*)(const Call&, std::span<const TensorType> outputs);

// Rows that kernels of matrix products compute in one call. A larger granule is a larger smallest
// part; a smaller one reads and writes a weight's gradient more often.
inline constexpr std::int64_t kProductGranule = 1024;

// Which physical layouts an operator takes.
enum class LayoutRule : std::uint8_t {
  kPlain,     // row-major only
  kAny,       // element by element: any layout, the same for all of its full-size tensors
  kChannels,  // like convolution: NCHW or channels-last, the results follow the first input
};

using InferRule = Result<std::vector<TensorType>> (*)(const Call&);

// Computes outputs (already of the right type, zeroed) from inputs; null for an absent input.
struct Evaluation {
  std::vector<const Array*> inputs;
  std::vector<Array>& outputs;
  AttributeReader attributes;

  const Array& in(int i) const { return *inputs[static_cast<std::size_t>(i)]; }
  bool has(int i) const {
    return static_cast<std::size_t>(i) < inputs.size() &&
           inputs[static_cast<std::size_t>(i)] != nullptr;
  }
  Array& out(int i = 0) const { return outputs[static_cast<std::size_t>(i)]; }
};
using EvaluateRule = void (*)(const Evaluation&);

// The same computation in simpler operators.
struct Decomposition {
  Builder& builder;
  AttributeReader attributes;
  std::span<const Var> inputs;
  Var in(int i) const { return inputs[static_cast<std::size_t>(i)]; }
};
using DecomposeRule = std::vector<Var> (*)(const Decomposition&);

struct OpDefinition {
  std::string_view name;
  Arity inputs;
  Arity outputs;
  std::vector<AttributeSpec> attributes = {};
  InferRule infer;
  Gradient gradient;
  InPlace in_place;
  ViewRule views = nullptr;
  CostRule cost;
  Recompute recompute;
  LayoutRule layout;
  EvaluateRule evaluate;
  DecomposeRule decompose = nullptr;
  SplitRule split = nullptr;  // absent: only whole

  // The same operator with these attributes.
  OpDefinition having(std::vector<AttributeSpec> specs) && {
    attributes = std::move(specs);
    return std::move(*this);
  }
  // The attributes of a use of it, with its defaults.
  AttributeReader read(const ir::Attributes& given) const { return {name, attributes, given}; }
};

}  // namespace plimsoll::ops

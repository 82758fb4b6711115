// Chains of element-wise operators over one tensor that are a known activation.
//
//   x ──▶ div √2 ──▶ erf ──▶ add 1 ──▶ mul x ──▶ mul ½   is gelu, whatever the order of the factors
//
// From the last node of a chain we walk back, always through the latest node not yet walked, until
// everything that is left to walk is one tensor x (numbers apart). That sub-graph is a function of
// one variable: it is evaluated at sample points, in double, by the reference evaluation, and
// compared with each candidate.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "plimsoll/ops/evaluation/interpreter.h"
#include "plimsoll/ops/functions.h"
#include "plimsoll/rewrite/pattern.h"
#include "plimsoll/rewrite/recover.h"

namespace plimsoll::rewrite {
namespace {

using ops::Array;
using ops::Builder;
using ops::Var;

constexpr int kMostNodes = 16;
// Constants in files are rounded to single precision or to a few digits (0.044715, 0.7978845608).
constexpr double kTolerance = 2e-5;

constexpr std::array<std::string_view, 26> kElementwise = {
    "add",        "sub",        "mul",        "div",      "pow",   "maximum", "minimum",
    "neg",        "abs",        "reciprocal", "sqrt",     "rsqrt", "exp",     "log",
    "tanh",       "erf",        "sigmoid",    "softplus", "relu",  "clip",    "hard_sigmoid",
    "hard_swish", "leaky_relu", "elu",        "silu",     "gelu"};

struct Candidate {
  std::string_view op;
  ir::Attributes attributes;
};

const std::vector<Candidate>& candidates() {
  static const std::vector<Candidate> kCandidates = {
      {"gelu", {{"approximate", std::string("none")}}},
      {"gelu", {{"approximate", std::string("tanh")}}},
      {"silu", {}},
      {"mish", {}},
      {"hard_swish", {}},
      {"softplus", {}},
      {"sigmoid", {}},
      {"hard_sigmoid", {{"alpha", 1.0 / 6}, {"beta", 0.5}}},
  };
  return kCandidates;
}

// Dense where activations bend, and the two tails.
std::vector<double> sample_points() {
  std::vector<double> out;
  for (int i = -40; i <= 40; ++i) out.push_back(i * 0.17 + 0.013);
  out.insert(out.end(), {-15.5, -10.25, 9.75, 14.5});
  return out;
}

struct Chain {
  ValueId x;
  std::vector<NodeId> nodes;  // in order
};

bool walkable(const ir::Node& node) {
  return node.phase == ir::Phase::kForward &&
         std::find(kElementwise.begin(), kElementwise.end(), node.op) != kElementwise.end();
}

class Walker {
 public:
  Walker(const GraphEditor& edit, NodeId root)
      : edit_(edit), shape_(edit.graph().value(edit.graph().node(root).outputs[0]).type.shape) {
    walk(root);
  }

  // One node further back; false when the chain ends here.
  bool step() {
    if (open_.empty() || nodes_.size() >= kMostNodes) return false;
    // the latest: all its readers in the chain have been walked
    const NodeId next = *open_.rbegin();
    const ir::Node& node = edit_.graph().node(next);
    if (!walkable(node) || node.outputs.size() != 1 ||
        edit_.graph().value(node.outputs[0]).type.shape != shape_)
      return false;
    for (const NodeId reader : edit_.readers(node.outputs[0])) {
      if (!nodes_.contains(reader)) return false;
    }
    if (edit_.is_output(node.outputs[0])) return false;
    open_.erase(next);
    walk(next);
    return true;
  }
  // The chain as a function of one tensor, when it is one.
  std::optional<Chain> chain() const {
    if (leaves_.size() + open_.size() != 1 || nodes_.size() < 2) return std::nullopt;
    Chain out;
    out.x = leaves_.empty() ? edit_.graph().node(*open_.begin()).outputs[0] : *leaves_.begin();
    out.nodes.assign(nodes_.begin(), nodes_.end());
    if (edit_.graph().value(out.x).type.shape != shape_) return std::nullopt;
    return out;
  }

 private:
  void walk(NodeId id) {
    nodes_.insert(id);
    for (const ValueId input : edit_.graph().node(id).inputs) {
      if (!input.valid() || number_of(edit_, input)) continue;
      const NodeId producer = edit_.graph().value(input).producer;
      const bool plain = producer.valid() && edit_.graph().node(producer).outputs.size() == 1;
      if (plain)
        open_.insert(producer);
      else
        leaves_.insert(input);
    }
  }

  const GraphEditor& edit_;
  ir::Shape shape_;
  std::set<NodeId> nodes_;
  std::set<NodeId> open_;     // producers not yet walked
  std::set<ValueId> leaves_;  // what has no producer to walk
};

std::optional<std::vector<double>> evaluate(Builder& builder, Var y) {
  if (builder.error()) return std::nullopt;
  const auto values = ops::interpret(builder.graph(), {});
  if (!values) return std::nullopt;
  return (*values)[y.id().index()]->reals;
}

std::optional<std::vector<double>> run_chain(const GraphEditor& edit, const Chain& chain,
                                             const Array& points) {
  Builder builder("chain");
  std::unordered_map<std::uint32_t, Var> made;
  made[chain.x.value] = builder.constant("x", points);
  Var last;
  for (const NodeId id : chain.nodes) {
    const ir::Node& node = edit.graph().node(id);
    std::vector<Var> inputs;
    for (const ValueId input : node.inputs) {
      if (!input.valid())
        inputs.emplace_back();
      else if (const auto place = made.find(input.value); place != made.end())
        inputs.push_back(place->second);
      else if (const auto number = number_of(edit, input))
        inputs.push_back(builder.fill({ir::DType::kF64, {}, {}}, *number));
      else
        return std::nullopt;
    }
    last = builder.call1(node.op, inputs, node.attributes);
    made[node.outputs[0].value] = last;
  }
  return evaluate(builder, last);
}

const std::vector<std::vector<double>>& candidate_values(const Array& points) {
  static const std::vector<std::vector<double>> kValues = [&] {
    std::vector<std::vector<double>> out;
    for (const Candidate& candidate : candidates()) {
      Builder builder("candidate");
      const Var y =
          builder.call1(candidate.op, {builder.constant("x", points)}, candidate.attributes);
      out.push_back(evaluate(builder, y).value_or(std::vector<double>{}));
    }
    return out;
  }();
  return kValues;
}

bool agree(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(std::abs(a[i] - b[i]) <= kTolerance * std::max(1.0, std::abs(b[i])))) return false;
  }
  return true;
}

const Candidate* recognise(const GraphEditor& edit, const Chain& chain) {
  static const Array kPoints = [] {
    std::vector<double> points = sample_points();
    const ir::Shape shape{static_cast<std::int64_t>(points.size())};
    return Array::of_reals(shape, std::move(points));
  }();
  const auto values = run_chain(edit, chain, kPoints);
  if (!values) return nullptr;
  const auto& expected = candidate_values(kPoints);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (agree(*values, expected[i])) return &candidates()[i];
  }
  return nullptr;
}

}  // namespace

Result<int> recover_activations(GraphEditor& edit) {
  int changes = 0;
  // From the end, so that the longest chain is tried first.
  for (std::size_t n = edit.original_nodes(); n-- > 0;) {
    const NodeId id(n);
    const ir::Node& node = edit.graph().node(id);
    const ValueId y = node.outputs.front();
    if (!walkable(node) || (edit.readers(y).empty() && !edit.is_output(y))) continue;
    if (!ir::is_float(edit.graph().value(y).type.dtype)) continue;
    Walker walker(edit, id);
    const Candidate* found = nullptr;
    ValueId x;
    do {
      const auto chain = walker.chain();
      if (!chain) continue;
      if (const Candidate* candidate = recognise(edit, *chain)) {
        found = candidate;
        x = chain->x;
      }
    } while (walker.step());
    if (found == nullptr) continue;
    PLIMSOLL_TRY(const auto made, edit.insert(id, found->op, {x}, found->attributes));
    edit.replace(y, made[0]);
    ++changes;
  }
  return changes;
}

}  // namespace plimsoll::rewrite

#include "plimsoll/autodiff/differentiate.h"

#include <algorithm>
#include <string>

#include "plimsoll/ops/elementwise/binary.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::autodiff {
namespace {

// One reverse walk over the nodes [first, last) of the builder's graph.
class Walk {
 public:
  Walk(Builder& builder, std::span<const Var> wrt, std::size_t first, std::size_t last)
      : builder_(builder), wrt_(wrt.begin(), wrt.end()), first_(first), last_(last) {
    mark_dependents();
    find_first_readers();
  }

  void seed(Var y, Var adjoint) {
    if (y.id().index() < depends_.size() && depends_[y.id().index()]) add_adjoint(y.id(), adjoint);
  }

  void run(const std::function<void(std::size_t, Var)>& on_complete) {
    for (std::size_t n = last_; n-- > first_ && !builder_.error();) {
      if (is_active(NodeId(n))) differentiate_node(NodeId(n));
      if (on_complete) report_complete(n, on_complete);
    }
    if (on_complete && !builder_.error()) report_complete(kNoReader, on_complete);
  }

  std::vector<Var> adjoints() const {
    std::vector<Var> out;
    for (const Var& value : wrt_) out.push_back(adjoint_of(value.id()));
    return out;
  }

 private:
  static constexpr std::size_t kNoReader = static_cast<std::size_t>(-1);

  // A value depends on `wrt` when a path of float values leads there.
  void mark_dependents() {
    const ir::Graph& graph = builder_.graph();
    depends_.assign(graph.values.size(), false);
    adjoint_.resize(graph.values.size());
    for (const Var& value : wrt_) depends_[value.id().index()] = ir::is_float(value.dtype());
    for (std::size_t n = first_; n < last_; ++n) {
      const ir::Node& node = graph.nodes[n];
      if (!ops::definition_of(node).gradient.exists()) continue;
      const bool any = std::any_of(node.inputs.begin(), node.inputs.end(),
                                   [&](ValueId id) { return id.valid() && depends_[id.index()]; });
      if (!any) continue;
      for (const ValueId output : node.outputs)
        depends_[output.index()] = ir::is_float(graph.value(output).type.dtype);
    }
  }

  // After the walk has passed the first reader of a wrt value, its adjoint is complete.
  void find_first_readers() {
    const ir::Graph& graph = builder_.graph();
    std::vector<std::size_t> first_reader(graph.values.size(), kNoReader);
    for (std::size_t n = last_; n-- > first_;) {
      for (const ValueId input : graph.nodes[n].inputs) {
        if (input.valid()) first_reader[input.index()] = n;
      }
    }
    for (std::size_t i = 0; i < wrt_.size(); ++i)
      complete_at_.emplace_back(first_reader[wrt_[i].id().index()], i);
    std::sort(complete_at_.begin(), complete_at_.end());
  }

  void report_complete(std::size_t node, const std::function<void(std::size_t, Var)>& on_complete) {
    auto [begin, end] =
        std::equal_range(complete_at_.begin(), complete_at_.end(), std::pair(node, std::size_t{0}),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
    for (; begin != end; ++begin) {
      const Var adjoint = adjoint_of(wrt_[begin->second].id());
      if (adjoint) on_complete(begin->second, adjoint);
    }
  }

  bool is_active(NodeId id) const {
    const ir::Node& node = builder_.graph().node(id);
    return std::any_of(node.outputs.begin(), node.outputs.end(),
                       [&](ValueId output) { return static_cast<bool>(adjoint_of(output)); });
  }

  void differentiate_node(NodeId id) {
    // A copy: building nodes moves the graph's vectors.
    const ir::Node node = builder_.graph().node(id);
    std::vector<Var> inputs = vars(node.inputs);
    std::vector<Var> outputs = vars(node.outputs);
    std::vector<Var> flowing;
    for (const ValueId output : node.outputs) flowing.push_back(adjoint_of(output));
    std::vector<bool> wanted;
    for (const ValueId input : node.inputs)
      wanted.push_back(input.valid() && depends_[input.index()]);

    builder_.set_layer(node.layer);
    const ops::OpDefinition& definition = ops::definition_of(node);
    std::vector<Var> result;
    if (definition.gradient.by_decomposition()) {
      result = through_decomposition(definition, node, inputs, flowing);
    } else {
      result = definition.gradient.rule()(
          {builder_, ops::attributes_of(node), inputs, outputs, flowing, wanted});
    }
    PLIMSOLL_CHECK(result.size() == inputs.size(),
                   "the gradient of {} has {} adjoints for {} inputs", node.op, result.size(),
                   inputs.size());
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (!wanted[i] || !result[i]) continue;
      PLIMSOLL_CHECK(builder_.error() || result[i].shape() == inputs[i].shape(),
                     "the gradient of {} for input {} is {}, expects {}", node.op, i,
                     ir::to_string(result[i].type()), ir::to_string(inputs[i].type()));
      add_adjoint(node.inputs[i], result[i]);
    }
  }

  std::vector<Var> through_decomposition(const ops::OpDefinition& definition, const ir::Node& node,
                                         const std::vector<Var>& inputs,
                                         const std::vector<Var>& flowing) {
    const std::size_t first = builder_.graph().nodes.size();
    const std::vector<Var> simple =
        definition.decompose({builder_, ops::attributes_of(node), inputs});
    std::vector<Var> wrt;
    for (const Var& input : inputs) {
      if (input) wrt.push_back(input);
    }
    Walk inner(builder_, wrt, first, builder_.graph().nodes.size());
    for (std::size_t i = 0; i < flowing.size(); ++i) {
      if (flowing[i]) inner.seed(simple[i], flowing[i]);
    }
    inner.run({});
    std::vector<Var> found = inner.adjoints();
    std::vector<Var> out;
    for (std::size_t i = 0, next = 0; i < inputs.size(); ++i)
      out.push_back(inputs[i] ? found[next++] : Var());
    // A value that stands at two inputs has one adjoint, already the sum of both uses.
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (inputs[i] && inputs[j] && inputs[i].id() == inputs[j].id()) out[i] = Var();
      }
    }
    return out;
  }

  std::vector<Var> vars(const std::vector<ValueId>& ids) const {
    std::vector<Var> out;
    for (const ValueId id : ids) out.push_back(id.valid() ? builder_.var(id) : Var());
    return out;
  }

  Var adjoint_of(ValueId id) const {
    return id.index() < adjoint_.size() ? adjoint_[id.index()] : Var();
  }

  void add_adjoint(ValueId id, Var adjoint) {
    Var& sum = adjoint_[id.index()];
    sum = sum ? ops::add(sum, adjoint) : adjoint;
  }

  Builder& builder_;
  std::vector<Var> wrt_;
  std::size_t first_;
  std::size_t last_;
  std::vector<bool> depends_;
  std::vector<Var> adjoint_;
  // (first reader, index in wrt_), sorted
  std::vector<std::pair<std::size_t, std::size_t>> complete_at_;
};

}  // namespace

Result<std::vector<Var>> differentiate(Builder& builder, Var y, std::span<const Var> wrt,
                                       const DifferentiateOptions& options) {
  if (!ir::is_float(y.dtype()))
    return bad_input("cannot differentiate '{}': it is {}", builder.graph().value(y.id()).name,
                     ir::name(y.dtype()));
  const ir::Phase phase = builder.phase();
  const std::string layer = builder.layer();
  Walk walk(builder, wrt, 0, builder.graph().nodes.size());
  builder.set_phase(ir::Phase::kBackward);
  if (y.builder().graph().value(y.id()).producer.valid()) {
    builder.set_layer(builder.graph().node(builder.graph().value(y.id()).producer).layer);
  }
  walk.seed(y, options.seed ? options.seed : builder.fill({y.dtype(), y.shape(), {}}, 1.0));
  walk.run(options.on_complete);
  builder.set_phase(phase);
  builder.set_layer(layer);
  if (builder.error()) return tl::unexpected<Error>(*builder.error());
  return walk.adjoints();
}

}  // namespace plimsoll::autodiff

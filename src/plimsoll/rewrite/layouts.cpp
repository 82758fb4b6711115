#include "plimsoll/rewrite/layouts.h"

#include <algorithm>
#include <map>

#include "plimsoll/ops/movement/channel_groups.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/layout_forms.h"
#include "plimsoll/rewrite/layout_prices.h"
#include "plimsoll/rewrite/layout_roles.h"

namespace plimsoll::rewrite {
namespace {

using ir::Layout;

class LayoutPass {
 public:
  // Without a choice for each node the rule decides.
  LayoutPass(const ir::Graph& graph, const LayoutOptions& options, const LayoutRoles& roles,
             const LayoutForms& forms, const std::vector<LayoutChoice>* chosen)
      : in_(graph),
        options_(options),
        roles_(roles),
        forms_(forms),
        chosen_(chosen),
        versions_(graph.values.size()) {}

  ir::Graph run() {
    out_.name = in_.name;
    copy_sources();
    for (const ir::Node& node : in_.nodes) copy_node(node);
    for (const ValueId output : in_.outputs) add_output(output);
    for (const ir::Update& update : in_.updates) {
      out_.updates.push_back({as(update.source, Layout{}), as(update.next, Layout{})});
    }
    return std::move(out_);
  }

  // Of each node, as it was laid out.
  const std::vector<LayoutChoice>& choices() const { return choices_; }

 private:
  struct Version {
    Layout layout;
    ValueId value;
  };

  const ir::TensorType& type_in(ValueId value) const { return in_.value(value).type; }
  // How the value was made.
  const Layout& native(ValueId value) const { return versions_[value.index()].front().layout; }

  void copy_sources() {
    for (std::size_t v = 0; v < in_.values.size(); ++v) {
      const ir::Value& value = in_.values[v];
      if (value.producer.valid()) continue;
      versions_[v].push_back(
          {value.type.layout, out_.add_source(value.name, value.kind, value.type, value.init)});
      if (const auto* data = in_.data(ValueId(v)))
        out_.constants.push_back({versions_[v].front().value, *data});
    }
  }

  // An output is known by its name: where it is reordered, the name goes with it.
  void add_output(ValueId output) {
    const ValueId plain = as(output, Layout{});
    const ValueId made = versions_[output.index()].front().value;
    if (plain != made && out_.value(plain).name != in_.value(output).name)
      std::swap(out_.value(plain).name, out_.value(made).name);
    out_.outputs.push_back(plain);
  }

  ValueId as(ValueId value, const Layout& layout) {
    if (!value.valid()) return value;
    for (const Version& version : versions_[value.index()]) {
      if (version.layout == layout) return version.value;
    }
    const Version& first = versions_[value.index()].front();
    ir::Node node;
    node.op = "reorder";
    node.layer = layer_;
    node.phase = phase_ == ir::Phase::kUpdate ? ir::Phase::kBackward : phase_;
    node.inputs = {first.value};
    node.attributes.set("layout", ir::to_string(layout));
    ir::TensorType type = type_in(value);
    type.layout = layout;
    const NodeId made = out_.add_node(std::move(node), {type}, kind_of(phase_));
    versions_[value.index()].push_back({layout, out_.node(made).outputs[0]});
    return versions_[value.index()].back().value;
  }

  static ir::ValueKind kind_of(ir::Phase phase) {
    return phase == ir::Phase::kForward ? ir::ValueKind::kActivation : ir::ValueKind::kGradient;
  }

  // Appends the node with its inputs in these layouts, its outputs made in those.
  void emit(const ir::Node& node, const std::vector<Layout>& inputs,
            const std::vector<Layout>& outputs) {
    ir::Node copy = node;
    for (std::size_t i = 0; i < copy.inputs.size(); ++i)
      copy.inputs[i] = as(node.inputs[i], inputs[i]);
    std::vector<ir::TensorType> types;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      types.push_back(type_in(node.outputs[i]));
      types.back().layout = outputs[i];
    }
    const NodeId made = out_.add_node(std::move(copy), types, ir::ValueKind::kActivation);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId fresh = out_.node(made).outputs[i];
      const ir::Value& old = in_.value(node.outputs[i]);
      out_.value(fresh).name = old.name;
      out_.value(fresh).kind = old.kind;
      versions_[node.outputs[i].index()].push_back({outputs[i], fresh});
    }
  }

  void copy_node(const ir::Node& node) {
    layer_ = node.layer;
    phase_ = node.phase;
    LayoutChoice choice = chosen_ ? (*chosen_)[choices_.size()] : choice_by_rule(node);
    NodeLayouts layouts = forms_.of(node, choice);
    if (node.op == "reshape" || node.op == "transpose") {
      lay_out_shuffle(node, layouts.inputs[0], layouts.outputs[0]);
      if (node.op == "transpose" && !chosen_)
        lay_out_permutation(node, layouts.inputs[0], layouts.outputs[0]);
      choice = {lies_last(node.inputs[0], layouts.inputs[0]),
                lies_last(node.outputs[0], layouts.outputs[0])};
    }
    choices_.push_back(choice);
    emit(node, layouts.inputs, layouts.outputs);
  }

  bool lies_last(ValueId value, const Layout& layout) const {
    const int rank = type_in(value).shape.rank();
    return rank >= 3 && layout == Layout::channels_last(rank);
  }

  LayoutChoice choice_by_rule(const ir::Node& node) const {
    if (node.op == "reshape" || node.op == "transpose") return {};
    if (convolution_form(node)) return {true, true};
    if (!in_region(node)) return {};
    // A mean over the places leaves nothing to lie channels last; with its axes kept it is one
    // place.
    return {node.op != "expand", !roles_.reduces_places(node)};
  }

  // Channels that change places between groups (cut apart, swapped, put together again) do it where
  // they lie. Neither reshape moves a byte.
  void lay_out_shuffle(const ir::Node& node, Layout& input, Layout& output) const {
    const ir::Shape& from = type_in(node.inputs[0]).shape;
    const ir::Shape& to = type_in(node.outputs[0]).shape;
    const Layout& made = native(node.inputs[0]);
    if (node.op == "transpose") {
      if (from.rank() < 4 || made != ops::groups_last(from.rank()) || !swaps_groups(node)) return;
      input = output = made;
    } else if (ops::cuts_channels(from, to) && made == Layout::channels_last(from.rank()) &&
               roles_.feeds_swaps(node.outputs[0])) {
      input = made;
      output = ops::groups_last(to.rank());
    } else if (ops::cuts_channels(to, from) && made == ops::groups_last(from.rank())) {
      input = made;
      output = Layout::channels_last(to.rank());
    }
  }

  // A network that works on [N, H, W, C] between its convolutions turns its tensors there and back:
  // with the other one lying channels last, neither way moves a byte.
  void lay_out_permutation(const ir::Node& node, Layout& input, Layout& output) const {
    const int rank = type_in(node.inputs[0]).shape.rank();
    if (rank < 3 || node.phase == ir::Phase::kUpdate) return;
    const Layout last = Layout::channels_last(rank);
    if (moves_channels(node, 1, rank - 1) && native(node.inputs[0]) == last) {
      input = last;
    } else if (moves_channels(node, rank - 1, 1) && native(node.inputs[0]).is_row_major() &&
               roles_.feeds_region(node.outputs[0], rank)) {
      output = last;
    }
  }

  // One of its tensors lies there already, and the others can.
  bool in_region(const ir::Node& node) const {
    if (node.phase == ir::Phase::kUpdate) return false;
    if (node.op == "expand") return roles_.expands_into_region(node);
    if (!roles_.reduces_places(node) && !roles_.follows(node)) return false;
    const int rank = forms_.rank_of(node);
    if (rank < 3 || !roles_.broadcasts_fine(node, rank)) return false;
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
      return input.valid() && type_in(input).shape.rank() == rank &&
             (native(input) == Layout::channels_last(rank) || from_narrow_convolution(input));
    });
  }

  // A stem keeps its own layout, but what follows it is part of the region.
  bool from_narrow_convolution(ValueId value) const {
    const NodeId producer = in_.value(value).producer;
    return producer.valid() && in_.node(producer).op == "conv" &&
           type_in(in_.node(producer).inputs[0]).shape[1] < options_.least_channels;
  }

  const ir::Graph& in_;
  const LayoutOptions& options_;
  const LayoutRoles& roles_;
  const LayoutForms& forms_;
  const std::vector<LayoutChoice>* chosen_;
  std::vector<LayoutChoice> choices_;
  ir::Graph out_;
  std::vector<std::vector<Version>> versions_;  // of each old value; the first is how it was made
  std::string layer_;
  ir::Phase phase_ = ir::Phase::kForward;
};

// In fp64 nothing is fast: only the reference evaluation takes it.
bool has_convolutions(const ir::Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const ir::Node& node) {
    return node.op == "conv" && graph.value(node.inputs[0]).type.dtype != ir::DType::kF64;
  });
}

}  // namespace

Result<ir::Graph> choose_layouts(const ir::Graph& graph, const LayoutOptions& options) {
  if (!has_convolutions(graph)) return graph;
  const LayoutRoles roles(graph);
  const LayoutForms forms(graph, roles, options);
  LayoutPass by_rule(graph, options, roles, forms, nullptr);
  ir::Graph out = by_rule.run();
  if (options.price) {
    const auto choices = choose_by_price(graph, roles, forms, options, by_rule.choices());
    if (choices && *choices != by_rule.choices())
      out = LayoutPass(graph, options, roles, forms, &*choices).run();
  }
  PLIMSOLL_RETURN_IF_ERROR(ops::verify(out));
  return out;
}

Result<ir::Graph> keep_row_major(const ir::Graph& graph, const LayoutOptions& options) {
  if (!has_convolutions(graph)) return graph;
  const LayoutRoles roles(graph);
  const LayoutForms forms(graph, roles, options);
  const std::vector<LayoutChoice> plain(graph.nodes.size());
  ir::Graph out = LayoutPass(graph, options, roles, forms, &plain).run();
  PLIMSOLL_RETURN_IF_ERROR(ops::verify(out));
  return out;
}

}  // namespace plimsoll::rewrite

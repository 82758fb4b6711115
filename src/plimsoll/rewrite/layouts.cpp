#include "plimsoll/rewrite/layouts.h"

#include <algorithm>
#include <map>

#include "plimsoll/ops/kernel_facts.h"
#include "plimsoll/ops/movement/channel_groups.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::rewrite {
namespace {

using ir::Layout;

// The operators besides the element-by-element ones whose kernels take channels-last tensors.
bool takes_channels_last(const ir::Node& node) {
  return ops::definition_of(node).layout == ops::LayoutRule::kChannels;
}

// Which inputs and outputs of a convolution are x, w and y (or their gradients).
struct ConvolutionForm {
  bool weights_are_output;  // conv_grad_weight
  bool x_is_output;         // conv_grad_input
};

std::optional<ConvolutionForm> convolution_form(const ir::Node& node) {
  if (node.op == "conv") return ConvolutionForm{false, false};
  if (node.op == "conv_grad_input") return ConvolutionForm{false, true};
  if (node.op == "conv_grad_weight") return ConvolutionForm{true, false};
  return std::nullopt;
}

class LayoutPass {
 public:
  LayoutPass(const ir::Graph& graph, const LayoutOptions& options)
      : in_(graph),
        options_(options),
        versions_(graph.values.size()),
        readers_(ir::readers(graph)) {}

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
    std::vector<Layout> inputs(node.inputs.size());
    std::vector<Layout> outputs(node.outputs.size());
    if (const auto form = convolution_form(node)) {
      lay_out_convolution(node, *form, inputs, outputs);
    } else if (node.op == "reshape" || node.op == "transpose") {
      lay_out_shuffle(node, inputs[0], outputs[0]);
      if (node.op == "transpose") lay_out_permutation(node, inputs[0], outputs[0]);
    } else if (const int rank = region_rank(node); rank > 0) {
      const auto choose = [&](ValueId value, Layout& layout) {
        if (value.valid() && type_in(value).shape.rank() == rank)
          layout = Layout::channels_last(rank);
      };
      for (std::size_t i = 0; i < inputs.size(); ++i) choose(node.inputs[i], inputs[i]);
      // A mean over the places leaves nothing to lie channels last; with its axes kept it is one
      // place.
      if (node.op != "reduce_mean" && node.op != "reduce_sum") {
        for (std::size_t i = 0; i < outputs.size(); ++i) choose(node.outputs[i], outputs[i]);
      }
      if (node.op == "expand") inputs.assign(inputs.size(), Layout{});
    }
    emit(node, inputs, outputs);
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
               feeds_swaps(node.outputs[0])) {
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
               feeds_region(node.outputs[0], rank)) {
      output = last;
    }
  }

  // Whether the permutation takes axis `from` to place `to` and keeps the others in order.
  static bool moves_channels(const ir::Node& node, int from, int to) {
    ir::Ints perm = node.attributes.integers("perm");
    if (perm.size() <= static_cast<std::size_t>(std::max(from, to)) ||
        perm[static_cast<std::size_t>(to)] != from)
      return false;
    perm.erase(perm.begin() + to);
    return std::is_sorted(perm.begin(), perm.end());
  }

  // Somebody reads it who takes it channels last: a convolution, or what is done element by element
  // with tensors of that rank.
  bool feeds_region(ValueId value, int rank) const {
    const auto& readers = readers_[value.index()];
    return std::any_of(readers.begin(), readers.end(), [&](NodeId reader) {
      const ir::Node& node = in_.node(reader);
      if (node.phase == ir::Phase::kUpdate) return false;
      if (convolution_form(node) || takes_channels_last(node)) return true;
      return rank > 3 && ops::definition_of(node).layout == ops::LayoutRule::kAny &&
             node.op != "reorder" && broadcasts_fine(node, rank);
    });
  }

  bool feeds_swaps(ValueId value) const {
    const auto& readers = readers_[value.index()];
    return !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
      return in_.node(reader).op == "transpose" && swaps_groups(in_.node(reader));
    });
  }

  static bool swaps_groups(const ir::Node& node) {
    ir::Ints perm = node.attributes.integers("perm");
    if (perm.size() < 4 || perm[1] != 2 || perm[2] != 1) return false;
    std::swap(perm[1], perm[2]);
    return std::is_sorted(perm.begin(), perm.end());
  }

  // The rank of the tensors that this node has in the region, or 0 when it is not part of it.
  int region_rank(const ir::Node& node) const {
    if (node.phase == ir::Phase::kUpdate) return 0;
    if (node.op == "expand")
      return expands_into_region(node) ? type_in(node.outputs[0]).shape.rank() : 0;
    const bool reduces =
        (node.op == "reduce_mean" || node.op == "reduce_sum") && reduces_places(node);
    const bool elementwise = ops::definition_of(node).layout == ops::LayoutRule::kAny &&
                             node.op != "reorder" && node.op != "fill";
    if (!reduces && !elementwise && !takes_channels_last(node)) return 0;
    for (const ValueId input : node.inputs) {
      if (!input.valid()) continue;
      const int rank = type_in(input).shape.rank();
      const bool inside =
          native(input) == Layout::channels_last(rank) || from_narrow_convolution(input);
      if (rank >= 3 && inside) return broadcasts_fine(node, rank) ? rank : 0;
    }
    return 0;
  }

  // A stem keeps its own layout, but what follows it is part of the region.
  bool from_narrow_convolution(ValueId value) const {
    const NodeId producer = in_.value(value).producer;
    return producer.valid() && in_.node(producer).op == "conv" &&
           type_in(in_.node(producer).inputs[0]).shape[1] < options_.least_channels;
  }

  // Operands of other ranks would have to be broadcast along axes that lie elsewhere; single
  // numbers and one number a channel ([C,1,1] beside [N,C,H,W]) are fine.
  bool broadcasts_fine(const ir::Node& node, int rank) const {
    if (takes_channels_last(node)) return true;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
      if (!input.valid()) return true;
      const ir::Shape& shape = type_in(input).shape;
      return shape.rank() == rank || shape.elements() == 1 ||
             (shape.rank() == rank - 1 && shape.elements() == shape[0]);
    });
  }

  bool reduces_places(const ir::Node& node) const {
    const int rank = type_in(node.inputs[0]).shape.rank();
    ir::Ints axes = node.attributes.integers("axes");
    for (std::int64_t& axis : axes) axis = axis < 0 ? axis + rank : axis;
    std::sort(axes.begin(), axes.end());
    if (static_cast<int>(axes.size()) != rank - 2) return false;
    for (int i = 0; i < rank - 2; ++i) {
      if (axes[static_cast<std::size_t>(i)] != i + 2) return false;
    }
    return true;
  }

  // One number a channel spread over its places, into a tensor that the region reads: the gradient
  // of a mean over the places.
  bool expands_into_region(const ir::Node& node) const {
    const ir::Shape& from = type_in(node.inputs[0]).shape;
    const ir::Shape& to = type_in(node.outputs[0]).shape;
    if (to.rank() < 3 || from.rank() != to.rank() || from.elements(2, from.rank()) != 1)
      return false;
    return std::any_of(in_.nodes.begin(), in_.nodes.end(),
                       [&](const ir::Node& other) {
                         return other.op == "conv" &&
                                type_in(other.inputs[0]).shape.rank() == to.rank();
                       }) &&
           !readers_[node.outputs[0].index()].empty();
  }

  void lay_out_convolution(const ir::Node& node, const ConvolutionForm& form,
                           std::vector<Layout>& inputs, std::vector<Layout>& outputs) {
    const ValueId x = form.x_is_output ? node.outputs[0] : node.inputs[0];
    const int rank = type_in(x).shape.rank();
    const Layout last = Layout::channels_last(rank);
    const bool narrow = type_in(x).shape[1] < options_.least_channels;
    inputs[0] = outputs[0] = last;
    if (form.weights_are_output) {
      inputs[1] = last;
      outputs[0] = Layout{};
    }
    if (narrow) lay_out_narrow(node, form, inputs, outputs);
    if (!options_.weights_layout) return;
    const Layout wanted = ask_kernel(node, form, inputs, outputs);
    (form.weights_are_output ? outputs[0] : inputs[1]) = wanted;
  }

  // A few input channels fill no vector: the image stays NCHW and the result comes in blocks of 16
  // channels, the one form oneDNN has a special kernel for; it joins the region through a reorder.
  // Where the blocks would be padded by more than a half it is not worth it.
  void lay_out_narrow(const ir::Node& node, const ConvolutionForm& form,
                      std::vector<Layout>& inputs, std::vector<Layout>& outputs) const {
    const ValueId y = form.x_is_output          ? node.inputs[0]
                      : form.weights_are_output ? node.inputs[1]
                                                : node.outputs[0];
    const ir::TensorType& type = type_in(y);
    const std::int64_t channels = type.shape[1];
    const bool fills = (channels + 15) / 16 * 16 * 2 <= channels * 3;
    const Layout blocked =
        type.shape.rank() == 4 && fills ? *ir::parse_layout("@0123:16b1") : Layout{};
    if (form.x_is_output) {
      inputs[0] = blocked;
      outputs[0] = Layout{};
    } else {
      inputs[0] = Layout{};
      (form.weights_are_output ? inputs[1] : outputs[0]) = blocked;
    }
  }

  // The kernel sees the node as it will be: a graph of only this node. Alike ones are asked once.
  Layout ask_kernel(const ir::Node& node, const ConvolutionForm&, const std::vector<Layout>& inputs,
                    const std::vector<Layout>& outputs) {
    ir::Graph alone;
    ir::Node copy = node;
    for (std::size_t i = 0; i < copy.inputs.size(); ++i) {
      if (!copy.inputs[i].valid()) continue;
      ir::TensorType type = type_in(copy.inputs[i]);
      type.layout = inputs[i];
      copy.inputs[i] = alone.add_source(fmt::format("x{}", i), ir::ValueKind::kInput, type);
    }
    std::vector<ir::TensorType> types;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      types.push_back(type_in(node.outputs[i]));
      types.back().layout = outputs[i];
    }
    const NodeId made = alone.add_node(std::move(copy), types, ir::ValueKind::kActivation);
    const auto [known, fresh] = asked_.try_emplace(ops::signature(alone, alone.node(made)));
    if (fresh) known->second = options_.weights_layout(alone, alone.node(made));
    return known->second;
  }

  const ir::Graph& in_;
  const LayoutOptions& options_;
  ir::Graph out_;
  std::vector<std::vector<Version>> versions_;  // of each old value; the first is how it was made
  std::vector<std::vector<NodeId>> readers_;
  std::map<std::string, Layout> asked_;  // by signature
  std::string layer_;
  ir::Phase phase_ = ir::Phase::kForward;
};

}  // namespace

Result<ir::Graph> choose_layouts(const ir::Graph& graph, const LayoutOptions& options) {
  // In fp64 nothing is fast: only the reference evaluation takes it.
  const bool any = std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const ir::Node& node) {
    return node.op == "conv" && graph.value(node.inputs[0]).type.dtype != ir::DType::kF64;
  });
  if (!any) return graph;
  ir::Graph out = LayoutPass(graph, options).run();
  PLIMSOLL_RETURN_IF_ERROR(ops::verify(out));
  return out;
}

}  // namespace plimsoll::rewrite

#include "plimsoll/rewrite/layout_forms.h"

#include <fmt/format.h>

namespace plimsoll::rewrite {

using ir::Layout;

int LayoutForms::rank_of(const ir::Node& node) const {
  const bool reads = convolution_form(node) || roles_.reduces_places(node);
  return roles_.shape(reads ? node.inputs[0] : node.outputs[0]).rank();
}

bool LayoutForms::is_narrow(const ir::Node& node, const ConvolutionForm& form) const {
  return roles_.shape(roles_.data_of(node, form))[1] < options_.least_channels;
}

NodeLayouts LayoutForms::of(const ir::Node& node, const LayoutChoice& choice) const {
  NodeLayouts out{std::vector<Layout>(node.inputs.size()),
                  std::vector<Layout>(node.outputs.size())};
  if (const auto form = convolution_form(node)) {
    lay_out_convolution(node, *form, choice, out);
    return out;
  }
  if (!choice.reads_last && !choice.writes_last) return out;
  const int rank = rank_of(node);
  const auto lay_out = [&](const std::vector<ValueId>& values, std::vector<Layout>& layouts) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i].valid() && roles_.shape(values[i]).rank() == rank)
        layouts[i] = Layout::channels_last(rank);
    }
  };
  if (choice.reads_last) lay_out(node.inputs, out.inputs);
  if (choice.writes_last) lay_out(node.outputs, out.outputs);
  return out;
}

void LayoutForms::lay_out_convolution(const ir::Node& node, const ConvolutionForm& form,
                                      const LayoutChoice& choice, NodeLayouts& out) const {
  if (choice.reads_last) {
    const Layout last = Layout::channels_last(rank_of(node));
    out.inputs[0] = out.outputs[0] = last;
    if (form.weights_are_output) {
      out.inputs[1] = last;
      out.outputs[0] = Layout{};
    }
    if (is_narrow(node, form) && choice.keeps_image) keep_image(node, form, out);
  }
  if (!options_.weights_layout) return;
  const ir::Graph alone = node_alone(graph_, node, out);
  const Layout wanted = options_.weights_layout(alone, alone.nodes.front());
  (form.weights_are_output ? out.outputs[0] : out.inputs[1]) = wanted;
}

// A few input channels fill no vector: the image stays NCHW and the result comes in blocks of 16
// channels, the one form oneDNN has a special kernel for; it joins the region through a reorder.
// Where the blocks would be padded by more than a half it is not worth it.
void LayoutForms::keep_image(const ir::Node& node, const ConvolutionForm& form,
                             NodeLayouts& out) const {
  const ValueId y = form.x_is_output          ? node.inputs[0]
                    : form.weights_are_output ? node.inputs[1]
                                              : node.outputs[0];
  const ir::Shape& shape = roles_.shape(y);
  const std::int64_t channels = shape[1];
  const bool fills = (channels + 15) / 16 * 16 * 2 <= channels * 3;
  const Layout blocked = shape.rank() == 4 && fills ? *ir::parse_layout("@0123:16b1") : Layout{};
  if (form.x_is_output) {
    out.inputs[0] = blocked;
    out.outputs[0] = Layout{};
  } else {
    out.inputs[0] = Layout{};
    (form.weights_are_output ? out.inputs[1] : out.outputs[0]) = blocked;
  }
}

ir::Graph node_alone(const ir::Graph& graph, const ir::Node& node, const NodeLayouts& layouts) {
  ir::Graph alone;
  ir::Node copy = node;
  for (std::size_t i = 0; i < copy.inputs.size(); ++i) {
    if (!copy.inputs[i].valid()) continue;
    ir::TensorType type = graph.value(copy.inputs[i]).type;
    type.layout = layouts.inputs[i];
    copy.inputs[i] = alone.add_source(fmt::format("x{}", i), ir::ValueKind::kInput, type);
  }
  std::vector<ir::TensorType> types;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    types.push_back(graph.value(node.outputs[i]).type);
    types.back().layout = layouts.outputs[i];
  }
  alone.add_node(std::move(copy), types, ir::ValueKind::kActivation);
  return alone;
}

}  // namespace plimsoll::rewrite

#include "plimsoll/ops/catalogue.h"

#include <algorithm>
#include <iterator>

#include "plimsoll/ops/attribute_types.h"
#include "plimsoll/ops/cards.h"

namespace plimsoll::ops {
namespace {

std::vector<Card> all_cards() {
  std::vector<Card> out;
  for (const auto family : {
           binary_cards,
           matmul_cards,
           linear_cards,
           conv_cards,
           attention_cards,
           batch_norm_cards,
           layer_norm_cards,
           group_norm_cards,
           lrn_cards,
           softmax_cards,
           loss_cards,
           add_relu_cards,
           pool_cards,
           update_cards,
           power_cards,
           comparison_cards,
           bitwise_cards,
           unary_cards,
           activation_cards,
           activation_grad_cards,
           mask_cards,
           cast_cards,
           dropout_cards,
           shaping_cards,
           depth_to_space_cards,
           slicing_cards,
           joining_cards,
           padding_cards,
           indexing_cards,
           indexing_elements_cards,
           indexing_nd_cards,
           resize_cards,
           reduction_cards,
           running_sum_cards,
           ranking_cards,
       }) {
    auto cards = family();
    std::move(cards.begin(), cards.end(), std::back_inserter(out));
  }
  std::sort(out.begin(), out.end(), [](const Card& a, const Card& b) { return a.name < b.name; });
  const auto twice = std::adjacent_find(
      out.begin(), out.end(), [](const Card& a, const Card& b) { return a.name == b.name; });
  PLIMSOLL_CHECK(twice == out.end(), "operator '{}' has two cards", twice->name);
  return out;
}

}  // namespace

std::span<const Card> catalogue() {
  static const std::vector<Card> kCards = all_cards();
  return kCards;
}

const Card* find_card(std::string_view op) {
  const auto cards = catalogue();
  const auto place =
      std::lower_bound(cards.begin(), cards.end(), op,
                       [](const Card& card, std::string_view name) { return card.name < name; });
  return place != cards.end() && place->name == op ? &*place : nullptr;
}

const Card& card_of(const ir::Node& node) {
  const Card* card = find_card(node.op);
  PLIMSOLL_CHECK(card != nullptr, "operator '{}' has no card", node.op);
  return *card;
}

Call call_of(const ir::Graph& graph, const ir::Node& node) {
  std::vector<const TensorType*> inputs;
  inputs.reserve(node.inputs.size());
  for (const ValueId input : node.inputs)
    inputs.push_back(input.valid() ? &graph.value(input).type : nullptr);
  return Call(std::move(inputs), node.attributes);
}

std::vector<TensorType> output_types(const ir::Graph& graph, const ir::Node& node) {
  std::vector<TensorType> out;
  out.reserve(node.outputs.size());
  for (const ValueId output : node.outputs) out.push_back(graph.value(output).type);
  return out;
}

Result<std::vector<TensorType>> infer(const ir::Graph& graph, const ir::Node& node) {
  const Card* card = find_card(node.op);
  if (card == nullptr) return bad_input("{}: unknown operator", node.op);
  const int count = static_cast<int>(node.inputs.size());
  if (count < card->inputs.least || count > card->inputs.most) {
    return bad_input("{}: has {} inputs, expects {}{}", node.op, count, card->inputs.least,
                     card->inputs.most == card->inputs.least ? ""
                     : card->inputs.most >= kMany            ? " or more"
                                                  : fmt::format(" to {}", card->inputs.most));
  }
  for (int i = 0; i < card->inputs.least; ++i) {
    if (!node.inputs[static_cast<std::size_t>(i)].valid())
      return bad_input("{}: input {} is missing", node.op, i);
  }
  if (auto fine = check_attributes(node.attributes); !fine) return forward(fine, node.op);
  auto types = card->infer(call_of(graph, node));
  if (!types) return forward(types, node.op);
  for (const TensorType& type : *types) {
    if (!ir::checked_bytes(type))
      return bad_input("{}: the size of its result {} does not fit 64 bits", node.op,
                       ir::to_string(type));
  }
  return types;
}

Status verify(const ir::Graph& graph) {
  PLIMSOLL_RETURN_IF_ERROR(ir::verify(graph));
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const ir::Node& node = graph.nodes[n];
    const std::string where = node.layer.empty() ? fmt::format("node {}", n) : node.layer;
    auto inferred = infer(graph, node);
    if (!inferred) return forward(inferred, where);
    if (inferred->size() != node.outputs.size()) {
      return bad_input("{}: {}: has {} outputs, makes {}", where, node.op, node.outputs.size(),
                       inferred->size());
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const TensorType& given = graph.value(node.outputs[i]).type;
      const TensorType& made = (*inferred)[i];
      if (given.dtype != made.dtype || given.shape != made.shape) {
        return bad_input("{}: {}: output {} is said to be {}, is {}", where, node.op, i,
                         ir::to_string(given), ir::to_string(made));
      }
    }
  }
  return {};
}

Cost cost_of(const ir::Graph& graph, const ir::Node& node) {
  return card_of(node).cost(call_of(graph, node), output_types(graph, node));
}

}  // namespace plimsoll::ops

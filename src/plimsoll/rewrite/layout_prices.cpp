#include "plimsoll/rewrite/layout_prices.h"

#include <algorithm>
#include <limits>
#include <set>

#include "plimsoll/base/max_flow.h"

namespace plimsoll::rewrite {
namespace {

using ir::Layout;

constexpr std::int64_t kMostVisits = 100;
constexpr double kUnitsPerSecond = 1e11;  // capacities are tens of picoseconds
constexpr double kMostSeconds = 10;       // of one operator: the sum over a million is in range
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 4;

class LayoutCut {
 public:
  LayoutCut(const ir::Graph& graph, const LayoutRoles& roles, const LayoutForms& forms,
            const LayoutOptions& options, const std::vector<LayoutChoice>& rule)
      : graph_(graph), roles_(roles), forms_(forms), options_(options), rule_(rule) {
    last_ = flow_.add_node();
    plain_ = flow_.add_node();
    for (const ir::Update& update : graph.updates) updated_.insert(update.source);
  }

  std::optional<std::vector<LayoutChoice>> solve() {
    out_ = rule_;
    for (const ir::Node& node : graph_.nodes) place(node);
    for (std::size_t v = 0; v < graph_.values.size(); ++v) join(ValueId(v));
    if (!flow_.maximise(last_, plain_, kMostVisits * arcs_)) return std::nullopt;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      out_[n].reads_last = flow_.reachable(sides_[n].reads);
      out_[n].writes_last = flow_.reachable(sides_[n].writes);
    }
    return std::move(out_);
  }

 private:
  // The network's nodes that stand for what an operator reads and writes: often one for both.
  struct Sides {
    std::uint32_t reads = 0;
    std::uint32_t writes = 0;
  };

  static std::int64_t units(double seconds) {
    return static_cast<std::int64_t>(std::clamp(seconds, 0.0, kMostSeconds) * kUnitsPerSecond);
  }
  void arc(std::uint32_t from, std::uint32_t to, std::int64_t capacity) {
    if (from == to) return;
    flow_.add_arc(from, to, capacity);
    ++arcs_;
  }
  std::uint32_t end(bool is_last) const { return is_last ? last_ : plain_; }

  LayoutPrice price(const ir::Node& node, const LayoutChoice& choice) const {
    const ir::Graph alone = node_alone(graph_, node, forms_.of(node, choice));
    return options_.price(alone, alone.nodes.front());
  }

  double reorder_seconds(const ir::TensorType& from, const Layout& layout) const {
    if (from.layout == layout) return 0;
    ir::Graph alone;
    ir::TensorType type = from;
    type.layout = layout;
    ir::Node node;
    node.op = "reorder";
    node.inputs = {alone.add_source("x", ir::ValueKind::kInput, from)};
    node.attributes.set("layout", ir::to_string(layout));
    alone.add_node(std::move(node), {type}, ir::ValueKind::kActivation);
    return options_.price(alone, alone.nodes.front()).seconds;
  }
  double conversion(ValueId value, bool to_last) const {
    ir::TensorType type = roles_.type(value);
    const Layout last = Layout::channels_last(type.shape.rank());
    type.layout = to_last ? Layout{} : last;
    return reorder_seconds(type, to_last ? last : Layout{});
  }

  void place(const ir::Node& node) {
    const LayoutChoice& rule = rule_[sides_.size()];
    sides_.push_back({end(rule.reads_last), end(rule.writes_last)});
    if (node.phase == ir::Phase::kUpdate) return;
    if (const auto form = convolution_form(node)) return place_convolution(node, *form);
    if (node.op == "transpose") return place_turn(node);
    const bool reduces = roles_.reduces_places(node);
    const bool expands = roles_.expands_into_region(node);
    if (!reduces && !expands && !roles_.follows(node)) return;
    const int rank = forms_.rank_of(node);
    if (rank < 3 || !roles_.broadcasts_fine(node, rank)) return;
    place_follower(node, {!expands, !reduces});
  }

  // A node of its own, that the rule's side draws a little.
  std::uint32_t add_side(bool rule_is_last) {
    const std::uint32_t side = flow_.add_node();
    arc(rule_is_last ? last_ : side, rule_is_last ? side : plain_, 1);
    return side;
  }
  // What it takes to be on either side, beyond what it takes on both.
  void pay(std::uint32_t side, double if_last, double if_plain) {
    const std::int64_t more = units(if_last) - units(if_plain);
    if (more > 0) arc(side, plain_, more);
    if (more < 0) arc(last_, side, -more);
  }

  void place_convolution(const ir::Node& node, const ConvolutionForm& form) {
    LayoutChoice& choice = out_[sides_.size() - 1];
    const auto whole = [&](const LayoutChoice& how) {
      LayoutPrice out = price(node, how);
      out.seconds += seconds_of_weights(node, form, how);
      return out;
    };
    LayoutPrice last = whole({true, true, true});
    const bool narrow = forms_.is_narrow(node, form);
    if (narrow && last.measured) {
      // Blocks join the region through a reorder; an image that lies channels last came by one.
      const ValueId y = form.x_is_output          ? node.inputs[0]
                        : form.weights_are_output ? node.inputs[1]
                                                  : node.outputs[0];
      LayoutPrice turned = whole({true, true, false});
      turned.seconds += conversion(roles_.data_of(node, form), !form.x_is_output);
      last.seconds += conversion(y, true);
      choice.keeps_image = !turned.measured || last.seconds <= turned.seconds;
      if (!choice.keeps_image) last = turned;
    }
    const std::uint32_t side = add_side(true);
    sides_.back() = {side, form.weights_are_output || (narrow && form.x_is_output) ? plain_ : side};
    if (!last.measured) return arc(last_, side, kNever);
    const LayoutPrice plain = whole({false, false});
    if (!plain.measured) return arc(last_, side, kNever);
    pay(side, last.seconds, plain.seconds);
  }

  // Weights are turned to what the kernel wants, and gradients of weights back.
  double seconds_of_weights(const ir::Node& node, const ConvolutionForm& form,
                            const LayoutChoice& choice) const {
    const ValueId w = form.weights_are_output ? node.outputs[0] : node.inputs[1];
    if (options_.weights_lie_so) return 0;
    if (!form.weights_are_output && ir::is_source(graph_.value(w).kind) && !updated_.contains(w))
      return 0;  // hoist_reorders.h
    const NodeLayouts layouts = forms_.of(node, choice);
    ir::TensorType own = roles_.type(w);
    if (!form.weights_are_output) return reorder_seconds(own, layouts.inputs[1]);
    own.layout = layouts.outputs[0];
    return reorder_seconds(own, Layout{});
  }

  void place_turn(const ir::Node& node) {
    const int rank = roles_.shape(node.inputs[0]).rank();
    if (rank < 3) return;
    const bool there = moves_channels(node, 1, rank - 1);
    const bool back = moves_channels(node, rank - 1, 1);
    if (!there && !back) return;
    const LayoutChoice& rule = rule_[sides_.size() - 1];
    const std::uint32_t side = add_side(there ? rule.reads_last : rule.writes_last);
    pay(side, 0, price(node, {}).seconds);
    sides_.back() = there ? Sides{side, plain_} : Sides{plain_, side};
  }

  void place_follower(const ir::Node& node, const LayoutChoice& when_last) {
    const LayoutChoice& rule = rule_[sides_.size() - 1];
    const LayoutPrice last = price(node, when_last);
    const LayoutPrice plain = price(node, {});
    const bool known = last.measured && plain.measured;
    if (!known && roles_.takes_channels_last(node)) return;
    const std::uint32_t side = add_side(rule.reads_last || rule.writes_last);
    if (known) pay(side, last.seconds, plain.seconds);
    sides_.back() = {when_last.reads_last ? side : plain_, when_last.writes_last ? side : plain_};
  }

  // On which side a node reads this operand; nothing: it is converted in the operator's own price.
  std::optional<std::uint32_t> reads_on(NodeId id, std::size_t operand) const {
    const ir::Node& node = graph_.node(id);
    const Sides& sides = sides_[id.index()];
    if (const auto form = convolution_form(node)) {
      if (operand == 1 && !form->weights_are_output) return std::nullopt;
      const bool image = operand == 0 && !form->x_is_output && forms_.is_narrow(node, *form);
      if (operand <= 1) return image ? plain_ : sides.reads;
      return plain_;
    }
    const bool full = roles_.shape(node.inputs[operand]).rank() == forms_.rank_of(node) ||
                      node.op == "transpose" || node.op == "reshape";
    return full ? sides.reads : plain_;
  }
  std::uint32_t written_on(ValueId value) const {
    const NodeId id = graph_.value(value).producer;
    if (!id.valid()) return plain_;
    const ir::Node& node = graph_.node(id);
    const bool full = convolution_form(node) || node.op == "transpose" || node.op == "reshape" ||
                      roles_.reduces_places(node) ||
                      roles_.shape(value).rank() == forms_.rank_of(node);
    return full && (value == node.outputs[0] || !convolution_form(node)) ? sides_[id.index()].writes
                                                                         : plain_;
  }

  // Where a tensor is made, and where it is read.
  void join(ValueId value) {
    if (roles_.shape(value).rank() < 3) return;
    std::vector<std::uint32_t> sides;
    for (const NodeId reader : roles_.readers(value)) {
      const ir::Node& node = graph_.node(reader);
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] != value) continue;
        if (const auto side = reads_on(reader, i)) sides.push_back(*side);
      }
    }
    if (is_left_over(value)) sides.push_back(plain_);
    const std::uint32_t made = written_on(value);
    std::sort(sides.begin(), sides.end());
    sides.erase(std::unique(sides.begin(), sides.end()), sides.end());
    std::erase(sides, made);
    if (sides.empty() || (made == plain_ && sides == std::vector{last_})) return;
    const std::int64_t to_last = units(conversion(value, true));
    const std::int64_t to_plain = units(conversion(value, false));
    if (sides.size() == 1) {
      arc(made, sides.front(), to_plain);
      arc(sides.front(), made, to_last);
      return;
    }
    const std::uint32_t turned = flow_.add_node();  // its plain version is read
    const std::uint32_t raised = flow_.add_node();  // its channels-last version is
    arc(made, turned, to_plain);
    arc(raised, made, to_last);
    for (const std::uint32_t side : sides) {
      arc(turned, side, kNever);
      arc(side, raised, kNever);
    }
  }

  // Outputs of the graph, and the next versions of its state, are row-major.
  bool is_left_over(ValueId value) {
    if (left_over_.empty()) {
      left_over_.assign(graph_.values.size(), false);
      for (const ValueId output : graph_.outputs) left_over_[output.index()] = true;
      for (const ir::Update& update : graph_.updates) left_over_[update.next.index()] = true;
    }
    return left_over_[value.index()];
  }

  const ir::Graph& graph_;
  const LayoutRoles& roles_;
  const LayoutForms& forms_;
  const LayoutOptions& options_;
  const std::vector<LayoutChoice>& rule_;
  MaxFlow flow_;
  std::uint32_t last_;   // the end of what lies channels last
  std::uint32_t plain_;  // and of what lies row-major
  std::int64_t arcs_ = 0;
  std::set<ValueId> updated_;
  std::vector<Sides> sides_;       // by node
  std::vector<LayoutChoice> out_;  // by node
  std::vector<bool> left_over_;    // by value
};

}  // namespace

std::optional<std::vector<LayoutChoice>> choose_by_price(const ir::Graph& graph,
                                                         const LayoutRoles& roles,
                                                         const LayoutForms& forms,
                                                         const LayoutOptions& options,
                                                         const std::vector<LayoutChoice>& rule) {
  return LayoutCut(graph, roles, forms, options, rule).solve();
}

}  // namespace plimsoll::rewrite

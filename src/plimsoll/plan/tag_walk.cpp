#include "plimsoll/plan/tag_walk.h"

#include <algorithm>
#include <set>

#include <fmt/ranges.h>

#include "plimsoll/ops/registry.h"

namespace plimsoll::plan {
namespace {

constexpr int kNoTag = -1;

class Walker {
 public:
  Walker(const ir::Graph& graph, bool in_place)
      : graph_(graph),
        in_place_(in_place),
        tag_(graph.values.size(), kNoTag),
        counter_(graph.values.size(), 0) {
    for (const ir::Node& node : graph.nodes) {
      for (const ValueId input : node.inputs) {
        if (input.valid()) ++counter_[input.index()];
      }
    }
    for (const ValueId output : graph.outputs) ++counter_[output.index()];
    for (const ir::Update& update : graph.updates) ++counter_[update.next.index()];
  }

  TagWalk run() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) walk_.steps.push_back(visit(NodeId(n)));
    return std::move(walk_);
  }

 private:
  TagStep visit(NodeId id) {
    const ir::Node& node = graph_.node(id);
    TagStep step;
    step.node = id;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId over = input_to_take(node, static_cast<int>(i));
      int tag = kNoTag;
      if (over.valid()) {
        tag = tag_[over.index()];
        step.in_place = step.in_place || i == 0;
      } else if (!updates_source(node, static_cast<int>(i))) {
        tag = take_free();
      }
      if (tag != kNoTag) ++users_of(tag);
      tag_[node.outputs[i].index()] = tag;
      step.tags.push_back(tag);
    }
    for (const ValueId input : node.inputs) {
      if (input.valid() && --counter_[input.index()] == 0) release(tag_[input.index()], step.freed);
    }
    for (const ValueId output : node.outputs) {
      if (counter_[output.index()] == 0) release(tag_[output.index()], step.freed);
    }
    step.free.assign(free_.begin(), free_.end());
    return step;
  }

  // A view's input, or an input that dies here, when the operator may write over it.
  ValueId input_to_take(const ir::Node& node, int output) const {
    const ops::OpDefinition& definition = ops::definition_of(node);
    if (definition.recompute == ops::Recompute::kFree && !node.inputs.empty() &&
        tag_[node.inputs[0].index()] != kNoTag)
      return node.inputs[0];
    if (!in_place_) return {};
    for (const ops::InPlace::Pair& pair : definition.in_place.pairs()) {
      if (pair.output != output || static_cast<std::size_t>(pair.input) >= node.inputs.size())
        continue;
      const ValueId input = node.inputs[static_cast<std::size_t>(pair.input)];
      if (!input.valid() || tag_[input.index()] == kNoTag) continue;
      const auto reads = std::count(node.inputs.begin(), node.inputs.end(), input);
      const bool same_size =
          ir::bytes_of(graph_.value(input).type) ==
          ir::bytes_of(graph_.value(node.outputs[static_cast<std::size_t>(output)]).type);
      if (counter_[input.index()] == reads &&
          users_[static_cast<std::size_t>(tag_[input.index()])] == 1 && same_size)
        return input;
    }
    return {};
  }

  bool updates_source(const ir::Node& node, int output) const {
    const ops::InPlace& rule = ops::definition_of(node).in_place;
    return rule.must() &&
           std::any_of(rule.pairs().begin(), rule.pairs().end(),
                       [&](const ops::InPlace::Pair& pair) { return pair.output == output; });
  }

  int take_free() {
    if (free_.empty()) {
      users_.push_back(0);
      return walk_.tags++;
    }
    const int tag = *free_.begin();
    free_.erase(free_.begin());
    return tag;
  }

  int& users_of(int tag) { return users_[static_cast<std::size_t>(tag)]; }

  void release(int tag, std::vector<int>& freed) {
    if (tag == kNoTag || --users_of(tag) > 0) return;
    free_.insert(tag);
    freed.push_back(tag);
  }

  const ir::Graph& graph_;
  bool in_place_;
  TagWalk walk_;
  std::vector<int> tag_;      // by value
  std::vector<int> counter_;  // readers to come, by value
  std::vector<int> users_;    // values that hold a tag now
  std::set<int> free_;
};

}  // namespace

TagWalk walk_tags(const ir::Graph& graph, bool in_place) {
  return Walker(graph, in_place).run();
}

std::string to_string(const ir::Graph& graph, const TagWalk& walk) {
  std::string out;
  for (std::size_t s = 0; s < walk.steps.size(); ++s) {
    const TagStep& step = walk.steps[s];
    const ir::Node& node = graph.node(step.node);
    std::vector<std::string> inputs;
    for (const ValueId input : node.inputs) {
      if (input.valid()) inputs.push_back(graph.value(input).name);
    }
    out += fmt::format("{:4}  {}({}) -> {}", s, node.op, fmt::join(inputs, ", "),
                       graph.value(node.outputs[0]).name);
    if (step.tags[0] != kNoTag)
      out +=
          fmt::format("   tag {}{}", fmt::join(step.tags, ","), step.in_place ? " (in place)" : "");
    if (!step.freed.empty()) out += fmt::format("   frees {}", fmt::join(step.freed, ","));
    out += fmt::format("   free {{{}}}\n", fmt::join(step.free, ","));
  }
  return out + fmt::format("{} tags for {} results\n", walk.tags, walk.steps.size());
}

}  // namespace plimsoll::plan

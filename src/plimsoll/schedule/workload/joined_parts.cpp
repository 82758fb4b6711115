#include "plimsoll/schedule/workload/joined_parts.h"

#include <algorithm>

#include "plimsoll/ops/registry.h"
#include "plimsoll/schedule/workload/tensor_alignment.h"

namespace plimsoll::schedule {
namespace {

class Joiner {
 public:
  Joiner(const ir::Graph& graph, Bytes alignment) : graph_(graph), alignment_(alignment) {
    out_.home.resize(graph.values.size());
    out_.joined.assign(graph.nodes.size(), false);
  }

  JoinedParts run() {
    for (std::size_t n = graph_.nodes.size(); n-- > 0;) {
      const std::vector<ops::View> views = parts_of(graph_.nodes[n]);
      if (!views.empty())
        out_.joined[n] =
            lie_side_by_side(graph_.nodes[n], views) || give_homes(graph_.nodes[n], views);
    }
    return std::move(out_);
  }

 private:
  // Where every input lies in the one result; empty when some is no run of bytes at an aligned
  // offset.
  std::vector<ops::View> parts_of(const ir::Node& node) const {
    const ops::OpDefinition& definition = ops::definition_of(node);
    if (definition.views == nullptr || node.outputs.size() != 1 || node.phase == ir::Phase::kUpdate)
      return {};
    std::vector<ops::View> views =
        definition.views(ops::call_of(graph_, node), ops::output_types(graph_, node));
    const bool all = views.size() == node.inputs.size() &&
                     std::all_of(views.begin(), views.end(), [&](const ops::View& view) {
                       return view.input_inside && view.offset.value % alignment_.value == 0;
                     });
    return all ? views : std::vector<ops::View>{};
  }

  // The value that a task makes, of which this one is a mere reshape.
  ValueId maker_of(ValueId value) const {
    while (graph_.value(value).producer.valid()) {
      const ir::Node& node = graph_.node(graph_.value(value).producer);
      const ops::OpDefinition& definition = ops::definition_of(node);
      if (definition.views == nullptr || node.outputs.size() != 1 ||
          node.phase == ir::Phase::kUpdate)
        break;
      const std::vector<ops::View> views =
          definition.views(ops::call_of(graph_, node), ops::output_types(graph_, node));
      if (views.size() != 1 || views[0].input_inside || views[0].offset.value != 0) break;
      const ValueId outer = node.inputs[static_cast<std::size_t>(views[0].input)];
      if (ir::bytes_of(graph_.value(outer).type) != ir::bytes_of(graph_.value(value).type)) break;
      value = outer;
    }
    return value;
  }

  bool lie_side_by_side(const ir::Node& node, const std::vector<ops::View>& views) {
    const auto home_of = [&](const ops::View& view) {
      return out_.home[maker_of(node.inputs[static_cast<std::size_t>(view.input)]).index()];
    };
    const Home first = home_of(views.front());
    const Home own = out_.home[node.outputs[0].index()];
    if (!first.root.valid() || (own.root.valid() && own != first) ||
        views.front().offset.value != 0)
      return false;
    const bool all = std::all_of(views.begin(), views.end(), [&](const ops::View& view) {
      return home_of(view) == Home{first.root, first.offset + view.offset};
    });
    if (all) out_.home[node.outputs[0].index()] = first;
    return all;
  }

  bool give_homes(const ir::Node& node, const std::vector<ops::View>& views) {
    const Home own = out_.home[node.outputs[0].index()];
    const Home outer = own.root.valid() ? own : Home{node.outputs[0], Bytes(0)};
    std::vector<ValueId> makers;
    for (const ops::View& view : views) {
      const ValueId maker = maker_of(node.inputs[static_cast<std::size_t>(view.input)]);
      if (!can_get_home(maker, outer.root, makers)) return false;
      makers.push_back(maker);
    }
    for (std::size_t i = 0; i < views.size(); ++i)
      out_.home[makers[i].index()] = {outer.root, outer.offset + views[i].offset};
    out_.home[node.outputs[0].index()] = outer;
    return true;
  }

  // A task makes it, and no other result of that task goes to the same place.
  bool can_get_home(ValueId value, ValueId root, const std::vector<ValueId>& siblings) const {
    const NodeId producer = graph_.value(value).producer;
    if (!producer.valid() || out_.home[value.index()].root.valid()) return false;
    const ir::Node& node = graph_.node(producer);
    const ops::OpDefinition& definition = ops::definition_of(node);
    const bool view =
        definition.views != nullptr && parts_of(node).empty() &&
        !definition.views(ops::call_of(graph_, node), ops::output_types(graph_, node)).empty();
    if (view || node.phase == ir::Phase::kUpdate || definition.in_place.must()) return false;
    return std::none_of(node.outputs.begin(), node.outputs.end(), [&](ValueId output) {
      return out_.home[output.index()].root == root ||
             std::find(siblings.begin(), siblings.end(), output) != siblings.end();
    });
  }

  const ir::Graph& graph_;
  Bytes alignment_;
  JoinedParts out_;
};

}  // namespace

JoinedParts find_joined_parts(const ir::Graph& graph, Bytes alignment) {
  return Joiner(graph, alignment).run();
}

}  // namespace plimsoll::schedule

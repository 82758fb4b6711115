#include "plimsoll/schedule/workload/graph_workload.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <unordered_map>

#include "plimsoll/base/checked.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/schedule/workload/graph_encodings.h"
#include "plimsoll/schedule/workload/joined_parts.h"

namespace plimsoll::schedule {
namespace {

Bytes padded_bytes(const ir::TensorType& type, Bytes alignment) {
  return Bytes(round_up(ir::bytes_of(type).value, alignment.value));
}

// "encoder.3" of "encoder.3.attention.q": the layer up to its last number, which is what repeats.
std::string_view block_name(std::string_view layer) {
  std::size_t end = 0;
  std::size_t begin = 0;
  while (begin < layer.size()) {
    const std::size_t dot = std::min(layer.find('.', begin), layer.size());
    const std::string_view part = layer.substr(begin, dot - begin);
    const bool digits = !part.empty() && std::all_of(part.begin(), part.end(), [](unsigned char c) {
      return std::isdigit(c);
    });
    if (digits) end = dot;
    begin = dot + 1;
  }
  return layer.substr(0, end);
}

class Mapper {
 public:
  Mapper(const ir::Graph& graph, const GraphWorkloadOptions& options)
      : graph_(graph), options_(options) {
    out_.alignment = options.alignment;
    out_.place.resize(graph.values.size());
    if (options.join) {
      parts_ = find_joined_parts(graph, options.alignment);
    } else {
      parts_.home.resize(graph.values.size());
      parts_.joined.assign(graph.nodes.size(), false);
    }
    now_.resize(graph.values.size());
    last_reader_.resize(graph.values.size());
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      for (const ValueId input : graph.nodes[n].inputs) {
        if (input.valid()) last_reader_[input.index()] = n;
      }
    }
  }

  Result<GraphWorkload> run() {
    add_sources();
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (parts_.joined[n]) {
        place_joined(graph_.nodes[n].outputs[0]);
      } else if (!place_as_views(graph_.nodes[n])) {
        add_task(NodeId(n));
      }
    }
    for (Place& place : out_.place) place = latest(place);
    mark_kept();
    PLIMSOLL_RETURN_IF_ERROR(verify(out_.workload));
    return std::move(out_);
  }

 private:
  ValueId add_value(ValueId graph_value, TaskId producer) {
    const ir::Value& value = graph_.value(graph_value);
    Value made;
    made.name = value.name;
    made.bytes = padded_bytes(value.type, options_.alignment);
    made.producer = producer;
    made.recompute = producer.valid();
    out_.workload.values.push_back(std::move(made));
    out_.graph_value.push_back(graph_value);
    const ValueId id(out_.workload.values.size() - 1);
    out_.lead.push_back(id);
    out_.place[graph_value.index()] = {id, Bytes(0)};
    return id;
  }

  // A part of a larger result: that result's memory, with this part written as well.
  ValueId add_part(ValueId graph_value, TaskId producer, Task& task) {
    const Home home = parts_.home[graph_value.index()];
    const ValueId before = now_[home.root.index()];
    const ValueId id = add_value(home.root, producer);
    now_[home.root.index()] = id;
    if (before.valid()) {
      out_.lead[id.index()] = out_.lead[before.index()];
      out_.workload.values[id.index()].in_place = InPlace{before, true};
      if (std::find(task.inputs.begin(), task.inputs.end(), before) == task.inputs.end())
        task.inputs.push_back(before);
    }
    out_.place[graph_value.index()] = {id, home.offset};
    return id;
  }

  void place_joined(ValueId output) {
    const Home home = parts_.home[output.index()];
    out_.place[output.index()] = {now_[home.root.index()], home.offset};
    ++out_.joined;
  }

  // Of a memory that is written part by part, as it is now.
  Place latest(const Place& place) const {
    if (!place.value.valid()) return place;
    const ValueId now = now_[out_.graph_value[place.value.index()].index()];
    return {now.valid() ? now : place.value, place.offset};
  }
  Place place_of(ValueId graph_value) const { return latest(out_.place[graph_value.index()]); }

  void add_sources() {
    for (std::size_t v = 0; v < graph_.values.size(); ++v) {
      if (ir::is_source(graph_.values[v].kind)) add_value(ValueId(v), {});
    }
  }

  // True when every output is a view, so that nothing has to run.
  bool place_as_views(const ir::Node& node) {
    const ops::OpDefinition& definition = ops::definition_of(node);
    if (!options_.views || definition.views == nullptr || node.phase == ir::Phase::kUpdate)
      return false;
    const std::vector<ops::View> views =
        definition.views(ops::call_of(graph_, node), ops::output_types(graph_, node));
    const bool all =
        views.size() == node.outputs.size() &&
        std::all_of(views.begin(), views.end(), [this](const ops::View& view) {
          return !view.input_inside && view.offset.value % options_.alignment.value == 0;
        });
    if (!all) return false;
    for (const ops::View& view : views) {
      const Place outer = place_of(node.inputs[static_cast<std::size_t>(view.input)]);
      out_.place[node.outputs[static_cast<std::size_t>(view.output)].index()] = {
          outer.value, outer.offset + view.offset};
    }
    return true;
  }

  void add_task(NodeId id) {
    const ir::Node& node = graph_.node(id);
    const ops::OpDefinition& definition = ops::definition_of(node);
    const ops::KernelFacts facts = options_.kernels.of(graph_, node);
    const TaskId task_id(out_.workload.tasks.size());
    Task task;
    task.name = fmt::format("{}{}{}", node.layer, node.layer.empty() ? "" : "/", node.op);
    task.seconds = options_.seconds ? options_.seconds(graph_, node) : 1.0;
    task.scratch = Bytes(round_up(facts.scratch.value, options_.alignment.value));
    task.once = node.phase == ir::Phase::kUpdate || definition.recompute == ops::Recompute::kNever;
    task.cheap = definition.recompute <= ops::Recompute::kCheap;
    task.block = node.phase == ir::Phase::kForward ? block_of(node.layer) : -1;
    for (const ValueId input : node.inputs) {
      if (!input.valid()) continue;
      const ValueId value = place_of(input).value;
      if (std::find(task.inputs.begin(), task.inputs.end(), value) == task.inputs.end())
        task.inputs.push_back(value);
    }
    const bool has_part =
        std::any_of(node.outputs.begin(), node.outputs.end(),
                    [&](ValueId output) { return parts_.home[output.index()].root.valid(); });
    task.once = task.once || has_part;
    for (const ValueId output : node.outputs) {
      const bool part = parts_.home[output.index()].root.valid();
      task.outputs.push_back(part ? add_part(output, task_id, task) : add_value(output, task_id));
      out_.workload.values.back().recompute = !task.once;
      if (options_.codecs.encode_bytes_per_second > 0 && !part)
        out_.workload.values.back().encodings =
            offer_encodings(graph_, output, options_.codecs, options_.lossy, options_.alignment);
    }
    if (!out_.workload.first_backward.valid() && node.phase == ir::Phase::kBackward)
      out_.workload.first_backward = task_id;
    out_.workload.tasks.push_back(std::move(task));
    out_.node_of_task.push_back(id);
    offer_in_place(id, definition, facts);
  }

  std::int32_t block_of(const std::string& layer) {
    const std::string_view block = block_name(layer);
    if (block.empty()) return -1;
    return blocks_.try_emplace(std::string(block), static_cast<std::int32_t>(blocks_.size()))
        .first->second;
  }

  // One offer per output: the demanded one, or else the input that dies here, or else any.
  void offer_in_place(NodeId id, const ops::OpDefinition& definition,
                      const ops::KernelFacts& facts) {
    const ir::Node& node = graph_.node(id);
    if (!definition.in_place.must() && (!options_.in_place || !facts.in_place)) return;
    std::vector<ValueId> taken;
    for (std::size_t output = 0; output < node.outputs.size(); ++output) {
      ValueId best;
      bool best_dies = false;
      for (const ops::InPlace::Pair& pair : definition.in_place.pairs()) {
        if (static_cast<std::size_t>(pair.output) != output ||
            static_cast<std::size_t>(pair.input) >= node.inputs.size())
          continue;
        const ValueId input = node.inputs[static_cast<std::size_t>(pair.input)];
        if (!input.valid() || !may_take_over(node, node.outputs[output], input)) continue;
        const ValueId value = place_of(input).value;
        if (std::find(taken.begin(), taken.end(), value) != taken.end()) continue;
        const bool dies = last_reader_[input.index()] == id.index();
        if (best.valid() && !(dies && !best_dies)) continue;
        best = value;
        best_dies = dies;
      }
      if (!best.valid() || parts_.home[node.outputs[output].index()].root.valid()) continue;
      taken.push_back(best);
      out_.workload.values[out_.place[node.outputs[output].index()].value.index()].in_place =
          InPlace{best, definition.in_place.must()};
    }
  }

  // The input must be all of its value, of the output's size, a value that may be overwritten at
  // all, and no other operand of the node may look at the same bytes.
  bool may_take_over(const ir::Node& node, ValueId output, ValueId input) const {
    const Place place = place_of(input);
    const Value& value = out_.workload.value(place.value);
    const bool update = ops::definition_of(node).in_place.must();
    if (place.offset.value != 0 ||
        value.bytes != padded_bytes(graph_.value(output).type, options_.alignment))
      return false;
    // Padding can hide a difference: a broadcast row of 20 bytes and a result of 60 both take 64.
    if (ir::bytes_of(graph_.value(input).type) != ir::bytes_of(graph_.value(output).type))
      return false;
    const ir::ValueKind kind = graph_.value(out_.graph_value[place.value.index()]).kind;
    if (!update && (ir::is_persistent(kind) || kind == ir::ValueKind::kConstant)) return false;
    return std::none_of(node.inputs.begin(), node.inputs.end(), [&](ValueId other) {
      return other.valid() && other != input && place_of(other).value == place.value;
    });
  }

  void mark_kept() {
    std::vector<Value>& values = out_.workload.values;
    const auto keep = [&](ValueId graph_value) {
      values[out_.place[graph_value.index()].value.index()].keep = true;
    };
    for (std::size_t v = 0; v < graph_.values.size(); ++v) {
      const ir::ValueKind kind = graph_.values[v].kind;
      if (ir::is_persistent(kind) || kind == ir::ValueKind::kConstant) keep(ValueId(v));
    }
    for (const ir::Update& update : graph_.updates) {
      values[out_.place[update.source.index()].value.index()].keep = false;
      keep(update.next);
    }
    for (const ValueId output : graph_.outputs) keep(output);
    for (const ValueId pinned : options_.pinned) keep(pinned);
  }

  const ir::Graph& graph_;
  const GraphWorkloadOptions& options_;
  GraphWorkload out_;
  std::vector<std::size_t> last_reader_;
  JoinedParts parts_;
  // by graph value that parts are made in: its latest version in the workload
  std::vector<ValueId> now_;
  std::unordered_map<std::string, std::int32_t> blocks_;
};

}  // namespace

Result<GraphWorkload> make_graph_workload(const ir::Graph& graph,
                                          const GraphWorkloadOptions& options) {
  return Mapper(graph, options).run();
}

}  // namespace plimsoll::schedule

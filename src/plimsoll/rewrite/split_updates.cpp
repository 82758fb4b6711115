#include "plimsoll/rewrite/split_updates.h"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/ir/in_order.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/graph_editor.h"

namespace plimsoll::rewrite {
namespace {

constexpr std::size_t kFirstMoment = 2;
// Elements of a part are a multiple of this: kernels begin where cache lines and packs do.
constexpr std::int64_t kGranule = 1024;

std::size_t moments_of(const ir::Node& node) {
  if (node.op == "adamw" || node.op == "adam") return 2;
  return node.op == "momentum" ? 1 : 0;
}

// Whether an update can go part by part, and how its moments are replaced.
class UpdateFinder {
 public:
  explicit UpdateFinder(const ir::Graph& graph)
      : graph_(graph), readers_(ir::readers(graph)), next_(graph.values.size()) {
    for (const ir::Update& update : graph.updates) next_[update.source.index()] = update.next;
    for (const ValueId output : graph.outputs) next_[output.index()] = ValueId();
  }

  bool can_split(const ir::Node& node) const {
    const std::size_t moments = moments_of(node);
    if (moments == 0 || node.phase != ir::Phase::kUpdate || node.attributes.find("first"))
      return false;
    const ir::TensorType& weight = graph_.value(node.inputs[0]).type;
    if (weight.dtype != ir::DType::kF32 || !weight.layout.is_row_major() ||
        !graph_.value(node.inputs[1]).type.layout.is_row_major())
      return false;
    for (std::size_t i = 0; i < moments; ++i) {
      const ValueId moment = node.inputs[kFirstMoment + i];
      const ir::Value& value = graph_.value(moment);
      // Parts begin with the same constant.
      if (value.kind != ir::ValueKind::kOptimizer || value.type != weight ||
          value.init.kind != ir::Init::Kind::kConstant || readers_[moment.index()].size() != 1 ||
          next_[moment.index()] != node.outputs[1 + i] ||
          !readers_[node.outputs[1 + i].index()].empty())
        return false;
    }
    return true;
  }

 private:
  const ir::Graph& graph_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<ValueId> next_;  // by source: what an update makes of it
};

// The graph again, node by node, with some updates in parts.
class UpdateSplitter {
 public:
  explicit UpdateSplitter(const ir::Graph& graph) : out_(graph), now_(graph.values.size()) {
    out_.nodes.clear();
    for (std::size_t v = 0; v < now_.size(); ++v) now_[v] = ValueId(v);
  }

  void copy(ir::Node node) {
    take_inputs(node);
    for (const ValueId output : node.outputs)
      out_.value(output).producer = NodeId(out_.nodes.size());
    out_.nodes.push_back(std::move(node));
  }

  // In parts of so many elements.
  Status split(ir::Node node, std::int64_t step, SplitGraph& out) {
    take_inputs(node);
    const std::size_t moments = moments_of(node);
    const std::vector<ValueId> whole(node.inputs.begin() + kFirstMoment,
                                     node.inputs.begin() + kFirstMoment + moments);
    const std::vector<ValueId> outputs = std::exchange(node.outputs, {});
    node.attributes.set("of", names_of(whole));
    const std::int64_t elements = out_.value(node.inputs[0]).type.shape.elements();
    for (std::int64_t first = 0; first < elements; first += step) {
      node.attributes.set("first", first);
      for (std::size_t i = 0; i < moments; ++i)
        node.inputs[kFirstMoment + i] = part_of(whole[i], first, std::min(step, elements - first));
      PLIMSOLL_TRY(const auto types, ops::infer(out_, node));
      const NodeId made = out_.add_node(node, types, ir::ValueKind::kGradient);
      const std::vector<ValueId>& parts = out_.node(made).outputs;
      for (std::size_t i = 0; i < moments; ++i)
        out_.updates.push_back({node.inputs[kFirstMoment + i], parts[1 + i]});
      node.inputs[0] = parts[0];
    }
    std::erase_if(out_.updates, [&](const ir::Update& update) {
      return std::ranges::find(whole, update.source) != whole.end();
    });
    now_[outputs[0].index()] = node.inputs[0];
    ++out.operators;
    out.parts = std::max(out.parts, (elements + step - 1) / step);
    return {};
  }

  ir::Graph finish() {
    for (ir::Update& update : out_.updates) update.next = now(update.next);
    for (ValueId& output : out_.outputs) output = now(output);
    return without_dead_nodes(std::move(out_));
  }

 private:
  ValueId now(ValueId id) const { return id.index() < now_.size() ? now_[id.index()] : id; }

  void take_inputs(ir::Node& node) const {
    for (ValueId& input : node.inputs) {
      if (input.valid()) input = now(input);
    }
  }

  std::string names_of(const std::vector<ValueId>& values) const {
    std::string out;
    for (const ValueId value : values) out += (out.empty() ? "" : "\n") + out_.value(value).name;
    return out;
  }

  ValueId part_of(ValueId moment, std::int64_t first, std::int64_t count) {
    const ir::Value whole = out_.value(moment);
    return out_.add_source(fmt::format("{}[{}:{}]", whole.name, first, first + count), whole.kind,
                           {whole.type.dtype, {count}, {}}, whole.init);
  }

  ir::Graph out_;
  std::vector<ValueId> now_;  // by value of the graph: itself, or the weight that all parts made
};

// The parts of updates where the bus has had the time to bring their moments, in their order; all
// others where they stand.
class Pacer {
 public:
  Pacer(ir::Graph graph, const UpdatePace& pace)
      : graph_(std::move(graph)), pace_(pace), waits_(graph_.nodes.size(), false) {}

  ir::Graph run() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const ir::Node& node = graph_.nodes[n];
      if (node.attributes.find("first") != nullptr && moments_of(node) > 0) {
        bus_ = std::max(bus_, clock_) + seconds_to_bring(node);
        waiting_.push_back({n, bus_});
        waits_[n] = true;
        continue;
      }
      while (!waiting_.empty() && (waiting_.front().due <= clock_ || reads_waiting(node))) next();
      clock_ += pace_.seconds ? pace_.seconds(graph_, node) : 1;
      order_.push_back(n);
    }
    while (!waiting_.empty()) next();
    return ir::in_order(std::move(graph_), order_);
  }

 private:
  struct Waiting {
    std::size_t node;
    double due;
  };

  double seconds_to_bring(const ir::Node& node) const {
    const auto bytes = ir::bytes_of(graph_.value(node.inputs[kFirstMoment]).type).value;
    return static_cast<double>(bytes) * static_cast<double>(moments_of(node)) /
           pace_.bytes_per_second;
  }
  bool reads_waiting(const ir::Node& node) const {
    return std::ranges::any_of(node.inputs, [&](ValueId input) {
      return input.valid() && graph_.value(input).producer.valid() &&
             waits_[graph_.value(input).producer.index()];
    });
  }
  void next() {
    order_.push_back(waiting_.front().node);
    waits_[waiting_.front().node] = false;
    waiting_.pop_front();
  }

  ir::Graph graph_;
  const UpdatePace& pace_;
  std::vector<bool> waits_;  // by node
  std::deque<Waiting> waiting_;
  std::vector<std::size_t> order_;
  double clock_ = 0;
  double bus_ = 0;  // when it has brought what was asked of it
};

}  // namespace

Result<SplitGraph> split_updates(const ir::Graph& graph, Bytes part, const UpdatePace& pace) {
  const UpdateFinder finder(graph);
  const std::int64_t step =
      std::max<std::int64_t>(1, part.value / std::int64_t{sizeof(float)} / kGranule) * kGranule;
  SplitGraph out;
  UpdateSplitter splitter(graph);
  for (const ir::Node& node : graph.nodes) {
    if (finder.can_split(node) && graph.value(node.inputs[0]).type.shape.elements() > step) {
      PLIMSOLL_RETURN_IF_ERROR(splitter.split(node, step, out));
    } else {
      splitter.copy(node);
    }
  }
  out.graph = splitter.finish();
  if (pace.bytes_per_second > 0) out.graph = Pacer(std::move(out.graph), pace).run();
  PLIMSOLL_RETURN_IF_ERROR(ops::verify(out.graph));
  return out;
}

Bytes largest_update(const ir::Graph& graph) {
  const UpdateFinder finder(graph);
  Bytes out;
  for (const ir::Node& node : graph.nodes) {
    if (!finder.can_split(node)) continue;
    Bytes bytes = ir::bytes_of(graph.value(node.inputs[1]).type);
    for (const ValueId made : node.outputs) bytes += ir::bytes_of(graph.value(made).type);
    out = std::max(out, bytes);
  }
  return out;
}

}  // namespace plimsoll::rewrite

#include "plimsoll/rewrite/split_rows.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/graph_editor.h"

namespace plimsoll::rewrite {
namespace {

using ops::Split;

// At least so many rows in a part, and a multiple of it: then every part begins at an aligned
// address.
constexpr std::int64_t kFewestRows = 64;
// Tensors below this share of the largest one decide nothing.
constexpr std::int64_t kSmallestShare = 256;
constexpr std::int64_t kMostBatches = 8;

std::optional<Split> split_of(const ir::Graph& graph, const ir::Node& node) {
  const ops::OpDefinition& definition = ops::definition_of(node);
  if (definition.split == nullptr) return std::nullopt;
  return definition.split(ops::call_of(graph, node), ops::output_types(graph, node));
}

// How many of the outermost axes are the rows; 0: none are.
int row_axes(const ir::Shape& shape, std::int64_t rows) {
  std::int64_t product = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    product *= shape[axis];
    if (product == rows) return axis + 1;
    if (product > rows) return 0;
  }
  return 0;
}

// The tensor as [rows, whatever is behind them].
ir::Shape by_rows(const ir::Shape& shape, std::int64_t rows, std::int64_t count) {
  ir::Ints dims{count};
  for (int axis = row_axes(shape, rows); axis < shape.rank(); ++axis) dims.push_back(shape[axis]);
  return ir::Shape(dims);
}

bool can_be_cut(const ir::Value& value, std::int64_t rows) {
  return value.type.layout.is_row_major() && row_axes(value.type.shape, rows) > 0;
}

// Operators may count rows differently: a linear layer every position, attention every sequence. A
// region counts the finest rows of its operators, and a coarser row is so many of those.
struct Region {
  std::int64_t rows = 0;
  std::int64_t granule = kFewestRows;
  bool outer = false;         // parts are ranges of the outermost axis of every tensor
  Bytes largest;              // of the tensors that fall into parts
  Bytes bytes;                // of all of them
  Bytes beside;               // of what goes in and out, and is whole while the parts run
  std::vector<NodeId> nodes;  // in order
};

// Finds regions and makes them ready: a region that is returned can be split.
class RegionFinder {
 public:
  RegionFinder(const ir::Graph& graph, Bytes limit)
      : graph_(graph), limit_(limit), readers_(ir::readers(graph)), output_(graph.values.size()) {
    for (const ValueId output : graph.outputs) output_[output.index()] = true;
    for (const ir::Update& update : graph.updates) output_[update.next.index()] = true;
    for (const ir::Node& node : graph.nodes) splits_.push_back(split_of(graph, node));
  }

  std::vector<Region> regions() const {
    std::vector<std::size_t> group(graph_.nodes.size());
    std::iota(group.begin(), group.end(), std::size_t{0});
    const auto leader = [&](std::size_t n) {
      while (group[n] != n) n = group[n] = group[group[n]];
      return n;
    };
    std::map<std::size_t, Region> found;  // by group
    std::vector<ValueId> falling;
    for (std::size_t v = 0; v < graph_.values.size(); ++v) {
      if (!falls_into_parts(ValueId(v))) continue;
      falling.emplace_back(v);
      const std::size_t first = leader(graph_.values[v].producer.index());
      for (const NodeId reader : readers_[v]) group[leader(reader.index())] = first;
    }
    for (const ValueId v : falling) {
      Region& region = found[leader(graph_.value(v).producer.index())];
      region.largest = std::max(region.largest, ir::bytes_of(graph_.value(v).type));
      region.bytes += ir::bytes_of(graph_.value(v).type);
    }
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const auto place = found.find(leader(n));
      if (place == found.end()) continue;
      place->second.nodes.emplace_back(n);
      place->second.rows = std::max(place->second.rows, splits_[n]->rows);
    }
    std::vector<Region> out;
    for (auto& [first, region] : found) {
      if (!count_rows(region) || !is_sound(region)) continue;
      region.beside = beside(region);
      out.push_back(std::move(region));
    }
    return out;
  }

 private:
  // Larger than the limit, and everybody who makes or reads it can do so in parts of the same rows.
  bool falls_into_parts(ValueId id) const {
    const ir::Value& value = graph_.value(id);
    if (!value.producer.valid() || output_[id.index()] || readers_[id.index()].empty() ||
        ir::bytes_of(value.type) <= limit_)
      return false;
    const auto& made = splits_[value.producer.index()];
    if (!made || !can_be_cut(value, made->rows)) return false;
    const ir::Node& maker = graph_.node(value.producer);
    for (std::size_t i = 0; i < maker.outputs.size(); ++i) {
      if (maker.outputs[i] == id && made->outputs[i] != Split::Output::kCut) return false;
    }
    return std::ranges::all_of(readers_[id.index()], [&](NodeId reader) {
      const auto& read = splits_[reader.index()];
      if (!read || !can_be_cut(value, read->rows)) return false;
      const ir::Node& node = graph_.node(reader);
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] == id && read->inputs[i] != Split::Input::kCut) return false;
      }
      return true;
    });
  }

  Bytes beside(const Region& region) const {
    std::vector<bool> inside(graph_.nodes.size(), false);
    for (const NodeId n : region.nodes) inside[n.index()] = true;
    std::set<ValueId> values;
    for (const NodeId n : region.nodes) {
      for (const ValueId input : graph_.node(n).inputs) {
        if (!input.valid()) continue;
        const NodeId producer = graph_.value(input).producer;
        if (producer.valid() && !inside[producer.index()]) values.insert(input);
      }
      for (const ValueId output : graph_.node(n).outputs) {
        const auto& readers = readers_[output.index()];
        if (std::ranges::any_of(readers, [&](NodeId reader) { return !inside[reader.index()]; }))
          values.insert(output);
      }
    }
    Bytes out;
    for (const ValueId value : values) out += ir::bytes_of(graph_.value(value).type);
    return out;
  }

  // The smallest parts, in rows; false where the operators' rows have nothing in common.
  bool count_rows(Region& region) const {
    for (const NodeId n : region.nodes) {
      const Split& split = *splits_[n.index()];
      if (split.rows < 1 || region.rows % split.rows != 0) return false;
      const std::int64_t fine = region.rows / split.rows;
      region.granule = std::lcm(region.granule, split.granule * fine);
      region.outer = region.outer || fine > 1;
      if (region.granule >= region.rows) return false;
    }
    return true;
  }

  // Whether parts of so many rows are ranges of the tensor's outermost axis.
  static bool has_outer(const ir::Value& value, const Region& region) {
    const ir::Shape& shape = value.type.shape;
    return shape.rank() > 0 && region.rows % shape[0] == 0 &&
           region.granule % (region.rows / shape[0]) == 0;
  }

  bool is_sound(const Region& region) const {
    std::vector<bool> inside(graph_.nodes.size(), false);
    for (const NodeId n : region.nodes) inside[n.index()] = true;
    for (const NodeId n : region.nodes) {
      const ir::Node& node = graph_.node(n);
      const Split& split = *splits_[n.index()];
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (!node.inputs[i].valid()) continue;
        const ir::Value& value = graph_.value(node.inputs[i]);
        const bool own = value.producer.valid() && inside[value.producer.index()];
        if (split.inputs[i] == Split::Input::kWhole ? own : !can_be_cut(value, split.rows))
          return false;
        if (split.inputs[i] == Split::Input::kCut && region.outer && !has_outer(value, region))
          return false;
      }
      for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        if (split.outputs[i] == Split::Output::kCut) {
          const ir::Value& value = graph_.value(node.outputs[i]);
          if (!can_be_cut(value, split.rows)) return false;
          if (region.outer && !has_outer(value, region)) return false;
          continue;
        }
        for (const NodeId reader : readers_[node.outputs[i].index()]) {
          if (inside[reader.index()]) return false;
        }
      }
    }
    return is_convex(region, inside);
  }

  // Nothing outside both depends on the region and feeds it.
  bool is_convex(const Region& region, const std::vector<bool>& inside) const {
    std::vector<bool> behind(graph_.nodes.size(), false);  // of those outside
    for (std::size_t n = region.nodes.front().index(); n <= region.nodes.back().index(); ++n) {
      bool depends = false;  // on the region
      for (const ValueId input : graph_.nodes[n].inputs) {
        if (!input.valid() || !graph_.value(input).producer.valid()) continue;
        const std::size_t from = graph_.value(input).producer.index();
        if (inside[n] && behind[from]) return false;
        depends = depends || behind[from] || inside[from];
      }
      behind[n] = !inside[n] && depends;
    }
    return true;
  }

  const ir::Graph& graph_;
  Bytes limit_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<bool> output_;
  std::vector<std::optional<Split>> splits_;
};

// Whether the node updates state that the region reads, or what comes behind it.
bool overwrites_for(const ir::Graph& graph, const std::vector<std::vector<NodeId>>& readers,
                    std::size_t n, const std::vector<char>& rank) {
  const ops::InPlace& rule = ops::definition_of(graph.nodes[n]).in_place;
  return rule.must() && std::ranges::any_of(rule.pairs(), [&](const ops::InPlace::Pair& pair) {
           const ValueId state = graph.nodes[n].inputs[static_cast<std::size_t>(pair.input)];
           return std::ranges::any_of(readers[state.index()], [&](NodeId reader) {
             return reader.index() != n && rank[reader.index()] > 0;
           });
         });
}

// The same graph with the nodes of the region one behind the other, at the place of the last of
// them: what depends on them comes after, what stood between them and does not, before.
ir::Graph gathered(ir::Graph graph, Region& region) {
  const std::size_t count = graph.nodes.size();
  std::vector<char> rank(count, 0);  // before, in, or behind the region
  for (const NodeId n : region.nodes) rank[n.index()] = 1;
  const std::size_t last = region.nodes.back().index();
  const std::vector<std::vector<NodeId>> readers = ir::readers(graph);
  for (std::size_t n = 0; n < count; ++n) {
    if (rank[n] == 1) continue;
    rank[n] = n > last ? 2 : 0;
    for (const ValueId input : graph.nodes[n].inputs) {
      if (input.valid() && graph.value(input).producer.valid() &&
          rank[graph.value(input).producer.index()] > 0)
        rank[n] = 2;
    }
    if (overwrites_for(graph, readers, n, rank)) rank[n] = 2;
  }
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t n) { return rank[n]; });
  std::vector<ir::Node> nodes;
  nodes.reserve(count);
  region.nodes.clear();
  for (const std::size_t n : order) {
    const NodeId now(nodes.size());
    if (rank[n] == 1) region.nodes.push_back(now);
    for (const ValueId output : graph.nodes[n].outputs) graph.value(output).producer = now;
    nodes.push_back(std::move(graph.nodes[n]));
  }
  graph.nodes = std::move(nodes);
  return graph;
}

class RegionSplitter {
 public:
  RegionSplitter(ir::Graph graph, const Region& region, std::int64_t rows_of_part)
      : edit_(std::move(graph)), region_(region), step_(rows_of_part) {
    for (const NodeId n : region.nodes) {
      inside_.insert(n);
      splits_.push_back(*split_of(edit_.graph(), edit_.graph().node(n)));
    }
    at_ = region.nodes.back();
  }

  Result<ir::Graph> run() {
    for (std::int64_t first = 0; first < region_.rows; first += step_) {
      first_ = first;
      count_ = std::min(step_, region_.rows - first);
      now_.clear();
      for (std::size_t i = 0; i < region_.nodes.size(); ++i)
        PLIMSOLL_RETURN_IF_ERROR(add_part(region_.nodes[i], splits_[i]));
    }
    for (const NodeId n : region_.nodes) PLIMSOLL_RETURN_IF_ERROR(join(n));
    return edit_.finish();
  }

 private:
  Status add_part(NodeId n, const Split& split) {
    const ir::Node node = edit_.graph().node(n);
    std::vector<ValueId> inputs;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      ValueId input = node.inputs[i];
      if (input.valid() && split.inputs[i] == Split::Input::kCut) {
        PLIMSOLL_TRY(input, part_of(input, n));
      }
      inputs.push_back(input);
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const auto sum = sums_.find(node.outputs[i]);
      if (sum == sums_.end()) continue;
      inputs.resize(std::max(inputs.size(), static_cast<std::size_t>(split.sums) + i + 1));
      inputs[static_cast<std::size_t>(split.sums) + i] = sum->second;
    }
    ir::Attributes attributes = node.attributes;
    if (!split.first_element.empty() && first_ > 0) {
      const std::int64_t elements = edit_.graph().value(node.outputs[0]).type.shape.elements();
      attributes.set(std::string(split.first_element), elements / region_.rows * first_);
    }
    PLIMSOLL_TRY(const std::vector<ValueId> made,
                 edit_.insert(at_, node.op, std::move(inputs), std::move(attributes), n));
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (split.outputs[i] == Split::Output::kSum) {
        sums_[node.outputs[i]] = made[i];
        continue;
      }
      now_[node.outputs[i]] = made[i];
      if (leaves(node.outputs[i])) parts_[node.outputs[i]].push_back(made[i]);
    }
    return {};
  }

  Result<ValueId> part_of(ValueId whole, NodeId like) {
    if (const auto own = now_.find(whole); own != now_.end()) return own->second;
    PLIMSOLL_TRY(const ValueId rows, as_rows(whole, like));
    const ir::Shape& shape = edit_.graph().value(rows).type.shape;
    ir::Ints starts(static_cast<std::size_t>(shape.rank()), 0);
    ir::Ints ends(shape.begin(), shape.end());
    const std::int64_t fine = region_.rows / shape[0];  // rows of the region in one of this axis
    starts[0] = first_ / fine;
    ends[0] = (first_ + count_) / fine;
    const ir::Ints steps(starts.size(), 1);
    PLIMSOLL_TRY(const std::vector<ValueId> made,
                 edit_.insert(at_, "slice", {rows},
                              {{"starts", starts}, {"ends", ends}, {"steps", steps}}, like));
    return now_[whole] = made[0];
  }

  Result<ValueId> as_rows(ValueId whole, NodeId like) {
    const ir::Shape shape = edit_.graph().value(whole).type.shape;
    if (region_.outer || row_axes(shape, region_.rows) == 1) return whole;
    if (const auto known = rows_.find(whole); known != rows_.end()) return known->second;
    const ir::Shape flat = by_rows(shape, region_.rows, region_.rows);
    PLIMSOLL_TRY(const std::vector<ValueId> made,
                 edit_.insert(at_, "reshape", {whole},
                              {{"shape", ir::Ints(flat.begin(), flat.end())}}, like));
    return rows_[whole] = made[0];
  }

  // Somebody outside reads it.
  bool leaves(ValueId value) const {
    return edit_.is_output(value) || std::ranges::any_of(edit_.readers(value), [&](NodeId reader) {
             return reader.index() < edit_.original_nodes() && !inside_.contains(reader);
           });
  }

  Status join(NodeId n) {
    const std::vector<ValueId> outputs = edit_.graph().node(n).outputs;
    for (const ValueId output : outputs) {
      if (const auto sum = sums_.find(output); sum != sums_.end())
        edit_.replace(output, sum->second);
      const auto parts = parts_.find(output);
      if (parts == parts_.end()) continue;
      PLIMSOLL_TRY(std::vector<ValueId> made,
                   edit_.insert(at_, "concat", parts->second, {{"axis", std::int64_t{0}}}, n));
      const ir::Shape shape = edit_.graph().value(output).type.shape;
      if (edit_.graph().value(made[0]).type.shape != shape) {
        PLIMSOLL_TRY(made, edit_.insert(at_, "reshape", {made[0]},
                                        {{"shape", ir::Ints(shape.begin(), shape.end())}}, n));
      }
      edit_.replace(output, made[0]);
    }
    return {};
  }

  GraphEditor edit_;
  const Region& region_;
  std::int64_t step_;  // rows of a part
  std::set<NodeId> inside_;
  std::vector<Split> splits_;
  NodeId at_;
  std::int64_t first_ = 0, count_ = 0;             // of the part that is being made
  std::map<ValueId, ValueId> now_;                 // its share of each value
  std::map<ValueId, ValueId> rows_;                // values of other shapes, as the region's rows
  std::map<ValueId, ValueId> sums_;                // as far as they have come
  std::map<ValueId, std::vector<ValueId>> parts_;  // of what leaves the region
};

// Losses and their gradients in the form that has rows (ops/normalization/loss.h), where the logits
// are above the limit.
Result<ir::Graph> with_losses_of_rows(const ir::Graph& graph, Bytes limit) {
  GraphEditor edit(graph);
  bool changed = false;
  for (std::size_t n = 0; n < edit.original_nodes(); ++n) {
    const ir::Node node = edit.graph().node(NodeId(n));
    const bool loss = node.op == "cross_entropy";
    if (!loss && (node.op != "cross_entropy_grad" || node.inputs.size() > 4)) continue;
    const ir::TensorType& logits = edit.graph().value(node.inputs[loss ? 0 : 1]).type;
    if (ir::bytes_of(logits) <= limit) continue;
    std::vector<ValueId> inputs = node.inputs;
    ir::Attributes attributes = node.attributes;
    if (loss) {
      if (ops::attributes_of(node).integer("per_row") != 0) continue;
      attributes.set("per_row", std::int64_t{1});
    } else {
      inputs.push_back(node.inputs[2]);
    }
    PLIMSOLL_TRY(const std::vector<ValueId> made,
                 edit.insert(NodeId(n), node.op, inputs, attributes));
    for (std::size_t i = loss ? 1 : 0; i < made.size(); ++i) edit.replace(node.outputs[i], made[i]);
    if (loss) {
      PLIMSOLL_TRY(const std::vector<ValueId> mean,
                   edit.insert(NodeId(n), "mean_loss", {made[0], node.inputs[1]}, node.attributes));
      edit.replace(node.outputs[0], mean[0]);
    }
    changed = true;
  }
  if (!changed) return graph;
  return edit.finish();
}

std::int64_t rows_of_part(const Region& region, Bytes limit) {
  const std::int64_t row = std::max<std::int64_t>(1, region.largest.value / region.rows);
  return std::max<std::int64_t>(1, limit.value / row / region.granule) * region.granule;
}

}  // namespace

Result<SplitGraph> split_rows(const ir::Graph& graph, Bytes limit) {
  SplitGraph out;
  PLIMSOLL_TRY(ir::Graph by_row, with_losses_of_rows(graph, limit));
  while (true) {
    std::vector<Region> regions = RegionFinder(by_row, limit).regions();
    std::erase_if(regions, [&](const Region& region) {
      return rows_of_part(region, limit) >= region.rows || region.beside >= region.bytes;
    });
    if (regions.empty()) break;
    Region& region = regions.front();
    const std::int64_t rows = rows_of_part(region, limit);
    out.operators += std::ssize(region.nodes);
    out.parts = std::max(out.parts, (region.rows + rows - 1) / rows);
    ir::Graph ready = gathered(std::move(by_row), region);
    PLIMSOLL_TRY(by_row, RegionSplitter(std::move(ready), region, rows).run());
  }
  if (out.operators == 0) {
    out.graph = graph;
    return out;
  }
  PLIMSOLL_RETURN_IF_ERROR(ops::verify(by_row));
  out.graph = std::move(by_row);
  return out;
}

Result<SplitGraph> split_batch(const ir::Graph& graph, std::int64_t parts) {
  SplitGraph out;
  PLIMSOLL_TRY(ir::Graph by_row, with_losses_of_rows(graph, Bytes(0)));
  std::vector<Region> regions = RegionFinder(by_row, Bytes(0)).regions();
  const auto most = std::ranges::max_element(regions, {}, &Region::bytes);
  out.graph = graph;
  Bytes all;  // that the step makes
  for (const ir::Value& value : by_row.values) {
    if (value.producer.valid() && by_row.node(value.producer).phase != ir::Phase::kUpdate)
      all += ir::bytes_of(value.type);
  }
  // Less than half of it is no batch.
  if (most == regions.end() || most->bytes.value < all.value / 2 || most->rows % parts != 0 ||
      most->rows / parts % most->granule != 0)
    return out;
  out.operators = std::ssize(most->nodes);
  out.parts = parts;
  const std::int64_t rows = most->rows / parts;
  ir::Graph ready = gathered(std::move(by_row), *most);
  PLIMSOLL_TRY(out.graph, RegionSplitter(std::move(ready), *most, rows).run());
  PLIMSOLL_RETURN_IF_ERROR(ops::verify(out.graph));
  return out;
}

Result<std::vector<SplitGraph>> split_ladder(const ir::Graph& graph, int most) {
  std::vector<SplitGraph> out;
  Bytes largest;
  for (const ir::Value& value : graph.values) {
    if (value.producer.valid()) largest = std::max(largest, ir::bytes_of(value.type));
  }
  for (std::int64_t share = 2; std::ssize(out) < most && share <= kSmallestShare; share *= 2) {
    PLIMSOLL_TRY(SplitGraph next, split_rows(graph, Bytes(largest.value / share)));
    if (next.operators == 0) continue;
    if (!out.empty() && out.back().graph == next.graph) break;
    out.push_back(std::move(next));
  }
  // Micro-batches, with the losses of each in the smallest parts.
  for (std::int64_t parts = 2; parts <= kMostBatches; parts *= 2) {
    PLIMSOLL_TRY(SplitGraph batches, split_batch(graph, parts));
    if (batches.operators == 0) continue;
    PLIMSOLL_TRY(SplitGraph next,
                 split_rows(batches.graph, Bytes(largest.value / (2 * kMostBatches))));
    if (next.operators == 0) next.graph = std::move(batches.graph);
    next.operators = std::max(next.operators, batches.operators);
    next.parts = std::max(next.parts, parts);
    if (!out.empty() && out.back().graph == next.graph) break;
    out.push_back(std::move(next));
  }
  return out;
}

}  // namespace plimsoll::rewrite

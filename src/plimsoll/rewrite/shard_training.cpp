#include "plimsoll/rewrite/shard_training.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "plimsoll/ir/in_order.h"
#include "plimsoll/ops/collective/shard.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/gradient_rows.h"
#include "plimsoll/rewrite/graph_editor.h"
#include "plimsoll/rewrite/narrow_lookups.h"
#include "plimsoll/rewrite/shard_buckets.h"

namespace plimsoll::rewrite {
namespace {

// Where a node stands: before, at or behind a node of the graph, in the order of making.
struct NodePlace {
  std::size_t node = 0;
  int side = 0;
  std::size_t sequence = 0;
  auto operator<=>(const NodePlace&) const = default;
};
constexpr int kBeforeNode = -1, kBehindSending = 1, kBehindUpdating = 2;

using Rows = std::optional<Interval<std::int64_t>>;  // of a bucket's one tensor; nothing: all

class Sharder {
 public:
  Sharder(ir::Graph graph, const ShardOptions& options)
      : graph_(std::move(graph)),
        options_(options),
        original_(graph_.nodes.size()),
        readers_(ir::readers(graph_)),
        output_(graph_.values.size(), false),
        rows_(graph_, readers_, output_, options.table_rows) {
    for (const ValueId output : graph_.outputs) output_[output.index()] = true;
    for (std::size_t n = 0; n < original_; ++n) places_.push_back({n, 0, 0});
  }

  Result<ir::Graph> run() {
    ShardBuckets found = find_shard_buckets(graph_, readers_, output_, rows_, options_);
    if (found.buckets.empty()) return std::move(graph_);
    members_ = std::move(found.weights);
    buckets_ = std::move(found.buckets);
    for (std::size_t b = 0; b < buckets_.size(); ++b) PLIMSOLL_RETURN_IF_ERROR(share(b));
    PLIMSOLL_RETURN_IF_ERROR(gather_regions());
    return finish();
  }

 private:
  Result<std::vector<ValueId>> add(NodePlace place, std::string_view op,
                                   std::vector<ValueId> inputs, ir::Attributes attributes,
                                   ir::Phase phase, std::string layer) {
    ir::Node node;
    node.op = op;
    node.layer = std::move(layer);
    node.phase = phase;
    node.inputs = std::move(inputs);
    node.attributes = std::move(attributes);
    PLIMSOLL_TRY(const auto types, ops::infer(graph_, node));
    const auto kind =
        phase == ir::Phase::kForward ? ir::ValueKind::kActivation : ir::ValueKind::kGradient;
    place.sequence = places_.size();
    places_.push_back(place);
    return graph_.node(graph_.add_node(std::move(node), types, kind)).outputs;
  }

  // A gradient's element beside one of the narrow copy that is gathered.
  std::int64_t times_as_wide(const ShardBucket& bucket) const {
    const ShardedWeight& first = members_[bucket.members[0]];
    if (!first.narrow) return 1;
    const ValueId gradient = graph_.nodes[first.reduce].inputs[0];
    return std::max(1, ir::bits(graph_.value(gradient).type.dtype) / ir::bits(*first.narrow));
  }

  ir::Attributes run_attributes(const ShardBucket& bucket) const {
    const ops::AttributeReader sum =
        ops::attributes_of(graph_.nodes[members_[bucket.members[0]].reduce]);
    // Sums and parts are cut at the same elements as the narrow copy that is gathered of them.
    const std::int64_t wider = bucket.owns_weights ? times_as_wide(bucket) : 1;
    ir::Attributes out{{"ranks", sum.integer("ranks")},
                       {"align", wider * options_.alignment.value}};
    if (sum.text("order") == "fixed") out.set("order", std::string("fixed"));
    return out;
  }

  // Where rows of the bucket's one tensor begin and how many there are, in elements.
  Interval<std::int64_t> elements_of(const ShardBucket& bucket, const Rows& rows) const {
    const ir::Shape& shape = graph_.value(members_[bucket.members[0]].weight).type.shape;
    const std::int64_t row = shape.elements(1, shape.rank());
    return {rows->begin * row, rows->end * row};
  }

  ir::Attributes range_attributes(const ShardBucket& bucket, const Rows& rows) const {
    ir::Attributes out = run_attributes(bucket);
    if (!rows) return out;
    const Interval<std::int64_t> range = elements_of(bucket, rows);
    out.set("range", ir::Ints{range.begin, range.end - range.begin});
    return out;
  }

  ir::Attributes scatter_attributes(const ShardBucket& bucket, const Rows& rows) const {
    ir::Attributes out = run_attributes(bucket);
    if (rows) {
      const ir::Shape& shape = graph_.value(members_[bucket.members[0]].weight).type.shape;
      ir::Ints of{elements_of(bucket, rows).begin};
      of.insert(of.end(), shape.begin(), shape.end());
      out.set("of", of);
    }
    std::string names;
    for (const std::size_t m : bucket.members) {
      const ir::Value& weight = graph_.value(members_[m].weight);
      if (!names.empty()) names += '\n';
      names += weight.name;
    }
    out.set("members", names);
    if (!bucket.owns_weights) return out;
    std::vector<ir::Init> inits;
    for (const std::size_t m : bucket.members)
      inits.push_back(graph_.value(members_[m].weight).init);
    out.set("inits", ops::inits_attribute(inits));
    return out;
  }

  // Rows of a gradient, for a node at `place`.
  Result<ValueId> rows_of(ValueId gradient, const Rows& rows, NodePlace place) {
    return rows_.make(gradient, *rows, [&](GradientRows::NewNode node) -> Result<ValueId> {
      const NodePlace at = node.behind ? NodePlace{node.behind->index(), kBehindSending, 0} : place;
      PLIMSOLL_TRY(const auto made,
                   add(at, node.op, std::move(node.inputs), std::move(node.attributes),
                       ir::Phase::kBackward, std::move(node.layer)));
      return made[0];
    });
  }

  // This rank's part of the sums, made at `place` or, where that is nothing, when the gradients are
  // there.
  Result<ValueId> scatter(const ShardBucket& bucket, const Rows& rows,
                          const std::optional<NodePlace>& wanted) {
    const std::size_t batches = members_[bucket.members[0]].gradients.size();
    ValueId sum;
    for (std::size_t i = 0; i < batches; ++i) {
      std::vector<ValueId> gradients;
      std::size_t after = batches == 1 ? bucket.sent_after : 0;
      for (const std::size_t m : bucket.members) {
        const ValueId gradient = members_[m].gradients[i];
        gradients.push_back(gradient);
        if (const NodeId maker = graph_.value(gradient).producer; maker.valid())
          after = std::max(after, maker.index());
      }
      const NodePlace place = wanted.value_or(NodePlace{after, kBehindSending, 0});
      if (rows) {
        PLIMSOLL_TRY(gradients[0], rows_of(gradients[0], rows, place));
      }
      PLIMSOLL_TRY(const auto part,
                   add(place, "scatter_sums", std::move(gradients),
                       scatter_attributes(bucket, rows), ir::Phase::kBackward, "gradients"));
      if (sum.valid()) {
        PLIMSOLL_TRY(const auto both,
                     add(place, "add", {sum, part[0]}, {}, ir::Phase::kBackward, "gradients"));
        sum = both[0];
      } else {
        sum = part[0];
      }
    }
    return sum;
  }

  // The norm of all gradients is that of all parts.
  Status share_squares(const ShardBucket& bucket, const std::vector<ValueId>& parts) {
    bool first = true;
    for (const std::size_t m : bucket.members) {
      for (const ValueId squares : members_[m].squares) {
        if (first) {
          PLIMSOLL_TRY(instead_[squares], squares_of(bucket, parts));
        } else {
          instead_[squares] = zero_like(squares);
        }
        first = false;
      }
    }
    return {};
  }

  Result<ValueId> squares_of(const ShardBucket& bucket, const std::vector<ValueId>& parts) {
    const NodePlace place{bucket.sent_after, kBehindSending, 0};
    ValueId own;
    for (const ValueId part : parts) {
      PLIMSOLL_TRY(const auto one,
                   add(place, "sum_squares", {part}, {}, ir::Phase::kBackward, "clip"));
      if (!own.valid()) {
        own = one[0];
        continue;
      }
      PLIMSOLL_TRY(const auto both,
                   add(place, "add", {own, one[0]}, {}, ir::Phase::kBackward, "clip"));
      own = both[0];
    }
    const ir::Attributes how = graph_.nodes[members_[bucket.members[0]].reduce].attributes;
    PLIMSOLL_TRY(const auto all,
                 add(place, "all_reduce", {own}, how, ir::Phase::kBackward, "clip"));
    return all[0];
  }

  ValueId zero_like(ValueId value) {
    const ir::TensorType type = graph_.value(value).type;
    ValueId& zero = zeros_[type.dtype];
    if (!zero.valid()) {
      zero = graph_.add_source("shard.zero." + std::string(ir::name(type.dtype)),
                               ir::ValueKind::kConstant, type);
      graph_.constants.push_back(
          {zero, std::vector<std::byte>(static_cast<std::size_t>(ir::bytes_of(type).value))});
    }
    return zero;
  }

  Status share(std::size_t b) {
    const ShardBucket& bucket = buckets_[b];
    std::vector<ValueId> weights;  // their newest versions
    for (const std::size_t m : bucket.members) weights.push_back(members_[m].weight);
    drop_updates(bucket);
    if (bucket.pieces.empty()) {
      PLIMSOLL_TRY(const ValueId sums, scatter(bucket, {}, {}));
      PLIMSOLL_RETURN_IF_ERROR(share_squares(bucket, {sums}));
      PLIMSOLL_RETURN_IF_ERROR(update(b, {}, fmt::format("shard.{}", b), sums, weights));
    } else {
      PLIMSOLL_RETURN_IF_ERROR(share_pieces(b, weights));
    }
    if (bucket.owns_weights) return {};
    for (std::size_t i = 0; i < weights.size(); ++i)
      graph_.updates.push_back({members_[bucket.members[i]].weight, weights[i]});
    return {};
  }

  // Each piece is updated behind the sums of the next one, unless all wait for something.
  Status share_pieces(std::size_t b, std::vector<ValueId>& weights) {
    const ShardBucket& bucket = buckets_[b];
    const ShardedWeight& member = members_[bucket.members[0]];
    const bool waits = member.gradients.size() > 1 || !member.squares.empty();
    std::optional<NodePlace> place;
    if (!waits) place = NodePlace{bucket.update_after, kBehindUpdating, 0};
    std::vector<ValueId> sums;
    const auto update_piece = [&](std::size_t k) {
      return update(b, bucket.pieces[k], fmt::format("shard.{}.{}", b, k), sums[k], weights);
    };
    for (std::size_t k = 0; k < bucket.pieces.size(); ++k) {
      PLIMSOLL_TRY(const ValueId part, scatter(bucket, bucket.pieces[k], place));
      sums.push_back(part);
      if (!waits && k > 0) PLIMSOLL_RETURN_IF_ERROR(update_piece(k - 1));
    }
    PLIMSOLL_RETURN_IF_ERROR(share_squares(bucket, sums));
    for (std::size_t k = waits ? 0 : bucket.pieces.size() - 1; k < bucket.pieces.size(); ++k)
      PLIMSOLL_RETURN_IF_ERROR(update_piece(k));
    return {};
  }

  // Of a bucket, or of rows of its one tensor, with new moments called `name`; `weights` become
  // their next versions.
  Status update(std::size_t b, const Rows& rows, const std::string& name, ValueId sums,
                std::vector<ValueId>& weights) {
    const ShardBucket& bucket = buckets_[b];
    const ShardedWeight& first = members_[bucket.members[0]];
    const ir::Node update = graph_.nodes[first.update];
    const ir::Shape shape = graph_.value(sums).type.shape;
    const NodePlace place{bucket.update_after, kBehindUpdating, 0};
    ValueId part;
    if (bucket.owns_weights) {
      part = graph_.add_source(name, ir::ValueKind::kWeight,
                               {graph_.value(first.weight).type.dtype, shape, {}},
                               {ir::Init::Kind::kConstant, 0, 0});
      parts_[b].push_back(part);
    } else {
      PLIMSOLL_TRY(const auto own, add(place, "own_part", weights, range_attributes(bucket, rows),
                                       ir::Phase::kUpdate, "gradients"));
      part = own[0];
    }
    std::vector<ValueId> inputs = update.inputs;
    inputs[0] = part;
    inputs[1] = sums;
    std::size_t moment = 0;
    for (std::size_t i = 2; i < inputs.size(); ++i) {
      if (std::find(first.moments.begin(), first.moments.end(), inputs[i]) == first.moments.end())
        continue;
      const std::string_view end = first.moments.size() == 1 ? "momentum" : moment == 0 ? "m" : "v";
      inputs[i] = graph_.add_source(fmt::format("{}.{}", name, end), ir::ValueKind::kOptimizer,
                                    {graph_.value(inputs[i]).type.dtype, shape, {}},
                                    {ir::Init::Kind::kConstant, 0, 0});
      ++moment;
    }
    PLIMSOLL_TRY(const auto next,
                 add(place, update.op, inputs, update.attributes, ir::Phase::kUpdate, "gradients"));
    std::size_t made = 1;
    for (std::size_t i = 2; i < inputs.size() && made < next.size(); ++i) {
      if (graph_.value(inputs[i]).kind == ir::ValueKind::kOptimizer)
        graph_.updates.push_back({inputs[i], next[made++]});
    }
    if (bucket.owns_weights) {
      graph_.updates.push_back({part, next[0]});
      return {};
    }
    std::vector<ValueId> gathered{next[0]};
    gathered.insert(gathered.end(), weights.begin(), weights.end());
    PLIMSOLL_TRY(weights, add(place, "gather_update", gathered, range_attributes(bucket, rows),
                              ir::Phase::kUpdate, "gradients"));
    return {};
  }

  void drop_updates(const ShardBucket& bucket) {
    std::set<std::uint32_t> old;
    for (const std::size_t m : bucket.members) {
      old.insert(static_cast<std::uint32_t>(members_[m].weight.index()));
      for (const ValueId moment : members_[m].moments)
        old.insert(static_cast<std::uint32_t>(moment.index()));
    }
    std::erase_if(graph_.updates, [&](const ir::Update& update) {
      return old.contains(static_cast<std::uint32_t>(update.source.index()));
    });
  }

  Status gather_regions() {
    const std::vector<ReadRegion> regions = find_read_regions(buckets_, options_.weights);
    for (std::size_t r = 0; r < regions.size(); ++r) {
      const std::size_t asked = regions[r == 0 ? 0 : r - 1].begin;
      PLIMSOLL_RETURN_IF_ERROR(gather(regions[r], asked));
    }
    return {};
  }

  Status gather(const ReadRegion& region, std::size_t asked) {
    const ShardBucket& bucket = buckets_[region.bucket];
    const std::vector<ValueId> parts = parts_[region.bucket];
    const NodePlace place{asked, kBeforeNode, 0};
    const ir::Phase phase = graph_.nodes[region.begin].phase;
    std::vector<ir::Shape> shapes;
    for (const std::size_t m : bucket.members)
      shapes.push_back(graph_.value(members_[m].weight).type.shape);
    std::vector<ValueId> whole;
    if (bucket.pieces.empty()) {
      PLIMSOLL_TRY(whole, gather_part(bucket, parts[0], shapes, place, phase));
    } else {
      // Made side by side: joining them moves nothing.
      std::vector<ValueId> pieces;
      for (std::size_t k = 0; k < parts.size(); ++k) {
        shapes[0][0] = bucket.pieces[k].end - bucket.pieces[k].begin;
        PLIMSOLL_TRY(const auto piece, gather_part(bucket, parts[k], shapes, place, phase));
        pieces.push_back(piece[0]);
      }
      PLIMSOLL_TRY(whole,
                   add(place, "concat", pieces, {{"axis", std::int64_t{0}}}, phase, "weights"));
    }
    for (std::size_t i = 0; i < bucket.members.size(); ++i)
      replace_reads(members_[bucket.members[i]], whole[i], region);
    return {};
  }

  Result<std::vector<ValueId>> gather_part(const ShardBucket& bucket, ValueId part,
                                           const std::vector<ir::Shape>& shapes, NodePlace place,
                                           ir::Phase phase) {
    if (const std::optional<ir::DType> narrow = members_[bucket.members[0]].narrow) {
      PLIMSOLL_TRY(
          const auto cast,
          add(place, "cast", {part}, {{"to", std::string(ir::name(*narrow))}}, phase, "weights"));
      part = cast[0];
    }
    ir::Attributes how = run_attributes(bucket);
    how.set("align", options_.alignment.value);
    how.set("shapes", ops::shapes_attribute(shapes));
    return add(place, "gather_weights", {part}, std::move(how), phase, "weights");
  }

  void replace_reads(const ShardedWeight& member, ValueId by, const ReadRegion& region) {
    const auto replace_in_region = [&](ValueId value) {
      for (const NodeId reader : readers_[value.index()]) {
        if (reader.index() == member.update || reader.index() < region.begin ||
            reader.index() > region.end)
          continue;
        std::vector<ValueId>& inputs = graph_.node(reader).inputs;
        std::replace(inputs.begin(), inputs.end(), value, by);
      }
    };
    if (!member.narrow) return replace_in_region(member.weight);
    for (const NodeId cast : readers_[member.weight.index()]) {
      if (cast.index() != member.update) replace_in_region(graph_.node(cast).outputs[0]);
    }
  }

  Result<ir::Graph> finish() {
    for (ir::Node& node : graph_.nodes) {
      for (ValueId& input : node.inputs) {
        if (const auto found = instead_.find(input); found != instead_.end()) input = found->second;
      }
    }
    std::vector<std::size_t> order(graph_.nodes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return places_[a] < places_[b]; });
    ir::Graph out = without_dead_nodes(ir::in_order(std::move(graph_), order));
    PLIMSOLL_RETURN_IF_ERROR(ops::verify(out));
    return out;
  }

  ir::Graph graph_;
  ShardOptions options_;
  std::size_t original_;                      // nodes
  std::vector<std::vector<NodeId>> readers_;  // of the original graph
  std::vector<bool> output_;
  GradientRows rows_;
  std::vector<NodePlace> places_;  // by node
  std::vector<ShardedWeight> members_;
  std::vector<ShardBucket> buckets_;
  std::map<std::size_t, std::vector<ValueId>> parts_;  // of buckets that own their weights
  std::map<ValueId, ValueId> instead_;
  std::map<ir::DType, ValueId> zeros_;
};

}  // namespace

Result<ir::Graph> shard_training(const ir::Graph& graph, const ShardOptions& options) {
  PLIMSOLL_TRY(ir::Graph narrow, narrow_lookups(graph));
  return Sharder(std::move(narrow), options).run();
}

}  // namespace plimsoll::rewrite

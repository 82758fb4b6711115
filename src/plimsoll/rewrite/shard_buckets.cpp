#include "plimsoll/rewrite/shard_buckets.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

#include "plimsoll/base/checked.h"
#include "plimsoll/ops/collective/shard.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::rewrite {
namespace {

constexpr std::size_t kMostOfBucket = static_cast<std::size_t>(ops::kMostOfRunTensors) - 1;
// Of one tensor. Smaller pieces would cost more than they save.
constexpr std::int64_t kMostPieces = 64;
constexpr std::int64_t kLeastPiece = 4 << 10;  // bytes

bool is_optimizer(const ir::Node& node) {
  static constexpr std::array<std::string_view, 4> kOps{"sgd", "momentum", "adam", "adamw"};
  return node.phase == ir::Phase::kUpdate &&
         std::find(kOps.begin(), kOps.end(), node.op) != kOps.end();
}

class BucketFinder {
 public:
  BucketFinder(const ir::Graph& graph, const std::vector<std::vector<NodeId>>& readers,
               const std::vector<bool>& outputs, const GradientRows& rows,
               const ShardOptions& options)
      : graph_(graph), readers_(readers), outputs_(outputs), rows_(rows), options_(options) {}

  ShardBuckets run() {
    find_weights();
    fill_buckets();
    place_buckets();
    return {std::move(weights_), std::move(buckets_)};
  }

 private:
  std::int64_t bytes_of(ValueId value) const {
    return ir::bytes_of(graph_.value(value).type).value;
  }

  void find_weights() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (!is_optimizer(graph_.nodes[n])) continue;
      if (std::optional<ShardedWeight> member = member_of(n))
        weights_.push_back(std::move(*member));
    }
    std::stable_sort(
        weights_.begin(), weights_.end(),
        [](const ShardedWeight& a, const ShardedWeight& b) { return a.reduce < b.reduce; });
  }

  std::optional<ShardedWeight> member_of(std::size_t n) const {
    const ir::Node& node = graph_.nodes[n];
    ShardedWeight out;
    out.update = n;
    out.weight = node.inputs[0];
    const ir::Value& weight = graph_.value(out.weight);
    const NodeId reduce = graph_.value(node.inputs[1]).producer;
    if (weight.kind != ir::ValueKind::kWeight || !weight.type.layout.is_row_major() ||
        !reduce.valid() || outputs_[node.inputs[1].index()] || outputs_[out.weight.index()])
      return std::nullopt;
    out.reduce = reduce.index();
    const ir::Node& sum = graph_.node(reduce);
    if (sum.op != "all_reduce" || sum.inputs.size() != 1 ||
        ops::attributes_of(sum).integer("fuse") != 1 || bytes_of(out.weight) > ops::kMostOfRun / 2)
      return std::nullopt;
    for (const NodeId reader : readers_[node.inputs[1].index()]) {
      if (reader.index() == n) continue;
      if (graph_.node(reader).op != "sum_squares") return std::nullopt;
      out.squares.push_back(graph_.node(reader).outputs[0]);
    }
    for (std::size_t i = 2; i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      if (input.valid() && graph_.value(input).kind == ir::ValueKind::kOptimizer)
        out.moments.push_back(input);
    }
    out.gradients = {sum.inputs[0]};
    if (options_.gradients) out.gradients = summands(sum.inputs[0]);
    out.narrow = narrow_readers(out.weight, n);
    return out;
  }

  // What a sum of micro-batches is made of: ((a + b) + c).
  std::vector<ValueId> summands(ValueId value) const {
    std::vector<ValueId> out;
    while (true) {
      const NodeId maker = graph_.value(value).producer;
      const bool adds = maker.valid() && graph_.node(maker).op == "add" &&
                        graph_.node(maker).phase == ir::Phase::kBackward &&
                        graph_.node(maker).layer.empty() && readers_[value.index()].size() == 1 &&
                        !outputs_[value.index()];
      if (!adds) break;
      out.push_back(graph_.node(maker).inputs[1]);
      value = graph_.node(maker).inputs[0];
    }
    out.push_back(value);
    std::reverse(out.begin(), out.end());
    return out;
  }

  std::optional<ir::DType> narrow_readers(ValueId weight, std::size_t update) const {
    std::optional<ir::DType> out;
    for (const NodeId reader : readers_[weight.index()]) {
      if (reader.index() == update) continue;
      const ir::Node& node = graph_.node(reader);
      if (node.op != "cast" || outputs_[node.outputs[0].index()]) return std::nullopt;
      const ir::DType to = graph_.value(node.outputs[0]).type.dtype;
      if (ir::bits(to) != 16 || (out && *out != to)) return std::nullopt;
      out = to;
    }
    return out;
  }

  // Whatever has to be the same for one update of all.
  auto key_of(const ShardedWeight& member) const {
    const ir::Node& node = graph_.nodes[member.update];
    std::vector<std::uint32_t> others;
    for (std::size_t i = 2; i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      const bool moment =
          std::find(member.moments.begin(), member.moments.end(), input) != member.moments.end();
      if (!moment) others.push_back(static_cast<std::uint32_t>(input.index()));
    }
    return std::tuple(
        graph_.value(member.weight).type.dtype, graph_.value(member.gradients[0]).type.dtype,
        node.op, ir::to_string(node.attributes), others, member.gradients.size(),
        owns_weight(member), member.narrow, ir::to_string(graph_.nodes[member.reduce].attributes));
  }

  bool owns_weight(const ShardedWeight& member) const {
    const bool has_rule = graph_.value(member.weight).init.kind != ir::Init::Kind::kFile;
    return has_rule && (options_.weights || member.narrow.has_value());
  }

  void fill_buckets() {
    std::map<decltype(key_of(std::declval<const ShardedWeight&>())), std::size_t> open;
    for (std::size_t m = 0; m < weights_.size(); ++m) {
      const ShardedWeight& member = weights_[m];
      const std::int64_t bytes = bytes_of(member.gradients[0]);
      if (std::vector<Interval<std::int64_t>> pieces = pieces_of(member); !pieces.empty()) {
        buckets_.emplace_back().pieces = std::move(pieces);
        put(m, buckets_.back());
        continue;
      }
      auto [place, fresh] = open.try_emplace(key_of(member), buckets_.size());
      if (!fresh) {
        const ShardBucket& last = buckets_[place->second];
        fresh = last.bytes >= options_.bucket.value || last.members.size() >= kMostOfBucket ||
                last.bytes + bytes > ops::kMostOfRun / 2;
        if (fresh) place->second = buckets_.size();
      }
      if (fresh) buckets_.emplace_back();
      put(m, buckets_[place->second]);
    }
  }

  void put(std::size_t m, ShardBucket& bucket) const {
    const ShardedWeight& member = weights_[m];
    bucket.members.push_back(m);
    bucket.bytes += bytes_of(member.gradients[0]);
    bucket.owns_weights = owns_weight(member);
    bucket.sent_after = std::max(bucket.sent_after, member.reduce);
    bucket.update_after = std::max(bucket.update_after, member.update);
  }

  // Equal ones, of about a bucket's size, that begin at aligned addresses in any float type.
  std::vector<Interval<std::int64_t>> pieces_of(const ShardedWeight& member) const {
    const std::int64_t bytes = bytes_of(member.gradients[0]);
    const std::int64_t piece =
        std::max({options_.bucket.value, kLeastPiece, bytes / kMostPieces + 1});
    const ir::Shape& shape = graph_.value(member.weight).type.shape;
    const bool cut = bytes >= 2 * piece && shape.rank() >= 2 &&
                     graph_.value(member.gradients[0]).type.shape == shape &&
                     std::all_of(member.gradients.begin(), member.gradients.end(),
                                 [&](ValueId gradient) { return rows_.can_make(gradient); });
    if (!cut) return {};
    const std::int64_t unit = options_.alignment.value / 2;
    const std::int64_t granule = unit / std::gcd(unit, shape.elements(1, shape.rank()));
    const std::int64_t count = bytes / piece;
    const std::int64_t each = round_up((shape[0] + count - 1) / count, granule);
    std::vector<Interval<std::int64_t>> out;
    for (std::int64_t row = 0; row < shape[0]; row += each)
      out.push_back({row, std::min(row + each, shape[0])});
    return out.size() > 1 ? out : std::vector<Interval<std::int64_t>>{};
  }

  // Updates stand behind what is sent next, and behind every reader of what they overwrite.
  void place_buckets() {
    std::vector<std::size_t> order(buckets_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return buckets_[a].sent_after < buckets_[b].sent_after;
    });
    for (std::size_t i = 0; i < order.size(); ++i) {
      ShardBucket& bucket = buckets_[order[i]];
      if (i + 1 < order.size() && bucket.pieces.empty())
        bucket.update_after = std::max(bucket.update_after, buckets_[order[i + 1]].sent_after);
      for (const std::size_t m : bucket.members) {
        for (const NodeId reader : readers_[weights_[m].weight.index()]) {
          if (reader.index() != weights_[m].update)
            bucket.update_after = std::max(bucket.update_after, reader.index());
        }
      }
      // Weights are gathered from the part until their last reader.
      if (bucket.owns_weights) bucket.readers = readers_of(bucket);
      if (!bucket.readers.empty())
        bucket.update_after = std::max(bucket.update_after, bucket.readers.back());
    }
  }

  // Nodes that compute with a weight of the bucket, in order.
  std::vector<std::size_t> readers_of(const ShardBucket& bucket) const {
    std::vector<std::size_t> out;
    const auto add_readers = [&](ValueId value, std::size_t update) {
      for (const NodeId reader : readers_[value.index()]) {
        if (reader.index() != update) out.push_back(reader.index());
      }
    };
    for (const std::size_t m : bucket.members) {
      const ShardedWeight& member = weights_[m];
      if (!member.narrow) {
        add_readers(member.weight, member.update);
        continue;
      }
      for (const NodeId cast : readers_[member.weight.index()]) {
        if (cast.index() != member.update)
          add_readers(graph_.node(cast).outputs[0], graph_.nodes.size());
      }
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  const ir::Graph& graph_;
  const std::vector<std::vector<NodeId>>& readers_;
  const std::vector<bool>& outputs_;
  const GradientRows& rows_;
  const ShardOptions& options_;
  std::vector<ShardedWeight> weights_;
  std::vector<ShardBucket> buckets_;
};

bool reads_between(const ShardBucket& bucket, std::size_t from, std::size_t to) {
  const auto next = std::upper_bound(bucket.readers.begin(), bucket.readers.end(), from);
  return next != bucket.readers.end() && *next < to;
}

// Others are read between: its memory is worth more to them.
bool is_gap(const std::vector<ShardBucket>& buckets, std::size_t bucket, std::size_t from,
            std::size_t to) {
  int others = 0;
  for (std::size_t b = 0; b < buckets.size() && others < 2; ++b)
    others += b != bucket && buckets[b].owns_weights && reads_between(buckets[b], from, to);
  return others >= 2;
}

}  // namespace

ShardBuckets find_shard_buckets(const ir::Graph& graph,
                                const std::vector<std::vector<NodeId>>& readers,
                                const std::vector<bool>& outputs, const GradientRows& rows,
                                const ShardOptions& options) {
  return BucketFinder(graph, readers, outputs, rows, options).run();
}

std::vector<ReadRegion> find_read_regions(const std::vector<ShardBucket>& buckets, bool apart) {
  std::vector<ReadRegion> out;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const std::vector<std::size_t>& all = buckets[b].readers;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i == 0 || (apart && is_gap(buckets, b, all[i - 1], all[i])))
        out.push_back({b, all[i], all[i]});
      out.back().end = all[i];
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const ReadRegion& a, const ReadRegion& b) { return a.begin < b.begin; });
  return out;
}

}  // namespace plimsoll::rewrite

// Which weights of a training graph are shared together, and when: the decisions of
// shard_training.h, before anything is changed.
//
// Weights are taken in the order in which their gradients are summed. A bucket is full when it has
// as many bytes as were asked for; its members have one update, of the same attributes, types and
// scalars, because one node updates the part of all. A tensor of two buckets' size and more is a
// bucket by itself, of pieces of rows, where its gradient can be made in rows (gradient_rows.h).
//
// The update of a bucket stands behind what is sent next, and behind every reader of what it
// overwrites.
//
// Cost: O(nodes + readers of weights), and for the regions O(buckets * readers).
#pragma once

#include <optional>
#include <vector>

#include "plimsoll/base/interval.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/rewrite/gradient_rows.h"
#include "plimsoll/rewrite/shard_options.h"

namespace plimsoll::rewrite {

// A weight whose gradient is summed over the ranks.
struct ShardedWeight {
  std::size_t update = 0;  // node
  std::size_t reduce = 0;  // node
  ValueId weight;
  std::vector<ValueId> gradients;        // what is summed: one, or one for each micro-batch
  std::vector<ValueId> moments;          // sources
  std::vector<ValueId> squares;          // of the sum, for clipping
  std::optional<ir::DType> narrow = {};  // only casts to it read the weight
};

struct ShardBucket {
  std::vector<std::size_t> members;
  std::vector<Interval<std::int64_t>> pieces;  // rows of its one large tensor; none: whole ones
  std::int64_t bytes = 0;
  bool owns_weights = false;         // a part is all that a rank keeps of them
  std::size_t sent_after = 0;        // node
  std::size_t update_after = 0;      // node
  std::vector<std::size_t> readers;  // nodes that compute with its weights, where it owns them
};

// Readers of a bucket's weights that share one gathering.
struct ReadRegion {
  std::size_t bucket = 0;
  std::size_t begin = 0;  // nodes
  std::size_t end = 0;
};

struct ShardBuckets {
  std::vector<ShardedWeight> weights;
  std::vector<ShardBucket> buckets;  // of indices of weights
};

// `readers` and `outputs` by value, as `rows` has them.
ShardBuckets find_shard_buckets(const ir::Graph& graph,
                                const std::vector<std::vector<NodeId>>& readers,
                                const std::vector<bool>& outputs, const GradientRows& rows,
                                const ShardOptions& options);

// Where the weights that ranks keep parts of are wanted whole, in the order of their first reader.
// `apart`: readers between which two other buckets are read are regions of their own.
std::vector<ReadRegion> find_read_regions(const std::vector<ShardBucket>& buckets, bool apart);

}  // namespace plimsoll::rewrite

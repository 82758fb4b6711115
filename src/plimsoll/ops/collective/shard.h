// Operators of ranks that share tensors: each has one part of a run of them.
//
// A run is tensors of one dtype, one behind the other, each rounded up to `align` bytes, as plans
// lay them (plan/buckets.h). It is cut into as many equal parts as there are ranks; the last ones
// may be short. A part is a tensor of one axis, as long on every rank, so that all ranks run one
// graph and one plan; what is nobody's (the padding, and the end of a short part) is zero.
//
//   run     w0 w0 w0 --  w1 w1 w2 --        3 tensors, in units of two elements
//   parts   [   rank 0  ][   rank 1  ]
//
//   scatter_sums(g, ...)       sums over the ranks, of which each keeps its own part
//   own_part(w, ...)           the same part of what a rank has already; nothing is sent
//   gather_update(p, w, ...)   all parts, written over the tensors: their next version
//   gather_weights(p)          all parts as new tensors, of the `shapes` given
//
// A run may also be a range of one tensor, so that a large one is scattered and gathered in pieces:
// own_part and gather_update take `range`, its first element and how many; scatter_sums, whose
// gradient is only as large as the piece, says `of` which tensor it is: the first element, then the
// shape of the whole.
//
// A sharded training step (rewrite/shard_training.h) is made of them: gradients are scattered, each
// rank updates its part, and the parts are gathered. Together they send what an all_reduce sends.
//
// `members` of scatter_sums are the names of the weights, one in a line: what a checkpoint calls
// them. `inits`, where ranks keep only parts of them: what they begin with. The reference
// evaluation of one process stands for rank 0 of ranks that all hold the same.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"

namespace plimsoll::ops {

// The smallest alignment of a tensor in a run, in bytes: a cache line.
inline constexpr std::int64_t kRunAlignment = 64;
// Tensors of a run.
inline constexpr int kMostOfRunTensors = 1024;
// Bytes of a run: offsets in it are ints in MPI.
inline constexpr std::int64_t kMostOfRun = (std::int64_t{1} << 31) - (1 << 20);

// Where tensors lie in a run, in elements.
struct RunParts {
  std::vector<std::int64_t> first;  // by tensor
  std::vector<std::int64_t> count;  // by tensor
  std::int64_t end = 0;             // of the last tensor
  std::int64_t part = 0;            // elements of a part

  std::int64_t begin_of(std::int64_t rank) const { return std::min(rank * part, end); }
};

RunParts run_parts(std::vector<std::int64_t> counts, ir::DType dtype, std::int64_t align,
                   std::int64_t ranks);
// Of one of these nodes.
RunParts run_parts(const ir::Graph& graph, const ir::Node& node);
// Bytes of the tensors in it, without padding.
Bytes run_bytes(const ir::Graph& graph, const ir::Node& node);
// The first element of the one tensor that is in its run; 0 where runs are of whole tensors.
std::int64_t first_of_range(const ir::Node& node);

bool is_shard_operator(std::string_view op);

// The attribute `shapes` of gather_weights: rank and extents of each tensor, one behind the other.
std::vector<std::int64_t> shapes_attribute(std::span<const ir::Shape> shapes);

// `inits` of scatter_sums: kind and numbers of each weight's, one in a line.
std::string inits_attribute(std::span<const ir::Init> inits);

// State of which every rank has its own part.
struct ShardedState {
  struct Member {
    std::string name;        // in checkpoints: "h.0.attn.weight", "h.0.attn.weight.m"
    ir::Shape shape;         // of the whole tensor
    std::int64_t first = 0;  // where it begins in the run
    ir::Init init = {};
    std::int64_t begin = 0;  // which element of the tensor that is
    std::int64_t count = 0;  // elements of it in the run
  };
  ValueId value;
  std::int64_t ranks = 1;
  std::int64_t part = 0;
  std::vector<Member> members;
};
std::vector<ShardedState> sharded_state(const ir::Graph& graph);

}  // namespace plimsoll::ops

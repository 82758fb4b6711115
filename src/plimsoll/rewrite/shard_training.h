// Ranks that share state: each keeps and updates one part of it, and no rank has it all.
//
// A training step of n ranks sums every gradient over them and updates every weight, n times the
// same. Here gradients are taken in buckets, in the order in which the backward pass makes them.
//
//   whole    g0 g1 ─▶ all_reduce ─▶ adamw(w0, g0, m0, v0)  adamw(w1, g1, m1, v1)
//
//   shared   g0 g1 ─▶ scatter_sums ─▶ s        this rank's part of the bucket's sums
//            w0 w1 ─▶ own_part     ─▶ p
//            p' m' v' = adamw(p, s, m, v)      once a bucket; moments have a part's size
//            gather_update(p', w0, w1)         the parts of all ranks, over the old weights
//
// As many bytes are sent as by the all_reduce, and moments take 1/n of their memory. Gradients are
// handed on as soon as their bucket is full; with micro-batches (`gradients`) each one's are
// scattered and parts are added up, so that no rank has the sum of a whole gradient.
//
// `weights`: the part p is all of the weights that a rank keeps. gather_weights makes the tensors
// before their first reader and they are gone after the last; where two other buckets are read
// between two readers they are made again. Each is asked for when the one before it is first read,
// so that it comes while that is computed with.
//
// Weights that are only read as 16-bit casts (--amp) are optimizer state in truth: with `optimizer`
// the part p is kept in fp32 and its cast is gathered, once for a step.
//
// A tensor of several buckets' size is scattered in pieces of rows. Its gradient is made in the
// same pieces (gradient_rows.h), each of which is sent and gone before the next but one is made;
// moments and parts are those of pieces. So no gradient of the largest tensor lies there whole.
//
// The updates of a bucket stand behind the sums of the next one, as in fuse_collectives.h.
// Everything is nodes and values: schedules, plans, reports and the verifier see it.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/rewrite/shard_options.h"

namespace plimsoll::rewrite {

// `graph` trains on several ranks: its gradients are summed by all_reduce nodes that may be fused.
Result<ir::Graph> shard_training(const ir::Graph& graph, const ShardOptions& options);

}  // namespace plimsoll::rewrite

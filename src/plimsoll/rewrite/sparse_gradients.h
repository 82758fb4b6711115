// The gradient of a table is summed over ranks as what it is: a few rows.
//
// A step reads as many rows of a table of tokens as it has tokens, and the gradients of all others
// are zero. GPT-2 reads its table a second time, as the weight of its last layer: that part of the
// gradient is dense and is there when the backward pass begins, but the rows come when it ends, and
// the sum of both (fuse_scatter_add.h) waited for them. It is the largest tensor of the model, and
// nothing was left to compute while it was sent.
//
//   before   dw = linear_grad_weight(h, dlogits) ...  all_reduce(gather_grad(dx, ids, dw))
//
//   after    dw = linear_grad_weight(h, dlogits)  s = all_reduce(dw)      sent at once
//            ...                                  gather_grad(all_gather(dx), all_gather(ids), s)
//
// dw is also made before the gradient of h, which reads dlogits as well: it is sent under that.
//
// A table that is read once has no dense part, and all that is sent are the rows.
//
// The sum is the same but for the order of its terms, which is still that of ranks: first all dense
// parts, then the rows of rank 0, of rank 1, ... So bits do not depend on the size of buckets, and
// differ in the last places from those of whole gradients summed.
//
// Where. Rows beside a dense part are sent in addition to it: they may be one hundredth of what
// its sum sends. Rows alone are sent instead of the table: they may be an eighth, because they lie
// in memory on every rank, those of all ranks.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"

namespace plimsoll::rewrite {

// `graph` trains on several ranks: its gradients are summed by all_reduce nodes that may be fused.
Result<ir::Graph> sum_sparse_gradients(const ir::Graph& graph);

}  // namespace plimsoll::rewrite

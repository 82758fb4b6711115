// Gradients that are summed over ranks one by one are sent together: buckets.
//
// A message costs its latency, whatever its size, so one for every tensor is too many; one for all
// could only leave when the backward pass is over. So reductions that may wait (`fuse` = 1) are
// joined in the order in which they become ready, until a bucket has reached the size asked for; a
// larger gradient is a bucket of its own. A bucket has one dtype: it is one run of bytes in the
// plan (plan/buckets.h) and one message.
//
//   d3 r3 u3 d2 r2 u2 d1 r1 u1      buckets of two      d3 d2 R32 d1 R1 u3 u2 u1
//
// Whatever reads the sums (updates, mostly) moves behind the reduction of the *next* bucket: by
// then the first has had the time of a bucket's gradients to arrive, and nobody waits for it. That
// costs the memory of one bucket. Rows of tables that are gathered from all ranks
// (sparse_gradients.h) are no members of buckets; whatever reads them moves in the same way. They
// are what the update of the largest tensor waits for, so where one bucket is more than half of all
// bytes, the buckets behind it are sent after the rows, under that update.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"

namespace plimsoll::rewrite {

Result<ir::Graph> fuse_collectives(ir::Graph graph, Bytes bucket);

}  // namespace plimsoll::rewrite

// Memory fusion: gradients that will be reduced together lie side by side, and so do all weights.
//
// One call can then reduce a bucket of gradients, or broadcast all weights, as one run of bytes.
// Buckets are filled in the order in which gradients are made, because that is the order in which
// they can be sent while the rest of the backward half still runs; a bucket is closed when it has
// reached the size asked for, so a larger gradient is a bucket of its own.
//
// A bucket can be reduced only when all its members are there and none is overwritten yet: the
// updates of a bucket's weights therefore move behind its last gradient. That costs memory
// (gradients live longer), the more the larger the bucket.
//
//   d3 u3 d2 u2 d1 u1      buckets of two      d3 d2 [u3 u2] d1 [u1]
#pragma once

#include <vector>

#include "plimsoll/plan/plan.h"
#include "plimsoll/schedule/workload/graph_workload.h"

namespace plimsoll::plan {

struct Buckets {
  std::vector<std::vector<ValueId>> groups;  // gradients by bucket; last, the weights
  std::vector<schedule::TaskId> order;       // the order given, with updates behind their bucket
};

// What collectives of the graph want side by side: the results of each reduction of several
// tensors, what is scattered or gathered as one run, and all that ranks begin with (weights,
// optimizer state), by dtype. Empty without collectives.
std::vector<std::vector<ValueId>> groups_of_collectives(const ir::Graph& graph);

Buckets make_buckets(const ir::Graph& graph, const schedule::GraphWorkload& mapped,
                     const std::vector<schedule::TaskId>& order, Bytes size);

}  // namespace plimsoll::plan

// What the ranks of a training do with its graph: what each keeps, and what they send together.
#pragma once

#include "plimsoll/api/pipeline_state.h"

namespace plimsoll::api {

// Each rank keeps a part of what they share: as they are told, or the least with which the budget
// holds and nothing is computed twice; all of it where none is enough.
Result<ir::Graph> share_among_ranks(Pipeline& pipeline, ir::Graph graph);

// Gradients of several ranks are sent in buckets.
Result<ir::Graph> join_buckets(const Pipeline& pipeline, ir::Graph graph);

}  // namespace plimsoll::api

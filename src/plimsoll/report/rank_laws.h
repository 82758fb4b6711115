// How what one rank holds changes with the number of ranks: copies, and parts of what is shared.
//
// Ranks that keep everything hold the same bytes, however many they are. Of state that they share
// (rewrite/shard_training.h) a rank holds a part of each run, and how long a run is stands in the
// nodes that scatter and gather it (ops/collective/shard.h): its part of n ranks follows. So the
// law is read off the graphs of two and three ranks, and kept where it predicts other numbers of
// ranks to the byte.
#pragma once

#include <functional>
#include <string>

#include "plimsoll/base/result.h"
#include "plimsoll/report/memory_laws.h"

namespace plimsoll::report {

// `build` gives the graph of one of n ranks.
Result<Law> find_rank_law(const std::string& variable,
                          const std::function<Result<ir::Graph>(std::int64_t)>& build);

}  // namespace plimsoll::report

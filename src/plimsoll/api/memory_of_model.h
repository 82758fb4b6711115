// The memory report of a MODEL: its graph, and its graph at neighbouring sizes for the laws.
#pragma once

#include <string>
#include <string_view>

#include "plimsoll/api/model_options.h"
#include "plimsoll/report/memory_laws.h"

namespace plimsoll::api {

Result<report::MemoryReport> memory_of_model(const ModelRequest& request);

// Sets an option of a built-in model by its name; false: there is none that is so called.
bool set_size(ModelRequest& request, std::string_view option, std::int64_t size);

// All that ranks can share.
inline constexpr const char* kShards = "optimizer,gradients,weights";
// Of gradients sent together: the default changes with the number of ranks, and parts with it.
inline constexpr const char* kBucket = "25MiB";
// What one of several ranks trains.
Result<ir::Graph> graph_of_rank(const ModelRequest& request, std::int64_t ranks,
                                const std::string& shard);

}  // namespace plimsoll::api

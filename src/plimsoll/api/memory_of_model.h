// The memory report of a MODEL: its graph, and its graph at neighbouring sizes for the laws.
//
// The table takes one graph and is told first; laws take some dozen graphs for each size, and each
// is told when it was found. Graphs of laws have at most so many operators all together; sizes
// that are not reached then are named in `left_out`.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "plimsoll/api/model_options.h"
#include "plimsoll/report/memory_laws.h"

namespace plimsoll::api {

struct MemoryReportOptions {
  std::size_t most_operators = 400'000;  // of the graphs that laws are made from
  // Called while the report is made; what is not wanted stays empty.
  std::function<void(const report::MemoryReport&)> on_table;  // without laws and scratch
  std::function<void(const report::Law&, const report::MemoryReport&)> on_law;  // of a size
  std::function<void(const report::Law&)> on_rank_law;
};

Result<report::MemoryReport> memory_of_model(const ModelRequest& request,
                                             const MemoryReportOptions& options = {});

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

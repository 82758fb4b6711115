// `plimsoll replay` and `plimsoll convert` as functions: read, run, and what to write.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "plimsoll/base/result.h"
#include "plimsoll/base/units.h"

namespace plimsoll::trace {

struct ReplayRequest {
  std::string trace;  // a file, or "pipeline:SEED" for the generated ten-stream pipeline
  std::string allocators = "plimsoll";  // "all" or a comma list
  Bytes capacity{0};
};

// What one allocator did with the trace.
struct ReplayRow {
  std::string name;
  bool model = false;  // of somebody else's allocator
  Bytes peak_reserved;
  double overhead = 0;  // above what was alive; of `needed` where allocations failed
  std::int64_t device_allocations = 0;
  std::int64_t pages_remapped = 0;
  std::int64_t stream_waits = 0;
  double ns_per_operation = 0;
  std::int64_t out_of_memory = 0;        // allocations that failed
  std::int64_t first_failed_event = -1;  // -1 with failures: a block from before the recording
  std::string first_failure;
  Bytes needed;  // what it reserves when there is no limit
};

struct ReplayReport {
  std::int64_t events = 0;
  Bytes peak_live{0};
  std::vector<ReplayRow> rows;
};

Result<ReplayReport> replay_trace(const ReplayRequest& request);
nlohmann::json to_json(const ReplayReport& report);

// The format of the result goes by its name: .jsonl ours, .json Chrome's, .pickle PyTorch's; .gz
// after it compresses. Returns the number of events.
Result<std::int64_t> convert_trace(const std::filesystem::path& from,
                                   const std::filesystem::path& to);

}  // namespace plimsoll::trace

// `plimsoll replay` and `plimsoll convert` as functions: read, run, and what to write.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "plimsoll/base/result.h"
#include "plimsoll/trace/replay.h"

namespace plimsoll::api {

struct ReplayRequest {
  std::string trace;  // a file, or "pipeline:SEED" for the generated ten-stream pipeline
  std::string allocators = "plimsoll";  // "all" or a comma list
  Bytes capacity{0};
};

struct ReplayReport {
  std::int64_t events = 0;
  Bytes peak_live{0};
  std::vector<trace::ReplayOutcome> outcomes;
  std::vector<Bytes> needed;  // by outcome: what it reserves when there is no limit
};

Result<ReplayReport> replay_trace(const ReplayRequest& request);
nlohmann::json to_json(const ReplayReport& report);

// The format of the result goes by its name: .jsonl ours, .json Chrome's, .pickle PyTorch's; .gz
// after it compresses. Returns the number of events.
Result<std::int64_t> convert_trace(const std::filesystem::path& from,
                                   const std::filesystem::path& to);

}  // namespace plimsoll::api

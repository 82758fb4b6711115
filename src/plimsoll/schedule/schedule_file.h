// The schedule of a DAG as a file that stands alone: the graph, what happens when, and what was
// promised of it. docs/formats/dag.md has it all.
//
//   {"schema": 1, "kind": "plimsoll schedule",
//    "budget_bytes": 5200, "peak_bytes": 5136, "host_peak_bytes": 0, "seconds": 0.005,
//    "nodes": [{"name": "a", "seconds": 1e-3, "bytes": 4096}, ...],      as in a DAG file
//    "steps": [{"compute": "a"}, {"compute": "b"}, {"drop": "a"}, ...]}
//
// A `compute` of a name seen before is a recomputation. Only drops of device memory are listed, an
// encoded form's as {"drop_encoded": NAME}; a value that took over the memory of an input by its
// `in_place` is followed by the drop of that input. Where a value has several encodings an encode
// says which: {"encode": NAME, "encoding": 1}.
//
// What the file promises is for replay_schedule.h to confirm.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/schedule/schedule.h"
#include "plimsoll/schedule/workload/workload.h"

namespace plimsoll::schedule {

struct FileStep {
  enum class Kind : std::uint8_t {
    kCompute,
    kDrop,
    kDropEncoded,
    kSendOut,
    kBringIn,
    kEncode,
    kDecode
  };
  Kind kind = Kind::kCompute;
  ValueId value;              // task i makes value i
  std::uint8_t encoding = 0;  // of kEncode

  bool operator==(const FileStep&) const = default;
};
std::string_view name_of(FileStep::Kind kind);

struct ScheduleFile {
  Workload workload;
  std::vector<FileStep> steps;
  std::optional<Bytes> budget;
  Bytes peak;  // as the file says, and so are the others
  Bytes host_peak;
  double seconds = 0;
};

// `cost_unit` is what was taken out of the costs (workload/cost_unit.h).
std::string schedule_to_json(const Workload& workload, const Schedule& schedule,
                             std::optional<Bytes> budget = {}, double cost_unit = 1);

bool looks_like_schedule(std::string_view text);

// Hostile until read; what it says happens need not be possible.
Result<ScheduleFile> read_schedule(std::string_view text);

}  // namespace plimsoll::schedule

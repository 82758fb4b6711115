// Any bytes: refused, or a workload whose no-recompute schedule the verifier accepts.
#include <cstdlib>

#include "plimsoll/schedule/fit.h"
#include "plimsoll/schedule/replay_schedule.h"
#include "plimsoll/schedule/verify_schedule.h"
#include "plimsoll/schedule/workload/dag_file.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace plimsoll;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto workload = schedule::read_dag(text);
  if (!workload) return 0;
  const schedule::Schedule kept = schedule::keep_all(*workload);
  if (!schedule::verify_schedule(*workload, kept, kept.peak_bytes, {})) std::abort();
  const auto file = schedule::read_schedule(schedule::schedule_to_json(*workload, kept));
  if (!file || !schedule::replay_schedule(*file).ok()) std::abort();
  return 0;
}

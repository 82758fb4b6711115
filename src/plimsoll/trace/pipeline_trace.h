// A generated trace: a pipeline over several streams, where allocators that keep memory per stream
// hold the sum of the streams' peaks although the peaks never meet.
//
// Each micro-batch passes through the streams one after the other; on its stream a stage allocates
// its working set in blocks of mixed sizes, runs, frees all but its output, and the next stage's
// stream waits for it (an explicit stream_wait event). Fixed by its seed.
#pragma once

#include <cstdint>

#include "plimsoll/trace/event.h"

namespace plimsoll::trace {

struct PipelineOptions {
  int streams = 10;
  int batches = 40;
  int blocks_per_stage = 24;
  Bytes working_set = 2_GiB;
  std::uint64_t seed = 1;
};

Trace make_pipeline_trace(const PipelineOptions& options);

}  // namespace plimsoll::trace

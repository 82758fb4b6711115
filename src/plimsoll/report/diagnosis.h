// What a reader should know first: the problem in one sentence, and what to do about it.
//
//   19.97 GiB alive, 31.54 GiB reserved: 11.57 GiB lost to fragmentation; with plimsoll's allocator
//   20.06 GiB
//     - PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True would reserve 20.18 GiB (modelled) ...
//     - No stacks were recorded ...
//
// A recording is replayed on our allocator and on the model of PyTorch's expandable segments
// (trace/replay.h), without being asked: the figure is what turns a complaint into advice. The
// replay stops after `most_seconds` of this thread; then the sentence does without it and says how
// to get it. Only device 0 of the timeline is replayed, the one that all figures of the report are
// about. Only what an allocator did is replayed: snapshots, and traces that record its segments;
// the addresses of our own runs are a plan's.
//
// For a plan the sentence says whether it fits and what was done to that end, lossy or not.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/report/timeline.h"
#include "plimsoll/trace/event.h"

namespace plimsoll::report {

struct AllocatorFigure {
  std::string name;
  Bytes reserved;
  bool model = false;  // of somebody else's allocator
};

struct Diagnosis {
  std::string headline;
  std::vector<std::string> advice;
  Bytes alive;                            // at the peak
  Bytes reserved;                         // at its highest; zero: not known
  std::vector<AllocatorFigure> replayed;  // none: not a recording, or it took too long
};

struct DiagnosisOptions {
  double most_seconds = 5;  // for all replays together
};

Diagnosis diagnose(const Timeline& timeline, const trace::Trace& trace,
                   const DiagnosisOptions& options = {});

// Of a plan.
Diagnosis diagnose(const Timeline& timeline);

}  // namespace plimsoll::report

// Ranks side by side: traces of processes that trained together, on one clock.
//
// Every rank's trace has a clock of its own. What all of them end at the same time is a collective,
// so the ends of the first ones are laid over each other:
//
//   rank 0   ─ fwd ── bwd ──┤all_reduce├─ update       offset 0
//   rank 1      ─ fwd ──── bwd ──┤  ├─ update          offset: that much earlier on its own clock
//
// A collective is hidden while its rank computes, and exposed while it does not: that is what more
// ranks cost.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/report/timeline.h"

namespace plimsoll::report {

struct RankView {
  int rank = 0;
  double offset_seconds = 0;              // to be added to the trace's own times
  std::vector<std::int64_t> collectives;  // indices into the timeline's operators
  double computing_seconds = 0;           // with at least one computation running
  double communication_seconds = 0;       // inside collectives
  double exposed_seconds = 0;             // of these, while nothing is computed
};

// The number in "run.3.jsonl"; nothing where there is none.
std::optional<int> rank_of_name(std::string_view path);
// The ranks that files of these names are traces of: all of one run, each a number of its own.
// Empty where they are something else.
std::vector<int> ranks_of_names(const std::vector<std::string>& paths);

// Whether it is a trace of a rank among several: files of such names may also be two recordings of
// one process.
bool has_collectives(const Timeline& timeline);

// One timeline for each rank, in the order of `ranks`.
std::vector<RankView> rank_views(const std::vector<const Timeline*>& timelines,
                                 const std::vector<int>& ranks);

}  // namespace plimsoll::report

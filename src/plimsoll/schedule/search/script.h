// Script: a schedule in shorthand, and link(), which writes it out.
//
// Everything a search decides can be said as a list of runs, encodes, decodes and copies. Which
// instance a run reads is the newest one; an instance is dropped right after its last reader. So a
// script needs no drops, and two searches that think in different terms (construct.h walks forward,
// retention.h thinks in intervals) share one way of becoming a Schedule.
//
//   run a, run b, run a, run c      =>  a b drop(x#0) a' c drop(x#1) ...
//
// The one drop a script names is kRelease: the memory of a value that was sent out is taken back
// here. It is explicit because when to wait for the copy is a decision of its own.
//
// link() is O(steps + reads). It trusts the script (a wrong one is our bug and ends in CHECK);
// whether the result is right is for verify_schedule() to say.
#pragma once

#include <vector>

#include "plimsoll/schedule/schedule.h"
#include "plimsoll/schedule/search/problem.h"

namespace plimsoll::schedule {

struct ScriptStep {
  enum class Kind : std::uint8_t { kRun, kEncode, kDecode, kSendOut, kRelease, kBringIn };
  Kind kind = Kind::kRun;
  Index id = kNoIndex;  // a task for kRun, else a value

  bool operator==(const ScriptStep&) const = default;
};

struct Script {
  std::vector<ScriptStep> steps;
  std::vector<Index> on_host_at_start;  // sources
};

Schedule link(const Problem& problem, const Script& script);

}  // namespace plimsoll::schedule

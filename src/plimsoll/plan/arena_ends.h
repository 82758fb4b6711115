// Buffers that must lie together lie at one end of a two-ended arena: at the front only when every
// member of their group or class may. Internal to plan/.
#pragma once

#include <algorithm>

#include "plimsoll/pack/model/problem.h"

namespace plimsoll::plan {

// A buffer may be in a group and in a class, so one that moves to the back can take others along:
// rounds until nothing moves.
inline void agree_on_ends(pack::Problem& problem) {
  if (problem.ends.empty()) return;
  const auto at_back = [&](BufferId id) {
    return problem.ends[id.index()] == pack::ArenaEnd::kBack;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (const auto* classes : {&problem.contiguous, &problem.colocated}) {
      for (const std::vector<BufferId>& members : *classes) {
        if (std::ranges::none_of(members, at_back) || std::ranges::all_of(members, at_back))
          continue;
        for (const BufferId id : members) problem.ends[id.index()] = pack::ArenaEnd::kBack;
        moved = true;
      }
    }
  }
}

}  // namespace plimsoll::plan

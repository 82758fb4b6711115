// Rigid bodies: buffers whose offsets hang together.
//
// A contiguous group and a co-located class both say offset(b) = offset(a) + d. Chains of such
// sentences bind buffers into frames; a union-find that carries the differences collects them, and
// the alignments of all members become one congruence for the frame's own place (Chinese
// remainder). A contradiction (two different distances, alignments that cannot hold together, two
// fixed members that disagree) is reported with the buffers that make it.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/pack/model/problem.h"

namespace plimsoll::pack {

struct Frame {
  std::int64_t modulus = 1;  // the frame's place is congruent to residue
  std::int64_t residue = 0;
  std::int64_t fixed = -1;
  std::int64_t hint = -1;
};

struct RigidBodies {
  std::vector<std::uint32_t> frame_of;  // per buffer; 0xffffffff: bound to nothing
  std::vector<std::int64_t> delta_of;   // per buffer: offset = place of frame + delta, delta >= 0
  std::vector<Frame> frames;
  std::vector<BufferId> contradiction;
};

RigidBodies bind_rigid(const Problem& problem);

// Where the members of a contiguous group lie relative to its first byte, and the number that its
// offset must be a multiple of (0 when that is above 2^62).
struct GroupShape {
  std::vector<std::int64_t> deltas;
  std::int64_t alignment = 1;
};
GroupShape group_shape(const Problem& problem, const std::vector<BufferId>& group);

}  // namespace plimsoll::pack

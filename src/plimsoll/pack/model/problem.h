// A packing problem: buffers that live for a while, and the memory they share.
//
// Two buffers that are alive at the same moment must not share a byte; all others may. The answer
// (a Packing, packing.h) is an offset for every buffer. This header is the whole vocabulary: what
// an ordinary problem needs stands in Buffer, what is rare stands in a vector of Problem that is
// empty by default, so a million plain buffers cost 88 bytes each.
//
//   lifetime   [begin, end), half-open, in any unit the caller likes. Two buffers meet when their
//              lifetimes overlap; [0,3) and [3,9) do not. An empty lifetime meets nothing.
//   gaps       within its lifetime a buffer can be away (a gap without window: it holds no bytes
//              then) or small (a gap with window [lo, hi): it holds only those of its bytes).
//   clocks     instead of lifetimes, for programs of several streams: see Clocks.
//   contiguous groups whose members lie one behind the other in the order given. The group starts
//              at a multiple of all its members' alignments; each member starts at the end of the
//              one before it, rounded up to its own alignment. With sizes that are multiples of
//              the alignments there is not a byte in between: what a fused collective needs.
//   colocated  classes whose members share their first byte (aliases, in-place results). Members
//              may be alive together; outsiders see the larger of those alive.
//   ends       a two-ended arena: whenever a front buffer and a back buffer meet, the front one
//              lies wholly below. Long-lived buffers at the front and short-lived ones at the back
//              keep the middle free in one piece.
//   memories   where buffers may live: capacity, cost per byte, and the largest piece the machine
//              hands out (slab). A buffer lies inside one slab: slab k is [k*slab, (k+1)*slab);
//              so do, as a whole, buffers that hang together (groups and classes).
//              Which memories a buffer may use is a bit mask; the packer chooses, cheapest first.
//
// Example (tests call it the harbour): three buffers of 4, 4 and 8 bytes, lifetimes [0,3), [3,9),
// [0,9): the first two share offset 0 and the third lies on top, height 12.
//
// Invariants, checked by verify():
//  1. sizes, offsets and hints are not negative; alignments are positive; lifetimes do not end
//     before they begin;
//  2. all sizes and alignments together, on top of the highest fixed place, stay below 2^62 (2^60
//     with slabs), so no sum in the packer can overflow; a slab is a multiple of all alignments;
//  3. gaps lie inside their buffer's lifetime, ascending, disjoint; windows inside [0, size);
//  4. every id in a group or class exists, and no buffer is in two groups or in two classes;
//  5. side vectors are empty or have one entry per buffer; clocks exclude gaps, and released >=
//     ready in every component (who knows that a buffer is gone knows what came before it);
//  6. the members of a group or class share one arena end and one set of memories.
// Contradictions that are a matter of offsets (two fixed buffers in each other's way) are no
// errors: the packer answers `infeasible` and names them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/interval.h"
#include "plimsoll/base/result.h"
#include "plimsoll/base/units.h"

namespace plimsoll::pack {

inline constexpr std::int64_t kLargest = std::int64_t{1} << 62;
inline constexpr std::int64_t kNever = kLargest + 1;  // a height that nothing has

struct Buffer {
  Interval<std::int64_t> lifetime = {};
  Bytes size = {};
  std::int64_t alignment = 1;
  std::optional<Offset> fixed = {};  // must be here
  std::optional<Offset> hint = {};   // was here last time, or would like to be

  bool operator==(const Buffer&) const = default;
};

// A stretch of a buffer's lifetime in which it holds only [window.begin, window.end) of its bytes,
// or none at all when the window is empty.
struct Gap {
  BufferId buffer;
  Interval<std::int64_t> time;
  Interval<std::int64_t> window;

  bool operator==(const Gap&) const = default;
};

// Lifetimes for several streams that run side by side. Stream s counts its operations 1, 2, 3...
// ready[b*streams+s] is how many operations of stream s are known to be done when buffer b is first
// written; released[b*streams+s] is how many must be done before b's bytes may be used again.
// Buffer a is out of b's way when ready(b) >= released(a) in every component; two buffers meet when
// neither is out of the other's way. One stream with ready = begin and released = end is a plain
// lifetime. O(n * streams) numbers, never a matrix of pairs.
struct Clocks {
  int streams = 0;  // 0: lifetimes are plain
  std::vector<std::int64_t> ready;
  std::vector<std::int64_t> released;

  bool operator==(const Clocks&) const = default;
};

struct Memory {
  std::string name = "main";
  std::optional<Bytes> capacity;  // none: as much as it takes
  double cost_per_byte = 0;       // of living there; only differences matter
  std::optional<Bytes> slab;      // largest single piece
  bool operator==(const Memory&) const = default;
};

enum class ArenaEnd : std::uint8_t { kAny, kFront, kBack };

struct Problem {
  std::vector<Buffer> buffers;
  std::vector<std::string> names;  // empty: a buffer's name is its index
  std::vector<Gap> gaps;           // ascending by buffer, then by time
  Clocks clocks;
  std::vector<std::vector<BufferId>> contiguous;
  std::vector<std::vector<BufferId>> colocated;
  std::vector<ArenaEnd> ends;              // empty: all kAny
  std::vector<Memory> memories{Memory{}};  // at least one, at most 64
  std::vector<std::uint64_t> may_live_in;  // bit m: memories[m]; empty: everywhere

  bool operator==(const Problem&) const = default;

  std::size_t size() const { return buffers.size(); }
  std::string name(BufferId id) const;
  std::optional<Bytes> capacity() const { return memories.front().capacity; }
  void set_capacity(Bytes capacity) { memories.front().capacity = capacity; }
};

// Who breaks an invariant, so that the reader of a file can say in which line and column.
struct Culprit {
  enum class Kind : std::uint8_t { kProblem, kBuffer, kMemory, kContiguous, kColocated };
  Kind kind = Kind::kProblem;
  std::size_t index = 0;        // of the buffer, memory, group or class
  std::string_view field = {};  // size, alignment, upper, fixed, hint, gaps, ...; empty: as a whole
  std::size_t member = 0;       // of the group, class or list of gaps
};

// The invariants above, or which one is broken and by whom.
Status verify(const Problem& problem, Culprit* culprit = nullptr);

// False for a buffer that holds bytes at no moment: an empty lifetime, or clocks that release it as
// soon as it is ready.
bool ever_alive(const Problem& problem, BufferId id);

// True when the two may not share a byte by reason of time (gaps included). Quadratic users only.
bool meet(const Problem& problem, BufferId a, BufferId b);

// Sets `ends`: a buffer that lives for at least `fraction` of the whole span of time goes to the
// front, any other to the back.
void split_ends_by_lifetime(Problem& problem, double fraction);

}  // namespace plimsoll::pack

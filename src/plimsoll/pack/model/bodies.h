// Bodies and sections: the problem as the engines see it.
//
// The vocabulary of a Problem is wide; what it means for offsets is narrow. make_bodies.h reduces
// it:
//
//   body     what moves as one: a buffer, or all members of contiguous groups and co-located
//            classes that hang together. Placed at x, a buffer of the body lies at x + its delta.
//   section  a maximal set of things alive together. A sweep closes a section at the first death
//            after a birth; two lifetimes overlap exactly when they share a section, so time
//            becomes section numbers [first, last), of which there are at most as many as buffers.
//   piece    the rectangle [first, last) x [x+lo, x+hi) that a body covers. A plain body is one
//            piece with lo 0; gaps, windows, groups and classes make more.
//   unit     a number that divides every size and every place that matters; the model counts in it.
//            If all offsets are multiples of A anyway (the alignments' common divisor), sizes are
//            first rounded up to A: that changes nothing but how much of the last unit is used,
//            which `overhang` remembers.
//
// Alignment and slabs are one function: lift(body, x) is the lowest allowed place at or above x.
// It is monotone, which is all the engines need to know about it.
//
// Clocks. Conflicts of several streams are no intervals. The model then carries conservative ones:
// buffers are put in a line by the sum of their `ready` clocks, and each reaches to the last one
// that it could possibly meet (suffix minima and a binary search, O(n streams log n)). Disjoint
// intervals prove that two buffers do not meet; for overlapping ones bodies_meet() asks the clocks.
//
// Example: the harbour of problem.h has unit 4, sections {0: b0 b2} {1: b1 b2}, and three plain
// bodies with pieces [0,1), [1,2), [0,2).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plimsoll/pack/model/problem.h"

namespace plimsoll::pack {

struct Piece {
  std::int32_t first = 0;
  std::int32_t last = 0;
  std::int64_t lo = 0;
  std::int64_t hi = 0;
  std::uint32_t buffer = 0;
};

struct Body {
  std::uint32_t piece_begin = 0;
  std::uint32_t piece_end = 0;
  std::int32_t first = 0;  // hull of the pieces' sections
  std::int32_t last = 0;
  std::int64_t height = 0;    // top of the highest piece, in units
  std::int64_t overhang = 0;  // bytes of the top unit that are not used
  std::int64_t extent = 0;    // height with bytes that windows never show; only slabs ask
  std::int64_t modulus = 1;   // x must be congruent to residue
  std::int64_t residue = 0;
  std::int64_t fixed = -1;  // in units; -1: free
  std::int64_t hint = -1;
  ArenaEnd end = ArenaEnd::kAny;
  double duration = 0;  // of the longest buffer, in the caller's time
};

struct BodyModel {
  const Problem* problem = nullptr;
  std::vector<Body> bodies;
  std::vector<Piece> pieces;
  std::int32_t sections = 0;
  std::int64_t unit = 1;
  std::int64_t slab = 0;  // in units; 0: none
  bool plain = true;      // every body one piece from 0, plain lifetimes, no arena ends
  bool has_fixed = false;
  std::vector<char> here;               // per buffer: lives in this memory
  std::vector<std::uint32_t> body_of;   // per buffer; kNoBody: it needs no bytes
  std::vector<std::int64_t> delta_of;   // per buffer, in bytes
  std::vector<BufferId> contradiction;  // not empty: these cannot be placed at all

  static constexpr std::uint32_t kNoBody = 0xffffffff;

  std::span<const Piece> pieces_of(std::size_t body) const {
    return {pieces.data() + bodies[body].piece_begin,
            bodies[body].piece_end - bodies[body].piece_begin};
  }
  // The lowest place >= x that alignment and slab allow; kNever when there is none.
  std::int64_t lift(std::size_t body, std::int64_t x) const;
  // The highest place at which the body stays within `capacity` bytes (negative: none).
  std::int64_t ceiling(std::size_t body, std::int64_t capacity) const;
  std::int64_t top_bytes(std::size_t body, std::int64_t x) const {
    return (x + bodies[body].height) * unit - bodies[body].overhang;
  }
};

// True when two pieces of different bodies may not share a byte.
bool pieces_meet(const BodyModel& model, const Piece& a, const Piece& b);

// Offsets of the buffers of this memory from places of bodies; a buffer that needs no bytes lies at
// its fixed place, or at 0.
void write_offsets(const BodyModel& model, std::span<const std::int64_t> places,
                   std::span<Offset> offsets);

// Height in bytes of a placement.
std::int64_t height_of(const BodyModel& model, std::span<const std::int64_t> places);

}  // namespace plimsoll::pack

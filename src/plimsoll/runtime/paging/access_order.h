// Which commands a command has to wait for, told from the bytes they touch and from nothing else.
//
// Memory that is paged changes hands while copies and kernels run on streams of their own. Every
// command that is enqueued is told here: on which stream, under which number, and which ranges it
// reads and writes. Before that, the ranges are asked for who must be over first:
//
//   a read   waits for whoever wrote its bytes last
//   a write  waits for whoever wrote its bytes last, and for everybody who read them since
//
//   compute  1 writes [0, 8)               segment [0, 8)  written by compute 1
//   out      1 reads  [0, 8)  waits for compute 1          read by out 1
//   in       1 writes [4, 8)  waits for compute 1, out 1   [0, 4) as before, [4, 8) written by in 1
//
// Numbers of a stream grow and streams work in order, so one number per stream says it all. A
// policy that pages badly is slow; it cannot be wrong about order, because it has no say in it.
//
// Cost: logarithmic in the segments, of which there are as many as there are ranges in use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

#include "plimsoll/base/interval.h"
#include "plimsoll/base/units.h"

namespace plimsoll::runtime {

enum PagedStream : std::size_t { kComputes, kCopiesOut, kCopiesIn };

class AccessOrder {
 public:
  static constexpr std::size_t kStreams = 3;  // those of PagedStream
  // The number of the last command of each stream that must be over; 0: none.
  using Numbers = std::array<std::int64_t, kStreams>;
  using Range = Interval<std::int64_t>;

  Numbers before_read(Range range) const;
  Numbers before_write(Range range) const;
  void read(Range range, std::size_t stream, std::int64_t number);
  void write(Range range, std::size_t stream, std::int64_t number);
  // All that was told is over.
  void clear() { segments_.clear(); }

  static void join(Numbers& into, const Numbers& more);

 private:
  struct Segment {
    std::int64_t end = 0;
    Numbers writes{};
    Numbers reads{};
  };
  using Segments = std::map<std::int64_t, Segment>;

  // Makes a border at `at` if a segment reaches over it.
  void split(std::int64_t at);
  Segments::const_iterator first_in(Range range) const;

  Segments segments_;  // by begin; bytes that nobody touched lie in none
};

}  // namespace plimsoll::runtime

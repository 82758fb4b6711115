// The trace of a planned run, written from the calls that were really made.
//
// A planned run allocates nothing, so what is "allocated" is what its kernels were handed: a block
// of the arena begins when a call that writes it starts, and ends when the last call that touches
// it has ended. None of this is read from a plan. A kernel that is handed another address than the
// plan says, or runs at another time, leaves another trace (testing/trace_departures.h compares).
//
//   call                reads         writes             block 0..63          block 64..127
//   conv   at  10..20   0..63 (x)     64..127 (y)        since before         begins at 10
//   relu   at  20..25   64..127 (y)   64..127 (z)                             goes on, in place
//   pool   at  25..30   64..127 (z)   0..31 (p)          x ended at 20,
//                                                        p begins at 25
//   end of step                                          p ends               z ended at 30
//
// A call that writes over a block it does not read ends that block, at the last touch; one that
// writes a part of a block it also reads works in place, and the block goes on under its first
// name. Sources are handed to whoever fills them, between steps; those that outlive steps stay
// until the end. Outputs stay until the step is over. Reading what nobody wrote begins a block too:
// it shows as bytes that the step used.
//
// Cost: after each step, one pass over its calls with a map of what is alive. Nothing while kernels
// run but two clock readings a call.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/units.h"
#include "plimsoll/trace/event.h"

namespace plimsoll::runtime {

// Memory of the arena that somebody was handed.
struct Handed {
  Offset begin;  // from the arena's first byte
  Bytes bytes;
  std::string name;
  trace::Category category = trace::Category::kUnknown;
};

struct Call {
  std::int64_t start = 0;  // nanoseconds
  std::int64_t end = 0;
  std::string name;
  std::string_view phase;
  std::uint32_t stream = 0;
  std::vector<Handed> reads;
  std::vector<Handed> writes;  // scratch too
};

class CallTrace {
 public:
  explicit CallTrace(trace::Trace& trace) : trace_(trace) {}

  // A source was handed to be filled or read; what `stays` outlives steps.
  void hand_out(const Handed& source, bool stays, std::int64_t now);
  // The calls of one step, in any order, and what lies in the arena when it is over.
  void add_step(std::vector<Call> calls, std::span<const Handed> outputs);

 private:
  struct Block {
    std::int64_t end = 0;
    trace::Event allocation;
    bool stays = false;
    std::int64_t last = 0;      // when the last call that touched it ended
    std::size_t last_call = 0;  // its number in this step
  };
  struct Stamped {
    std::size_t order;  // where times are equal
    trace::Event event;
  };
  using Blocks = std::map<std::int64_t, Block>;  // by begin

  // The first block that ends behind `begin`.
  Blocks::iterator first_behind(std::int64_t begin);
  Block& open(const Handed& handed, std::int64_t now, std::size_t order);
  void close(const Block& block, std::int64_t now, std::size_t order);
  void read(const Handed& handed, const Call& call, std::size_t number);
  void write(const Handed& handed, const Call& call, std::size_t number);
  void flush();

  trace::Trace& trace_;
  Blocks blocks_;
  std::vector<Stamped> events_;  // of this step, not yet in order
};

}  // namespace plimsoll::runtime

// A timeline of memory: who held which bytes, from when to when. The one value the whole report
// draws.
//
// A plan says what will be alive, a trace what was; the page, the pictures, the comparison and the
// explanation should not care which. So both become a Timeline:
//
//   time step   0   1   2   3   4       a time step is a step of a plan, or an event of a trace;
//   w           ████████████████████    seconds[time_step] says when it begins
//   h               ████████████        each bar is an Allocation: half-open in time steps, with
//   y                   ████████        its bytes, its place, and what is known about it
//
// Names are ids into one table, because a million allocations have a few hundred of them. Text from
// files is data here and everywhere after: it is never markup, and it is cut at kLongestText.
//
// Places. Addresses of a trace are scattered over 47 bits, so that drawn to scale nothing would be
// seen. compact_places() keeps every used stretch at its true height and replaces what lies between
// by a thin seam; a plan's offsets already are such places and stay as they are.
//
// Invariants: 0 <= begin < end <= time_steps() for every allocation; seconds has time_steps() + 1
// entries and never falls; allocations stand in order of (begin, larger first). Cost: 64 bytes an
// allocation.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plimsoll/base/interval.h"
#include "plimsoll/base/units.h"

namespace plimsoll::report {

inline constexpr std::size_t kLongestText = 400;
// The name of an allocation that was recorded without one; readers show its event instead.
inline constexpr std::string_view kUnnamed = "unnamed";
inline constexpr std::size_t kMostTextBytes = std::size_t{6} << 20;

// What bytes are for. The order is the order of the stack, from the ground up.
enum class Kind : std::uint8_t {
  kOutside,  // of the device, but not of the allocator: contexts, libraries, other processes
  kBefore,   // there before the recording began
  kWeights,
  kOptimizer,
  kGradients,
  kActivations,
  kTemporaries,
  kInputs,
  kOutputs,
  kStaging,
  kUnlabelled,
};
inline constexpr int kKindCount = 11;
std::string_view name(Kind kind);

using TextId = Id<struct TextTag>;

// Texts, each stored once; id 0 is empty. Past kMostTextBytes new texts become "(name not kept)".
class TextTable {
 public:
  TextTable() { intern(""); }
  TextId intern(std::string_view text);
  const std::string& text(TextId id) const { return texts_[id.index()]; }
  const std::vector<std::string>& all() const { return texts_; }
  bool full() const { return full_; }

 private:
  std::vector<std::string> texts_;
  std::unordered_map<std::string, TextId> ids_;
  std::size_t bytes_ = 0;
  bool full_ = false;
};

// Bytes that one tensor, block or buffer holds for one stretch of time; or many small ones as one,
// where there are too many to draw (timeline_of_trace.h).
struct Allocation {
  TextId name{0};
  TextId layer{0};
  TextId phase{0};
  TextId type{0};    // "fp32[8,64,56,56]"
  TextId origin{0};  // a stack, innermost frame first, a line each
  Kind kind = Kind::kUnlabelled;
  std::uint8_t memory = 0;
  std::uint8_t stream = 0;  // index into streams
  Bytes bytes;
  Offset place;
  Interval<Step> life;
  std::int32_t producer = -1;  // index into operators; -1: a source, or not known
  std::int32_t last_reader = -1;
  BufferId buffer;  // of a plan
};

// One operator that ran, or will run, at one time step.
struct Operator {
  TextId name{0};
  TextId layer{0};
  TextId phase{0};
  TextId what{0};  // "compute", "recompute", "send_out", ...
  Step time_step;
  double seconds = 0;
  Bytes touched;  // what it reads, writes and uses as scratch
  Bytes alive;    // in memory 0 while it runs
  std::uint8_t stream = 0;
};

// What the allocator holds of the device from a time step on, in use or not.
struct Reserved {
  std::uint8_t memory = 0;
  Step time_step;
  Bytes bytes;
  bool operator==(const Reserved&) const = default;
};

struct Timeline {
  std::string title;
  std::string source;  // "plan", "trace", "snapshot"
  TextTable texts;
  std::vector<std::string> memories;  // "device", "host"; or "device 0", ...
  std::vector<std::string> streams;   // that allocations belong to; at most 256
  std::vector<Allocation> allocations;
  std::vector<Operator> operators;
  std::vector<double> seconds;  // when each time step begins, and when the last one ends
  Bytes arena;                  // of a plan, after packing; zero: none
  Bytes lower_bound;
  Bytes budget;
  double predicted_seconds = 0;      // of a plan, with what its copies make it wait
  Bytes capacity;                    // of the device a recording was made on; zero: not known
  std::int64_t encoded_weights = 0;  // of a plan, in the form that their file has
  std::int64_t events = 0;           // of a trace, all of them; 0: a plan
  bool has_stacks = false;           // some allocation of a trace says who asked for it
  // By TextId of a layer: the source file where the layer is a place in the sources, "model.py:12
  // forward"; empty, or past the end, where it is a path with dots between its levels.
  std::vector<TextId> file_of_site;
  std::vector<Reserved> reserved;  // by time step; empty: a plan, or a trace that does not say
  std::vector<std::string> notes;  // what a reader must know: what was left out, what is estimated

  std::int64_t time_steps() const { return static_cast<std::int64_t>(seconds.size()) - 1; }
  TextId site_file(TextId layer) const {
    return layer.index() < file_of_site.size() ? file_of_site[layer.index()] : TextId{0};
  }
};

// Bytes alive in one memory at every time step.
std::vector<Bytes> bytes_by_time_step(const Timeline& timeline, int memory = 0);

struct Peak {
  Step time_step;
  Bytes bytes;
};
// The first time step where most bytes are alive; zeros for an empty timeline.
Peak peak_of(const Timeline& timeline, int memory = 0);

// What the timeline promises to need: the arena of a plan, the peak of a trace.
Bytes total_of(const Timeline& timeline);

std::array<Bytes, kKindCount> bytes_by_kind_at(const Timeline& timeline, Step time_step,
                                               int memory = 0);

// Sorts allocations as the invariant says. Readers of files call it once, last.
void sort_allocations(Timeline& timeline);

// Replaces addresses by compact places, memory by memory.
void compact_places(Timeline& timeline);

// "encoder.3.attention/matmul" -> "encoder.3.attention"; "encoder.3.weight" -> "encoder.3".
std::string_view layer_of_name(std::string_view name);
// The same for a source: the moments of "encoder.3.weight" are "encoder.3.weight.m" and belong to
// "encoder.3".
std::string_view layer_of_source(std::string_view name, Kind kind);

}  // namespace plimsoll::report

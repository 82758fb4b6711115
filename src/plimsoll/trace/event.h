// What happened to memory, and when: the one record that our executor, our allocators and a PyTorch
// snapshot all speak.
//
// An event is 64 bytes of plain data; names are ids into the trace's StringTable. Times are
// nanoseconds on any one clock. An instant (an allocation, a free) has end == start; an operator or
// a phase spans [start, end).
//
//   who                     uses
//   our executor            allocation, free (with category, name = value, phase), operator, phase
//   our caching allocator   allocation, free, free_completed, segment_*, out_of_memory, stream_wait
//   PyTorch snapshot        the same; annotations become phase events
//
// Two kinds carry order between streams, which a PyTorch snapshot does not record but a replay that
// checks cross-stream reuse needs: `stream_wait` (stream waits for all work queued so far on
// `peer_stream`) and `record_stream` (the block at `address` is also used by `peer_stream`).
//
// Invariants, kept by every writer of traces:
//  1. `bytes` of an allocation and of its free are what the program asked for, not the rounded
//     size.
//  2. A free names the address and the device of the allocation it ends.
//  3. Events stand in the order in which they happened on the host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/units.h"
#include "plimsoll/memory/stream.h"
#include "plimsoll/trace/string_table.h"

namespace plimsoll::trace {

using memory::StreamId;

enum class EventKind : std::uint8_t {
  kAllocation,
  kFree,           // the program gave the block back
  kFreeCompleted,  // every stream that used it has passed the free: the bytes can be reused
  kSegmentAlloc,   // memory taken from the device (cudaMalloc)
  kSegmentFree,
  kSegmentMap,  // physical memory mapped into an address range
  kSegmentUnmap,
  kOutOfMemory,  // bytes = what was asked for, address = what the device had left
  kSnapshot,
  kOperator,      // a kernel or operator ran in [start, end)
  kPhase,         // a named stretch of time: "forward", "Optimizer.step"
  kStreamWait,    // `stream` waits for everything queued on `peer_stream` so far
  kRecordStream,  // the block at `address` is used on `peer_stream` too
};
inline constexpr int kEventKinds = 13;

// What the bytes are for, in the words of `plimsoll memory`.
enum class Category : std::uint8_t {
  kUnknown,
  kInput,
  kOutput,
  kWeight,
  kActivation,
  kGradient,
  kOptimizer,
  kTemporary,
  kScratch,
  kStaging,
};
inline constexpr int kCategories = 10;

std::string_view to_string(EventKind kind);
std::string_view to_string(Category category);
std::optional<EventKind> event_kind_from(std::string_view text);
std::optional<Category> category_from(std::string_view text);

struct Event {
  EventKind kind = EventKind::kAllocation;
  Category category = Category::kUnknown;
  std::int16_t device = 0;
  StringId name{0};         // tensor, operator or phase
  StringId phase{0};        // "forward", "backward", "step 3", ...
  std::uint32_t stack = 0;  // 1 + index into Trace::stacks, 0 for none
  std::int64_t start = 0;   // nanoseconds
  std::int64_t end = 0;
  Bytes bytes{0};
  std::uint64_t address = 0;
  StreamId stream;
  StreamId peer_stream;

  bool operator==(const Event&) const = default;
};

struct Frame {
  StringId function{0};
  StringId file{0};
  std::int32_t line = 0;
  bool operator==(const Frame&) const = default;
};

struct LiveBlock {
  std::uint64_t address = 0;
  Bytes bytes{0};  // requested
  Bytes size{0};   // with rounding; 0 when not known
  bool operator==(const LiveBlock&) const = default;
};

// Memory that was there before the first event.
struct InitialSegment {
  std::uint64_t address = 0;
  Bytes size{0};
  std::int16_t device = 0;
  bool small = false;  // PyTorch's pool for requests up to 1 MiB
  bool expandable = false;
  StreamId stream;
  std::vector<LiveBlock> blocks;
  bool operator==(const InitialSegment&) const = default;
};

struct Trace {
  std::string source;  // "plimsoll", "pytorch", "generated"
  StringTable strings;
  std::vector<std::vector<Frame>> stacks;
  std::vector<InitialSegment> initial;
  std::vector<Event> events;

  // Makes an event with a name and appends it; returns it for the fields that are left.
  Event& add(EventKind kind, std::string_view name = {});
  bool operator==(const Trace&) const = default;
};

// The most bytes alive at once, as requested, over all devices: the lower bound of any allocator.
Bytes peak_live_bytes(const Trace& trace);

}  // namespace plimsoll::trace

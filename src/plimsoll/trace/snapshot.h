// PyTorch's memory snapshots: read without running a byte of them, and written so that PyTorch's
// own tools read them.
//
// A snapshot is a pickle, and a pickle is a program: unpickling one from a stranger runs his code.
// This reader is a machine for the few opcodes that plain dicts, lists, tuples, strings, numbers
// and flags need (protocols 2 to 5); anything else (GLOBAL, REDUCE, persistent ids ...) is an error
// that names the opcode and its place. Nothing is built as a tree: when a dict is complete its keys
// say what it is (an event, a block, a segment, a frame, an annotation) and it becomes one compact
// record. So a gigabyte takes some seconds, depth costs nothing, and memory is the events plus 16
// bytes an object; limits on strings, objects and the stack keep hostile files small.
//
//   'segments':       [{address, total_size, stream, blocks: [{address, size, state}, ...]}, ...]
//   'device_traces':  [[{action: 'alloc', addr, size, stream, time_us, frames}, ...], ...]
//   'external_annotations': [{stage: 'START', name, time_us}, ...]
//
// Older files lack time_us and requested sizes, newer ones have pool ids and metadata: what is
// missing is zero, what is unknown is skipped.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/trace/event.h"

namespace plimsoll::trace {

// What PyTorch calls the kinds of event that a snapshot has: the first ones of EventKind, in order.
inline constexpr std::array<std::string_view, 9> kSnapshotActions = {
    "alloc",        "free_requested", "free_completed", "segment_alloc",
    "segment_free", "segment_map",    "segment_unmap",  "oom",
    "snapshot"};
static_assert(kSnapshotActions.size() == static_cast<std::size_t>(EventKind::kSnapshot) + 1);

struct SnapshotBlock {
  std::uint64_t address = 0;
  std::int64_t size = 0;
  std::int64_t requested = 0;
  bool live = false;
};

struct SnapshotSegment {
  std::uint64_t address = 0;
  std::int64_t size = 0;
  std::uint64_t stream = 0;
  std::int16_t device = 0;
  bool small = false;
  bool expandable = false;
  std::vector<SnapshotBlock> blocks;
};

struct SnapshotAnnotation {
  StringId name{0};
  std::int64_t time = 0;  // nanoseconds
  std::int16_t device = 0;
  bool start = false;
};

struct Snapshot {
  StringTable strings;
  std::vector<std::vector<Frame>> stacks;
  std::vector<SnapshotSegment> segments;  // at the end of the recording
  std::vector<SnapshotAnnotation> annotations;
  std::vector<Event> events;
};

// Reads the bytes of a pickle, gzipped or not.
Result<Snapshot> parse_snapshot(std::string_view bytes);

// The snapshot as a trace: annotations become phases, and walking back from the last segments gives
// what was there before the first event.
Trace to_trace(Snapshot snapshot);

// True for a pickle of protocol 2 or newer, or gzip.
bool looks_like_snapshot(std::string_view bytes);

// A trace in PyTorch's layout (protocol 4): python -m torch.cuda._memory_viz reads it. Operators
// and stream waits have no place there and are left out.
std::string format_snapshot(const Trace& trace);

// Any file we can read as a trace: a snapshot, gzipped or not, or our own format.
Result<Trace> read_any_trace(const std::filesystem::path& path);

}  // namespace plimsoll::trace

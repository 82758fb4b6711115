// A pickle of protocol 4 in PyTorch's layout, written opcode by opcode.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "plimsoll/trace/snapshot.h"

namespace plimsoll::trace {
namespace {

class Pickler {
 public:
  Pickler() { out_ = "\x80\x04"; }
  std::string finish() && { return std::move(out_) + '.'; }

  void dict() { out_ += "}("; }
  void end_dict() { out_ += 'u'; }
  void list() { out_ += "]("; }
  void list(std::string_view key) {
    text(key);
    list();
  }
  void end_list() { out_ += 'e'; }
  void no_frames() {
    list("frames");
    end_list();
  }
  void text(std::string_view value) {
    const auto known = memo_.find(std::string(value));
    if (known != memo_.end()) {
      out_ += 'j';
      raw(static_cast<std::uint32_t>(known->second));
      return;
    }
    out_ += 'X';
    raw(static_cast<std::uint32_t>(value.size()));
    out_ += value;
    out_ += '\x94';
    memo_.emplace(value, places_++);
  }
  // A list of frames is written once and named after that: thousands of events share one.
  bool known_stack(std::uint32_t stack) {
    const auto known = stacks_.find(stack);
    if (known == stacks_.end()) return false;
    out_ += 'j';
    raw(static_cast<std::uint32_t>(known->second));
    return true;
  }
  void remember_stack(std::uint32_t stack) {
    out_ += '\x94';
    stacks_.emplace(stack, places_++);
  }
  void integer(std::int64_t value) {
    out_ += "\x8a\x08";
    raw(value);
  }
  void flag(bool value) { out_ += value ? '\x88' : '\x89'; }
  void pair(std::int64_t first, std::int64_t second) {
    integer(first);
    integer(second);
    out_ += '\x86';
  }
  void entry(std::string_view key, std::int64_t value) {
    text(key);
    integer(value);
  }
  void entry(std::string_view key, std::string_view value) {
    text(key);
    text(value);
  }

 private:
  template <typename Integer>
  void raw(Integer value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  std::string out_;
  std::unordered_map<std::string, std::size_t> memo_;
  std::unordered_map<std::uint32_t, std::size_t> stacks_;
  std::size_t places_ = 0;
};

struct Segment {
  std::int64_t size = 0;
  std::uint64_t stream = 0;
  bool small = false;
  bool expandable = false;
};
struct DeviceEnd {
  std::map<std::uint64_t, Segment> segments;
  std::map<std::uint64_t, LiveBlock> live;  // by address
};

// What the recording ends with, one entry per device.
std::map<int, DeviceEnd> state_at_end(const Trace& trace) {
  std::map<int, DeviceEnd> devices;
  for (const InitialSegment& segment : trace.initial) {
    DeviceEnd& device = devices[segment.device];
    device.segments[segment.address] = {segment.size.value, segment.stream.value, segment.small,
                                        segment.expandable};
    for (const LiveBlock& block : segment.blocks) device.live[block.address] = block;
  }
  for (const Event& event : trace.events) {
    DeviceEnd& device = devices[event.device];
    switch (event.kind) {
      case EventKind::kAllocation:
        device.live[event.address] = {event.address, event.bytes, 0_bytes};
        break;
      case EventKind::kFree:
        device.live.erase(event.address);
        break;
      case EventKind::kSegmentAlloc:
        device.segments[event.address] = {event.bytes.value, event.stream.value,
                                          event.bytes.value <= 2 << 20, false};
        break;
      case EventKind::kSegmentFree:
        device.segments.erase(event.address);
        break;
      default:
        break;
    }
  }
  return devices;
}

void write_block(Pickler& out, std::uint64_t address, std::int64_t size, std::int64_t requested,
                 bool live) {
  out.dict();
  out.entry("address", static_cast<std::int64_t>(address));
  out.entry("size", size);
  out.entry("requested_size", requested);
  out.entry("state", live ? "active_allocated" : "inactive");
  out.no_frames();
  out.end_dict();
}

// Returns the bytes of live blocks, which stand between gaps up to the segment's end.
std::int64_t write_blocks(Pickler& out, std::uint64_t address, const Segment& segment,
                          const DeviceEnd& device) {
  const std::uint64_t end = address + static_cast<std::uint64_t>(segment.size);
  std::uint64_t at = address;
  std::int64_t active = 0;
  out.list("blocks");
  for (auto live = device.live.lower_bound(address); live != device.live.end() && live->first < end;
       ++live) {
    if (live->first > at)
      write_block(out, at, static_cast<std::int64_t>(live->first - at), 0, false);
    const std::int64_t asked = live->second.bytes.value;
    const std::int64_t rounded = (std::max<std::int64_t>(asked, 1) + 511) / 512 * 512;
    const std::int64_t size = live->second.size.value > 0 ? live->second.size.value : rounded;
    write_block(out, live->first, size, asked, true);
    active += size;
    at = live->first + static_cast<std::uint64_t>(size);
  }
  if (at < end) write_block(out, at, static_cast<std::int64_t>(end - at), 0, false);
  out.end_list();
  return active;
}

void write_segments(Pickler& out, const std::map<int, DeviceEnd>& devices) {
  out.list("segments");
  for (const auto& [number, device] : devices) {
    for (const auto& [address, segment] : device.segments) {
      out.dict();
      out.entry("device", number);
      out.entry("address", static_cast<std::int64_t>(address));
      out.entry("total_size", segment.size);
      out.entry("stream", static_cast<std::int64_t>(segment.stream));
      out.entry("segment_type", segment.small ? "small" : "large");
      out.text("segment_pool_id");
      out.pair(0, 0);
      out.text("is_expandable");
      out.flag(segment.expandable);
      const std::int64_t active = write_blocks(out, address, segment, device);
      out.entry("allocated_size", active);
      out.entry("active_size", active);
      out.entry("requested_size", active);
      out.no_frames();
      out.end_dict();
    }
  }
  out.end_list();
}

// Empty for what a snapshot has no place for.
std::string_view action_of(EventKind kind) {
  const auto place = static_cast<std::size_t>(kind);
  return place < kSnapshotActions.size() ? kSnapshotActions[place] : std::string_view();
}

void write_event(Pickler& out, const Trace& trace, const Event& event) {
  out.dict();
  out.entry("action", action_of(event.kind));
  out.entry(event.kind == EventKind::kOutOfMemory ? "device_free" : "addr",
            static_cast<std::int64_t>(event.address));
  out.entry("size", event.bytes.value);
  out.entry("stream", static_cast<std::int64_t>(event.stream.value));
  out.entry("time_us", event.start / 1000);
  out.text("frames");
  if (event.stack == 0) {
    out.list();
    out.end_list();
  } else if (!out.known_stack(event.stack)) {
    out.list();
    for (const Frame& frame : trace.stacks[event.stack - 1]) {
      out.dict();
      out.entry("name", trace.strings.text(frame.function));
      out.entry("filename", trace.strings.text(frame.file));
      out.entry("line", frame.line);
      out.end_dict();
    }
    out.end_list();
    out.remember_stack(event.stack);
  }
  out.end_dict();
}

void write_traces(Pickler& out, const Trace& trace, int devices) {
  std::vector<std::vector<const Event*>> of_device(static_cast<std::size_t>(devices));
  bool completed = false;
  for (const Event& event : trace.events) {
    completed = completed || event.kind == EventKind::kFreeCompleted;
    if (event.device < 0 || event.device >= devices || action_of(event.kind).empty()) continue;
    of_device[static_cast<std::size_t>(event.device)].push_back(&event);
  }
  out.list("device_traces");
  for (const std::vector<const Event*>& events : of_device) {
    out.list();
    for (const Event* event : events) {
      write_event(out, trace, *event);
      if (event->kind != EventKind::kFree || completed) continue;
      Event done = *event;  // PyTorch's viewer ends a block here
      done.kind = EventKind::kFreeCompleted;
      write_event(out, trace, done);
    }
    out.end_list();
  }
  out.end_list();
}

void write_annotations(Pickler& out, const Trace& trace) {
  out.list("external_annotations");
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kPhase) continue;
    for (const bool start : {true, false}) {
      out.dict();
      out.entry("stage", start ? "START" : "END");
      out.entry("name", trace.strings.text(event.name));
      out.entry("device", event.device);
      out.entry("time_us", (start ? event.start : event.end) / 1000);
      out.end_dict();
    }
  }
  out.end_list();
}

}  // namespace

std::string format_snapshot(const Trace& trace) {
  const std::map<int, DeviceEnd> devices = state_at_end(trace);
  Pickler out;
  out.dict();
  write_segments(out, devices);
  write_traces(out, trace, devices.empty() ? 1 : devices.rbegin()->first + 1);
  out.text("allocator_settings");
  out.dict();
  out.end_dict();
  write_annotations(out, trace);
  out.end_dict();
  return std::move(out).finish();
}

}  // namespace plimsoll::trace

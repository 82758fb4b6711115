// From a snapshot to a trace: what was there before, and the phases.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "plimsoll/trace/snapshot.h"

namespace plimsoll::trace {
namespace {

using Place = std::pair<std::int16_t, std::uint64_t>;  // device, address

struct PlaceHash {
  std::size_t operator()(const Place& place) const {
    return (place.second ^ static_cast<std::uint64_t>(place.first) << 52) * 0x9e3779b97f4a7c15ULL >>
           8;
  }
};

// Walks from the end of the recording to its beginning: an allocation disappears, a free brings its
// block back.
class WalkBack {
 public:
  explicit WalkBack(const Snapshot& snapshot) {
    for (const SnapshotSegment& segment : snapshot.segments) {
      InitialSegment& before = segments_[{segment.device, segment.address}];
      before.address = segment.address;
      before.size = Bytes(segment.size);
      before.device = segment.device;
      before.small = segment.small;
      before.expandable = segment.expandable;
      before.stream.value = segment.stream;
      for (const SnapshotBlock& block : segment.blocks) {
        if (!block.live) continue;
        live_[{segment.device, block.address}] = {block.address, Bytes(block.requested),
                                                  Bytes(block.size)};
      }
    }
    for (auto event = snapshot.events.rbegin(); event != snapshot.events.rend(); ++event) {
      undo(*event);
    }
  }

  std::vector<InitialSegment> initial() && {
    std::vector<std::pair<Place, LiveBlock>> blocks(live_.begin(), live_.end());
    std::sort(blocks.begin(), blocks.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [place, block] : blocks) {
      auto found = segments_.upper_bound(place);
      if (found == segments_.begin()) continue;
      --found;
      InitialSegment& segment = found->second;
      if (segment.device != place.first ||
          place.second - segment.address >= static_cast<std::uint64_t>(segment.size.value))
        continue;
      segment.blocks.push_back(block);
    }
    std::vector<InitialSegment> out;
    for (auto& [place, segment] : segments_) out.push_back(std::move(segment));
    return out;
  }

 private:
  void undo(const Event& event) {
    const Place place{event.device, event.address};
    switch (event.kind) {
      case EventKind::kAllocation:
        live_.erase(place);
        break;
      case EventKind::kFree:
        live_[place] = {event.address, event.bytes, 0_bytes};
        break;
      case EventKind::kSegmentAlloc:
        segments_.erase(place);
        break;
      case EventKind::kSegmentFree: {
        InitialSegment& back = segments_[place];
        back.address = event.address;
        back.size = event.bytes;
        back.device = event.device;
        back.stream = event.stream;
        back.small = event.bytes.value <= 2 << 20;
        break;
      }
      default:
        break;
    }
  }

  std::map<Place, InitialSegment> segments_;
  std::unordered_map<Place, LiveBlock, PlaceHash> live_;
};

std::vector<Event> phases_of(const Snapshot& snapshot) {
  std::vector<Event> phases;
  std::unordered_map<StringId, std::vector<std::size_t>> open;
  for (const SnapshotAnnotation& annotation : snapshot.annotations) {
    if (annotation.start) {
      open[annotation.name].push_back(phases.size());
      Event& phase = phases.emplace_back();
      phase.kind = EventKind::kPhase;
      phase.name = annotation.name;
      phase.device = annotation.device;
      phase.start = phase.end = annotation.time;
    } else if (!open[annotation.name].empty()) {
      Event& phase = phases[open[annotation.name].back()];
      phase.end = std::max(phase.start, annotation.time);
      open[annotation.name].pop_back();
    }
  }
  return phases;
}

}  // namespace

Trace to_trace(Snapshot snapshot) {
  Trace trace;
  trace.source = "pytorch";
  trace.initial = WalkBack(snapshot).initial();
  const std::vector<Event> phases = phases_of(snapshot);
  trace.strings = std::move(snapshot.strings);
  trace.stacks = std::move(snapshot.stacks);
  trace.events = std::move(snapshot.events);
  const auto middle = static_cast<std::ptrdiff_t>(trace.events.size());
  const auto by_time = [](const Event& a, const Event& b) { return a.start < b.start; };
  const bool several_devices = std::any_of(trace.events.begin(), trace.events.end(),
                                           [](const Event& e) { return e.device != 0; });
  if (several_devices) std::stable_sort(trace.events.begin(), trace.events.end(), by_time);
  trace.events.insert(trace.events.end(), phases.begin(), phases.end());
  if (!phases.empty()) {
    std::inplace_merge(trace.events.begin(), trace.events.begin() + middle, trace.events.end(),
                       by_time);
  }
  return trace;
}

}  // namespace plimsoll::trace

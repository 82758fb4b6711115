#include "plimsoll/trace/snapshot_records.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>

namespace plimsoll::trace {
namespace {

// Interned first, so that a key's id is its place here.
enum Key : std::uint32_t {
  kEmpty,
  kAction,
  kAddr,
  kSize,
  kStream,
  kTimeUs,
  kFrames,
  kDeviceFree,
  kAddress,
  kTotalSize,
  kRequestedSize,
  kState,
  kBlocks,
  kSegmentType,
  kIsExpandable,
  kDevice,
  kStage,
  kName,
  kFilename,
  kLine,
  kSegments,
  kDeviceTraces,
  kAnnotations,
  kKeys
};
constexpr std::array<std::string_view, kKeys> kKeyNames = {"",
                                                           "action",
                                                           "addr",
                                                           "size",
                                                           "stream",
                                                           "time_us",
                                                           "frames",
                                                           "device_free",
                                                           "address",
                                                           "total_size",
                                                           "requested_size",
                                                           "state",
                                                           "blocks",
                                                           "segment_type",
                                                           "is_expandable",
                                                           "device",
                                                           "stage",
                                                           "name",
                                                           "filename",
                                                           "line",
                                                           "segments",
                                                           "device_traces",
                                                           "external_annotations"};

constexpr std::int64_t kMostBytes = std::int64_t{1} << 56;

}  // namespace

// The values of a dict under the keys that matter here. What is not present was never written.
struct SnapshotRecords::Fields {
  Fields() {}
  union {
    std::array<Value, kKeys> value;
  };
  std::uint32_t present = 0;

  bool has(Key key) const { return (present >> key & 1u) != 0; }
  bool is(Key key, ValueType type) const { return has(key) && value[key].type == type; }
  Value get(Key key) const { return has(key) ? value[key] : Value{}; }
  std::int64_t integer(Key key) const { return is(key, ValueType::kInteger) ? value[key].bits : 0; }
  bool flag(Key key) const { return is(key, ValueType::kBool) && value[key].bits != 0; }
  StringId text(Key key) const {
    return is(key, ValueType::kString) ? StringId(static_cast<std::size_t>(value[key].bits))
                                       : StringId{0};
  }
  bool is_size(Key key) const {
    return !has(key) || (integer(key) >= 0 && integer(key) <= kMostBytes);
  }
};

SnapshotRecords::SnapshotRecords() {
  for (const std::string_view name : kKeyNames) snapshot_.strings.intern(name);
  // After the keys: the action whose id is kKeys + i is the event kind of place i.
  for (const std::string_view name : kSnapshotActions) snapshot_.strings.intern(name);
}

void SnapshotRecords::expect_events(std::size_t count) {
  snapshot_.events.reserve(count);
#ifdef MADV_HUGEPAGE
  // Touching a gigabyte for the first time, 4 KiB by 4 KiB, takes longer than reading the file.
  // Where the system has no large pages to give, the advice does nothing.
  constexpr std::uintptr_t kLargePage = std::uintptr_t{2} << 20;
  const auto begin = reinterpret_cast<std::uintptr_t>(snapshot_.events.data());
  const std::uintptr_t first = (begin + kLargePage - 1) & ~(kLargePage - 1);
  const std::uintptr_t end = begin + count * sizeof(Event);
  if (first < end) {
    (void)::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
  }
#endif
}

Object SnapshotRecords::object_of(const Value& value) const {
  if (value.type != ValueType::kObject) return {};
  return objects_[static_cast<std::size_t>(value.bits)];
}

std::string_view SnapshotRecords::set_items(std::int64_t dict, std::span<const Value> pairs) {
  Fields fields;
  for (std::size_t at = 0; at + 1 < pairs.size(); at += 2) {
    if (pairs[at].type != ValueType::kString || pairs[at].bits >= kKeys) continue;
    const auto key = static_cast<std::uint32_t>(pairs[at].bits);
    fields.value[key] = pairs[at + 1];
    fields.present |= 1u << key;
  }
  Object& object = objects_[static_cast<std::size_t>(dict)];
  if (!fields.is_size(kSize) || !fields.is_size(kTotalSize) || !fields.is_size(kRequestedSize)) {
    return "a size is negative or beyond 2^56";
  }
  if (fields.has(kAction)) return make_event(object, fields);
  if (fields.has(kDeviceTraces)) {
    device_traces_ = fields.value[kDeviceTraces];
    has_traces_ = true;
  } else if (fields.has(kTotalSize)) {
    return make_segment(object, fields);
  } else if (fields.has(kState)) {
    make_block(object, fields);
  } else if (fields.has(kStage)) {
    make_annotation(object, fields);
  } else if (fields.has(kFilename)) {
    make_frame(object, fields);
  }
  return {};
}

std::string_view SnapshotRecords::make_event(Object& object, const Fields& fields) {
  const std::size_t action = fields.text(kAction).index() - kKeys;
  if (action >= kSnapshotActions.size()) return {};
  Event event;
  event.kind = static_cast<EventKind>(action);
  event.bytes = Bytes(fields.integer(kSize));
  const Key place = fields.has(kDeviceFree) ? kDeviceFree : kAddr;
  event.address = static_cast<std::uint64_t>(fields.integer(place));
  event.stream.value = static_cast<std::uint64_t>(fields.integer(kStream));
  if (__builtin_mul_overflow(fields.integer(kTimeUs), 1000, &event.start)) {
    return "time_us is out of range";
  }
  event.end = event.start;
  const Object frames = object_of(fields.get(kFrames));
  if (frames.kind == ObjectKind::kStack) event.stack = frames.index + 1;
  object = {ObjectKind::kEvent, static_cast<std::uint32_t>(snapshot_.events.size())};
  snapshot_.events.push_back(event);
  return {};
}

void SnapshotRecords::make_block(Object& object, const Fields& fields) {
  const std::string_view state = snapshot_.strings.text(fields.text(kState));
  SnapshotBlock block;
  block.address = static_cast<std::uint64_t>(fields.integer(kAddress));
  block.size = fields.integer(kSize);
  block.requested = fields.has(kRequestedSize) ? fields.integer(kRequestedSize) : block.size;
  block.live = state.starts_with("active");
  object = {ObjectKind::kBlock, static_cast<std::uint32_t>(blocks_.size())};
  blocks_.push_back(block);
}

std::string_view SnapshotRecords::make_segment(Object& object, const Fields& fields) {
  SnapshotSegment segment;
  segment.address = static_cast<std::uint64_t>(fields.integer(kAddress));
  segment.size = fields.integer(kTotalSize);
  segment.stream = static_cast<std::uint64_t>(fields.integer(kStream));
  segment.device = static_cast<std::int16_t>(fields.integer(kDevice) & 4095);
  segment.small = snapshot_.strings.text(fields.text(kSegmentType)) == "small";
  segment.expandable = fields.flag(kIsExpandable);
  const Object blocks = object_of(fields.get(kBlocks));
  if (blocks.kind == ObjectKind::kList) {
    std::uint64_t at = segment.address;
    for (const Range& range : lists_[blocks.index]) {
      if (range.kind != ObjectKind::kBlock) continue;
      // The blocks of a segment are made before it: once all there are have a place, this list had
      // one already.
      blocks_placed_ += range.count;
      if (blocks_placed_ > blocks_.size()) return "blocks that stand in several segments";
      for (std::uint32_t i = range.first; i < range.first + range.count; ++i) {
        SnapshotBlock block = blocks_[i];
        // older files: blocks stand one after the other
        if (block.address == 0) block.address = at;
        at = block.address + static_cast<std::uint64_t>(block.size);
        segment.blocks.push_back(block);
      }
    }
  }
  object = {ObjectKind::kSegment, static_cast<std::uint32_t>(snapshot_.segments.size())};
  snapshot_.segments.push_back(std::move(segment));
  return {};
}

void SnapshotRecords::make_annotation(Object& object, const Fields& fields) {
  SnapshotAnnotation annotation;
  annotation.name = fields.text(kName);
  annotation.start = snapshot_.strings.text(fields.text(kStage)) == "START";
  annotation.device = static_cast<std::int16_t>(fields.integer(kDevice) & 4095);
  if (__builtin_mul_overflow(fields.integer(kTimeUs), 1000, &annotation.time)) annotation.time = 0;
  object = {ObjectKind::kAnnotation, static_cast<std::uint32_t>(snapshot_.annotations.size())};
  snapshot_.annotations.push_back(annotation);
}

void SnapshotRecords::make_frame(Object& object, const Fields& fields) {
  object = {ObjectKind::kFrame,
            intern_frame({fields.text(kName), fields.text(kFilename),
                          static_cast<std::int32_t>(fields.integer(kLine) & INT32_MAX)})};
}

std::uint32_t SnapshotRecords::intern_frame(const Frame& frame) {
  const std::uint64_t hash = HashIndex::mix(
      HashIndex::mix(frame_index_.salt(),
                     std::uint64_t{frame.function.index()} << 32 | frame.file.index()),
      static_cast<std::uint64_t>(frame.line));
  const std::uint32_t known =
      frame_index_.find(hash, [&](std::uint32_t number) { return frames_[number] == frame; });
  if (known != HashIndex::kNone) return known;
  frame_index_.add(hash, static_cast<std::uint32_t>(frames_.size()));
  frames_.push_back(frame);
  return static_cast<std::uint32_t>(frames_.size()) - 1;
}

std::uint32_t SnapshotRecords::intern_stack(std::span<const Value> items) {
  wanted_stack_.clear();
  std::uint64_t hash = HashIndex::mix(stack_index_.salt(), items.size());
  for (const Value& item : items) {
    wanted_stack_.push_back(object_of(item).index);
    hash = HashIndex::mix(hash, wanted_stack_.back());
  }
  const std::uint32_t known = stack_index_.find(hash, [&](std::uint32_t number) {
    const auto begin = stack_frames_.begin() + static_cast<std::ptrdiff_t>(stack_begins_[number]);
    const auto end = stack_frames_.begin() + static_cast<std::ptrdiff_t>(stack_begins_[number + 1]);
    return std::equal(begin, end, wanted_stack_.begin(), wanted_stack_.end());
  });
  if (known != HashIndex::kNone) return known;
  const auto number = static_cast<std::uint32_t>(snapshot_.stacks.size());
  stack_index_.add(hash, number);
  stack_frames_.insert(stack_frames_.end(), wanted_stack_.begin(), wanted_stack_.end());
  stack_begins_.push_back(stack_frames_.size());
  std::vector<Frame>& stack = snapshot_.stacks.emplace_back();
  stack.reserve(items.size());
  for (const std::uint32_t frame : wanted_stack_) stack.push_back(frames_[frame]);
  return number;
}

std::string_view SnapshotRecords::append(std::int64_t list, std::span<const Value> items) {
  Object& object = objects_[static_cast<std::size_t>(list)];
  const auto is_frame = [&](const Value& item) {
    return object_of(item).kind == ObjectKind::kFrame;
  };
  if (object.kind == ObjectKind::kNothing && !items.empty() &&
      std::all_of(items.begin(), items.end(), is_frame)) {
    object = {ObjectKind::kStack, intern_stack(items)};
    return {};
  }
  if (object.kind != ObjectKind::kList) {
    object = {ObjectKind::kList, static_cast<std::uint32_t>(lists_.size())};
    lists_.emplace_back();
  }
  std::vector<Range>& ranges = lists_[object.index];
  for (const Value& item : items) {
    const Object inside = object_of(item);
    if (inside.kind == ObjectKind::kNothing) {
      // A list without items still counts: it is a device without events.
      if (item.type == ValueType::kObject) ranges.push_back({ObjectKind::kNothing, 0, 1});
    } else if (!ranges.empty() && ranges.back().kind == inside.kind &&
               ranges.back().first + ranges.back().count == inside.index) {
      ++ranges.back().count;
    } else {
      ranges.push_back({inside.kind, inside.index, 1});
    }
  }
  return {};
}

// device_traces is a list with one list of events per device.
std::string_view SnapshotRecords::assign_devices(const Value& traces) {
  constexpr int kMostDevices = 4096;
  const Object outer = object_of(traces);
  if (outer.kind != ObjectKind::kList) return {};
  std::vector<bool> assigned(lists_.size());
  int device = 0;
  for (const Range& range : lists_[outer.index]) {
    for (std::uint32_t i = range.first; i < range.first + range.count; ++i, ++device) {
      if (device >= kMostDevices) return "more than 4096 devices";
      if (range.kind != ObjectKind::kList || i >= lists_.size()) continue;
      if (assigned[i]) return "a list of events that stands under several devices";
      assigned[i] = true;
      for (const Range& events : lists_[i]) {
        if (events.kind != ObjectKind::kEvent) continue;
        for (std::uint32_t e = events.first; e < events.first + events.count; ++e) {
          snapshot_.events[e].device = static_cast<std::int16_t>(device);
        }
      }
    }
  }
  return {};
}

Result<Snapshot> SnapshotRecords::finish(const Value& root) {
  if (root.type != ValueType::kObject)
    return bad_input("snapshot: the pickle is not a dict or list");
  if (!has_traces_ && snapshot_.segments.empty() && object_of(root).kind == ObjectKind::kNothing) {
    return bad_input("snapshot: neither 'device_traces' nor 'segments' in it");
  }
  const std::string_view problem = assign_devices(device_traces_);
  if (!problem.empty()) return bad_input("snapshot: {}", problem);
  return std::move(snapshot_);
}

}  // namespace plimsoll::trace

// Dicts of a snapshot become records here, as soon as their keys are known.
//
// Private to the snapshot reader. A Value is what stands on the pickle machine's stack; objects
// (lists, dicts, tuples) are ids into a table of (kind, index).
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plimsoll/trace/snapshot.h"

namespace plimsoll::trace {

enum class ValueType : std::uint8_t { kNone, kBool, kInteger, kFloat, kString, kObject, kMark };

struct Value {
  ValueType type = ValueType::kNone;
  std::int64_t bits = 0;
};

enum class ObjectKind : std::uint8_t {
  kNothing,  // an empty dict, list or tuple, or one of no interest
  kEvent,
  kBlock,
  kSegment,
  kFrame,
  kAnnotation,
  kList,
  kStack,
};

struct Object {
  ObjectKind kind = ObjectKind::kNothing;
  std::uint32_t index = 0;
};

class SnapshotRecords {
 public:
  SnapshotRecords();

  StringTable& strings() { return snapshot_.strings; }
  // Room for `count` events, so that a big file is not copied while it grows.
  void expect_events(std::size_t count) { snapshot_.events.reserve(count); }

  // The limits of the table; 2^28 objects.
  bool can_make_object() const { return objects_.size() < kMostObjects; }
  std::int64_t make_object() {
    objects_.emplace_back();
    return static_cast<std::int64_t>(objects_.size()) - 1;
  }

  // key, value, key, value, ... for a dict; items for a list. A problem, or empty.
  std::string_view set_items(std::int64_t dict, std::span<const Value> pairs);
  std::string_view append(std::int64_t list, std::span<const Value> items);

  // The whole, once the pickle has stopped with `root` on top.
  Result<Snapshot> finish(const Value& root);

 private:
  static constexpr std::size_t kMostObjects = std::size_t{1} << 28;
  struct Range {
    ObjectKind kind;
    std::uint32_t first;
    std::uint32_t count;
  };
  struct Fields;

  std::string_view make_event(Object& object, const Fields& fields);
  void make_block(Object& object, const Fields& fields);
  void make_segment(Object& object, const Fields& fields);
  void make_annotation(Object& object, const Fields& fields);
  void make_frame(Object& object, const Fields& fields);
  std::uint32_t intern_stack(std::span<const Value> items);
  Object object_of(const Value& value) const;
  void assign_devices(const Value& traces);

  Snapshot snapshot_;
  std::deque<Object> objects_;
  std::vector<std::vector<Range>> lists_;
  std::vector<SnapshotBlock> blocks_;
  std::vector<Frame> frames_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> stack_hashes_;
  Value device_traces_;
  bool has_traces_ = false;
};

}  // namespace plimsoll::trace

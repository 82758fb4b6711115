// Dicts of a snapshot become records here, as soon as their keys are known.
//
// A pickle may name one list many times for two bytes each. Whatever is made of a list is therefore
// made once: a block stands in one segment and a list of events under one device, as in every
// snapshot that PyTorch writes, and a file in which they stand in several is refused. So memory and
// time are bounded by the number of items the file has.
//
// Private to the snapshot reader. A Value is what stands on the pickle machine's stack; objects
// (lists, dicts, tuples) are ids into a table of (kind, index).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "plimsoll/trace/chunked_array.h"
#include "plimsoll/trace/hash_index.h"
#include "plimsoll/trace/snapshot.h"

namespace plimsoll::trace {

enum class ValueType : std::uint8_t { kNone, kBool, kInteger, kFloat, kString, kObject, kMark };

struct Value {
  ValueType type = ValueType::kNone;
  std::int64_t bits = 0;
};

enum class ObjectKind : std::uint32_t {
  kNothing,  // an empty dict, list or tuple, or one of no interest
  kEvent,
  kBlock,
  kSegment,
  kFrame,
  kAnnotation,
  kList,
  kStack,
};

// `index` is below 2^28, as the number of objects is.
struct Object {
  Object() = default;
  Object(ObjectKind what, std::uint32_t where) : kind(what), index(where & (kIndexLimit - 1)) {}
  static constexpr std::uint32_t kIndexLimit = std::uint32_t{1} << 29;
  ObjectKind kind : 3 = ObjectKind::kNothing;
  std::uint32_t index : 29 = 0;
};
static_assert(sizeof(Object) == 4, "there are tens of millions of them");

class SnapshotRecords {
 public:
  SnapshotRecords();

  StringTable& strings() { return snapshot_.strings; }
  // Room for `count` events, so that a big file is not copied while it grows.
  void expect_events(std::size_t count);

  // The limits of the table; 2^28 objects.
  bool can_make_object() const { return objects_.size() < kMostObjects; }
  std::int64_t make_object() { return static_cast<std::int64_t>(objects_.push_back(Object{})); }

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
  std::string_view make_segment(Object& object, const Fields& fields);
  void make_annotation(Object& object, const Fields& fields);
  void make_frame(Object& object, const Fields& fields);
  std::uint32_t intern_frame(const Frame& frame);
  std::uint32_t intern_stack(std::span<const Value> items);
  Object object_of(const Value& value) const;
  std::string_view assign_devices(const Value& traces);

  Snapshot snapshot_;
  ChunkedArray<Object> objects_;
  std::vector<std::vector<Range>> lists_;
  std::vector<SnapshotBlock> blocks_;
  std::size_t blocks_placed_ = 0;  // in segments; see make_segment
  std::vector<Frame> frames_;      // each once
  HashIndex frame_index_;
  std::vector<std::uint32_t> stack_frames_;  // of all stacks, one after the other
  std::vector<std::size_t> stack_begins_{0};
  HashIndex stack_index_;
  std::vector<std::uint32_t> wanted_stack_;
  Value device_traces_;
  bool has_traces_ = false;
};

}  // namespace plimsoll::trace

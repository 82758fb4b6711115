#include "plimsoll/trace/event.h"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace plimsoll::trace {
namespace {

constexpr std::array<std::string_view, kEventKinds> kKindNames = {
    "allocation",  "free",          "free_completed", "segment_alloc", "segment_free",
    "segment_map", "segment_unmap", "out_of_memory",  "snapshot",      "operator",
    "phase",       "stream_wait",   "record_stream"};

constexpr std::array<std::string_view, kCategories> kCategoryNames = {
    "unknown",  "input",     "output",    "weight",  "activation",
    "gradient", "optimizer", "temporary", "scratch", "staging"};

template <typename Enum, std::size_t kCount>
std::optional<Enum> find_name(const std::array<std::string_view, kCount>& names,
                              std::string_view text) {
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

}  // namespace

std::string_view to_string(EventKind kind) {
  return kKindNames[static_cast<std::size_t>(kind)];
}
std::string_view to_string(Category category) {
  return kCategoryNames[static_cast<std::size_t>(category)];
}
std::optional<EventKind> event_kind_from(std::string_view text) {
  return find_name<EventKind>(kKindNames, text);
}
std::optional<Category> category_from(std::string_view text) {
  return find_name<Category>(kCategoryNames, text);
}

Event& Trace::add(EventKind kind, std::string_view name) {
  Event& event = events.emplace_back();
  event.kind = kind;
  event.name = strings.intern(name);
  return event;
}

Bytes peak_live_bytes(const Trace& trace) {
  std::unordered_map<std::uint64_t, Bytes> live;
  Bytes now{0};
  for (const InitialSegment& segment : trace.initial) {
    for (const LiveBlock& block : segment.blocks) {
      live[block.address ^ (static_cast<std::uint64_t>(segment.device) << 56)] = block.bytes;
      now += block.bytes;
    }
  }
  Bytes peak = now;
  for (const Event& event : trace.events) {
    const std::uint64_t key = event.address ^ (static_cast<std::uint64_t>(event.device) << 56);
    if (event.kind == EventKind::kAllocation) {
      live[key] = event.bytes;
      now += event.bytes;
      peak = std::max(peak, now);
    } else if (event.kind == EventKind::kFree) {
      const auto found = live.find(key);
      if (found == live.end()) continue;
      now -= found->second;
      live.erase(found);
    }
  }
  return peak;
}

}  // namespace plimsoll::trace

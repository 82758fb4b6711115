#include <algorithm>
#include <unordered_map>

#include "plimsoll/trace/replay.h"

namespace plimsoll::trace {
namespace {

class Compiler {
 public:
  explicit Compiler(const Trace& trace) {
    completed_ = std::any_of(trace.events.begin(), trace.events.end(), [](const Event& event) {
      return event.kind == EventKind::kFreeCompleted;
    });
  }

  void seed(const InitialSegment& segment) {
    for (const LiveBlock& block : segment.blocks) {
      allocate(segment.device, block.address, block.bytes, segment.stream);
      program_.initial_addresses.push_back(block.address);
    }
    program_.seeds = program_.operations.size();
  }

  void add(const Event& event) {
    const std::uint64_t place = key(event.device, event.address);
    switch (event.kind) {
      case EventKind::kAllocation:
        allocate(event.device, event.address, event.bytes, event.stream);
        break;
      case EventKind::kFree: {
        const auto found = live_.find(place);
        if (found == live_.end()) break;
        live_bytes_ -= found->second.second;
        if (!completed_) release(found);
        break;
      }
      case EventKind::kFreeCompleted: {
        const auto found = live_.find(place);
        if (found != live_.end()) release(found);
        break;
      }
      case EventKind::kStreamWait:
        program_.operations.push_back(
            {ReplayOperation::kWait, 0, 0, event.stream, event.peer_stream});
        break;
      case EventKind::kRecordStream: {
        const auto found = live_.find(place);
        if (found == live_.end()) break;
        program_.operations.push_back({ReplayOperation::kRecordStream, found->second.first, 0,
                                       event.stream, event.peer_stream});
        break;
      }
      default:
        break;
    }
  }

  ReplayProgram finish() && { return std::move(program_); }
  bool consistent() const { return live_bytes_.value >= 0; }

 private:
  using Live = std::unordered_map<std::uint64_t, std::pair<std::uint32_t, Bytes>>;
  static std::uint64_t key(std::int16_t device, std::uint64_t address) {
    return address ^ static_cast<std::uint64_t>(device) << 52;
  }
  void allocate(std::int16_t device, std::uint64_t address, Bytes bytes, StreamId stream) {
    const std::uint64_t place = key(device, address);
    const auto stale = live_.find(place);
    if (stale != live_.end()) {  // its free is missing: the history was cut off there
      live_bytes_ -= stale->second.second;
      release(stale);
    }
    live_[place] = {program_.blocks, bytes};
    live_bytes_ += bytes;
    program_.peak_live = std::max(program_.peak_live, live_bytes_);
    program_.operations.push_back(
        {ReplayOperation::kAllocate, program_.blocks++, bytes.value, stream, {}});
  }
  void release(Live::iterator found) {
    program_.operations.push_back({ReplayOperation::kFree, found->second.first, 0, {}, {}});
    live_.erase(found);
  }

  bool completed_ = false;
  ReplayProgram program_;
  Bytes live_bytes_{0};
  Live live_;
};

}  // namespace

Result<ReplayProgram> compile_replay(const Trace& trace) {
  if (trace.events.size() > std::size_t{1} << 31) return bad_input("trace: more than 2^31 events");
  Compiler compiler(trace);
  for (const InitialSegment& segment : trace.initial) compiler.seed(segment);
  for (const Event& event : trace.events) {
    compiler.add(event);
    if (!compiler.consistent()) return bad_input("trace: sizes add up to more than 2^63 bytes");
  }
  return std::move(compiler).finish();
}

}  // namespace plimsoll::trace

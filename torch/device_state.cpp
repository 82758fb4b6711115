#include "device_state.h"

#include <chrono>

#include <fmt/format.h>

#include "plimsoll/memory/fake_device.h"
#ifdef PLIMSOLL_TORCH_CUDA
#include "plimsoll/device/cuda/slab_providers.h"
#endif

namespace plimsoll::torch {
namespace {

using memory::MemoryAction;
using memory::Tally;

const char* action_name(MemoryAction action) {
  switch (action) {
    case MemoryAction::kAllocate:
      return "alloc";
    case MemoryAction::kFree:
      return "free_requested";
    case MemoryAction::kFreeCompleted:
      return "free_completed";
    case MemoryAction::kSegmentMap:
      return "segment_map";
    case MemoryAction::kSegmentUnmap:
      return "segment_unmap";
    case MemoryAction::kSegmentAlloc:
      return "segment_alloc";
    case MemoryAction::kSegmentFree:
      return "segment_free";
    case MemoryAction::kOutOfMemory:
      return "oom";
    case MemoryAction::kStreamWait:
      return "stream_wait";
  }
  return "";
}

void add_tally(std::string& out, const char* name, const char* pool, const Tally& tally) {
  fmt::format_to(
      std::back_inserter(out),
      "{}\"{}.{}.current\":{},\"{}.{}.peak\":{},\"{}.{}.allocated\":{},\"{}.{}.freed\":{}",
      out.size() > 1 ? "," : "", name, pool, tally.current, name, pool, tally.peak, name, pool,
      tally.allocated, name, pool, tally.freed());
}

void add_class(std::string& out, const char* pool, const memory::SizeClassTally& sizes) {
  add_tally(out, "allocation", pool, sizes.blocks);
  add_tally(out, "active", pool, sizes.blocks);
  add_tally(out, "allocated_bytes", pool, sizes.bytes);
  add_tally(out, "active_bytes", pool, sizes.bytes);
  add_tally(out, "requested_bytes", pool, sizes.requested);
}

std::string segment_json(const memory::SegmentView& segment, int device) {
  std::int64_t allocated = 0;
  std::int64_t requested = 0;
  std::string blocks;
  for (const memory::BlockView& block : segment.blocks) {
    const bool live = block.state == memory::BlockState::kLive;
    const bool pending = block.state == memory::BlockState::kPending;
    if (live) {
      allocated += block.size.value;
      requested += block.requested.value;
    }
    blocks += fmt::format(
        R"({}{{"address":{},"size":{},"requested_size":{},"state":"{}","frames":[]}})",
        blocks.empty() ? "" : ",", block.address, block.size.value, block.requested.value,
        live      ? "active_allocated"
        : pending ? "active_pending_free"
                  : "inactive");
  }
  return fmt::format(
      R"({{"device":{},"address":{},"total_size":{},"allocated_size":{},"active_size":{},)"
      R"("requested_size":{},"stream":{},"segment_type":"large","segment_pool_id":[{},{}],)"
      R"("is_expandable":true,"frames":[],"blocks":[{}]}})",
      device, segment.address, segment.size.value, allocated, allocated, requested,
      segment.stream.value, segment.pool.first, segment.pool.second, blocks);
}

}  // namespace

void History::on_event(const memory::MemoryEvent& event) {
  if (entries_.size() >= most_) entries_.pop_front();
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  entries_.push_back({event, std::chrono::duration_cast<std::chrono::microseconds>(now).count()});
}

std::unique_ptr<DeviceState> make_fake_state(Bytes capacity) {
  memory::FakeDeviceOptions options;
  options.capacity = capacity;
  options.host_slabs = true;
  auto state = std::make_unique<DeviceState>();
  auto fake = std::make_unique<memory::FakeDevice>(options);
  auto order = std::make_unique<memory::FakeDevice>(options);
  state->allocator = std::make_unique<memory::CachingAllocator>(*fake, *order);
  state->provider = std::move(fake);
  state->order = std::move(order);
  return state;
}

std::unique_ptr<DeviceState> open_cuda_state(int device, std::string& problem) {
#ifdef PLIMSOLL_TORCH_CUDA
  const auto opened = device::cuda::open_device(device);
  if (!opened) {
    problem = opened.error().message;
    return nullptr;
  }
  auto state = std::make_unique<DeviceState>();
  if (opened->mapping) {
    state->provider = std::make_unique<device::cuda::VmmProvider>(*opened);
  } else {
    state->provider = std::make_unique<device::cuda::PlainProvider>(*opened);
  }
  state->order = std::make_unique<device::cuda::CudaOrder>(*opened);
  state->allocator = std::make_unique<memory::CachingAllocator>(*state->provider, *state->order);
  return state;
#else
  problem = fmt::format("device {}: this build of the plug-in has no CUDA", device);
  return nullptr;
#endif
}

std::string outcome_json(const memory::SpillOutcome& outcome) {
  return fmt::format(R"({{"moved":{},"stays":{},"problem":"{}"}})", outcome.moved.value,
                     outcome.stays.value, outcome.problem);
}

std::string statistics_json(const memory::AllocatorStatistics& statistics) {
  std::string out = "{";
  add_class(out, "all", statistics.all);
  add_class(out, "small_pool", statistics.small);
  add_class(out, "large_pool", statistics.large);
  add_tally(out, "reserved_bytes", "all", statistics.reserved_bytes);
  add_tally(out, "segment", "all", statistics.slabs);
  Tally idle_bytes;
  idle_bytes.add(statistics.idle_bytes.value);
  Tally idle_blocks;
  idle_blocks.add(statistics.idle_blocks);
  add_tally(out, "inactive_split_bytes", "all", idle_bytes);
  add_tally(out, "inactive_split", "all", idle_blocks);
  out += fmt::format(
      R"(,"num_alloc_retries":{},"num_ooms":{},"num_device_alloc":{},"num_device_free":{},)"
      R"("plimsoll.slabs_remapped":{},"plimsoll.bytes_remapped":{},"plimsoll.stream_waits":{},)"
      R"("plimsoll.slow_allocations":{},"plimsoll.pending_bytes":{},"plimsoll.spilled_bytes":{}}})",
      statistics.retries, statistics.out_of_memory, statistics.device_allocations,
      statistics.device_frees, statistics.slabs_remapped, statistics.bytes_remapped.value,
      statistics.stream_waits, statistics.slow_allocations, statistics.pending_bytes.current,
      statistics.spilled_bytes.current);
  return out;
}

std::string snapshot_json(const DeviceState& state, int device) {
  std::string segments;
  for (const memory::SegmentView& segment : state.allocator->segments()) {
    segments += (segments.empty() ? "" : ",") + segment_json(segment, device);
  }
  std::string trace;
  if (state.history != nullptr) {
    for (const History::Entry& entry : state.history->entries()) {
      if (entry.event.action == MemoryAction::kStreamWait) continue;
      const bool oom = entry.event.action == MemoryAction::kOutOfMemory;
      trace += fmt::format(
          R"({}{{"action":"{}","{}":{},"size":{},"stream":{},"time_us":{},"frames":[]}})",
          trace.empty() ? "" : ",", action_name(entry.event.action), oom ? "device_free" : "addr",
          entry.event.address, entry.event.bytes.value, entry.event.stream.value,
          entry.microseconds);
    }
  }
  return fmt::format(R"({{"segments":[{}],"trace":[{}]}})", segments, trace);
}

}  // namespace plimsoll::torch

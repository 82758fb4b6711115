// One device as the plug-in holds it: provider, order, allocator and history.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "plimsoll/memory/caching_allocator.h"
#include "plimsoll/memory/slab_provider.h"

namespace plimsoll::torch {

// The last events, with the time they happened; called under the allocator's lock.
class History final : public memory::EventSink {
 public:
  struct Entry {
    memory::MemoryEvent event;
    std::int64_t microseconds;
  };
  explicit History(std::size_t most) : most_(most) {}
  void on_event(const memory::MemoryEvent& event) override;
  const std::deque<Entry>& entries() const { return entries_; }

 private:
  std::size_t most_;
  std::deque<Entry> entries_;
};

struct DeviceState {
  std::unique_ptr<memory::SlabProvider> provider;
  std::unique_ptr<memory::StreamOrder> order;
  std::unique_ptr<memory::CachingAllocator> allocator;
  std::unique_ptr<History> history;
};

// A CUDA device, or nothing with the reason in `problem`.
std::unique_ptr<DeviceState> open_cuda_state(int device, std::string& problem);
std::unique_ptr<DeviceState> make_fake_state(Bytes capacity);

std::string outcome_json(const memory::SpillOutcome& outcome);
std::string statistics_json(const memory::AllocatorStatistics& statistics);
std::string snapshot_json(const DeviceState& state, int device);

}  // namespace plimsoll::torch

#include "plugin.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "device_state.h"
#include "out_of_memory.h"

namespace plimsoll::torch {
namespace {

constexpr int kMostDevices = 64;

// Never destroyed: PyTorch frees tensors while static objects go away.
struct Plugin {
  std::array<std::atomic<DeviceState*>, kMostDevices> devices{};
  std::array<DeviceState*, kMostDevices> of_parent{};  // a child's; for those who look for leaks
  std::mutex opening;
  std::atomic<std::int64_t> fake_capacity{0};
  std::atomic<std::int64_t> most{0};  // bytes a device may hold; 0: all it has
  std::string problem;
  bool forked = false;
};

Plugin* make_plugin();

Plugin& plugin() {
  static auto* const kPlugin = make_plugin();
  return *kPlugin;
}

// A forked child has no CUDA, and another thread may have held an allocator's lock: the child
// forgets the devices, so that its frees do nothing and its allocations say what is wrong.
void before_fork() {
  plugin().opening.lock();
}
void in_parent() {
  plugin().opening.unlock();
}
void in_child() {
  Plugin& all = plugin();
  for (std::size_t i = 0; i < all.devices.size(); ++i) {
    all.of_parent[i] = all.devices[i].exchange(nullptr);
  }
  all.forked = true;
  all.problem = "CUDA memory cannot be used in a forked process; start workers with 'spawn'";
  all.opening.unlock();
}

Plugin* make_plugin() {
  ::pthread_atfork(before_fork, in_parent, in_child);
  return new Plugin;
}

[[noreturn]] void raise(const std::string& message) {
  throw_torch_out_of_memory(message.c_str());
  throw std::runtime_error(message);
}

DeviceState* open(int device) {
  Plugin& all = plugin();
  const std::lock_guard guard(all.opening);
  if (all.forked) return nullptr;
  if (DeviceState* state = all.devices[static_cast<std::size_t>(device)].load()) return state;
  const std::int64_t fake = all.fake_capacity.load();
  auto state = fake > 0 ? make_fake_state(Bytes(fake)) : open_cuda_state(device, all.problem);
  if (state == nullptr) return nullptr;
  if (const std::int64_t most = all.most.load()) state->allocator->set_limit(Bytes(most));
  all.devices[static_cast<std::size_t>(device)].store(state.get(), std::memory_order_release);
  return state.release();
}

DeviceState* state_of(int device) {
  if (device < 0 || device >= kMostDevices) return nullptr;
  DeviceState* state =
      plugin().devices[static_cast<std::size_t>(device)].load(std::memory_order_acquire);
  return state != nullptr ? state : open(device);
}

memory::StreamId stream_id(PlimsollStream stream) {
  return {reinterpret_cast<std::uint64_t>(stream)};
}

[[noreturn]] void refuse(DeviceState& state, ssize_t size, int device, PlimsollStream stream) {
  raise("CUDA out of memory. GPU " + std::to_string(device) + ": " +
        state.allocator->out_of_memory_report(Bytes(size), stream_id(stream)));
}

template <typename Visit>
void for_each_device(Visit visit) {
  for (int device = 0; device < kMostDevices; ++device) {
    if (DeviceState* state = plugin().devices[static_cast<std::size_t>(device)].load()) {
      visit(*state);
    }
  }
}

char* owned_text(const std::string& text) {
  return ::strdup(text.c_str());
}

std::vector<memory::Address> addresses(void* const* blocks, std::int64_t count) {
  std::vector<memory::Address> out;
  for (std::int64_t i = 0; i < count; ++i) {
    out.push_back(reinterpret_cast<memory::Address>(blocks[i]));
  }
  return out;
}

using Move = memory::SpillOutcome (memory::CachingAllocator::*)(std::span<const memory::Address>);

char* move_blocks(int device, void* const* blocks, std::int64_t count, Move move) {
  DeviceState* state = state_of(device);
  memory::SpillOutcome outcome;
  outcome.problem = plugin().problem;
  if (state != nullptr) outcome = ((*state->allocator).*move)(addresses(blocks, count));
  return owned_text(outcome_json(outcome));
}

}  // namespace
}  // namespace plimsoll::torch

using plimsoll::Bytes;
using plimsoll::torch::DeviceState;
using plimsoll::torch::for_each_device;
using plimsoll::torch::plugin;
using plimsoll::torch::state_of;
using plimsoll::torch::stream_id;

void* plimsoll_device_alloc(ssize_t size, int device, PlimsollStream stream) {
  DeviceState* state = state_of(device);
  if (state == nullptr) [[unlikely]]
    plimsoll::torch::raise("plimsoll: " + plugin().problem);
  const auto address = state->allocator->allocate(Bytes(size), stream_id(stream));
  if (address == 0) [[unlikely]]
    plimsoll::torch::refuse(*state, size, device, stream);
  return reinterpret_cast<void*>(address);
}

void plimsoll_device_free(void* pointer, ssize_t, int device, PlimsollStream) {
  DeviceState* state = state_of(device);
  if (state != nullptr) state->allocator->free(reinterpret_cast<std::uint64_t>(pointer));
}

void plimsoll_init(int) {}

void plimsoll_reset() {
  for_each_device([](DeviceState& state) { state.allocator->trim(); });
}

void plimsoll_memory_fraction(double fraction, int device) {
  DeviceState* state = state_of(device);
  if (state == nullptr) return;
  const auto whole = static_cast<double>(state->provider->capacity().value);
  const std::int64_t most = plugin().most.load();
  const Bytes limit = most > 0 ? Bytes(most) : Bytes::max();
  const Bytes share(static_cast<std::int64_t>(whole * fraction));
  state->allocator->set_limit(fraction >= 1 ? limit : std::min(limit, share));
}

void* plimsoll_base_alloc(void* pointer, std::size_t* size) {
  void* base = nullptr;
  for_each_device([&](DeviceState& state) {
    const auto found = state.allocator->find(reinterpret_cast<std::uint64_t>(pointer));
    if (!found) return;
    base = reinterpret_cast<void*>(found->address);
    if (size != nullptr) *size = static_cast<std::size_t>(found->size.value);
  });
  return base;
}

void plimsoll_record_stream(void* pointer, PlimsollStream stream) {
  for_each_device([&](DeviceState& state) {
    state.allocator->record_stream(reinterpret_cast<std::uint64_t>(pointer), stream_id(stream));
  });
}

void plimsoll_begin_pool(int device, PlimsollPool pool,
                         std::function<bool(PlimsollStream)> filter) {
  DeviceState* state = state_of(device);
  if (state == nullptr) return;
  state->allocator->begin_pool({pool.first, pool.second},
                               [filter = std::move(filter)](plimsoll::memory::StreamId stream) {
                                 return filter(reinterpret_cast<PlimsollStream>(stream.value));
                               });
}

void plimsoll_end_pool(int device, PlimsollPool pool) {
  if (DeviceState* state = state_of(device)) state->allocator->end_pool({pool.first, pool.second});
}

void plimsoll_release_pool(int device, PlimsollPool pool) {
  if (DeviceState* state = state_of(device)) {
    state->allocator->release_pool({pool.first, pool.second});
  }
}

void plimsoll_set_capacity(std::int64_t bytes) {
  plugin().most = bytes;
}

char* plimsoll_spill_refusal(int device) {
  DeviceState* state = state_of(device);
  return plimsoll::torch::owned_text(state == nullptr ? plugin().problem
                                                      : state->provider->host_refusal());
}

std::int64_t plimsoll_to_be_pinned(int device, void* const* blocks, std::int64_t count) {
  DeviceState* state = state_of(device);
  if (state == nullptr) return 0;
  return state->allocator->to_be_pinned(plimsoll::torch::addresses(blocks, count)).value;
}

char* plimsoll_spill(int device, void* const* blocks, std::int64_t count) {
  return plimsoll::torch::move_blocks(device, blocks, count,
                                      &plimsoll::memory::CachingAllocator::spill);
}

char* plimsoll_restore(int device, void* const* blocks, std::int64_t count) {
  return plimsoll::torch::move_blocks(device, blocks, count,
                                      &plimsoll::memory::CachingAllocator::restore);
}

void plimsoll_use_fake_device(std::int64_t capacity) {
  plugin().fake_capacity = capacity;
}

std::int64_t plimsoll_count(int device, int which) {
  DeviceState* state = state_of(device);
  if (state == nullptr) return 0;
  const auto counts = state->allocator->counts();
  switch (which) {
    case 0:
      return counts.all.bytes.current;
    case 1:
      return counts.all.bytes.peak;
    case 2:
      return counts.reserved_bytes.current;
    case 3:
      return counts.reserved_bytes.peak;
    case 4:
      return counts.slabs_remapped;
    case 5:
      return counts.stream_waits;
    case 6:
      return counts.device_allocations;
    case 7:
      return counts.spilled_bytes.current;
    default:
      return 0;
  }
}

char* plimsoll_statistics(int device) {
  DeviceState* state = state_of(device);
  return plimsoll::torch::owned_text(
      state == nullptr ? "{}" : plimsoll::torch::statistics_json(state->allocator->statistics()));
}

void plimsoll_reset_peaks(int device) {
  if (DeviceState* state = state_of(device)) state->allocator->reset_peaks();
}

void plimsoll_reset_totals(int device) {
  if (DeviceState* state = state_of(device)) state->allocator->reset_totals();
}

void plimsoll_record_history(int device, int on, std::int64_t most) {
  DeviceState* state = state_of(device);
  if (state == nullptr) return;
  state->allocator->set_sink(nullptr);
  if (on == 0) return;
  state->history = std::make_unique<plimsoll::torch::History>(
      static_cast<std::size_t>(most > 0 ? most : std::int64_t{1} << 40));
  state->allocator->set_sink(state->history.get());
}

char* plimsoll_snapshot(int device) {
  DeviceState* state = state_of(device);
  return plimsoll::torch::owned_text(state == nullptr
                                         ? "{\"segments\":[],\"trace\":[]}"
                                         : plimsoll::torch::snapshot_json(*state, device));
}

void plimsoll_free_text(char* text) {
  ::free(text);
}
const char* plimsoll_problem() {
  return plugin().problem.c_str();
}

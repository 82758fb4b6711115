// Small wrappers around any allocator of addresses, to be put on top of each other.
//
//   Limited      refuses to let more than a limit be live
//   Counted      counts blocks and bytes, with peaks
//   Traced       tells an EventSink what happens
//   Failing      refuses when it is told to, for tests of whoever calls it
//   Locked       makes an allocator that has no lock safe for threads
//
//   FakeDevice device;  CachingAllocator inner(device, device);
//   Limited limited(inner, 1_GiB);  Counted counted(limited);
//
// What is below must outlive what is on top. Those that need a block's size on its free remember it
// in a hash map: some 50 ns an operation. A refusal is address 0, and changes nothing.
#pragma once

#include <concepts>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "plimsoll/base/units.h"
#include "plimsoll/memory/allocator_statistics.h"
#include "plimsoll/memory/slab_provider.h"
#include "plimsoll/memory/spin_lock.h"

namespace plimsoll::memory {

template <typename A>
concept AddressAllocator = requires(A allocator, Bytes size, StreamId stream, Address address) {
  { allocator.allocate(size, stream) } -> std::same_as<Address>;
  { allocator.free(address) } -> std::same_as<bool>;
};

template <AddressAllocator Inner>
class Limited {
 public:
  Limited(Inner& inner, Bytes limit) : inner_(inner), limit_(limit) {}
  Address allocate(Bytes size, StreamId stream) {
    if (size.value < 0 || size > limit_ - live_) return 0;
    const Address address = inner_.allocate(size, stream);
    if (address == 0) return 0;
    live_ += size;
    sizes_[address] = size;
    return address;
  }
  bool free(Address address) {
    if (!inner_.free(address)) return false;
    live_ -= sizes_[address];
    sizes_.erase(address);
    return true;
  }
  Bytes live() const { return live_; }

 private:
  Inner& inner_;
  Bytes limit_;
  Bytes live_{0};
  std::unordered_map<Address, Bytes> sizes_;
};

template <AddressAllocator Inner>
class Counted {
 public:
  explicit Counted(Inner& inner) : inner_(inner) {}
  Address allocate(Bytes size, StreamId stream) {
    const Address address = inner_.allocate(size, stream);
    if (address == 0) {
      ++refused_;
      return 0;
    }
    blocks_.add(1);
    bytes_.add(size.value);
    sizes_[address] = size.value;
    return address;
  }
  bool free(Address address) {
    if (!inner_.free(address)) return false;
    blocks_.subtract(1);
    bytes_.subtract(sizes_[address]);
    sizes_.erase(address);
    return true;
  }
  const Tally& blocks() const { return blocks_; }
  const Tally& bytes() const { return bytes_; }
  std::int64_t refused() const { return refused_; }

 private:
  Inner& inner_;
  Tally blocks_;
  Tally bytes_;
  std::int64_t refused_ = 0;
  std::unordered_map<Address, std::int64_t> sizes_;
};

template <AddressAllocator Inner>
class Traced {
 public:
  Traced(Inner& inner, EventSink& sink) : inner_(inner), sink_(sink) {}
  Address allocate(Bytes size, StreamId stream) {
    const Address address = inner_.allocate(size, stream);
    const MemoryAction action = address == 0 ? MemoryAction::kOutOfMemory : MemoryAction::kAllocate;
    sink_.on_event({action, address, size, stream, {}});
    if (address != 0) live_[address] = {size, stream};
    return address;
  }
  bool free(Address address) {
    if (!inner_.free(address)) return false;
    const auto [size, stream] = live_[address];
    live_.erase(address);
    sink_.on_event({MemoryAction::kFree, address, size, stream, {}});
    return true;
  }

 private:
  Inner& inner_;
  EventSink& sink_;
  std::unordered_map<Address, std::pair<Bytes, StreamId>> live_;
};

template <AddressAllocator Inner>
class Failing {
 public:
  Failing(Inner& inner, std::function<bool(Bytes)> fails)
      : inner_(inner), fails_(std::move(fails)) {}
  Address allocate(Bytes size, StreamId stream) {
    return fails_(size) ? 0 : inner_.allocate(size, stream);
  }
  bool free(Address address) { return inner_.free(address); }

 private:
  Inner& inner_;
  std::function<bool(Bytes)> fails_;
};

template <AddressAllocator Inner>
class Locked {
 public:
  explicit Locked(Inner& inner) : inner_(inner) {}
  Address allocate(Bytes size, StreamId stream) {
    const std::lock_guard guard(lock_);
    return inner_.allocate(size, stream);
  }
  bool free(Address address) {
    const std::lock_guard guard(lock_);
    return inner_.free(address);
  }

 private:
  Inner& inner_;
  SpinLock lock_;
};

}  // namespace plimsoll::memory

// What the allocators of this module need of a device, as three small interfaces. `device/`
// implements them for real hardware, FakeDevice (fake_device.h) for tests and replay.
//
// SlabProvider: physical memory and addresses, kept apart. A device with virtual memory management
// (CUDA VMM, a CPU with memfd) reserves a range of addresses once, creates physical handles of
// 2-64 MiB and maps them where they are wanted; one handle may be mapped at two addresses at the
// same time. A device without it (plain cudaMalloc) answers supports_mapping() == false, and
// allocate_slab() gives memory and address together. Where the device can, a handle may be host
// memory: mapped, it is read and written like the device's own, slowly.
//
// StreamOrder: the order of work. record() marks the present end of a stream; a stream can be made
// to wait for the mark, and the host can ask whether it was reached.
//
// EventSink: who wants to know. Called under the allocator's lock; must not allocate from it.
//
// Costs on an H200 (2 MiB / 64 MiB handle): create 7.7 / 8 us, map 0.6 / 0.7, set access 20 / 40,
// unmap 14 / 22, release 10 / 24. So a remapped handle costs about what a new one does, and handles
// should be as large as the blocks that lie in them allow.
//
// Failures: a refusal by the device is an empty optional or false and leaves everything as it was;
// the allocator then goes down its ladder. Nothing here throws.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "plimsoll/base/units.h"
#include "plimsoll/memory/stream.h"

namespace plimsoll::memory {

using Address = std::uint64_t;

struct PhysicalHandle {
  std::uint64_t value = 0;
  constexpr auto operator<=>(const PhysicalHandle&) const = default;
};

// A handle in a row of handles that are mapped one behind the other.
struct RowEntry {
  PhysicalHandle handle;
  Bytes size{0};
};

class SlabProvider {
 public:
  virtual ~SlabProvider() = default;

  virtual std::string name() const = 0;
  virtual bool supports_mapping() const = 0;
  // Bytes the device has in all; 0 when unknown.
  virtual Bytes capacity() const = 0;

  // With mapping. Sizes are multiples of granularity(); every mapped handle is readable and
  // writable.
  virtual Bytes granularity() const = 0;
  virtual Bytes largest_handle() const = 0;
  virtual std::optional<Address> reserve(Bytes size) = 0;
  virtual void unreserve(Address address, Bytes size) = 0;
  virtual std::optional<PhysicalHandle> create(Bytes size) = 0;
  virtual void release(PhysicalHandle handle, Bytes size) = 0;
  virtual bool map(Address address, PhysicalHandle handle, Bytes size) = 0;
  // All of the row from `address` on, or none of it. Access is given once for all of it: that call
  // is most of what mapping costs.
  virtual bool map_row(Address address, std::span<const RowEntry> row) {
    Address at = address;
    for (const RowEntry& one : row) {
      if (!map(at, one.handle, one.size)) {
        for (const RowEntry& done : row) {
          if (address == at) break;
          unmap(address, done.size);
          address += static_cast<Address>(done.size.value);
        }
        return false;
      }
      at += static_cast<Address>(one.size.value);
    }
    return true;
  }
  virtual void unmap(Address address, Bytes size) = 0;

  // Handles of host memory. Why there are none, as a sentence; empty: create_on_host() may be
  // called, and what it gives goes through map(), unmap() and release() like any other.
  virtual std::string host_refusal() {
    return name() + ": host memory cannot be mapped among the device's addresses";
  }
  virtual std::optional<PhysicalHandle> create_on_host(Bytes) { return std::nullopt; }
  // Queues a copy between mapped addresses; synchronize() waits for that and all other work.
  virtual bool copy(Address, Address, Bytes) { return false; }
  virtual bool synchronize() { return false; }

  // Without mapping.
  virtual std::optional<Address> allocate_slab(Bytes size) = 0;
  virtual void free_slab(Address address, Bytes size) = 0;
};

struct OrderMark {
  std::uint64_t value = 0;
  constexpr auto operator<=>(const OrderMark&) const = default;
};

class StreamOrder {
 public:
  virtual ~StreamOrder() = default;

  // False while the stream is being captured into a graph: no marks then.
  virtual bool can_mark(StreamId stream) = 0;
  virtual OrderMark record(StreamId stream) = 0;
  virtual bool reached(OrderMark mark) = 0;
  virtual void wait(StreamId stream, OrderMark mark) = 0;  // on the device; the host goes on
  virtual void synchronize(OrderMark mark) = 0;            // the host waits
  virtual void forget(OrderMark mark) = 0;                 // every recorded mark is given back once
};

enum class MemoryAction : std::uint8_t {
  kAllocate,
  kFree,
  kFreeCompleted,
  kSegmentMap,
  kSegmentUnmap,
  kSegmentAlloc,
  kSegmentFree,
  kOutOfMemory,
  kStreamWait,
};

struct MemoryEvent {
  MemoryAction action = MemoryAction::kAllocate;
  Address address = 0;
  Bytes bytes{0};
  StreamId stream;
  StreamId peer;
};

class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void on_event(const MemoryEvent& event) = 0;
};

}  // namespace plimsoll::memory

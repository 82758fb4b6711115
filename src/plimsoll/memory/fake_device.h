// A device that exists only as bookkeeping: for tests, and for replaying traces on any machine.
//
// It hands out addresses and handles, keeps a capacity, and can be told to refuse. It checks its
// caller: mapping over a mapping, unmapping what is not mapped and releasing what is still mapped
// end the program. Streams are vector clocks: record() marks a stream's present, wait() joins it,
// so "does this happen before that?" has an exact answer (order_checker.h uses it). The host sees a
// mark as reached when settle() was called since, or after `patience` questions about its stream.
//
// Not thread-safe by itself; the caching allocator calls it under its lock.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "plimsoll/memory/slab_provider.h"

namespace plimsoll::memory {

struct FakeDeviceOptions {
  Bytes capacity = 141_GiB;
  Bytes largest_handle = 64_MiB;
  bool mapping = true;
  bool host_slabs = false;
  int patience = 3;
};

struct FakeDeviceCounts {
  std::int64_t created = 0;
  std::int64_t released = 0;
  std::int64_t mapped = 0;
  std::int64_t unmapped = 0;
  std::int64_t marks = 0;  // recorded and not forgotten
  std::int64_t waits = 0;
  std::int64_t synchronized = 0;
  std::int64_t asked = 0;  // whether a mark was reached
  Bytes held{0};
  Bytes held_on_host{0};
};

// One stream's knowledge of the others: how far into each it is ordered behind.
using VectorClock = std::map<std::uint64_t, std::uint64_t>;

class FakeDevice final : public SlabProvider, public StreamOrder {
 public:
  explicit FakeDevice(FakeDeviceOptions options = {}) : options_(options) {}

  std::string name() const override { return "fake device"; }
  bool supports_mapping() const override { return options_.mapping; }
  Bytes capacity() const override { return options_.capacity; }
  Bytes granularity() const override { return 2_MiB; }
  Bytes largest_handle() const override { return options_.largest_handle; }
  std::optional<Address> reserve(Bytes size) override;
  void unreserve(Address address, Bytes size) override;
  std::optional<PhysicalHandle> create(Bytes size) override;
  void release(PhysicalHandle handle, Bytes size) override;
  bool map(Address address, PhysicalHandle handle, Bytes size) override;
  void unmap(Address address, Bytes size) override;
  std::string host_refusal() override;
  std::optional<PhysicalHandle> create_on_host(Bytes size) override;
  bool copy(Address to, Address from, Bytes size) override;
  bool synchronize() override;
  std::optional<Address> allocate_slab(Bytes size) override;
  void free_slab(Address address, Bytes size) override;

  bool can_mark(StreamId stream) override;
  OrderMark record(StreamId stream) override;
  bool reached(OrderMark mark) override;
  void wait(StreamId stream, OrderMark mark) override;
  void synchronize(OrderMark mark) override;
  void forget(OrderMark mark) override;

  // Asked before every call that may be refused; true: refuse.
  void set_refusal(std::function<bool()> refuse) { refuse_ = std::move(refuse); }
  void set_capturing(StreamId stream, bool capturing) { capturing_[stream.value] = capturing; }
  // The device has run everything that was queued.
  void settle() { settled_ = next_mark_; }

  // A step of work on a stream, and whether `later` is ordered behind it.
  struct Stamp {
    std::uint64_t stream = 0;
    std::uint64_t count = 0;
  };
  Stamp work_on(StreamId stream);
  bool is_behind(StreamId later, const Stamp& stamp);
  // Where the bytes at `address` physically are: handle * 2^40 + offset.
  std::uint64_t physical(Address address) const;

  // A word that lies at a mapped address, 0 before it was written; whether it lies on the host.
  void write(Address address, std::uint64_t word);
  std::uint64_t read(Address address) const;
  bool on_host(Address address) const;

  const FakeDeviceCounts& counts() const { return counts_; }

 private:
  // What a page of addresses shows: page `index` of a handle; handle 0: nothing.
  struct Page {
    std::uint32_t handle = 0;
    std::uint32_t index = 0;
  };
  struct PageTable {  // of 1 GiB
    std::array<Page, 512> pages{};
    int mapped = 0;
  };
  struct Handle {
    std::int64_t size = 0;
    int mappings = 0;
    bool on_host = false;
    std::unordered_map<std::uint64_t, std::uint64_t> words;  // by offset
  };
  struct Mark {
    VectorClock clock;
    std::uint64_t number = 0;
    std::uint64_t stream = 0;
    std::int64_t asked = 0;  // about the stream, before it was recorded
  };
  PageTable& table_of(Address address);
  void set_pages(Address address, std::uint64_t handle, Bytes size);
  bool refused() const { return refuse_ && refuse_(); }
  VectorClock& clock(StreamId stream);
  void host_sees(const VectorClock& seen);

  FakeDeviceOptions options_;
  FakeDeviceCounts counts_;
  std::function<bool()> refuse_;
  Address next_address_ = Address{1} << 45;
  std::uint64_t next_mark_ = 1;
  std::uint64_t settled_ = 0;
  std::vector<Handle> handles_ = std::vector<Handle>(1);  // by value; of size 0 when released
  std::unordered_map<Address, std::unique_ptr<PageTable>> tables_;  // by address >> 30
  Address last_place_ = ~Address{0};
  PageTable* last_table_ = nullptr;
  std::unordered_map<std::uint64_t, Mark> marks_;
  std::unordered_map<std::uint64_t, std::int64_t> asked_;  // by stream
  std::unordered_map<std::uint64_t, VectorClock> clocks_;
  std::unordered_map<std::uint64_t, bool> capturing_;
  VectorClock host_;
};

}  // namespace plimsoll::memory

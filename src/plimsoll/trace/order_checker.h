// Does every reuse of memory happen after its last use? Exactly, by vector clocks.
//
// It follows physical bytes, not addresses: a slab mapped twice is one memory. When a block is
// freed, its physical ranges are stamped with the present of every stream that used it; when a
// block is allocated on a stream, that stream must be ordered behind every stamp it covers. Orders
// come from the marks and waits that the allocator issued on the fake device and from the waits of
// the trace.
//
// Cost: a map operation per slab a block touches. For tests and `replay`, not for running programs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "plimsoll/memory/fake_device.h"
#include "plimsoll/trace/event.h"

namespace plimsoll::trace {

class OrderChecker {
 public:
  explicit OrderChecker(memory::FakeDevice& device) : device_(device) {}

  void allocated(memory::Address address, Bytes bytes, StreamId stream);
  void used(memory::Address address, StreamId stream);
  void freed(memory::Address address);
  void waits(StreamId stream, StreamId peer);

  // The first reuse that is not ordered, or empty.
  const std::string& violation() const { return violation_; }
  std::int64_t checked() const { return checked_; }

 private:
  using Stamp = memory::FakeDevice::Stamp;
  struct Live {
    std::int64_t size;
    std::vector<StreamId> streams;
  };
  struct Range {
    std::uint64_t end;
    std::vector<Stamp> stamps;
  };
  std::vector<std::pair<std::uint64_t, std::uint64_t>> physical(memory::Address address,
                                                                std::int64_t size) const;
  void take(std::uint64_t begin, std::uint64_t end, StreamId stream);

  memory::FakeDevice& device_;
  std::unordered_map<memory::Address, Live> live_;
  std::map<std::uint64_t, Range> freed_;
  std::string violation_;
  std::int64_t checked_ = 0;
};

}  // namespace plimsoll::trace

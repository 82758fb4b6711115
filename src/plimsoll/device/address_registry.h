// Which device an address belongs to: one table of address ranges for the process.
//
// Devices with memory of their own (cards, the fake one) enter what they take and remove what they
// give back. What nobody entered is the host's. So every pointer knows its device, and whoever is
// about to use one asks: kernels before they are launched, copies, fills and collectives; always,
// not only in tests. A tensor on the wrong device is then an error with a name instead of a crash
// of a card or, worse, numbers read over the bus at a fiftieth of the speed.
//
//   [ arena of cuda:0 )      [ pool of cuda:1 )           device_of(p) is 1, 2 or kHost
//
// Readers take no lock: the table is an array of sorted ranges under a version that writers make
// odd while they change it; a reader that saw it odd or changed looks again. Ranges are few (arenas
// and the slabs of pools), so a search is a handful of comparisons: `device_bench` has the time,
// under 20 ns. A full table becomes one twice as large; the old one is kept, for readers that are
// still in it: fewer bytes than the new one.
//
// The address space is the process's, and so is the table: `addresses()`. A library that is opened
// on demand has a copy of this code; it is told to use the program's (`use_addresses`).
//
// Invariant: ranges do not overlap.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "plimsoll/base/result.h"

namespace plimsoll::device {

using DeviceNumber = std::uint32_t;
inline constexpr DeviceNumber kHost = 0;

class AddressRegistry {
 public:
  AddressRegistry();
  AddressRegistry(const AddressRegistry&) = delete;
  AddressRegistry& operator=(const AddressRegistry&) = delete;

  // A number for a device that has memory of its own, until it leaves.
  DeviceNumber enroll(std::string name);
  void leave(DeviceNumber device);                 // and all it has entered
  std::string name_of(DeviceNumber device) const;  // "host", "cuda:1"

  void add(const void* begin, std::size_t bytes, DeviceNumber device);
  // All ranges that begin there or in so many bytes behind.
  void remove(const void* begin, std::size_t bytes = 1);

  DeviceNumber device_of(const void* address) const {
    const auto at = reinterpret_cast<std::uint64_t>(address);
    while (true) {
      const Table* const table = table_.load(std::memory_order_acquire);
      const std::uint64_t before = version_.load(std::memory_order_acquire);
      const DeviceNumber found = table->find(at);
      std::atomic_thread_fence(std::memory_order_acquire);
      if ((before & 1) == 0 && version_.load(std::memory_order_relaxed) == before) return found;
    }
  }

 private:
  struct Range {
    std::atomic<std::uint64_t> begin{0};
    std::atomic<std::uint64_t> end{0};
    std::atomic<DeviceNumber> device{kHost};
  };
  struct Table {
    explicit Table(std::size_t room) : ranges(room) {}
    DeviceNumber find(std::uint64_t at) const {
      std::size_t low = 0, high = count.load(std::memory_order_relaxed);
      while (low < high) {
        const std::size_t middle = (low + high) / 2;
        if (ranges[middle].end.load(std::memory_order_relaxed) <= at) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      // A count that is being changed may be one too many; the version says so then.
      if (low >= ranges.size() || low >= count.load(std::memory_order_relaxed)) return kHost;
      return ranges[low].begin.load(std::memory_order_relaxed) <= at
                 ? ranges[low].device.load(std::memory_order_relaxed)
                 : kHost;
    }
    std::vector<Range> ranges;  // sorted
    std::atomic<std::size_t> count{0};
  };

  std::size_t place_of(const Table& table, std::uint64_t begin) const;
  template <typename Which>
  void erase(std::size_t first, std::size_t last, Which goes);
  void grow();

  std::atomic<const Table*> table_;
  std::atomic<std::uint64_t> version_{0};
  mutable std::mutex writers_;
  std::vector<std::unique_ptr<Table>> tables_;  // the last one is in use
  std::vector<std::string> names_;              // by number; empty: free
};

AddressRegistry& addresses();
void use_addresses(AddressRegistry& registry);

// A device's entry in the table, for as long as it lives.
class Enrolled {
 public:
  explicit Enrolled(std::string name) : number_(addresses().enroll(std::move(name))) {}
  ~Enrolled() { addresses().leave(number_); }
  Enrolled(const Enrolled&) = delete;
  Enrolled& operator=(const Enrolled&) = delete;
  DeviceNumber number() const { return number_; }

 private:
  DeviceNumber number_;
};

// "copy of 'h.0.weight': its source lies on cuda:1, cuda:0 or host is wanted"
Error wrong_device(const std::string& what, const std::string& operand, DeviceNumber found,
                   const std::string& wanted);

// A copy or a fill by this device: both ends are its own or the host's. Null is no address. `what`
// is asked for where it goes wrong.
template <typename What>
Status check_copy(DeviceNumber own, const void* to, const void* from, const What& what) {
  for (const void* const end : {to, from}) {
    if (end == nullptr) continue;
    const DeviceNumber found = addresses().device_of(end);
    if (found == own || found == kHost) continue;
    return tl::unexpected<Error>(
        wrong_device(what(), end == to ? "its target" : "its source", found,
                     addresses().name_of(own) + (own == kHost ? "" : " or host")));
  }
  return {};
}

}  // namespace plimsoll::device

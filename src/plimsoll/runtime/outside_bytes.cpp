#include "plimsoll/runtime/outside_bytes.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_map>

#include "plimsoll/base/check.h"

namespace plimsoll::runtime {
namespace {

std::atomic<bool> calls_are_seen{false};
thread_local bool uncounted = false;  // an Uncounted is alive on this thread
// This thread is in the count, whose own tables come from malloc too.
thread_local bool in_count = false;

class Inside {
 public:
  explicit Inside(std::mutex& mutex) : lock_(mutex) { in_count = true; }
  ~Inside() { in_count = false; }

 private:
  std::scoped_lock<std::mutex> lock_;
};

// The functions it hears from belong to the process, so this does too.
class Count {
 public:
  void start() {
    const Inside own(mutex_);
    blocks_.clear();
    ranges_.clear();
    live_ = peak_ = large_ = 0;
  }

  void take_block(const void* block, std::size_t bytes) {
    const Inside own(mutex_);
    blocks_.insert_or_assign(block, bytes);
    add(static_cast<std::int64_t>(bytes));
  }

  std::size_t give_back_block(const void* block) {
    const Inside own(mutex_);
    const auto found = blocks_.find(block);
    if (found == blocks_.end()) return 0;
    const std::size_t bytes = found->second;
    live_ -= static_cast<std::int64_t>(bytes);
    blocks_.erase(found);
    return bytes;
  }

  void map_range(std::uintptr_t begin, std::uintptr_t end) {
    const Inside own(mutex_);
    cut(begin, end);
    ranges_.emplace(begin, end);
    add(static_cast<std::int64_t>(end - begin));
  }

  std::size_t unmap_range(std::uintptr_t begin, std::uintptr_t end) {
    const Inside own(mutex_);
    return cut(begin, end);
  }

  std::int64_t live() const { return locked(live_); }
  std::int64_t peak() const { return locked(peak_); }
  std::int64_t large() const { return locked(large_); }

 private:
  std::int64_t locked(const std::int64_t& figure) const {
    const Inside own(mutex_);
    return figure;
  }

  void add(std::int64_t bytes) {
    live_ += bytes;
    peak_ = std::max(peak_, live_);
    if (bytes >= OutsideBytes::kLarge) ++large_;
  }

  // Takes [begin, end) out of what is mapped and says how much of it was; what sticks out on either
  // side stays.
  std::size_t cut(std::uintptr_t begin, std::uintptr_t end) {
    std::size_t found = 0;
    auto range = ranges_.lower_bound(begin);
    if (range != ranges_.begin() && std::prev(range)->second > begin) --range;
    while (range != ranges_.end() && range->first < end) {
      const auto [first, last] = *range;
      range = ranges_.erase(range);
      found += std::min(end, last) - std::max(begin, first);
      if (first < begin) ranges_.emplace(first, begin);
      if (last > end) ranges_.emplace(end, last);
    }
    live_ -= static_cast<std::int64_t>(found);
    return found;
  }

  mutable std::mutex mutex_;
  std::unordered_map<const void*, std::size_t> blocks_;
  std::map<std::uintptr_t, std::uintptr_t> ranges_;  // begin to end, apart from each other
  std::int64_t live_ = 0;
  std::int64_t peak_ = 0;
  std::int64_t large_ = 0;
};

// Never destroyed: others free until the very end.
Count& count() {
  static Count* const only = new Count;
  return *only;
}

}  // namespace

bool OutsideBytes::available() {
  return calls_are_seen.load();
}

OutsideBytes::OutsideBytes() {
  count().start();
  PLIMSOLL_CHECK(!outside_bytes::counting.exchange(true), "two counts of outside bytes at once");
}

OutsideBytes::~OutsideBytes() {
  outside_bytes::counting.store(false);
}

Bytes OutsideBytes::live() const {
  return Bytes(count().live());
}
Bytes OutsideBytes::peak() const {
  return Bytes(count().peak());
}
std::int64_t OutsideBytes::large_allocations() const {
  return count().large();
}

Uncounted::Uncounted() : before_(uncounted) {
  uncounted = true;
}
Uncounted::~Uncounted() {
  uncounted = before_;
}

namespace outside_bytes {

std::atomic<bool> counting{false};

void linked() {
  calls_are_seen.store(true);
}

void block_taken(const void* block, std::size_t bytes) {
  if (block != nullptr && !in_count && !uncounted) count().take_block(block, bytes);
}

// Also where this thread is not counted: the block may be from before, or another's.
std::size_t block_given_back(const void* block) {
  return block != nullptr && !in_count ? count().give_back_block(block) : 0;
}

void range_mapped(const void* begin, std::size_t bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(begin);
  if (!in_count && !uncounted) count().map_range(at, at + bytes);
}

std::size_t range_unmapped(const void* begin, std::size_t bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(begin);
  return in_count ? 0 : count().unmap_range(at, at + bytes);
}

}  // namespace outside_bytes
}  // namespace plimsoll::runtime

// Models of PyTorch's caching allocator, written from its published behaviour, to compare with.
//
// They are models: the policy without the device. Fed the events of a snapshot they reach the
// reserved peak that PyTorch itself reached, to the byte (the tests keep four snapshots). The rules
// modelled: sizes round up to 512 bytes, or to eighths between powers of two with `roundup`;
// requests up to 1 MiB take 2 MiB segments, below 10 MiB take 20 MiB ones, larger ones round up to
// 2 MiB; best fit by (stream, size, address); the rest of a block is split off when it is at least
// 512 bytes (small) or more than 1 MiB (large). With `expandable`, one growing range per stream and
// pool, mapped in steps of 2 MiB (small) or 20 MiB (large), whose tail is used last.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "plimsoll/trace/event.h"

namespace plimsoll::trace {

struct PytorchPolicy {
  bool expandable = false;
  int roundup_divisions = 0;
  Bytes capacity = Bytes::max();
};

class PytorchModel {
 public:
  // Starts with what was there before, and remembers the addresses at which the recording got its
  // segments: ties between equal blocks go by address.
  PytorchModel(const PytorchPolicy& policy, const Trace& trace);

  // Returns a name for the block, or 0 when the capacity does not allow it.
  std::uint64_t allocate(Bytes bytes, StreamId stream);
  void free(std::uint64_t block);
  // The block that was live at `address` before the first event.
  std::uint64_t initial_block(std::uint64_t address) const;

  Bytes peak_reserved() const { return Bytes(peak_); }
  std::int64_t device_allocations() const { return device_allocations_; }

 private:
  using Index = std::uint32_t;
  struct Block {
    std::uint64_t address = 0;
    std::int64_t size = 0;
    std::uint64_t stream = 0;
    Index before = 0;
    Index after = 0;
    bool small = false;
    bool live = false;
    bool mapped = true;
  };
  struct Key {
    std::uint64_t stream;
    std::int64_t size;
    std::uint64_t address;
    Index block;
    auto operator<=>(const Key&) const = default;
  };
  using Pool = std::set<Key>;

  std::int64_t rounded(std::int64_t bytes) const;
  Index make(const Block& block);
  void insert(Index id);
  void erase(Index id);
  Index find(std::int64_t size, std::uint64_t stream, bool small);
  Index take_segment(std::int64_t size, std::uint64_t stream, bool small);
  Index extend(std::int64_t size, std::uint64_t stream, bool small);
  Index tail_of(std::uint64_t stream, bool small);
  void split(Index id, std::int64_t size);
  void join(Index into, Index gone);
  void seed(const InitialSegment& segment);
  bool reserve(std::int64_t size);
  std::int64_t reach(Index id) const;

  PytorchPolicy policy_;
  std::vector<Block> blocks_ = std::vector<Block>(1);
  Pool pools_[2];
  std::map<std::pair<std::uint64_t, bool>, Index> tails_;
  std::unordered_map<std::int64_t, std::deque<std::uint64_t>> recorded_;
  std::unordered_map<std::uint64_t, Index> initial_;
  std::uint64_t next_address_ = std::uint64_t{1} << 52;
  std::int64_t reserved_ = 0;
  std::int64_t peak_ = 0;
  std::int64_t device_allocations_ = 0;
};

}  // namespace plimsoll::trace

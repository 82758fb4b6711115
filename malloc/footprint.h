// How much freed memory may stay resident.
//
// Touching fresh memory is what large blocks cost: 345 ns per 4 KiB with huge pages and 1,580
// without, against some 130 to write it (measured; see docs/malloc.md). So freed memory is worth
// keeping. Allocators that keep it by the clock hold 25 to 30 % more than a program ever used at
// once; those that give it back at once are nine times slower.
//
// The rule here looks at bytes. What is resident may never exceed what the program itself needed
// lately, by more than a sixteenth (or 8 MiB, if that is more):
//
//     live + cached <= max(live + 8 MiB, peak + peak / 16)
//     peak = most live bytes in the last one to two seconds
//
//   bytes |  - - - - - - - - - - - - - - - - - - - - - peak + peak/16: the bound; falls a second or
//            two after the peak
//         |     ..##########......##########
//         |    .  .#########.    . #########           #  cached: stays within the bound
//         | ...    ..........    .. ........           .  live
//
// A program at its peak therefore holds a sixteenth more than it uses; one whose use goes up and
// down, as a training step's does, keeps its pages in between. A program that became smaller gives
// its memory back with the next large allocation or free after a second: there is no helper thread,
// so one that sleeps keeps its cache.
//
// Under a cgroup's memory.max the cache also ends where live + cached would pass 15/16 of that.
//
// Bytes count from when they are handed out. Callers hold the span heap's lock.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plimsoll::heap {

class Footprint {
 public:
  static constexpr std::size_t kFloor = std::size_t{8} << 20;
  static constexpr std::uint64_t kWindowNs = 1000000000;

  void allocated(std::size_t bytes) {
    live_ += bytes;
    if (live_ > window_peak_) window_peak_ = live_;
    if (live_ > peak_) peak_ = live_;
  }
  void freed(std::size_t bytes) { live_ -= bytes; }
  void cache_grew(std::size_t bytes) { cached_ += bytes; }
  void cache_shrank(std::size_t bytes) { cached_ -= bytes; }

  // After a change was made whole and the cache was trimmed.
  void settled() {
    if (live_ + cached_ > peak_held_) peak_held_ = live_ + cached_;
  }

  // Moves the window of recent use on; after every change.
  void at_time(std::uint64_t now_ns) {
    const std::uint64_t passed = now_ns - window_began_;
    if (passed >= kWindowNs) {
      // After an idle window the old peak counts no more, but what lived all the time does: the
      // change may be that it was freed just now.
      last_peak_ = passed < 2 * kWindowNs ? window_peak_ : live_before_;
      window_peak_ = live_;
      window_began_ = now_ns;
    }
    live_before_ = live_;
  }
  void limit_to(std::size_t bytes) { limit_ = bytes; }

  // How much of the cache has to go.
  std::size_t excess() const {
    const std::size_t most = bound();
    return cached_ > most ? cached_ - most : 0;
  }
  std::size_t bound() const {
    const std::size_t recent = window_peak_ > last_peak_ ? window_peak_ : last_peak_;
    const std::size_t hold = recent + recent / 16;
    std::size_t most = hold > live_ + kFloor ? hold - live_ : kFloor;
    const std::size_t allowed = limit_ - limit_ / 16;
    if (live_ + most > allowed) most = allowed > live_ ? allowed - live_ : 0;
    return most;
  }

  std::size_t live() const { return live_; }
  std::size_t cached() const { return cached_; }
  std::size_t peak() const { return peak_; }
  std::size_t peak_held() const { return peak_held_; }

 private:
  std::size_t live_ = 0;
  std::size_t cached_ = 0;
  std::size_t peak_ = 0;
  std::size_t peak_held_ = 0;
  std::size_t window_peak_ = 0;
  std::size_t last_peak_ = 0;
  std::size_t live_before_ = 0;  // the latest change
  std::uint64_t window_began_ = 0;
  std::size_t limit_ = SIZE_MAX;
};

}  // namespace plimsoll::heap

// The workloads of the host allocator's bars: fixed work, so that time is the result.
//
//   malloc_work churn 128 8 2000
//   malloc_work --list
//
// Every workload calls malloc, free and the C++ operators as any program does; which allocator
// answers is decided from outside, by LD_PRELOAD (bench/malloc/bench.py). They are written for this
// project in the spirit of the classic programs that each names, and share no code with them. The
// numbers drawn are the same in every run. Each ends by printing `live N`, the peak of requested
// bytes, where it is known exactly; resident memory is compared with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace malloc_work {

// The same numbers on every machine; splitmix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

// Requested bytes that live now, and the most that ever did.
struct Live {
  std::int64_t now = 0;
  std::int64_t peak = 0;
  void add(std::int64_t bytes) {
    now += bytes;
    if (now > peak) peak = now;
  }
};

using Arguments = std::span<const long>;

struct Work {
  const char* name;
  const char* summary;
  // returns the peak of requested bytes, or 0 where it is not counted
  std::int64_t (*run)(Arguments);
};

std::span<const Work> large_works();
std::span<const Work> object_works();
std::span<const Work> thread_works();

inline long argument(Arguments arguments, std::size_t index, long otherwise) {
  return index < arguments.size() ? arguments[index] : otherwise;
}

}  // namespace malloc_work

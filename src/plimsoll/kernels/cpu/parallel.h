// Parallel loops whose chunks depend on the work alone, never on the number of threads: sums made
// chunk by chunk and added up in order have the same bits on 1 thread and on 64.
#pragma once

#include <algorithm>
#include <cstdint>

namespace plimsoll::kernels {

// Elements of a chunk of an element-by-element loop: some 64 KiB of every tensor.
inline constexpr std::int64_t kElementGrain = 16384;

// Calls body(chunk, begin, end) for every chunk of `grain` of [0, count).
template <typename Body>
void parallel_chunks(std::int64_t count, std::int64_t grain, const Body& body) {
  const std::int64_t chunks = (count + grain - 1) / grain;
#pragma omp parallel for schedule(static) if (chunks > 1)
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    body(chunk, chunk * grain, std::min(count, (chunk + 1) * grain));
  }
}

// Calls body(begin, end) for ranges that cover [0, count); for loops without a sum.
template <typename Body>
void parallel_ranges(std::int64_t count, std::int64_t grain, const Body& body) {
  parallel_chunks(count, grain,
                  [&](std::int64_t, std::int64_t begin, std::int64_t end) { body(begin, end); });
}

// Calls body(i) for each i in [0, count); bodies are worth a thread's time each.
template <typename Body>
void parallel_each(std::int64_t count, const Body& body) {
#pragma omp parallel for schedule(static) if (count > 1)
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

// The grain at which `rows` of `width` elements make chunks of about kElementGrain elements.
inline std::int64_t row_grain(std::int64_t width) {
  return std::max<std::int64_t>(1, kElementGrain / std::max<std::int64_t>(1, width));
}

// Calls body(row) for each of `rows` of `width` elements, in chunks of that grain.
template <typename Body>
void parallel_rows(std::int64_t rows, std::int64_t width, const Body& body) {
  parallel_ranges(rows, row_grain(width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) body(row);
  });
}

}  // namespace plimsoll::kernels

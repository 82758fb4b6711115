// A program of many small experiments on whatever malloc it runs with: `malloc_probe NAME
// [numbers]`.
//
// preload_test.py runs each in a process of its own under the preloaded library; most also pass
// under glibc, which shows that they ask for what the C library promises and not for what this one
// happens to do. It exits 0 when all held, and otherwise says what did not.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <span>

#define PROBE(condition)                                                                 \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      std::fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                      \
    }                                                                                    \
  } while (false)

namespace probe {

using Arguments = std::span<const char* const>;

struct Experiment {
  const char* name;
  void (*run)(Arguments);
};

std::span<const Experiment> contract_experiments();
std::span<const Experiment> fault_experiments();
std::span<const Experiment> process_experiments();
std::span<const Experiment> shadow_experiments();

inline long number(Arguments arguments, std::size_t index, long otherwise) {
  return index < arguments.size() ? std::atol(arguments[index]) : otherwise;
}

}  // namespace probe

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "work.h"

using namespace malloc_work;

int main(int argc, char** argv) {
  const std::span<const Work> groups[] = {large_works(), object_works(), thread_works()};
  if (argc < 2 || std::strcmp(argv[1], "--list") == 0) {
    for (const auto& group : groups) {
      for (const Work& work : group) std::printf("%-10s %s\n", work.name, work.summary);
    }
    return argc < 2 ? 2 : 0;
  }
  long numbers[8];
  std::size_t count = 0;
  for (int i = 2; i < argc && count < 8; ++i) numbers[count++] = std::atol(argv[i]);
  for (const auto& group : groups) {
    for (const Work& work : group) {
      if (std::strcmp(work.name, argv[1]) != 0) continue;
      std::printf("live %lld\n", static_cast<long long>(work.run({numbers, count})));
      return 0;
    }
  }
  std::fprintf(stderr, "malloc_work: there is no workload '%s'; --list names them\n", argv[1]);
  return 2;
}

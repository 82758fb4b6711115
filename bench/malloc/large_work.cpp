// Workloads of large blocks, every byte of which is written: what programs that move tensors do.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "work.h"

namespace malloc_work {
namespace {

struct Block {
  void* data = nullptr;
  std::int64_t bytes = 0;
};

// Tensor churn: sizes log-uniform from 64 KiB, a few live blocks, one of them replaced at each
// step.
std::int64_t churn(Arguments arguments) {
  const double most = static_cast<double>(argument(arguments, 0, 128) << 20);
  const double least = 64 << 10;
  std::vector<Block> blocks(static_cast<std::size_t>(argument(arguments, 1, 8)));
  const long steps = argument(arguments, 2, 2000);
  Random random(1);
  Live live;
  for (long step = 0; step < steps; ++step) {
    Block& block = blocks[random.below(blocks.size())];
    std::free(block.data);
    live.add(-block.bytes);
    block.bytes = static_cast<std::int64_t>(least * std::pow(most / least, random.unit()));
    block.data = std::malloc(static_cast<std::size_t>(block.bytes));
    live.add(block.bytes);
    std::memset(block.data, static_cast<int>(step), static_cast<std::size_t>(block.bytes));
  }
  for (Block& block : blocks) std::free(block.data);
  return live.peak;
}

// In the spirit of malloc-large: 20 buffers of 5 to 25 MiB, zeroed by C++, one replaced at each
// step.
std::int64_t buffers(Arguments arguments) {
  const long steps = argument(arguments, 0, 2000);
  std::vector<std::unique_ptr<char[]>> blocks(20);
  std::vector<std::int64_t> sizes(blocks.size());
  Random random(2);
  Live live;
  for (long step = 0; step < steps; ++step) {
    const std::size_t at = random.below(blocks.size());
    const std::int64_t bytes = (5 << 20) + static_cast<std::int64_t>(random.below(20 << 20));
    blocks[at].reset();
    live.add(-sizes[at]);
    blocks[at] = std::make_unique<char[]>(static_cast<std::size_t>(bytes));
    sizes[at] = bytes;
    live.add(bytes);
  }
  return live.peak;
}

// An array that grows by half until it has 256 MiB, as a vector of records read from a file does.
std::int64_t growth(Arguments arguments) {
  const long rounds = argument(arguments, 0, 20);
  std::int64_t peak = 0;
  for (long round = 0; round < rounds; ++round) {
    std::size_t bytes = 4096;
    char* data = static_cast<char*>(std::malloc(bytes));
    std::memset(data, 1, bytes);
    while (bytes < (256u << 20)) {
      const std::size_t grown = bytes + bytes / 2;
      data = static_cast<char*>(std::realloc(data, grown));
      std::memset(data + bytes, 1, grown - bytes);
      bytes = grown;
    }
    peak = static_cast<std::int64_t>(bytes);
    std::free(data);
  }
  return peak;
}

constexpr Work kWorks[] = {
    {"churn", "MAX_MIB LIVE STEPS: tensors, log-uniform from 64 KiB, written whole", churn},
    {"buffers", "STEPS: 20 zeroed buffers of 5 to 25 MiB (spirit of malloc-large)", buffers},
    {"growth", "ROUNDS: one array grown by half to 256 MiB by realloc", growth},
};

}  // namespace

std::span<const Work> large_works() {
  return kWorks;
}

}  // namespace malloc_work

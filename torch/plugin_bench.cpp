// The bars of the run-time allocator: the object the plug-in exports, lock and statistics on, on
// the fake device, sizes computed beforehand. Times are CPU time of the thread.
//   build/release/bin/torch_bench
#include <benchmark/benchmark.h>

#include <cmath>
#include <vector>

#include "plimsoll/base/random.h"
#include "plugin.h"

namespace {

constexpr std::size_t kSizes = 1 << 16;

bool use_fake() {
  plimsoll_use_fake_device(std::int64_t{141} << 30);
  return true;
}
const bool kFake = use_fake();

void malloc_free_pair(benchmark::State& state) {
  for (auto _ : state) {
    void* block = plimsoll_device_alloc(state.range(0), 0, nullptr);
    benchmark::DoNotOptimize(block);
    plimsoll_device_free(block, state.range(0), 0, nullptr);
  }
}
BENCHMARK(malloc_free_pair)->RangeMultiplier(8)->Range(512, 64 << 20);

// Replaces one of `live` blocks; sizes from 512 B to 512 B x 2^octaves, evenly over powers of two.
void replace(benchmark::State& state, int octaves) {
  plimsoll::Random random(1);
  const auto live = static_cast<std::int64_t>(state.range(0));
  std::vector<std::int64_t> sizes(kSizes);
  std::vector<std::size_t> which(kSizes);
  for (auto& size : sizes)
    size = static_cast<std::int64_t>(512 * std::exp2(octaves * random.uniform()));
  for (auto& index : which) index = static_cast<std::size_t>(random.below(live));
  std::vector<void*> blocks;
  for (std::int64_t i = 0; i < live; ++i) {
    blocks.push_back(plimsoll_device_alloc(sizes[static_cast<std::size_t>(i)], 0, nullptr));
  }
  const auto turn_over = [&](std::size_t turn) {
    void*& block = blocks[which[turn % kSizes]];
    plimsoll_device_free(block, 0, 0, nullptr);
    block = plimsoll_device_alloc(sizes[turn % kSizes], 0, nullptr);
  };
  for (std::size_t turn = 0; turn < 20 * kSizes; ++turn) turn_over(turn);  // until it has settled
  std::size_t turn = 0;
  for (auto _ : state) turn_over(turn++);
  for (void* block : blocks) plimsoll_device_free(block, 0, 0, nullptr);
  plimsoll_reset();
}
void replace_one(benchmark::State& state) {
  replace(state, 17);
}  // to 64 MiB
void replace_one_small(benchmark::State& state) {
  replace(state, 11);
}  // to 1 MiB
BENCHMARK(replace_one)->Arg(64)->Arg(512)->Arg(2048);
BENCHMARK(replace_one_small)->Arg(512);

}  // namespace

// How long it takes to build a forward graph: the deepest ones.
#include <benchmark/benchmark.h>

#include "plimsoll/model/zoo.h"

namespace plimsoll::model {
namespace {

void build_resnet1000(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(build_model("resnet", {.batch = 32, .depth = 1000}));
}
BENCHMARK(build_resnet1000)->Unit(benchmark::kMillisecond);

void build_gpt2_of_96_layers(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(build_model("gpt2", {.batch = 8, .layers = 96}));
}
BENCHMARK(build_gpt2_of_96_layers)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace plimsoll::model

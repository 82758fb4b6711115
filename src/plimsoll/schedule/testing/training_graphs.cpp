#include "plimsoll/schedule/testing/training_graphs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "plimsoll/base/check.h"
#include "plimsoll/base/random.h"

namespace plimsoll::schedule {
namespace {

struct Forward {
  const char* name;
  std::int64_t cost;
  std::int64_t bytes;
  std::vector<int> inputs;  // -1: the network's input, which counts for nothing
  bool gradient_needs_output = false;
};

int add_task(Workload& workload, std::string name, std::int64_t cost, std::int64_t bytes,
             std::vector<int> inputs) {
  std::sort(inputs.begin(), inputs.end());
  inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
  const std::size_t index = workload.tasks.size();
  Task task;
  task.name = name + "." + std::to_string(index);
  task.seconds = static_cast<double>(cost);
  for (int input : inputs) task.inputs.push_back(ValueId(static_cast<std::size_t>(input)));
  task.outputs.push_back(ValueId(index));
  Value value;
  value.name = task.name;
  value.bytes = Bytes(bytes);
  value.producer = TaskId(index);
  workload.tasks.push_back(std::move(task));
  workload.values.push_back(std::move(value));
  return static_cast<int>(index);
}

Workload with_gradient(const std::vector<Forward>& forward) {
  Workload out;
  std::vector<int> made;
  for (const Forward& f : forward) {
    std::vector<int> inputs;
    for (int i : f.inputs) {
      if (i >= 0) inputs.push_back(made[static_cast<std::size_t>(i)]);
    }
    made.push_back(add_task(out, f.name, f.cost, f.bytes, inputs));
  }
  out.first_backward = TaskId(out.tasks.size());
  std::vector<std::vector<int>> adjoints(forward.size());
  for (std::size_t i = forward.size(); i-- > 0;) {
    const Forward& f = forward[i];
    int incoming = 0;
    if (i + 1 == forward.size()) {
      incoming = add_task(out, "dL", std::max<std::int64_t>(1, f.cost / 4), f.bytes, {made[i]});
    } else if (adjoints[i].size() == 1) {
      incoming = adjoints[i].front();
    } else {
      incoming = add_task(out, std::string("sum_") + f.name, std::max<std::int64_t>(1, f.bytes / 8),
                          f.bytes, adjoints[i]);
    }
    std::vector<int> real;
    std::copy_if(f.inputs.begin(), f.inputs.end(), std::back_inserter(real),
                 [](int k) { return k >= 0; });
    std::vector<int> reads{incoming};
    for (int k : real) reads.push_back(made[static_cast<std::size_t>(k)]);
    if (f.gradient_needs_output) reads.push_back(made[i]);
    for (int k : real) {
      const auto from = static_cast<std::size_t>(k);
      const auto cost =
          std::max<std::int64_t>(1, 2 * f.cost / static_cast<std::int64_t>(real.size()));
      adjoints[from].push_back(
          add_task(out, std::string("d") + f.name, cost, forward[from].bytes, reads));
    }
  }
  return out;
}

int last(const std::vector<Forward>& forward) {
  return static_cast<int>(forward.size()) - 1;
}

int convolve(std::vector<Forward>& forward, int from, std::int64_t in, std::int64_t out,
             std::int64_t side) {
  const std::int64_t bytes = std::max<std::int64_t>(1, out * side * side / 512);
  forward.push_back(
      {"conv", std::max<std::int64_t>(1, in * out * 9 * side * side / 400000), bytes, {from}});
  forward.push_back({"relu", std::max<std::int64_t>(1, bytes / 8), bytes, {last(forward)}, true});
  return last(forward);
}

}  // namespace

Workload random_chain(int layers) {
  static constexpr std::array<std::array<int, 2>, 25> kCostAndBytes = {
      {{14, 15}, {3, 10}, {18, 17}, {14, 11}, {17, 13}, {20, 8},  {18, 6}, {11, 6},  {5, 10},
       {19, 6},  {11, 5}, {4, 12},  {17, 19}, {5, 13},  {15, 12}, {8, 19}, {17, 16}, {18, 10},
       {3, 19},  {2, 4},  {14, 2},  {17, 12}, {9, 12},  {4, 8},   {20, 9}}};
  PLIMSOLL_CHECK(layers <= static_cast<int>(kCostAndBytes.size()));
  std::vector<Forward> forward;
  for (int i = 0; i < layers; ++i) {
    const auto& layer = kCostAndBytes[static_cast<std::size_t>(i)];
    forward.push_back({"f", layer[0], layer[1], {i - 1}});
  }
  return with_gradient(forward);
}

Workload unit_chain(int layers) {
  std::vector<Forward> forward;
  for (int i = 0; i < layers; ++i) forward.push_back({"f", 1, 1, {i - 1}});
  return with_gradient(forward);
}

Workload small_resnet(int blocks) {
  std::vector<Forward> forward{{"stem", 8, 32, {-1}}};
  int previous = 0;
  for (int b = 0; b < blocks; ++b) {
    const std::int64_t bytes = 32 >> (b * 3 / blocks);
    forward.push_back({"c1", 10, bytes, {previous}});
    forward.push_back({"r1", 2, bytes, {last(forward)}, true});
    forward.push_back({"c2", 10, bytes, {last(forward)}});
    forward.push_back({"add", 2, bytes, {last(forward), previous}});
    forward.push_back({"r2", 2, bytes, {last(forward)}, true});
    previous = last(forward);
  }
  forward.push_back({"fc", 1, 1, {previous}});
  return with_gradient(forward);
}

Workload small_unet(int depth) {
  struct Skip {
    int from;
    std::int64_t channels, side;
  };
  std::vector<Forward> forward;
  std::vector<Skip> skips;
  std::int64_t side = 64, channels = 16, in = 3;
  int previous = -1;
  for (int d = 0; d < depth; ++d) {
    previous = convolve(forward, previous, in, channels, side);
    in = channels;
    skips.push_back({previous, channels, side});
    side /= 2;
    forward.push_back(
        {"pool", 1, std::max<std::int64_t>(1, channels * side * side / 512), {previous}});
    previous = last(forward);
    channels *= 2;
  }
  previous = convolve(forward, previous, in, channels, side);
  in = channels;
  for (auto skip = skips.rbegin(); skip != skips.rend(); ++skip) {
    const std::int64_t area = skip->side * skip->side;
    forward.push_back({"up",
                       std::max<std::int64_t>(1, skip->channels * area / 4096),
                       std::max<std::int64_t>(1, in * area / 512),
                       {previous}});
    const std::int64_t joined = in + skip->channels;
    forward.push_back(
        {"cat", 1, std::max<std::int64_t>(1, joined * area / 512), {last(forward), skip->from}});
    previous = convolve(forward, last(forward), joined, skip->channels, skip->side);
    in = skip->channels;
  }
  forward.push_back({"out", 2, 1, {previous}});
  return with_gradient(forward);
}

Workload small_vgg() {
  constexpr int kPool = 0;
  constexpr std::array kPlan = {64,    64,  kPool, 128, 128,   kPool, 256, 256, 256,
                                kPool, 512, 512,   512, kPool, 512,   512, 512, kPool};
  std::vector<Forward> forward;
  std::int64_t side = 32, in = 3;
  for (int out : kPlan) {
    if (out == kPool) {
      side /= 2;
      forward.push_back({"pool",
                         std::max<std::int64_t>(1, in * side * side / 4096),
                         std::max<std::int64_t>(1, in * side * side / 256),
                         {last(forward)}});
      continue;
    }
    const std::int64_t bytes = std::max<std::int64_t>(1, out * side * side / 256);
    forward.push_back({"conv",
                       std::max<std::int64_t>(1, in * out * 9 * side * side / 200000),
                       bytes,
                       {last(forward)}});
    forward.push_back({"relu", std::max<std::int64_t>(1, bytes / 8), bytes, {last(forward)}, true});
    in = out;
  }
  forward.push_back({"fc", 4, 1, {last(forward)}});
  return with_gradient(forward);
}

Workload transformer(int blocks) {
  std::vector<Forward> forward{{"emb", 2, 8, {-1}}};
  int previous = 0;
  for (int b = 0; b < blocks; ++b) {
    forward.push_back({"ln", 1, 8, {previous}});
    forward.push_back({"qkv", 12, 24, {last(forward)}});
    const int qkv = last(forward);
    forward.push_back({"sc", 8, 32, {qkv}});
    forward.push_back({"sm", 3, 32, {last(forward)}, true});
    forward.push_back({"av", 8, 8, {last(forward), qkv}});
    forward.push_back({"pr", 4, 8, {last(forward)}});
    forward.push_back({"add", 1, 8, {last(forward), previous}});
    const int residual = last(forward);
    forward.push_back({"ln2", 1, 8, {residual}});
    forward.push_back({"f1", 16, 32, {last(forward)}});
    forward.push_back({"gelu", 3, 32, {last(forward)}});
    forward.push_back({"f2", 16, 8, {last(forward)}});
    forward.push_back({"add2", 1, 8, {last(forward), residual}});
    previous = last(forward);
  }
  forward.push_back({"loss", 4, 1, {previous}});
  return with_gradient(forward);
}

Workload random_layered(int tasks, int edges, std::uint64_t seed) {
  Random random(seed);
  Workload out;
  const int width = std::max(2, static_cast<int>(std::sqrt(static_cast<double>(tasks)) / 1.5));
  std::vector<std::set<int>> inputs(static_cast<std::size_t>(tasks));
  const auto layer_of = [&](int t) { return t / width; };
  for (int t = width; t < tasks; ++t) {
    const int layer = layer_of(t);
    inputs[static_cast<std::size_t>(t)].insert(
        static_cast<int>(random.between((layer - 1) * width, layer * width - 1)));
  }
  std::int64_t left = edges - std::max(0, tasks - width);
  while (left > 0) {
    const int t = static_cast<int>(random.between(width, tasks - 1));
    const int layer = layer_of(t);
    const int back = random.chance(0.6) ? layer - 1 : static_cast<int>(random.below(layer));
    const int from = static_cast<int>(random.between(back * width, (back + 1) * width - 1));
    left -= inputs[static_cast<std::size_t>(t)].insert(from).second;
  }
  for (int t = 0; t < tasks; ++t) {
    const auto& set = inputs[static_cast<std::size_t>(t)];
    add_task(out, "t", random.between(1, 100), random.between(1, 100), {set.begin(), set.end()});
  }
  return out;
}

}  // namespace plimsoll::schedule

#include "plimsoll/pack/model/generate.h"

#include <algorithm>
#include <cmath>

#include "plimsoll/base/random.h"

namespace plimsoll::pack {
namespace {

constexpr std::int64_t kStripSteps = 2000;
constexpr std::int64_t kStripUnits = 1024;  // of 1 KiB

struct Tile {
  Interval<std::int64_t> time;
  Interval<std::int64_t> space;
};

// Cuts the tile in two across its relatively longer side; false when it is too small for that.
bool cut(Tile& tile, Tile& other, Random& random) {
  const std::int64_t width = tile.time.end - tile.time.begin;
  const std::int64_t height = tile.space.end - tile.space.begin;
  const bool across_time =
      height < 2 || (width >= 2 && random.chance(static_cast<double>(width) * kStripUnits /
                                                 (static_cast<double>(width) * kStripUnits +
                                                  static_cast<double>(height) * kStripSteps)));
  if (width < 2 && height < 2) return false;
  other = tile;
  if (across_time) {
    other.time.begin = tile.time.end = tile.time.begin + random.between(1, width - 1);
  } else {
    other.space.begin = tile.space.end = tile.space.begin + random.between(1, height - 1);
  }
  return true;
}

Problem tiling(std::size_t n, Random& random, double holes) {
  // For many tiles the strip grows in time, so that a tile keeps its typical size.
  const auto strips = static_cast<std::int64_t>(std::max<std::size_t>(1, n / 2000));
  std::vector<Tile> tiles{{{0, kStripSteps * strips}, {0, kStripUnits}}};
  for (std::int64_t s = 1; s < strips; ++s) {
    tiles.push_back({{s * kStripSteps, (s + 1) * kStripSteps}, {0, kStripUnits}});
    tiles.front().time.end = kStripSteps;
  }
  while (tiles.size() < n) {
    // The largest of a few, so that sizes stay within reason but vary.
    std::size_t chosen = 0;
    double largest = -1;
    for (int k = 0; k < 4; ++k) {
      const auto at =
          static_cast<std::size_t>(random.below(static_cast<std::int64_t>(tiles.size())));
      const Tile& tile = tiles[at];
      const double area = static_cast<double>(tile.time.end - tile.time.begin) *
                          static_cast<double>(tile.space.end - tile.space.begin);
      if (area > largest) chosen = at, largest = area;
    }
    Tile other;
    if (cut(tiles[chosen], other, random)) tiles.push_back(other);
  }
  Problem problem;
  problem.set_capacity(1_MiB);
  for (const Tile& tile : tiles) {
    if (random.chance(holes)) continue;
    problem.buffers.push_back(
        {.lifetime = tile.time, .size = Bytes((tile.space.end - tile.space.begin) * 1024)});
  }
  random.shuffle(problem.buffers);
  return problem;
}

Problem training(std::size_t n, Random& random) {
  constexpr std::int64_t kSizes[] = {8, 16, 64, 64, 128, 256, 512, 1024, 4096};
  constexpr std::int64_t kTemporary[] = {1, 1, 2, 4};
  const auto operators =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(n) / 3.6));
  const std::int64_t steps = 2 * operators;
  Problem problem;
  const auto add = [&](std::int64_t from, std::int64_t to, std::int64_t size) {
    problem.buffers.push_back({.lifetime = {from, to}, .size = Bytes(size)});
  };
  for (std::int64_t forward = 0; forward < operators; ++forward) {
    const std::int64_t backward = steps - forward - 1;
    const std::int64_t size = 512 * kSizes[random.below(9)];
    add(forward, backward + 1, size);
    if (random.chance(0.8))
      add(forward, forward + random.between(1, 5), size * kTemporary[random.below(4)]);
    add(backward, backward + random.between(1, 3), size);
    if (random.chance(0.5))
      add(backward, backward + random.between(1, 7), size * random.between(1, 3));
    if (random.chance(0.3)) add(backward, steps, size / 2);
  }
  return problem;
}

Problem random_problem(std::size_t n, Random& random) {
  Problem problem;
  const auto log_uniform = [&](double most) {
    return static_cast<std::int64_t>(std::exp(random.uniform() * std::log(most)));
  };
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t start = random.below(2 * static_cast<std::int64_t>(n));
    const std::int64_t length = log_uniform(20000) + 1;
    problem.buffers.push_back(
        {.lifetime = {start, start + length}, .size = Bytes(log_uniform(131072) * 512)});
  }
  return problem;
}

}  // namespace

std::optional<Family> family_named(std::string_view name) {
  if (name == "tiling") return Family::kTiling;
  if (name == "training") return Family::kTraining;
  if (name == "random") return Family::kRandom;
  return std::nullopt;
}

Problem generate(Family family, std::size_t n, std::uint64_t seed, double holes) {
  Random random(seed);
  switch (family) {
    case Family::kTiling:
      return tiling(n, random, holes);
    case Family::kTraining:
      return training(n, random);
    case Family::kRandom:
      break;
  }
  return random_problem(n, random);
}

}  // namespace plimsoll::pack

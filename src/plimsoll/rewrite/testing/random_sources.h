// Content for every source of a graph, by name, so that a graph and what a rewrite made of it can
// be interpreted alike. draw(value, random) gives the next number of a source.
#pragma once

#include <string>
#include <unordered_map>

#include "plimsoll/base/random.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/ops/evaluation/array.h"

namespace plimsoll::rewrite {

template <typename Draw>
std::unordered_map<std::string, ops::Array> random_sources(const ir::Graph& graph,
                                                           std::uint64_t seed, const Draw& draw) {
  Random random(seed);
  std::unordered_map<std::string, ops::Array> out;
  for (const ir::Value& value : graph.values) {
    if (value.producer.valid()) continue;
    ops::Array array(value.type);
    for (std::int64_t i = 0; i < array.elements(); ++i) array.set_number(i, draw(value, random));
    array.round();
    out.emplace(value.name, std::move(array));
  }
  return out;
}

inline std::unordered_map<std::string, ops::Array> normal_sources(const ir::Graph& graph,
                                                                  std::uint64_t seed) {
  return random_sources(graph, seed,
                        [](const ir::Value&, Random& random) { return random.normal(); });
}

}  // namespace plimsoll::rewrite

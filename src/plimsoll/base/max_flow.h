// Maximum flow from one node to another (Dinic's algorithm), with a limit on the work.
//
// Nodes are numbers, arcs have capacities; maximise() pushes along shortest paths, level by level,
// until none is left. Afterwards reachable() says which nodes the source still reaches: the near
// side of a minimum cut. Work is counted in arcs visited, so that an answer does not depend on the
// clock.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace plimsoll {

class MaxFlow {
 public:
  std::uint32_t add_node();
  void add_arc(std::uint32_t from, std::uint32_t to, std::int64_t capacity);

  // The flow, or nothing when it took more than `most_work` visits of arcs.
  std::optional<std::int64_t> maximise(std::uint32_t source, std::uint32_t sink,
                                       std::int64_t most_work);
  bool reachable(std::uint32_t node) const { return level_[node] != kFar; }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  static constexpr std::uint32_t kFar = 0xffffffff;

  struct Arc {
    std::uint32_t to = 0;
    std::uint32_t next = kNone;  // of the same node
    std::int64_t left = 0;       // what may still be pushed; its partner is arc ^ 1
  };

  void find_levels(std::uint32_t source);
  // One path to the sink along the levels; returns what was pushed.
  std::int64_t push_path(std::uint32_t source, std::uint32_t sink);

  std::vector<Arc> arcs_;
  std::vector<std::uint32_t> first_;  // by node
  std::vector<std::uint32_t> now_;    // by node: the arc to try next
  std::vector<std::uint32_t> level_;
  std::vector<std::uint32_t> queue_;
  std::vector<std::uint32_t> path_;
  std::int64_t work_ = 0;
};

}  // namespace plimsoll

#include "plimsoll/base/max_flow.h"

#include <algorithm>
#include <limits>

namespace plimsoll {

std::uint32_t MaxFlow::add_node() {
  first_.push_back(kNone);
  return static_cast<std::uint32_t>(first_.size() - 1);
}

void MaxFlow::add_arc(std::uint32_t from, std::uint32_t to, std::int64_t capacity) {
  const auto id = static_cast<std::uint32_t>(arcs_.size());
  arcs_.push_back({to, first_[from], capacity});
  arcs_.push_back({from, first_[to], 0});
  first_[from] = id;
  first_[to] = id + 1;
}

std::optional<std::int64_t> MaxFlow::maximise(std::uint32_t source, std::uint32_t sink,
                                              std::int64_t most_work) {
  std::int64_t flow = 0;
  while (work_ <= most_work) {
    find_levels(source);
    if (level_[sink] == kFar) return flow;
    now_ = first_;
    while (const std::int64_t pushed = push_path(source, sink)) {
      flow += pushed;
      if (work_ > most_work) return std::nullopt;
    }
  }
  return std::nullopt;
}

void MaxFlow::find_levels(std::uint32_t source) {
  level_.assign(first_.size(), kFar);
  queue_.assign(1, source);
  level_[source] = 0;
  for (std::size_t head = 0; head < queue_.size(); ++head) {
    const std::uint32_t node = queue_[head];
    for (std::uint32_t a = first_[node]; a != kNone; a = arcs_[a].next) {
      ++work_;
      if (arcs_[a].left == 0 || level_[arcs_[a].to] != kFar) continue;
      level_[arcs_[a].to] = level_[node] + 1;
      queue_.push_back(arcs_[a].to);
    }
  }
}

std::int64_t MaxFlow::push_path(std::uint32_t source, std::uint32_t sink) {
  path_.clear();
  std::uint32_t node = source;
  while (node != sink) {
    std::uint32_t& a = now_[node];
    while (a != kNone && (arcs_[a].left == 0 || level_[arcs_[a].to] != level_[node] + 1)) {
      a = arcs_[a].next;
      ++work_;
    }
    if (a != kNone) {
      path_.push_back(a);
      node = arcs_[a].to;
      continue;
    }
    if (path_.empty()) return 0;
    // A dead end: step back and do not come here again.
    node = arcs_[path_.back() ^ 1].to;
    now_[node] = arcs_[now_[node]].next;
    path_.pop_back();
  }
  std::int64_t pushed = std::numeric_limits<std::int64_t>::max();
  for (const std::uint32_t a : path_) pushed = std::min(pushed, arcs_[a].left);
  for (const std::uint32_t a : path_) {
    arcs_[a].left -= pushed;
    arcs_[a ^ 1].left += pushed;
  }
  work_ += static_cast<std::int64_t>(path_.size());
  return pushed;
}

}  // namespace plimsoll

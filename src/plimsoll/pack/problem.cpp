#include "plimsoll/pack/problem.h"

#include <algorithm>

#include "plimsoll/base/checked.h"

namespace plimsoll::pack {
namespace {

Status verify_buffer(const Problem& problem, std::size_t i) {
  const Buffer& buffer = problem.buffers[i];
  const auto who = [&] { return problem.name(BufferId(i)); };
  if (buffer.size.value < 0)
    return bad_input("buffer '{}': size {} is negative", who(), buffer.size.value);
  if (buffer.alignment < 1)
    return bad_input("buffer '{}': alignment {} is not positive", who(), buffer.alignment);
  if (buffer.lifetime.end < buffer.lifetime.begin)
    return bad_input("buffer '{}': lifetime ends at {}, before it begins at {}", who(),
                     buffer.lifetime.end, buffer.lifetime.begin);
  for (const auto& place : {buffer.fixed, buffer.hint}) {
    if (place && (place->value < 0 || place->value > kLargest))
      return bad_input("buffer '{}': offset {} is outside [0, 2^62]", who(), place->value);
  }
  return {};
}

// Even when everything lies on top of everything, offsets stay below 2^62.
Status verify_room(const Problem& problem, std::int64_t total) {
  for (std::size_t i = 0; i < problem.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.fixed && buffer.fixed->value > kLargest - total)
      return bad_input("buffer '{}': fixed at {}, which leaves no room for all others below 2^62",
                       problem.name(BufferId(i)), buffer.fixed->value);
    for (const Memory& memory : problem.memories) {
      if (memory.slab && memory.slab->value % buffer.alignment != 0)
        return bad_input("memory '{}': slab {} is no multiple of the alignment {} of buffer '{}'",
                         memory.name, memory.slab->value, buffer.alignment,
                         problem.name(BufferId(i)));
    }
  }
  for (const Memory& memory : problem.memories) {
    if (memory.slab && (memory.slab->value > kLargest / 4 || total > kLargest / 4))
      return bad_input("memory '{}': slabs need sizes below 2^60", memory.name);
  }
  return {};
}

Status verify_total(const Problem& problem) {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < problem.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    for (const std::int64_t amount : {buffer.size.value, buffer.alignment - 1}) {
      const auto sum = checked_add(total, amount);
      if (!sum || *sum > kLargest)
        return bad_input("buffer '{}': sizes and alignments up to here add up to more than 2^62",
                         problem.name(BufferId(i)));
      total = *sum;
    }
  }
  return verify_room(problem, total);
}

Status verify_gaps(const Problem& problem) {
  for (std::size_t k = 0; k < problem.gaps.size(); ++k) {
    const Gap& gap = problem.gaps[k];
    if (gap.buffer.index() >= problem.size())
      return bad_input("gap {}: there is no buffer {}", k, gap.buffer.value);
    const Buffer& buffer = problem.buffers[gap.buffer.index()];
    const std::string who = problem.name(gap.buffer);
    if (gap.time.empty() || gap.time.begin < buffer.lifetime.begin ||
        gap.time.end > buffer.lifetime.end)
      return bad_input("buffer '{}': gap [{}, {}) is empty or outside the lifetime [{}, {})", who,
                       gap.time.begin, gap.time.end, buffer.lifetime.begin, buffer.lifetime.end);
    if (gap.window.begin < 0 || gap.window.end < gap.window.begin ||
        gap.window.end > buffer.size.value)
      return bad_input("buffer '{}': window [{}, {}) is outside its {} bytes", who,
                       gap.window.begin, gap.window.end, buffer.size.value);
    if (k > 0) {
      const Gap& before = problem.gaps[k - 1];
      if (gap.buffer < before.buffer ||
          (gap.buffer == before.buffer && gap.time.begin < before.time.end))
        return bad_input("buffer '{}': gaps overlap or are not in ascending order", who);
    }
  }
  if (!problem.gaps.empty() && problem.clocks.streams > 0)
    return bad_input("gaps need plain lifetimes, but the problem has clocks of {} streams",
                     problem.clocks.streams);
  return {};
}

Status verify_classes(const Problem& problem, const std::vector<std::vector<BufferId>>& classes,
                      const char* kind) {
  std::vector<char> seen(problem.size(), 0);
  for (std::size_t k = 0; k < classes.size(); ++k) {
    for (const BufferId id : classes[k]) {
      if (id.index() >= problem.size())
        return bad_input("{} {}: there is no buffer {}", kind, k, id.value);
      if (seen[id.index()]++)
        return bad_input("{} {}: buffer '{}' is listed twice", kind, k, problem.name(id));
      const std::size_t first = classes[k].front().index();
      if (!problem.ends.empty() && problem.ends[id.index()] != problem.ends[first])
        return bad_input("{} {}: buffer '{}' and its first member have different arena ends", kind,
                         k, problem.name(id));
      if (!problem.may_live_in.empty() && problem.may_live_in[id.index()] != problem.may_live_in[first])
        return bad_input("{} {}: buffer '{}' and its first member may live in different memories",
                         kind, k, problem.name(id));
    }
  }
  return {};
}

Status verify_sides(const Problem& problem) {
  const std::size_t n = problem.size();
  if (!problem.names.empty() && problem.names.size() != n)
    return bad_input("{} names for {} buffers", problem.names.size(), n);
  if (!problem.ends.empty() && problem.ends.size() != n)
    return bad_input("{} arena ends for {} buffers", problem.ends.size(), n);
  const Clocks& clocks = problem.clocks;
  if (clocks.streams < 0 || clocks.streams > 1024)
    return bad_input("clocks: {} streams, expected 0 to 1024", clocks.streams);
  const std::size_t ticks = n * static_cast<std::size_t>(clocks.streams);
  if (clocks.ready.size() != ticks || clocks.released.size() != ticks)
    return bad_input("clocks: {} and {} numbers, expected {} (buffers x streams)",
                     clocks.ready.size(), clocks.released.size(), ticks);
  for (std::size_t k = 0; k < ticks; ++k) {
    if (clocks.released[k] < clocks.ready[k])
      return bad_input("buffer '{}': released at {} of stream {}, before it is ready at {}",
                       problem.name(BufferId(k / static_cast<std::size_t>(clocks.streams))),
                       clocks.released[k], k % static_cast<std::size_t>(clocks.streams),
                       clocks.ready[k]);
  }
  if (problem.memories.empty() || problem.memories.size() > 64)
    return bad_input("{} memories, expected 1 to 64", problem.memories.size());
  for (const Memory& memory : problem.memories) {
    if (memory.capacity && (memory.capacity->value < 0 || memory.capacity->value > kLargest))
      return bad_input("memory '{}': capacity {} is outside [0, 2^62]", memory.name,
                       memory.capacity->value);
    if (memory.slab && (memory.slab->value < 1 || memory.slab->value > kLargest))
      return bad_input("memory '{}': slab {} is outside [1, 2^62]", memory.name,
                       memory.slab->value);
    if (!(memory.cost_per_byte >= 0 && memory.cost_per_byte < 1e30))
      return bad_input("memory '{}': cost {} is negative or too large", memory.name,
                       memory.cost_per_byte);
  }
  if (!problem.may_live_in.empty() && problem.may_live_in.size() != n)
    return bad_input("{} memory masks for {} buffers", problem.may_live_in.size(), n);
  const std::uint64_t known = problem.memories.size() == 64
                                  ? ~std::uint64_t{0}
                                  : (std::uint64_t{1} << problem.memories.size()) - 1;
  for (std::size_t i = 0; i < problem.may_live_in.size(); ++i) {
    if ((problem.may_live_in[i] & known) == 0)
      return bad_input("buffer '{}': may live in none of the {} memories",
                       problem.name(BufferId(i)), problem.memories.size());
  }
  return {};
}

// The parts of a buffer's lifetime in which it holds bytes, one after the other.
template <typename Visit>
void for_each_presence(const Problem& problem, BufferId id, Visit visit) {
  const Buffer& buffer = problem.buffers[id.index()];
  std::int64_t from = buffer.lifetime.begin;
  const auto first = std::lower_bound(problem.gaps.begin(), problem.gaps.end(), id,
                                      [](const Gap& gap, BufferId key) { return gap.buffer < key; });
  for (auto gap = first; gap != problem.gaps.end() && gap->buffer == id; ++gap) {
    if (from < gap->time.begin) visit(Interval<std::int64_t>{from, gap->time.begin});
    if (!gap->window.empty()) visit(gap->time);
    from = gap->time.end;
  }
  if (from < buffer.lifetime.end) visit(Interval<std::int64_t>{from, buffer.lifetime.end});
}

bool out_of_the_way(const Clocks& clocks, BufferId a, BufferId b) {
  const auto streams = static_cast<std::size_t>(clocks.streams);
  for (std::size_t s = 0; s < streams; ++s) {
    if (clocks.ready[b.index() * streams + s] < clocks.released[a.index() * streams + s])
      return false;
  }
  return true;
}

}  // namespace

std::string Problem::name(BufferId id) const {
  return names.empty() ? std::to_string(id.value) : names[id.index()];
}

Status verify(const Problem& problem) {
  if (problem.size() >= BufferId::kNone / 4)
    return bad_input("{} buffers are more than 2^30", problem.size());
  PLIMSOLL_RETURN_IF_ERROR(verify_sides(problem));
  for (std::size_t i = 0; i < problem.size(); ++i) {
    PLIMSOLL_RETURN_IF_ERROR(verify_buffer(problem, i));
  }
  PLIMSOLL_RETURN_IF_ERROR(verify_total(problem));
  PLIMSOLL_RETURN_IF_ERROR(verify_gaps(problem));
  PLIMSOLL_RETURN_IF_ERROR(verify_classes(problem, problem.contiguous, "contiguous group"));
  return verify_classes(problem, problem.colocated, "co-located class");
}

bool ever_alive(const Problem& problem, BufferId id) {
  if (problem.clocks.streams == 0) return !problem.buffers[id.index()].lifetime.empty();
  return !out_of_the_way(problem.clocks, id, id);
}

bool meet(const Problem& problem, BufferId a, BufferId b) {
  if (!ever_alive(problem, a) || !ever_alive(problem, b)) return false;
  if (problem.clocks.streams > 0)
    return !out_of_the_way(problem.clocks, a, b) && !out_of_the_way(problem.clocks, b, a);
  bool found = false;
  for_each_presence(problem, a, [&](Interval<std::int64_t> mine) {
    for_each_presence(problem, b, [&](Interval<std::int64_t> theirs) {
      found = found || mine.meets(theirs);
    });
  });
  return found;
}

void split_ends_by_lifetime(Problem& problem, double fraction) {
  std::int64_t first = kLargest;
  std::int64_t last = -kLargest;
  for (const Buffer& buffer : problem.buffers) {
    first = std::min(first, buffer.lifetime.begin);
    last = std::max(last, buffer.lifetime.end);
  }
  const double threshold = fraction * (static_cast<double>(last) - static_cast<double>(first));
  problem.ends.clear();
  for (const Buffer& buffer : problem.buffers) {
    const double length = static_cast<double>(buffer.lifetime.end) -
                          static_cast<double>(buffer.lifetime.begin);
    problem.ends.push_back(length >= threshold ? ArenaEnd::kFront : ArenaEnd::kBack);
  }
}

}  // namespace plimsoll::pack

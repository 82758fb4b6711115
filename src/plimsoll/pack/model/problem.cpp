#include "plimsoll/pack/model/problem.h"

#include <algorithm>

#include "plimsoll/base/checked.h"

namespace plimsoll::pack {
namespace {

using Kind = Culprit::Kind;

Status verify_buffer(const Problem& problem, std::size_t i, Culprit& culprit) {
  const Buffer& buffer = problem.buffers[i];
  const auto who = [&] { return problem.name(BufferId(i)); };
  culprit = {Kind::kBuffer, i, "size"};
  if (buffer.size.value < 0)
    return bad_input("buffer '{}': size {} is negative", who(), buffer.size.value);
  culprit.field = "alignment";
  if (buffer.alignment < 1)
    return bad_input("buffer '{}': alignment {} is not positive", who(), buffer.alignment);
  culprit.field = "upper";
  if (buffer.lifetime.end < buffer.lifetime.begin)
    return bad_input("buffer '{}': lifetime ends at {}, before it begins at {}", who(),
                     buffer.lifetime.end, buffer.lifetime.begin);
  for (const auto& [field, place] : {std::pair("fixed", buffer.fixed), {"hint", buffer.hint}}) {
    culprit.field = field;
    if (place && (place->value < 0 || place->value > kLargest))
      return bad_input("buffer '{}': offset {} is outside [0, 2^62]", who(), place->value);
  }
  return {};
}

// Even when everything lies on top of everything, offsets stay below 2^62.
Status verify_room(const Problem& problem, std::int64_t total, Culprit& culprit) {
  for (std::size_t i = 0; i < problem.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    culprit = {Kind::kBuffer, i, "fixed"};
    if (buffer.fixed && buffer.fixed->value > kLargest - total)
      return bad_input("buffer '{}': fixed at {}, which leaves no room for all others below 2^62",
                       problem.name(BufferId(i)), buffer.fixed->value);
    culprit.field = "alignment";
    for (const Memory& memory : problem.memories) {
      if (memory.slab && memory.slab->value % buffer.alignment != 0)
        return bad_input("memory '{}': slab {} is no multiple of the alignment {} of buffer '{}'",
                         memory.name, memory.slab->value, buffer.alignment,
                         problem.name(BufferId(i)));
    }
  }
  for (std::size_t m = 0; m < problem.memories.size(); ++m) {
    const Memory& memory = problem.memories[m];
    culprit = {Kind::kMemory, m, "slab"};
    if (memory.slab && (memory.slab->value > kLargest / 4 || total > kLargest / 4))
      return bad_input("memory '{}': slabs need sizes below 2^60", memory.name);
  }
  return {};
}

Status verify_total(const Problem& problem, Culprit& culprit) {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < problem.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    culprit = {Kind::kBuffer, i, "size"};
    for (const std::int64_t amount : {buffer.size.value, buffer.alignment - 1}) {
      const auto sum = checked_add(total, amount);
      if (!sum || *sum > kLargest)
        return bad_input("buffer '{}': sizes and alignments up to here add up to more than 2^62",
                         problem.name(BufferId(i)));
      total = *sum;
    }
  }
  return verify_room(problem, total, culprit);
}

Status verify_gaps(const Problem& problem, Culprit& culprit) {
  for (std::size_t k = 0; k < problem.gaps.size(); ++k) {
    const Gap& gap = problem.gaps[k];
    const bool another = k > 0 && problem.gaps[k - 1].buffer == gap.buffer;
    culprit = {Kind::kBuffer, gap.buffer.index(), "gaps", another ? culprit.member + 1 : 0};
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
  culprit.member = 0;
  if (!problem.gaps.empty() && problem.clocks.streams > 0)
    return bad_input("gaps need plain lifetimes, but the problem has clocks of {} streams",
                     problem.clocks.streams);
  return {};
}

Status verify_classes(const Problem& problem, const std::vector<std::vector<BufferId>>& classes,
                      Kind which, Culprit& culprit) {
  const char* kind = which == Kind::kContiguous ? "contiguous group" : "co-located class";
  std::vector<char> seen(problem.size(), 0);
  for (std::size_t k = 0; k < classes.size(); ++k) {
    for (std::size_t m = 0; m < classes[k].size(); ++m) {
      const BufferId id = classes[k][m];
      culprit = {which, k, "", m};
      if (id.index() >= problem.size())
        return bad_input("{} {}: there is no buffer {}", kind, k, id.value);
      if (seen[id.index()]++)
        return bad_input("{} {}: buffer '{}' is listed twice", kind, k, problem.name(id));
      const std::size_t first = classes[k].front().index();
      if (!problem.ends.empty() && problem.ends[id.index()] != problem.ends[first])
        return bad_input("{} {}: buffer '{}' and its first member have different arena ends", kind,
                         k, problem.name(id));
      if (!problem.may_live_in.empty() &&
          problem.may_live_in[id.index()] != problem.may_live_in[first])
        return bad_input("{} {}: buffer '{}' and its first member may live in different memories",
                         kind, k, problem.name(id));
    }
  }
  return {};
}

Status verify_clocks(const Problem& problem, Culprit& culprit) {
  const Clocks& clocks = problem.clocks;
  if (clocks.streams < 0 || clocks.streams > 1024)
    return bad_input("clocks: {} streams, expected 0 to 1024", clocks.streams);
  const auto streams = static_cast<std::size_t>(clocks.streams);
  const std::size_t ticks = problem.size() * streams;
  if (clocks.ready.size() != ticks || clocks.released.size() != ticks)
    return bad_input("clocks: {} and {} numbers, expected {} (buffers x streams)",
                     clocks.ready.size(), clocks.released.size(), ticks);
  for (std::size_t k = 0; k < ticks; ++k) {
    culprit = {Kind::kBuffer, k / streams, "released"};
    if (clocks.released[k] < clocks.ready[k])
      return bad_input("buffer '{}': released at {} of stream {}, before it is ready at {}",
                       problem.name(BufferId(k / streams)), clocks.released[k], k % streams,
                       clocks.ready[k]);
  }
  return {};
}

Status verify_memories(const Problem& problem, Culprit& culprit) {
  culprit = {};
  if (problem.memories.empty() || problem.memories.size() > 64)
    return bad_input("{} memories, expected 1 to 64", problem.memories.size());
  for (std::size_t m = 0; m < problem.memories.size(); ++m) {
    const Memory& memory = problem.memories[m];
    culprit = {Kind::kMemory, m, "capacity"};
    if (memory.capacity && (memory.capacity->value < 0 || memory.capacity->value > kLargest))
      return bad_input("memory '{}': capacity {} is outside [0, 2^62]", memory.name,
                       memory.capacity->value);
    culprit.field = "slab";
    if (memory.slab && (memory.slab->value < 1 || memory.slab->value > kLargest))
      return bad_input("memory '{}': slab {} is outside [1, 2^62]", memory.name,
                       memory.slab->value);
    culprit.field = "cost_per_byte";
    if (!(memory.cost_per_byte >= 0 && memory.cost_per_byte < 1e30))
      return bad_input("memory '{}': cost {} is negative or too large", memory.name,
                       memory.cost_per_byte);
  }
  const std::uint64_t known = problem.memories.size() == 64
                                  ? ~std::uint64_t{0}
                                  : (std::uint64_t{1} << problem.memories.size()) - 1;
  for (std::size_t i = 0; i < problem.may_live_in.size(); ++i) {
    culprit = {Kind::kBuffer, i, "memories"};
    if ((problem.may_live_in[i] & known) == 0)
      return bad_input("buffer '{}': may live in none of the {} memories",
                       problem.name(BufferId(i)), problem.memories.size());
  }
  return {};
}

Status verify_sides(const Problem& problem, Culprit& culprit) {
  const std::size_t n = problem.size();
  if (!problem.names.empty() && problem.names.size() != n)
    return bad_input("{} names for {} buffers", problem.names.size(), n);
  if (!problem.ends.empty() && problem.ends.size() != n)
    return bad_input("{} arena ends for {} buffers", problem.ends.size(), n);
  if (!problem.may_live_in.empty() && problem.may_live_in.size() != n)
    return bad_input("{} memory masks for {} buffers", problem.may_live_in.size(), n);
  PLIMSOLL_RETURN_IF_ERROR(verify_clocks(problem, culprit));
  return verify_memories(problem, culprit);
}

// The parts of a buffer's lifetime in which it holds bytes, one after the other.
template <typename Visit>
void for_each_presence(const Problem& problem, BufferId id, Visit visit) {
  const Buffer& buffer = problem.buffers[id.index()];
  std::int64_t from = buffer.lifetime.begin;
  const auto first =
      std::lower_bound(problem.gaps.begin(), problem.gaps.end(), id,
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

Status verify(const Problem& problem, Culprit* culprit) {
  Culprit unasked;
  Culprit& who = culprit ? *culprit : unasked;
  who = {};
  if (problem.size() >= BufferId::kNone / 4)
    return bad_input("{} buffers are more than 2^30", problem.size());
  PLIMSOLL_RETURN_IF_ERROR(verify_sides(problem, who));
  for (std::size_t i = 0; i < problem.size(); ++i) {
    PLIMSOLL_RETURN_IF_ERROR(verify_buffer(problem, i, who));
  }
  PLIMSOLL_RETURN_IF_ERROR(verify_total(problem, who));
  PLIMSOLL_RETURN_IF_ERROR(verify_gaps(problem, who));
  PLIMSOLL_RETURN_IF_ERROR(verify_classes(problem, problem.contiguous, Kind::kContiguous, who));
  return verify_classes(problem, problem.colocated, Kind::kColocated, who);
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
    for_each_presence(problem, b,
                      [&](Interval<std::int64_t> theirs) { found = found || mine.meets(theirs); });
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
    const double length =
        static_cast<double>(buffer.lifetime.end) - static_cast<double>(buffer.lifetime.begin);
    problem.ends.push_back(length >= threshold ? ArenaEnd::kFront : ArenaEnd::kBack);
  }
}

}  // namespace plimsoll::pack

#include "plimsoll/schedule/search/strategies.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "plimsoll/schedule/search/action_list.h"
#include "plimsoll/schedule/search/problem.h"
#include "plimsoll/schedule/search/replay.h"

namespace plimsoll::schedule {
namespace {

// What does not cross into a later group within the forward half is dropped.
Schedule by_groups(const Problem& p, std::vector<Index> group, Index first_backward) {
  std::vector<char> dropped(at(p.values), 0);
  for (Index v = 0; v < p.values; ++v) {
    const Index made = p.producer[at(v)];
    if (made == kNoIndex || made >= first_backward || group[at(made)] < 0 || !p.recomputable(v) ||
        p.keep[at(v)])
      continue;
    bool crosses = false;
    for (Index reader : p.readers[v])
      crosses = crosses || (reader < first_backward && group[at(reader)] != group[at(made)]);
    dropped[at(v)] = !crosses;
  }
  return link(p, replay(p, std::move(dropped), std::move(group), first_backward));
}

Schedule by_segments(const Problem& p, Index first_backward, std::int64_t segments) {
  std::vector<Index> group(at(p.tasks), -1);
  const std::int64_t length = std::max<std::int64_t>(
      1, (first_backward + segments - 1) / std::max<std::int64_t>(1, segments));
  for (Index t = 0; t < first_backward; ++t) group[at(t)] = static_cast<Index>(t / length);
  return by_groups(p, std::move(group), first_backward);
}

// Encoded after the last forward reader, decoded before the first backward one.
ActionList encode_all(const Problem& p, Index first_backward) {
  std::vector<char> waits(at(p.values), 0);
  std::vector<Index> last_forward(at(p.values), kNoIndex);
  for (Index v = 0; v < p.values; ++v) {
    const Index made = p.producer[at(v)];
    const auto readers = p.readers[v];
    if (p.encoding[at(v)] == kNoIndex || made == kNoIndex || made >= first_backward ||
        p.keep[at(v)] || readers.empty() || readers.back() < first_backward)
      continue;
    waits[at(v)] = 1;
    last_forward[at(v)] = made;
    for (Index reader : readers) {
      if (reader < first_backward) last_forward[at(v)] = reader;
    }
  }
  std::vector<std::vector<Index>> after(at(p.tasks));
  for (Index v = 0; v < p.values; ++v) {
    if (waits[at(v)]) after[at(last_forward[at(v)])].push_back(v);
  }
  ActionList list;
  for (Index t = 0; t < p.tasks; ++t) {
    for (Index u : p.inputs[t]) {
      if (t < first_backward || !waits[at(u)]) continue;
      list.actions.push_back({ActionKind::kDecode, u});
      waits[at(u)] = 0;
    }
    list.actions.push_back({ActionKind::kCompute, t});
    for (Index v : after[at(t)]) list.actions.push_back({ActionKind::kEncode, v});
  }
  return list;
}

}  // namespace

Result<Schedule> run_strategy(const Workload& workload, std::string_view name) {
  PLIMSOLL_RETURN_IF_ERROR(verify(workload));
  const Problem problem(workload, Remedies{.encode = name == "encode", .lossy = true}, CopyRates{});
  if (problem.tasks == 0 || name == "none") {
    std::vector<Index> group(at(problem.tasks) + 1, -1);
    group.back() = 0;
    return link(problem, replay(problem, std::vector<char>(at(problem.values), 0), group, 0));
  }
  const Index first_backward = first_backward_task(workload, problem);
  if (name == "sqrt") {
    return by_segments(
        problem, first_backward,
        std::llround(std::sqrt(static_cast<double>(std::max<Index>(1, first_backward)))));
  }
  if (constexpr std::string_view kPrefix = "segments:"; name.starts_with(kPrefix)) {
    std::int64_t segments = 0;
    const std::string_view number = name.substr(kPrefix.size());
    const auto [end, problem_code] =
        std::from_chars(number.data(), number.data() + number.size(), segments);
    if (problem_code == std::errc() && end == number.data() + number.size() && segments > 0) {
      return by_segments(problem, first_backward, segments);
    }
  }
  if (name == "blocks") {
    std::vector<Index> group;
    bool any = false;
    std::vector<std::int32_t> names;
    for (const Task& task : workload.tasks) names.push_back(task.block);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    for (std::size_t t = 0; t < workload.tasks.size(); ++t) {
      const bool in_block = workload.tasks[t].block >= 0 && static_cast<Index>(t) < first_backward;
      any = any || in_block;
      const auto place =
          std::lower_bound(names.begin(), names.end(), workload.tasks[t].block) - names.begin();
      group.push_back(in_block ? static_cast<Index>(place) : -1);
    }
    if (!any) return fail(ErrorCode::kUsage, "strategy 'blocks': no task names a block");
    return by_groups(problem, std::move(group), first_backward);
  }
  if (name == "drop-cheap") {
    std::vector<char> dropped(at(problem.values), 0);
    for (Index v = 0; v < problem.values; ++v) {
      const Index made = problem.producer[at(v)];
      if (made == kNoIndex || made >= first_backward || problem.keep[at(v)] ||
          !problem.recomputable(v))
        continue;
      dropped[at(v)] = workload.tasks[at(made)].cheap;
    }
    std::vector<Index> group(at(problem.tasks) + 1, -1);
    group.back() = 0;
    return link(problem, replay(problem, std::move(dropped), std::move(group), first_backward));
  }
  if (name == "encode") return link(problem, encode_all(problem, first_backward));
  return fail(ErrorCode::kUsage,
              "strategy '{}': use none, sqrt, segments:K, blocks, drop-cheap or encode", name);
}

}  // namespace plimsoll::schedule

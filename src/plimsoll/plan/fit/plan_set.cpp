#include "plimsoll/plan/fit/plan_set.h"

#include <algorithm>
#include <charconv>

#include "plimsoll/plan/fit/no_recompute_plan.h"
#include "plimsoll/plan/fit/within_budget.h"

namespace plimsoll::plan {
namespace {

constexpr std::int64_t kMostMembers = 4096;

bool read_number(std::string_view text, std::int64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && out > 0;
}

// The same tasks, reading and writing the same values.
bool same_steps(const schedule::Workload& a, const schedule::Workload& b) {
  const auto same_task = [](const schedule::Task& x, const schedule::Task& y) {
    return x.name == y.name && x.inputs == y.inputs && x.outputs == y.outputs;
  };
  const auto same_value = [](const schedule::Value& x, const schedule::Value& y) {
    return x.producer == y.producer && x.keep == y.keep;
  };
  return std::equal(a.tasks.begin(), a.tasks.end(), b.tasks.begin(), b.tasks.end(), same_task) &&
         std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(), same_value);
}

// The most scratch any member wants, and only the in-place offers that all make.
void agree(std::vector<SizedWorkload>& members) {
  schedule::Workload& largest = members.back().mapped.workload;
  for (const SizedWorkload& member : members) {
    const schedule::Workload& other = member.mapped.workload;
    if (!same_steps(other, largest)) continue;
    for (std::size_t t = 0; t < largest.tasks.size(); ++t)
      largest.tasks[t].scratch = std::max(largest.tasks[t].scratch, other.tasks[t].scratch);
    for (std::size_t v = 0; v < largest.values.size(); ++v) {
      if (largest.values[v].in_place != other.values[v].in_place)
        largest.values[v].in_place.reset();
    }
  }
  for (SizedWorkload& member : members) {
    schedule::Workload& other = member.mapped.workload;
    if (!same_steps(other, largest)) continue;
    for (std::size_t t = 0; t < largest.tasks.size(); ++t)
      other.tasks[t].scratch = largest.tasks[t].scratch;
    for (std::size_t v = 0; v < largest.values.size(); ++v)
      other.values[v].in_place = largest.values[v].in_place;
  }
}

Result<Plan> plan_member(const SizedWorkload& member, const PlanOptions& options,
                         const Plan* like) {
  PLIMSOLL_TRY(MakePlanOptions how, packing_options(member.graph, options));
  how.like = like;
  return checked(
      make_plan(member.graph, member.mapped, schedule::keep_all(member.mapped.workload), how));
}

}  // namespace

Result<SizeRange> parse_sizes(std::string_view text) {
  const std::size_t equals = std::min(text.find('='), text.size());
  SizeRange out;
  out.option = text.substr(0, equals);
  const std::string_view range = text.substr(std::min(equals + 1, text.size()));
  const std::size_t dots = range.find("..");
  const bool numbers = dots != std::string_view::npos &&
                       read_number(range.substr(0, dots), out.low) &&
                       read_number(range.substr(dots + 2), out.high);
  if ((out.option != "batch" && out.option != "seq") || !numbers || out.low > out.high ||
      out.high - out.low >= kMostMembers) {
    return fail(ErrorCode::kUsage,
                "sizes '{}': expects batch=LOW..HIGH or seq=LOW..HIGH, at most {} of them", text,
                kMostMembers);
  }
  return out;
}

Result<std::vector<PlanSetMember>> make_plan_set(std::vector<SizedWorkload> sizes,
                                                 const PlanOptions& options) {
  agree(sizes);
  PLIMSOLL_TRY(const Plan largest, plan_member(sizes.back(), options, nullptr));
  std::vector<PlanSetMember> out;
  for (const SizedWorkload& member : sizes) {
    PlanSetMember made;
    made.size = member.size;
    made.shared = same_steps(member.mapped.workload, sizes.back().mapped.workload);
    PLIMSOLL_TRY(
        made.plan,
        plan_member(member, options, made.shared && &member != &sizes.back() ? &largest : nullptr));
    out.push_back(std::move(made));
  }
  return out;
}

}  // namespace plimsoll::plan

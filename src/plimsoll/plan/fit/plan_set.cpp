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

Result<Plan> plan_member(const SizedWorkload& member, const MakePlanOptions& how) {
  return checked(
      make_plan(member.graph, member.mapped, schedule::keep_all(member.mapped.workload), how));
}

// Like the largest where the steps are its own; beside it where they are not.
Result<PlanSetMember> member_like(const SizedWorkload& member, const SizedWorkload& last,
                                  const Plan& largest, const PlanOptions& options) {
  PlanSetMember out;
  out.sizes = member.sizes;
  PLIMSOLL_TRY(MakePlanOptions how, packing_options(member.graph, options));
  if (same_steps(member.mapped.workload, last.mapped.workload)) {
    how.like = &largest;
    PLIMSOLL_TRY(out.plan, plan_member(member, how));
    return out;
  }
  how.near = &largest;
  auto near = plan_member(member, how);
  out.places = near ? Places::kNear : Places::kOwn;
  how.near = nullptr;
  PLIMSOLL_TRY(out.plan, near ? std::move(near) : plan_member(member, how));
  return out;
}

// "batch=1..64"
bool read_range(std::string_view text, SizeRange& out) {
  const std::size_t equals = std::min(text.find('='), text.size());
  out.option = text.substr(0, equals);
  const std::string_view range = text.substr(std::min(equals + 1, text.size()));
  const std::size_t dots = range.find("..");
  return dots != std::string_view::npos && read_number(range.substr(0, dots), out.low) &&
         read_number(range.substr(dots + 2), out.high) && out.low <= out.high &&
         out.high - out.low < kMostMembers && (out.option == "batch" || out.option == "seq");
}

}  // namespace

std::string_view name(Places places) {
  switch (places) {
    case Places::kShared:
      return "shared";
    case Places::kNear:
      return "near";
    case Places::kOwn:
      return "own";
  }
  return "unknown";
}

std::int64_t SizeGrid::members() const {
  std::int64_t out = 1;
  for (const SizeRange& range : ranges) out *= range.high - range.low + 1;
  return out;
}

std::vector<std::int64_t> SizeGrid::at(std::int64_t member) const {
  std::vector<std::int64_t> out(ranges.size());
  for (std::size_t r = ranges.size(); r-- > 0;) {
    const std::int64_t count = ranges[r].high - ranges[r].low + 1;
    out[r] = ranges[r].low + member % count;
    member /= count;
  }
  return out;
}

std::string SizeGrid::options() const {
  std::string out;
  for (const SizeRange& range : ranges) out += (out.empty() ? "" : ",") + range.option;
  return out;
}

Result<SizeGrid> parse_sizes(std::string_view text) {
  SizeGrid out;
  bool right = true;
  for (std::size_t at = 0; right && at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    SizeRange range;
    right = read_range(text.substr(at, comma - at), range) &&
            std::ranges::find(out.ranges, range.option, &SizeRange::option) == out.ranges.end();
    out.ranges.push_back(std::move(range));
    at = comma + 1;
  }
  if (right && out.members() <= kMostMembers) return out;
  return fail(ErrorCode::kUsage,
              "sizes '{}': expects batch=LOW..HIGH or seq=LOW..HIGH, or both with a comma, at most "
              "{} of them in all",
              text, kMostMembers);
}

Result<std::vector<PlanSetMember>> make_plan_set(std::vector<SizedWorkload> sizes,
                                                 const PlanOptions& options) {
  agree(sizes);
  const SizedWorkload& last = sizes.back();
  PLIMSOLL_TRY(const MakePlanOptions how, packing_options(last.graph, options));
  PLIMSOLL_TRY(Plan largest, plan_member(last, how));
  std::vector<PlanSetMember> out;
  for (std::size_t m = 0; m + 1 < sizes.size(); ++m) {
    PLIMSOLL_TRY(PlanSetMember member, member_like(sizes[m], last, largest, options));
    out.push_back(std::move(member));
  }
  out.push_back({last.sizes, std::move(largest), Places::kShared});
  return out;
}

}  // namespace plimsoll::plan

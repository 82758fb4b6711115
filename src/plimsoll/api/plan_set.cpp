#include "plimsoll/api/plan_set.h"

#include <algorithm>
#include <charconv>

#include "plimsoll/api/keep_all_plan.h"
#include "plimsoll/api/symbolic_model.h"

namespace plimsoll::api {
namespace {

constexpr std::int64_t kMostMembers = 4096;

struct Member {
  std::int64_t size = 0;
  PreparedModel prepared;
  schedule::GraphWorkload mapped;
};

bool read_number(std::string_view text, std::int64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && out > 0;
}

Result<Member> map_member(std::int64_t size, PreparedModel prepared, const PlanOptions& options) {
  Member out{size, std::move(prepared), {}};
  PLIMSOLL_TRY(out.mapped, workload_of(out.prepared.model.graph, with_costs(out.prepared, options),
                                       {.in_place = options.in_place}));
  return out;
}

Result<std::vector<Member>> make_members(const ModelRequest& request, const std::string& device,
                                         const PlanOptions& options, const SizeRange& sizes) {
  const auto symbolic = symbolic_model(at_size(request, sizes, sizes.high), {sizes.option});
  std::vector<Member> out;
  for (std::int64_t size = sizes.low; size <= sizes.high; ++size) {
    LoadedModel loaded;
    if (symbolic) {
      PLIMSOLL_TRY(loaded.graph, at_sizes(*symbolic, {{sizes.option, size}}));
    } else {
      PLIMSOLL_TRY(loaded, load_model(at_size(request, sizes, size)));
    }
    PLIMSOLL_TRY(PreparedModel prepared,
                 prepare_loaded(std::move(loaded), request.threads, device));
    PLIMSOLL_TRY(Member member, map_member(size, std::move(prepared), options));
    out.push_back(std::move(member));
  }
  return out;
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
void agree(std::vector<Member>& members) {
  schedule::Workload& largest = members.back().mapped.workload;
  for (const Member& member : members) {
    const schedule::Workload& other = member.mapped.workload;
    if (!same_steps(other, largest)) continue;
    for (std::size_t t = 0; t < largest.tasks.size(); ++t)
      largest.tasks[t].scratch = std::max(largest.tasks[t].scratch, other.tasks[t].scratch);
    for (std::size_t v = 0; v < largest.values.size(); ++v) {
      if (largest.values[v].in_place != other.values[v].in_place)
        largest.values[v].in_place.reset();
    }
  }
  for (Member& member : members) {
    schedule::Workload& other = member.mapped.workload;
    if (!same_steps(other, largest)) continue;
    for (std::size_t t = 0; t < largest.tasks.size(); ++t)
      other.tasks[t].scratch = largest.tasks[t].scratch;
    for (std::size_t v = 0; v < largest.values.size(); ++v)
      other.values[v].in_place = largest.values[v].in_place;
  }
}

Result<plan::Plan> plan_member(const Member& member, const PlanOptions& options,
                               const plan::Plan* like) {
  const ir::Graph& graph = member.prepared.model.graph;
  PLIMSOLL_TRY(plan::MakePlanOptions how, packing_options(graph, options));
  how.like = like;
  return checked(
      plan::make_plan(graph, member.mapped, schedule::keep_all(member.mapped.workload), how));
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

ModelRequest at_size(ModelRequest request, const SizeRange& sizes, std::int64_t size) {
  size_option(request.sizes, sizes.option) = size;
  return request;
}

Result<std::vector<PlanSetMember>> plan_set_for(const ModelRequest& request,
                                                const std::string& device,
                                                const PlanOptions& options,
                                                const SizeRange& sizes) {
  PLIMSOLL_TRY(std::vector<Member> members, make_members(request, device, options, sizes));
  agree(members);
  PLIMSOLL_TRY(const plan::Plan largest, plan_member(members.back(), options, nullptr));
  std::vector<PlanSetMember> out;
  for (const Member& member : members) {
    PlanSetMember made;
    made.size = member.size;
    made.shared = same_steps(member.mapped.workload, members.back().mapped.workload);
    PLIMSOLL_TRY(made.plan,
                 plan_member(member, options,
                             made.shared && &member != &members.back() ? &largest : nullptr));
    made.plan.environment = this_machine(request.threads);
    out.push_back(std::move(made));
  }
  return out;
}

}  // namespace plimsoll::api

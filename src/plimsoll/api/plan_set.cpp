#include "plimsoll/api/plan_set.h"

#include "plimsoll/api/file_kind.h"
#include "plimsoll/api/run_device.h"
#include "plimsoll/api/symbolic_model.h"
#include "plimsoll/plan/fit/workloads.h"
#include "plimsoll/plan/plan_set_files.h"
#include "plimsoll/profile/find_profile.h"

namespace plimsoll::api {
namespace {

std::vector<ir::SymbolSize> symbols_at(const SizeGrid& grid,
                                       const std::vector<std::int64_t>& sizes) {
  std::vector<ir::SymbolSize> out;
  for (std::size_t r = 0; r < sizes.size(); ++r) out.push_back({grid.ranges[r].option, sizes[r]});
  return out;
}

// The graph is bound to the sizes where there is one for all sizes, else loaded at them.
Result<plan::SizedWorkload> workload_at(const Result<ir::SymbolicGraph>& symbolic,
                                        const ModelRequest& request, const std::string& device,
                                        const PlanOptions& options, const SizeGrid& grid,
                                        const std::vector<std::int64_t>& sizes) {
  Pipeline p;
  p.request = at_sizes(request, grid, sizes);
  p.request.quiet = sizes != grid.largest();
  p.device = device;
  if (symbolic) {
    PLIMSOLL_TRY(p.model.graph, at_sizes(*symbolic, symbols_at(grid, sizes)));
    p.done = Stage::kDifferentiated;
  }
  PLIMSOLL_RETURN_IF_ERROR(advance(p, Stage::kPrepared));
  plan::SizedWorkload out{sizes, {}, {}};
  PLIMSOLL_TRY(out.mapped, plan::workload_of(p.model.graph, with_costs(p, options),
                                             {.in_place = options.in_place}));
  out.graph = std::move(p.model.graph);
  return out;
}

}  // namespace

ModelRequest at_sizes(ModelRequest request, const SizeGrid& grid,
                      const std::vector<std::int64_t>& sizes) {
  for (std::size_t r = 0; r < sizes.size(); ++r)
    size_option(request.sizes, grid.ranges[r].option) = sizes[r];
  return request;
}

Result<std::vector<PlanSetMember>> plan_set_for(const ModelRequest& request,
                                                const std::string& device,
                                                const PlanOptions& options, const SizeGrid& grid) {
  PLIMSOLL_TRY(const std::optional<int> card, kernels::parse_cuda(device));
  if (card)
    return fail(ErrorCode::kUsage, "--sizes: plan sets are for the CPU, not for {}", device);
  if (device != kMeasured) {
    PLIMSOLL_TRY(const schedule::DeviceProfile profile, profile::find_profile(device));
    if (profile.card)
      return fail(ErrorCode::kUsage, "--sizes: plan sets are for the CPU, not for the card of {}",
                  device);
  }
  std::vector<std::string> symbols;
  for (const plan::SizeRange& range : grid.ranges) symbols.push_back(range.option);
  const auto symbolic = symbolic_model(at_sizes(request, grid, grid.largest()), symbols);
  std::vector<plan::SizedWorkload> members;
  for (std::int64_t m = 0; m < grid.members(); ++m) {
    PLIMSOLL_TRY(plan::SizedWorkload member,
                 workload_at(symbolic, request, device, options, grid, grid.at(m)));
    members.push_back(std::move(member));
  }
  PLIMSOLL_TRY(std::vector<PlanSetMember> out, plan::make_plan_set(std::move(members), options));
  for (PlanSetMember& member : out) {
    member.plan.environment = runtime::environment_of(nullptr, request.threads);
    member.plan.environment.device = planned_device(device);
  }
  return out;
}

Result<plan::Plan> read_plan(const std::string& file, const model::ModelOptions& sizes) {
  plan::WantedSizes wanted;
  if (sizes.batch) wanted.emplace("batch", *sizes.batch);
  if (sizes.seq) wanted.emplace("seq", *sizes.seq);
  auto plan = plan::read_plan(file, wanted);
  // A plan that is wrong has an error of its own; only what is none is called by its name.
  if (!plan && plan.error().message.ends_with("not a plan file")) {
    if (const auto kind = kind_of_any(file)) return bad_input("{}: no plan but {}", file, *kind);
  }
  return plan;
}

}  // namespace plimsoll::api

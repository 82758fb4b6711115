#include "plimsoll/plan/make_plan.h"

#include <algorithm>
#include <numeric>

#include "plimsoll/base/checked.h"
#include "plimsoll/pack/pack.h"
#include "plimsoll/plan/arena_ends.h"
#include "plimsoll/plan/near_places.h"
#include "plimsoll/plan/step_waits.h"

namespace plimsoll::plan {
namespace {

using schedule::Action;
using schedule::ActionKind;
using schedule::Form;
using schedule::Instance;
using schedule::InstanceId;

constexpr std::uint8_t kDeviceArena = 0;
constexpr std::uint8_t kHostArena = 1;

class Maker {
 public:
  Maker(const ir::Graph& graph, const schedule::GraphWorkload& mapped,
        const schedule::Schedule& schedule, const MakePlanOptions& options)
      : graph_(graph), mapped_(mapped), schedule_(schedule), options_(options) {
    plan_.graph = graph;
    plan_.budget = options.budget;
    plan_.alignment = mapped.alignment;
    plan_.predicted_seconds = schedule.seconds;
    is_output_.assign(graph.values.size(), false);
    for (const ValueId output : graph.outputs) is_output_[output.index()] = true;
  }

  Result<Plan> run() {
    number_steps();
    make_buffers();
    keep_sources_apart();
    make_steps();
    place_sources_and_results();
    group_buffers();
    PLIMSOLL_RETURN_IF_ERROR(options_.like != nullptr   ? take_offsets(*options_.like)
                             : options_.near != nullptr ? take_places(*options_.near)
                                                        : pack_arenas());
    wait_for_places(plan_);
    prove();
    return std::move(plan_);
  }

 private:
  // The place of every action in the plan. A drop is none: whoever takes over its bytes waits.
  void number_steps() {
    std::int32_t next = 0;
    for (const Action& action : schedule_.actions) {
      step_of_.push_back(Step(next));
      if (action.kind != ActionKind::kDrop) ++next;
    }
    step_of_.push_back(Step(next));
  }

  void make_buffers() {
    buffer_of_.resize(schedule_.instances.size());
    for (std::size_t i = 0; i < schedule_.instances.size(); ++i) {
      const Instance& instance = schedule_.instances[i];
      const Interval<Step> lifetime{
          step_of_[static_cast<std::size_t>(instance.lifetime.begin.value)],
          step_of_[static_cast<std::size_t>(instance.lifetime.end.value)]};
      if (instance.takes_over.valid()) {
        buffer_of_[i] = buffer_of_[instance.takes_over.index()];
        Interval<Step>& whole = plan_.buffers[buffer_of_[i].index()].lifetime;
        whole.begin = std::min(whole.begin, lifetime.begin);
        whole.end = std::max(whole.end, lifetime.end);
        continue;
      }
      const ValueId value = mapped_.graph_value[instance.value.index()];
      PlanBuffer buffer;
      buffer.name = graph_.value(value).name;
      buffer.value = value;
      buffer.bytes = instance.bytes;
      buffer.use = use_of(graph_, value, is_output_[value.index()]);
      buffer.arena = instance.form == Form::kHost ? kHostArena : kDeviceArena;
      buffer.lifetime = lifetime;
      buffer_of_[i] = add_buffer(std::move(buffer));
    }
  }

  // Sources are all written before the first step, so even one that nobody reads has bytes until
  // then.
  void keep_sources_apart() {
    for (const InstanceId id : schedule_.at_start) {
      Interval<Step>& lifetime = plan_.buffers[buffer_of_[id.index()].index()].lifetime;
      lifetime.end = std::max(lifetime.end, Step(1));
    }
  }

  BufferId add_buffer(PlanBuffer buffer) {
    plan_.buffers.push_back(std::move(buffer));
    return BufferId(plan_.buffers.size() - 1);
  }

  void make_steps() {
    for (std::size_t a = 0; a < schedule_.actions.size(); ++a) {
      const Action& action = schedule_.actions[a];
      if (action.kind == ActionKind::kDrop) continue;
      PlanStep step;
      step.kind = action.kind;
      step.stream = static_cast<std::uint8_t>(action.stream);
      step.seconds = action.seconds;
      if (action.task.valid()) {
        fill_compute(step, action, step_of_[a]);
      } else {
        fill_move(step, action);
      }
      plan_.steps.push_back(std::move(step));
    }
  }

  void fill_compute(PlanStep& step, const Action& action, Step at) {
    step.node = mapped_.node_of_task[action.task.index()];
    const ir::Node& node = graph_.node(step.node);
    for (const ValueId input : node.inputs)
      step.inputs.push_back(input.valid() ? slot(input, action.reads) : Slot{});
    for (const ValueId output : node.outputs) step.outputs.push_back(slot(output, action.writes));
    const Bytes scratch = mapped_.workload.task(action.task).scratch;
    if (scratch.value == 0) return;
    PlanBuffer buffer;
    buffer.name = fmt::format("{} scratch", mapped_.workload.task(action.task).name);
    buffer.bytes = scratch;
    buffer.use = Use::kTemporary;
    buffer.lifetime = {at, at + 1};
    step.scratch = {add_buffer(std::move(buffer)), Bytes(0)};
  }

  // The slot of a graph value among the instances an action touches.
  Slot slot(ValueId value, const std::vector<InstanceId>& instances) const {
    const schedule::Place& place = mapped_.place[value.index()];
    const auto found = std::find_if(instances.begin(), instances.end(), [&](InstanceId id) {
      return mapped_.lead[schedule_.instances[id.index()].value.index()] ==
             mapped_.lead[place.value.index()];
    });
    PLIMSOLL_CHECK(found != instances.end(), "no instance of '{}' is at hand",
                   graph_.value(value).name);
    return {buffer_of_[found->index()], place.offset};
  }

  void fill_move(PlanStep& step, const Action& action) {
    const Instance& first = schedule_.instances[action.reads.front().index()];
    step.value = mapped_.graph_value[first.value.index()];
    for (const InstanceId id : action.reads)
      step.inputs.push_back({buffer_of_[id.index()], Bytes(0)});
    for (const InstanceId id : action.writes)
      step.outputs.push_back({buffer_of_[id.index()], Bytes(0)});
    if (step.kind != StepKind::kEncode && step.kind != StepKind::kDecode) return;
    const InstanceId encoded =
        step.kind == StepKind::kEncode ? action.writes.front() : action.reads.front();
    const Instance& small = schedule_.instances[encoded.index()];
    step.codec = mapped_.workload.value(small.value).encodings[small.encoding].name;
  }

  void place_sources_and_results() {
    std::vector<InstanceId> first(mapped_.workload.values.size());
    for (const InstanceId id : schedule_.at_start)
      first[schedule_.instances[id.index()].value.index()] = id;
    const std::vector<InstanceId> last = instances_at_end();
    for (std::size_t v = 0; v < graph_.values.size(); ++v) {
      if (!ir::is_source(graph_.values[v].kind)) continue;
      plan_.sources.push_back({ValueId(v), slot_in(first, ValueId(v))});
    }
    for (const ValueId output : graph_.outputs)
      plan_.results.push_back({output, slot_in(last, output)});
    for (const ir::Update& update : graph_.updates)
      plan_.results.push_back({update.next, slot_in(last, update.next)});
    for (const ValueId pinned : options_.pinned) {
      if (std::ranges::find(plan_.results, pinned, &ValueSlot::value) == plan_.results.end())
        plan_.results.push_back({pinned, slot_in(last, pinned)});
    }
  }

  // By workload value: the instance that is there after the last action.
  std::vector<InstanceId> instances_at_end() const {
    std::vector<InstanceId> out(mapped_.workload.values.size());
    const auto end = static_cast<std::int32_t>(schedule_.actions.size());
    for (std::size_t i = 0; i < schedule_.instances.size(); ++i) {
      const Instance& instance = schedule_.instances[i];
      if (instance.lifetime.end.value >= end) out[instance.value.index()] = InstanceId(i);
    }
    return out;
  }

  Slot slot_in(const std::vector<InstanceId>& instances, ValueId value) const {
    const schedule::Place& place = mapped_.place[value.index()];
    const InstanceId id = instances[place.value.index()];
    PLIMSOLL_CHECK(id.valid(), "'{}' is not in memory when it should be", graph_.value(value).name);
    return {buffer_of_[id.index()], place.offset};
  }

  Status pack_arenas() {
    std::uint8_t arenas = 1;
    for (const PlanBuffer& buffer : plan_.buffers)
      arenas = std::max<std::uint8_t>(arenas, buffer.arena + 1);
    for (std::uint8_t arena = 0; arena < arenas; ++arena) {
      plan_.arenas.push_back({arena == kDeviceArena ? "device" : "host", Bytes(0)});
      PLIMSOLL_RETURN_IF_ERROR(pack_arena(arena));
    }
    return {};
  }

  // The load is the bound that everybody can check. What the packer proves beyond it (by search, or
  // because nothing may be shared, or each buffer has its end of the arena) is no bound on these
  // buffers that a reader of the plan could confirm.
  void prove() {
    const std::vector<Bytes> alive = bytes_by_step(plan_);
    plan_.proof.load = *std::max_element(alive.begin(), alive.end());
    plan_.proof.lower_bound = plan_.proof.load;
    plan_.proof.optimal = plan_.arena_bytes() == plan_.proof.load;
  }

  // The offsets of a plan with the same steps and buffers that are at least as large.
  Status take_offsets(const Plan& larger) {
    if (larger.buffers.size() != plan_.buffers.size() ||
        larger.steps.size() != plan_.steps.size()) {
      return bad_input(
          "'{}' has {} steps and {} buffers at this size, the largest {} and {}: no plan set",
          graph_.name, plan_.steps.size(), plan_.buffers.size(), larger.steps.size(),
          larger.buffers.size());
    }
    plan_.arenas = larger.arenas;
    Offset top;
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      PlanBuffer& buffer = plan_.buffers[b];
      const PlanBuffer& model = larger.buffers[b];
      if (buffer.bytes > model.bytes || buffer.lifetime != model.lifetime ||
          buffer.arena != model.arena) {
        return bad_input("'{}' does not fit its place in the plan of the largest size: no plan set",
                         buffer.name);
      }
      buffer.offset = model.offset;
      if (buffer.arena == kDeviceArena) top = std::max(top, buffer.offset + buffer.bytes);
    }
    plan_.arenas.front().bytes = top - Offset(0);
    return {};
  }

  Status take_places(const Plan& other) {
    const bool one_arena = std::ranges::all_of(
        plan_.buffers, [](const PlanBuffer& buffer) { return buffer.arena == kDeviceArena; });
    if (!one_arena || !plan_.contiguous.empty() ||
        !take_near_places(plan_.buffers, other, mapped_.alignment))
      return bad_input("'{}' finds no places in the plan of the largest size", graph_.name);
    Offset top;
    for (const PlanBuffer& buffer : plan_.buffers)
      top = std::max(top, buffer.offset + buffer.bytes);
    plan_.arenas = {{"device", top - Offset(0)}};
    return {};
  }

  Status pack_arena(std::uint8_t arena) {
    pack::Problem problem;
    std::vector<std::size_t> packed;  // plan buffer of each problem buffer
    std::vector<BufferId> problem_buffer(plan_.buffers.size());  // and the other way round
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      const PlanBuffer& buffer = plan_.buffers[b];
      if (buffer.arena != arena) continue;
      problem_buffer[b] = BufferId(packed.size());
      packed.push_back(b);
      pack::Buffer item;
      item.lifetime = {buffer.lifetime.begin.value, buffer.lifetime.end.value};
      // Host memory is not scarce, and only device memory is ordered between streams.
      if (!options_.sharing || arena == kHostArena)
        item.lifetime = {0, static_cast<std::int64_t>(plan_.steps.size())};
      item.size = buffer.bytes;
      item.alignment = mapped_.alignment.value;
      problem.buffers.push_back(item);
      if (options_.two_ended) {
        const bool whole =
            buffer.lifetime.begin.value == 0 &&
            buffer.lifetime.end.value >= static_cast<std::int32_t>(plan_.steps.size());
        problem.ends.push_back(whole ? pack::ArenaEnd::kFront : pack::ArenaEnd::kBack);
      }
    }
    if (arena == kDeviceArena) add_groups(problem, problem_buffer);
    add_returns(problem, problem_buffer);
    agree_on_ends(problem);
    pack::PackOptions how;
    how.goal = pack::Goal::kMinimize;
    how.deadline_seconds = options_.pack_seconds;
    how.deterministic = options_.deterministic;
    if (options_.greedy) {
      // The greedy orders are quadratic: beyond this the skyline stands in for them.
      constexpr std::size_t kGreedyLimit = 4000;
      how.method = packed.size() <= kGreedyLimit ? pack::Method::kBySize : pack::Method::kSkyline;
      how.deadline_seconds = 30;
    }
    PLIMSOLL_TRY(const pack::Packing packing, pack::pack(problem, how));
    PLIMSOLL_CHECK(packing.offsets.size() == packed.size(),
                   "the packer placed {} of {} buffers ({}, {})", packing.offsets.size(),
                   packed.size(), pack::name(packing.status), packing.method);
    for (std::size_t i = 0; i < packed.size(); ++i)
      plan_.buffers[packed[i]].offset = packing.offsets[i];
    plan_.arenas[arena].bytes = packing.height();
    return {};
  }

  // The buffers of each group that is asked for. A value that takes over another's memory is found
  // by its instance; a buffer is in one group at most.
  void group_buffers() {
    if (options_.contiguous.empty()) return;
    std::vector<BufferId> holder(mapped_.workload.values.size());
    for (std::size_t i = schedule_.instances.size(); i-- > 0;) {
      const Instance& instance = schedule_.instances[i];
      if (instance.form == Form::kDevice) holder[instance.value.index()] = buffer_of_[i];
    }
    std::vector<bool> taken(plan_.buffers.size(), false);
    for (const std::vector<ValueId>& group : options_.contiguous) {
      std::vector<BufferId> members;
      for (const ValueId value : group) {
        const BufferId buffer = holder[mapped_.place[value.index()].value.index()];
        if (!buffer.valid() || taken[buffer.index()]) continue;
        taken[buffer.index()] = true;
        members.push_back(buffer);
      }
      if (members.size() > 1) plan_.contiguous.push_back(std::move(members));
    }
  }

  void add_groups(pack::Problem& problem, const std::vector<BufferId>& problem_buffer) const {
    for (const std::vector<BufferId>& group : plan_.contiguous) {
      std::vector<BufferId> members;
      for (const BufferId buffer : group) members.push_back(problem_buffer[buffer.index()]);
      problem.contiguous.push_back(std::move(members));
    }
  }

  // State that left its memory and came back must lie, at the end, where the next step looks for
  // it.
  void add_returns(pack::Problem& problem, const std::vector<BufferId>& problem_buffer) const {
    std::vector<ValueId> next(graph_.values.size());
    for (const ir::Update& update : graph_.updates) next[update.source.index()] = update.next;
    std::vector<InstanceId> last = instances_at_end();
    for (const ValueSlot& source : plan_.sources) {
      if (graph_.value(source.value).kind == ir::ValueKind::kInput) continue;
      const ValueId now =
          next[source.value.index()].valid() ? next[source.value.index()] : source.value;
      const BufferId end = slot_in(last, now).buffer;
      const BufferId begin = source.slot.buffer;
      if (end == begin || !problem_buffer[begin.index()].valid() ||
          !problem_buffer[end.index()].valid())
        continue;
      problem.colocated.push_back({problem_buffer[begin.index()], problem_buffer[end.index()]});
    }
  }

  const ir::Graph& graph_;
  const schedule::GraphWorkload& mapped_;
  const schedule::Schedule& schedule_;
  const MakePlanOptions& options_;
  Plan plan_;
  std::vector<bool> is_output_;
  std::vector<Step> step_of_;        // by action, and one behind the last
  std::vector<BufferId> buffer_of_;  // by instance
};

}  // namespace

Result<Plan> make_plan(const ir::Graph& graph, const schedule::GraphWorkload& mapped,
                       const schedule::Schedule& schedule, const MakePlanOptions& options) {
  return Maker(graph, mapped, schedule, options).run();
}

}  // namespace plimsoll::plan

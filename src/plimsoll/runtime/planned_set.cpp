#include "plimsoll/runtime/planned_set.h"

#include <algorithm>

namespace plimsoll::runtime {
namespace {

std::vector<const ir::Value*> states_of(const ir::Graph& graph) {
  std::vector<const ir::Value*> out;
  for (const ir::Value& value : graph.values) {
    if (ir::is_persistent(value.kind)) out.push_back(&value);
  }
  return out;
}

Status require_same_states(const ir::Graph& graph, const ir::Graph& last) {
  const std::vector<const ir::Value*> own = states_of(graph);
  const std::vector<const ir::Value*> expected = states_of(last);
  for (std::size_t s = 0; s < std::min(own.size(), expected.size()); ++s) {
    if (own[s]->name != expected[s]->name || own[s]->type != expected[s]->type) {
      return bad_input(
          "'{}' is {} at one size and {} at another: a run cannot go on from one to the other",
          own[s]->name, ir::to_string(own[s]->type), ir::to_string(expected[s]->type));
    }
  }
  if (own.size() != expected.size())
    return bad_input("{} weights and states at one size, {} at another", own.size(),
                     expected.size());
  return {};
}

}  // namespace

std::vector<PlannedSet::Place> PlannedSet::places_of(const plan::Plan& plan) {
  std::vector<Place> out;
  for (const plan::ValueSlot& source : plan.sources) {
    if (ir::is_persistent(plan.graph.value(source.value).kind))
      out.push_back({source.value, plan::place_of(plan, source.slot)});
  }
  std::sort(out.begin(), out.end(),
            [](const Place& a, const Place& b) { return a.value < b.value; });
  return out;
}

Result<PlannedSet> PlannedSet::make(std::vector<plan::Plan> plans, const ExecutorOptions& options) {
  PLIMSOLL_CHECK(!plans.empty());
  PlannedSet out;
  Bytes most;
  for (const plan::Plan& plan : plans) {
    if (plan.arenas.size() != 1)
      return bad_input("a plan of a plan set keeps everything in one arena; this one has {}",
                       plan.arenas.size());
    PLIMSOLL_RETURN_IF_ERROR(require_same_states(plan.graph, plans.back().graph));
    out.places_.push_back(places_of(plan));
    most = std::max(most, plan.arena_bytes());
  }
  out.options_ = options;
  out.options_.backend = backend_of(options);
  PLIMSOLL_TRY(std::unique_ptr<device::Arena> arena,
               out.options_.backend->device().make_arena(most));
  out.arenas_ = std::make_shared<Arenas>();
  out.arenas_->memory.push_back(std::move(arena));
  out.executors_.resize(plans.size());
  out.plans_ = std::move(plans);
  out.current_ = out.plans_.size() - 1;
  return out;
}

Result<Executor*> PlannedSet::at(std::size_t member) {
  PLIMSOLL_RETURN_IF_ERROR(bind(member));
  if (member != current_) PLIMSOLL_RETURN_IF_ERROR(hand_over(current_, member));
  current_ = member;
  return executors_[member].get();
}

Status PlannedSet::bind(std::size_t member) {
  if (executors_[member]) return {};
  PLIMSOLL_TRY(executors_[member], make_planned(std::move(plans_[member]), options_, arenas_));
  return {};
}

Status PlannedSet::bind_all() {
  for (std::size_t member = 0; member < executors_.size(); ++member)
    PLIMSOLL_RETURN_IF_ERROR(bind(member));
  return {};
}

Status PlannedSet::hand_over(std::size_t from, std::size_t to) {
  const bool there =
      std::ranges::equal(places_[from], places_[to], {}, &Place::offset, &Place::offset);
  if (there || !executors_[from]) return {};
  std::vector<std::vector<std::byte>> content;
  for (const Place& place : places_[from]) {
    PLIMSOLL_TRY(std::vector<std::byte> bytes, executors_[from]->read(place.value));
    content.push_back(std::move(bytes));
  }
  for (std::size_t s = 0; s < content.size(); ++s)
    PLIMSOLL_RETURN_IF_ERROR(executors_[to]->write(places_[to][s].value, content[s]));
  return {};
}

}  // namespace plimsoll::runtime

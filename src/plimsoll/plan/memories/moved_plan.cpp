#include "plimsoll/plan/memories/moved_plan.h"

#include <algorithm>
#include <array>

#include "plimsoll/base/check.h"
#include "plimsoll/base/checked.h"

namespace plimsoll::plan {
namespace {

constexpr std::uint8_t kCopyOutStream = 1, kCopyInStream = 2;
constexpr std::size_t kMoveStreams = 3;
constexpr std::int32_t kAtHome = -1;

}  // namespace

struct MovedPlan::Uses {
  std::vector<std::int32_t> steps;
  std::int64_t needed = 0;
  bool source = false;
  bool lasting = false;
  bool used() const { return source || lasting || !steps.empty(); }
};

MovedPlan::MovedPlan(const Plan& plan, const PlacementModel& model, const Placement& placement,
                     const std::vector<Window>& windows)
    : before_(plan), model_(model), windows_(windows), out_(plan) {
  make_windows(placement);
  make_steps(placement);
  place_results(placement);
  set_lifetimes();
}

void MovedPlan::make_windows(const Placement& placement) {
  for (const auto& level : placement.level) window_of_.emplace_back(level.size(), kAtHome);
  for (std::size_t w = 0; w < windows_.size(); ++w) {
    const Window& window = windows_[w];
    const BufferTraffic& traffic = model_.traffic().buffers[as_index(window.buffer)];
    for (std::int32_t t = window.first; t <= window.last; ++t)
      window_of_[as_index(window.buffer)][as_index(t)] = static_cast<std::int32_t>(w);
    PlanBuffer buffer = before_.buffers[as_index(window.buffer)];
    buffer.arena = static_cast<std::uint8_t>(kFirstLevelArena + window.level - 1U);
    buffer.offset = Offset(0);
    if (window.copies_in)
      buffer.value = window.first == 0 ? traffic.begins_with
                                       : traffic.touches[as_index(window.first) - 1].holds;
    buffer_of_.push_back(out_.buffers.size());
    out_.buffers.push_back(std::move(buffer));
  }
}

// Where a step finds what the plan for one memory had in a slot.
Slot MovedPlan::redirected(const Slot& slot, std::int32_t step) const {
  if (!slot.buffer.valid()) return slot;
  const auto& touches = model_.traffic().buffers[slot.buffer.index()].touches;
  const auto found =
      std::lower_bound(touches.begin(), touches.end(), step,
                       [](const Touch& touch, std::int32_t at) { return touch.step < at; });
  PLIMSOLL_CHECK(found != touches.end() && found->step == step, "a touch is missing");
  const std::int32_t w =
      window_of_[slot.buffer.index()][static_cast<std::size_t>(found - touches.begin())];
  return w == kAtHome ? slot : Slot{BufferId(buffer_of_[as_index(w)]), slot.offset};
}

void MovedPlan::add_copy(std::size_t w, bool in) {
  const Window& window = windows_[w];
  const BufferTraffic& traffic = model_.traffic().buffers[as_index(window.buffer)];
  const Slot home{BufferId(as_index(window.buffer)), Bytes(0)};
  const Slot there{BufferId(buffer_of_[w]), Bytes(0)};
  PlanStep step;
  step.kind = in ? StepKind::kCopyIn : StepKind::kCopyOut;
  step.stream = in ? kCopyInStream : kCopyOutStream;
  step.value =
      in ? out_.buffers[buffer_of_[w]].value : traffic.touches[as_index(window.last)].holds;
  step.inputs = {in ? home : there};
  step.outputs = {in ? there : home};
  step.seconds = model_.copy_seconds(window, !in);
  out_.steps.push_back(std::move(step));
}

void MovedPlan::make_steps(const Placement& placement) {
  std::vector<std::vector<std::size_t>> before(before_.steps.size()), behind(before_.steps.size());
  const auto touch_of = [&](const Window& window, std::int32_t which) {
    return model_.traffic().buffers[as_index(window.buffer)].touches[as_index(which)].step;
  };
  for (std::size_t w = 0; w < windows_.size(); ++w) {
    if (windows_[w].copies_in) before[as_index(windows_[w].issue)].push_back(w);
    if (windows_[w].copies_out)
      behind[as_index(touch_of(windows_[w], windows_[w].last))].push_back(w);
  }
  out_.steps.clear();
  for (std::size_t s = 0; s < before_.steps.size(); ++s) {
    std::stable_sort(before[s].begin(), before[s].end(), [&](std::size_t a, std::size_t b) {
      return touch_of(windows_[a], windows_[a].first) < touch_of(windows_[b], windows_[b].first);
    });
    for (const std::size_t w : before[s]) add_copy(w, true);
    PlanStep step = before_.steps[s];
    const auto now = static_cast<std::int32_t>(s);
    for (Slot& slot : step.inputs) slot = redirected(slot, now);
    for (Slot& slot : step.outputs) slot = redirected(slot, now);
    step.scratch = redirected(step.scratch, now);
    step.seconds = model_.step_seconds(placement, s);
    first_of_.push_back(static_cast<std::int32_t>(out_.steps.size()));
    out_.steps.push_back(std::move(step));
    for (const std::size_t w : behind[s]) add_copy(w, false);
  }
  first_of_.push_back(static_cast<std::int32_t>(out_.steps.size()));
}

// Where device memory is read only, results lie in the memory they were made in.
void MovedPlan::place_results(const Placement&) {
  for (ValueSlot& result : out_.results) {
    const std::size_t b = result.slot.buffer.index();
    if (model_.must_leave(b) && !window_of_[b].empty() && window_of_[b].back() != kAtHome)
      result.slot.buffer = BufferId(buffer_of_[as_index(window_of_[b].back())]);
  }
}

std::vector<MovedPlan::Uses> MovedPlan::uses() const {
  std::vector<Uses> out(out_.buffers.size());
  const auto need = [&](const Slot& slot, ValueId value) {
    if (!slot.buffer.valid() || !value.valid()) return;
    std::int64_t& needed = out[slot.buffer.index()].needed;
    needed = std::max(needed, slot.offset.value + ir::bytes_of(out_.graph.value(value).type).value);
  };
  for (const ValueSlot& source : out_.sources) {
    Uses& uses = out[source.slot.buffer.index()];
    uses.source = true;
    uses.lasting = uses.lasting || out_.graph.value(source.value).kind != ir::ValueKind::kInput;
    need(source.slot, source.value);
  }
  for (const ValueSlot& result : out_.results) {
    out[result.slot.buffer.index()].lasting = true;
    need(result.slot, result.value);
  }
  for (std::size_t s = 0; s < out_.steps.size(); ++s) {
    const PlanStep& step = out_.steps[s];
    const ir::Node* node = step.node.valid() ? &out_.graph.node(step.node) : nullptr;
    for (const bool writes : {true, false}) {
      const std::vector<Slot>& slots = writes ? step.outputs : step.inputs;
      for (std::size_t i = 0; i < slots.size(); ++i) {
        if (!slots[i].buffer.valid()) continue;
        need(slots[i], node == nullptr ? step.value : writes ? node->outputs[i] : node->inputs[i]);
        out[slots[i].buffer.index()].steps.push_back(static_cast<std::int32_t>(s));
      }
    }
    if (step.scratch.buffer.valid())
      out[step.scratch.buffer.index()].steps.push_back(static_cast<std::int32_t>(s));
  }
  return out;
}

void MovedPlan::set_lifetimes() {
  const std::vector<Uses> all = uses();
  const auto end = static_cast<std::int32_t>(out_.steps.size());
  for (std::size_t b = 0; b < all.size(); ++b) {
    PlanBuffer& buffer = out_.buffers[b];
    const Uses& used = all[b];
    const std::int32_t first = used.source || used.steps.empty() ? 0 : used.steps.front();
    const std::int32_t last = used.steps.empty() ? 1 : used.steps.back() + 1;
    buffer.lifetime = {Step(first), Step(used.lasting ? std::max(last, end) : last)};
    if (buffer.value.valid()) buffer.bytes = Bytes(round_up(used.needed, out_.alignment.value));
  }
}

std::vector<std::size_t> MovedPlan::windows_on(std::uint8_t level) const {
  std::vector<std::size_t> out;
  for (std::size_t w = 0; w < windows_.size(); ++w) {
    if (windows_[w].level == level) out.push_back(w);
  }
  return out;
}

// A place is free when its copy out is expected to be over.
pack::Buffer MovedPlan::pack_buffer(std::size_t w) const {
  const PlanBuffer& buffer = out_.buffers[buffer_of_[w]];
  pack::Buffer item;
  item.lifetime = {buffer.lifetime.begin.value,
                   std::max(buffer.lifetime.end.value, first_of_[as_index(windows_[w].release)])};
  item.size = buffer.bytes;
  item.alignment = out_.alignment.value;
  return item;
}

void MovedPlan::set_offset(std::size_t w, Offset offset) {
  out_.buffers[buffer_of_[w]].offset = offset;
}

Bytes MovedPlan::height_of(std::uint8_t level) const {
  std::int64_t top = 0;
  for (const std::size_t w : windows_on(level)) {
    const PlanBuffer& buffer = out_.buffers[buffer_of_[w]];
    top = std::max(top, buffer.offset.value + buffer.bytes.value);
  }
  return Bytes(top);
}

Plan MovedPlan::finish() {
  drop_unused();
  name_buffers();
  set_arenas();
  add_waits();
  set_seconds();
  prove();
  return std::move(out_);
}

void MovedPlan::drop_unused() {
  const std::vector<Uses> all = uses();
  std::vector<BufferId> next(all.size());
  std::vector<PlanBuffer> kept;
  for (std::size_t b = 0; b < all.size(); ++b) {
    if (!all[b].used()) continue;
    next[b] = BufferId(kept.size());
    kept.push_back(std::move(out_.buffers[b]));
  }
  out_.buffers = std::move(kept);
  const auto renumber = [&](Slot& slot) {
    if (slot.buffer.valid()) slot.buffer = next[slot.buffer.index()];
  };
  for (PlanStep& step : out_.steps) {
    for (Slot& slot : step.inputs) renumber(slot);
    for (Slot& slot : step.outputs) renumber(slot);
    renumber(step.scratch);
  }
  for (ValueSlot& source : out_.sources) renumber(source.slot);
  for (ValueSlot& result : out_.results) renumber(result.slot);
  for (std::vector<BufferId>& group : out_.contiguous) {
    for (BufferId& id : group) id = next[id.index()];
  }
}

// A buffer is called after what is put there first, which may be what comes back from a window.
void MovedPlan::name_buffers() {
  std::vector<bool> seen(out_.buffers.size(), false), is_output(out_.graph.values.size(), false);
  for (const ValueId output : out_.graph.outputs) is_output[output.index()] = true;
  for (const ValueSlot& source : out_.sources) seen[source.slot.buffer.index()] = true;
  for (const PlanStep& step : out_.steps) {
    for (const Slot& slot : step.outputs) {
      if (!slot.buffer.valid() || seen[slot.buffer.index()]) continue;
      seen[slot.buffer.index()] = true;
      PlanBuffer& buffer = out_.buffers[slot.buffer.index()];
      if (step.node.valid()) continue;
      buffer.value = step.value;
      buffer.name = out_.graph.value(step.value).name;
      buffer.use = use_of(out_.graph, step.value, is_output[step.value.index()]);
    }
  }
}

void MovedPlan::set_arenas() {
  std::vector<std::int64_t> top(kFirstLevelArena + model_.levels(), 0);
  for (const PlanBuffer& buffer : out_.buffers)
    top[buffer.arena] = std::max(top[buffer.arena], buffer.offset.value + buffer.bytes.value);
  while (top.size() > 1 && top.back() == 0) top.pop_back();
  out_.arenas.clear();
  for (std::size_t a = 0; a < top.size(); ++a) {
    const std::string called = a == 0   ? "device"
                               : a == 1 ? "host"
                                        : model_.profile().memories[a - kFirstLevelArena].name;
    out_.arenas.push_back({called, Bytes(top[a])});
  }
}

// A step waits for whoever wrote what it reads, for whoever used what it writes, and, where it is
// the first in its buffer, for all who used those bytes before.
void MovedPlan::add_waits() {
  using Last = std::array<std::int32_t, kMoveStreams>;
  struct Access {
    Last all{kAtHome, kAtHome, kAtHome}, writes{kAtHome, kAtHome, kAtHome};
    bool begun = false;
  };
  std::vector<Access> access(out_.buffers.size());
  std::vector<Last> knows(out_.steps.size());
  Last latest{kAtHome, kAtHome, kAtHome};
  std::vector<std::vector<std::size_t>> in_arena(out_.arenas.size());
  const auto merge = [](Last& into, const Last& from) {
    for (std::size_t k = 0; k < kMoveStreams; ++k) into[k] = std::max(into[k], from[k]);
  };
  for (std::size_t b = 0; b < out_.buffers.size(); ++b)
    in_arena[out_.buffers[b].arena].push_back(b);
  for (std::size_t s = 0; s < out_.steps.size(); ++s) {
    PlanStep& step = out_.steps[s];
    Last need{kAtHome, kAtHome, kAtHome};
    const auto use = [&](const Slot& slot, bool writes) {
      if (!slot.buffer.valid()) return;
      const PlanBuffer& own = out_.buffer(slot.buffer);
      Access& at = access[slot.buffer.index()];
      merge(need, writes ? at.all : at.writes);
      if (at.begun) return;
      at.begun = true;
      for (const std::size_t b : in_arena[own.arena]) {
        const PlanBuffer& other = out_.buffers[b];
        const bool apart = other.offset.value >= own.offset.value + own.bytes.value ||
                           own.offset.value >= other.offset.value + other.bytes.value;
        if (!apart && access[b].begun && b != slot.buffer.index()) merge(need, access[b].all);
      }
    };
    for (const Slot& slot : step.inputs) use(slot, false);
    for (const Slot& slot : step.outputs) use(slot, true);
    use(step.scratch, true);
    Last known{kAtHome, kAtHome, kAtHome};
    if (latest[step.stream] != kAtHome) known = knows[as_index(latest[step.stream])];
    known[step.stream] = latest[step.stream];
    step.waits.clear();
    for (std::size_t k = 0; k < kMoveStreams; ++k) {
      if (k == step.stream || need[k] <= known[k]) continue;
      step.waits.push_back(static_cast<std::uint32_t>(need[k]));
      merge(known, knows[as_index(need[k])]);
      known[k] = std::max(known[k], need[k]);
    }
    knows[s] = known;
    latest[step.stream] = static_cast<std::int32_t>(s);
    const auto note = [&](const Slot& slot, bool writes) {
      if (!slot.buffer.valid()) return;
      Access& at = access[slot.buffer.index()];
      at.all[step.stream] = static_cast<std::int32_t>(s);
      if (writes) at.writes[step.stream] = static_cast<std::int32_t>(s);
    };
    for (const Slot& slot : step.inputs) note(slot, false);
    for (const Slot& slot : step.outputs) note(slot, true);
    note(step.scratch, true);
  }
}

void MovedPlan::set_seconds() {
  std::array<double, kMoveStreams> free_at{};
  std::vector<double> done(out_.steps.size(), 0);
  double end = 0;
  for (std::size_t s = 0; s < out_.steps.size(); ++s) {
    const PlanStep& step = out_.steps[s];
    double start = free_at[step.stream];
    for (const std::uint32_t wait : step.waits) start = std::max(start, done[wait]);
    done[s] = free_at[step.stream] = start + step.seconds;
    end = std::max(end, done[s]);
  }
  out_.predicted_seconds = end;
}

void MovedPlan::prove() {
  const std::vector<Bytes> alive = bytes_by_step(out_);
  out_.proof.load = alive.empty() ? Bytes(0) : *std::max_element(alive.begin(), alive.end());
  out_.proof.lower_bound = out_.proof.load;
  out_.proof.optimal = out_.arena_bytes() == out_.proof.load;
}

}  // namespace plimsoll::plan

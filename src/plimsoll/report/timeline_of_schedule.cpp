#include "plimsoll/report/timeline_of_schedule.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "plimsoll/base/byte_size.h"

namespace plimsoll::report {
namespace {

using schedule::FileStep;
using schedule::Form;
using schedule::HeldValue;
using schedule::ScheduleFile;
using schedule::ScheduleReplay;

void add_schedule_steps(const ScheduleFile& file, const ScheduleReplay& replay,
                        Timeline& timeline) {
  double now = 0;
  std::vector<char> ran(file.workload.values.size(), 0);
  for (std::size_t s = 0; s < file.steps.size(); ++s) {
    const FileStep& step = file.steps[s];
    const schedule::Value& value = file.workload.value(step.value);
    const bool computes = step.kind == FileStep::Kind::kCompute;
    const bool again = computes && ran[step.value.index()];
    const std::string what(again ? "recompute" : schedule::name_of(step.kind));
    if (computes) ran[step.value.index()] = 1;
    Operator& op = timeline.operators.emplace_back();
    op.name = timeline.texts.intern(computes && !again ? value.name : what + " " + value.name);
    op.layer = timeline.texts.intern(layer_of_name(value.name));
    op.what = timeline.texts.intern(what);
    op.time_step = Step(static_cast<std::int64_t>(s));
    op.seconds = replay.step_seconds[s];
    op.touched = value.bytes;
    if (computes) {
      const schedule::Task& task = file.workload.task(value.producer);
      op.touched += task.scratch;
      for (const ValueId input : task.inputs) op.touched += file.workload.value(input).bytes;
    }
    timeline.seconds.push_back(now);
    now += op.seconds;
  }
  timeline.seconds.push_back(now);
  if (file.steps.empty()) timeline.seconds.push_back(now);
}

void add_held(const ScheduleFile& file, const ScheduleReplay& replay,
              std::span<const Offset> places, Timeline& timeline) {
  for (std::size_t h = 0; h < replay.held.size(); ++h) {
    const HeldValue& held = replay.held[h];
    const std::string& name = file.workload.value(held.value).name;
    Allocation& allocation = timeline.allocations.emplace_back();
    allocation.name = timeline.texts.intern(name);
    allocation.layer = timeline.texts.intern(layer_of_name(name));
    allocation.kind = held.form == Form::kHost ? Kind::kStaging : Kind::kActivations;
    allocation.memory = held.form == Form::kHost ? 1 : 0;
    allocation.bytes = held.bytes;
    allocation.place = places[h];
    allocation.life = held.life;
    allocation.producer = held.made_at;
    allocation.last_reader = held.last_read;
    allocation.buffer = BufferId(h);
    if (held.form == Form::kEncoded) allocation.type = timeline.texts.intern("encoded");
    if (held.form != Form::kHost)
      timeline.arena = std::max(timeline.arena, Bytes(places[h].value) + held.bytes);
  }
}

// Scratch lies above everything else while its node runs: it has no place in a packing.
void add_scratch(const ScheduleFile& file, Timeline& timeline) {
  Bytes above = timeline.arena;
  for (std::size_t s = 0; s < file.steps.size(); ++s) {
    if (file.steps[s].kind != FileStep::Kind::kCompute) continue;
    const schedule::Value& value = file.workload.value(file.steps[s].value);
    const Bytes scratch = file.workload.task(value.producer).scratch;
    if (scratch.value == 0) continue;
    Allocation& allocation = timeline.allocations.emplace_back();
    allocation.name = timeline.texts.intern("scratch of " + value.name);
    allocation.layer = timeline.texts.intern(layer_of_name(value.name));
    allocation.kind = Kind::kTemporaries;
    allocation.bytes = scratch;
    allocation.place = Offset(above.value);
    allocation.life = {Step(static_cast<std::int64_t>(s)), Step(static_cast<std::int64_t>(s) + 1)};
    timeline.arena = std::max(timeline.arena, above + scratch);
  }
}

// Who reads a value when, and when it is on the device: asked once for every row.
class Uses {
 public:
  Uses(const ScheduleFile& file, const ScheduleReplay& replay)
      : replay_(replay), reads_(file.workload.values.size()), held_(file.workload.values.size()) {
    for (std::size_t s = 0; s < file.steps.size(); ++s) {
      const FileStep& step = file.steps[s];
      const auto at = static_cast<std::int32_t>(s);
      if (step.kind == FileStep::Kind::kCompute) {
        const schedule::Value& value = file.workload.value(step.value);
        for (const ValueId input : file.workload.task(value.producer).inputs)
          reads_[input.index()].push_back(at);
      } else if (step.kind == FileStep::Kind::kSendOut || step.kind == FileStep::Kind::kEncode) {
        reads_[step.value.index()].push_back(at);
      }
    }
    for (std::size_t h = 0; h < replay.held.size(); ++h) {
      if (replay.held[h].form == Form::kDevice) held_[replay.held[h].value.index()].push_back(h);
    }
  }

  // The first step after `time_step` that reads what is held.
  std::optional<std::int32_t> next_read(const HeldValue& held, Step time_step) const {
    const std::vector<std::int32_t>& reads = reads_[held.value.index()];
    const auto next = std::upper_bound(reads.begin(), reads.end(), time_step.value);
    if (next == reads.end() || *next > held.last_read) return std::nullopt;
    return *next;
  }

  bool is_on_device(ValueId id, std::int32_t step) const {
    const std::vector<std::size_t>& held = held_[id.index()];
    return std::any_of(held.begin(), held.end(), [&](std::size_t h) {
      return replay_.held[h].made_at < step && replay_.held[h].life.contains(Step(step));
    });
  }

 private:
  const ScheduleReplay& replay_;
  std::vector<std::vector<std::int32_t>> reads_;  // by value, ascending
  std::vector<std::vector<std::size_t>> held_;    // by value, on the device
};

bool is_touched_at(const ScheduleFile& file, const HeldValue& held, Step time_step) {
  const FileStep& step = file.steps[static_cast<std::size_t>(time_step.value)];
  if (step.value == held.value && step.kind != FileStep::Kind::kDrop) return true;
  if (step.kind != FileStep::Kind::kCompute) return false;
  const auto& inputs = file.workload.task(file.workload.value(step.value).producer).inputs;
  return std::find(inputs.begin(), inputs.end(), held.value) != inputs.end();
}

// Nodes to run before `step` to have the value again; nothing where one of them must not run twice
// or the walk gets long.
std::optional<Price> recompute_price(const ScheduleFile& file, const HeldValue& lost,
                                     std::int32_t step, const Uses& uses) {
  constexpr int kLongestWalk = 64;
  double seconds = 0;
  int nodes = 0;
  std::vector<ValueId> open{lost.value};
  std::unordered_set<std::uint32_t> seen;
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    if (!seen.insert(id.value).second) continue;
    if (id != lost.value && uses.is_on_device(id, step)) continue;
    const schedule::Value& value = file.workload.value(id);
    const schedule::Task& task = file.workload.task(value.producer);
    if (!value.recompute || task.once || ++nodes > kLongestWalk) return std::nullopt;
    seconds += task.seconds;
    open.insert(open.end(), task.inputs.begin(), task.inputs.end());
  }
  return Price{"recompute", lost.bytes, seconds,
               fmt::format("{} node{} from what is still in memory", nodes, nodes == 1 ? "" : "s")};
}

}  // namespace

Timeline timeline_of(const ScheduleFile& file, const ScheduleReplay& replay,
                     std::span<const Offset> places, std::string title) {
  Timeline timeline;
  timeline.title = std::move(title);
  timeline.source = "plan";
  timeline.memories = {"device"};
  if (replay.copies) timeline.memories.push_back("host");
  timeline.streams = {"compute"};
  timeline.budget = file.budget.value_or(Bytes(0));
  add_schedule_steps(file, replay, timeline);
  add_held(file, replay, places, timeline);
  add_scratch(file, timeline);
  timeline.lower_bound = replay.peak;
  timeline.notes.push_back(
      "A schedule of a DAG has no offsets; those drawn here were found by the packer.");
  std::erase_if(timeline.allocations, [](const Allocation& allocation) {
    return allocation.life.empty() || allocation.bytes.value <= 0;
  });
  sort_allocations(timeline);
  const std::vector<Bytes> alive = bytes_by_time_step(timeline);
  for (Operator& op : timeline.operators)
    op.alive = alive[static_cast<std::size_t>(op.time_step.value)];
  return timeline;
}

std::vector<AliveRow> alive_at(const Timeline& timeline, Step time_step, const ScheduleFile& file,
                               const ScheduleReplay& replay, const schedule::CopyRates& copies) {
  std::vector<AliveRow> rows = alive_at(timeline, time_step);
  if (static_cast<std::size_t>(time_step.value) >= file.steps.size()) return rows;
  const Uses uses(file, replay);
  for (AliveRow& row : rows) {
    const Allocation& allocation = timeline.allocations[row.allocation];
    if (!allocation.buffer.valid()) continue;
    const HeldValue& held = replay.held[allocation.buffer.index()];
    if (held.form != Form::kDevice || is_touched_at(file, held, time_step)) continue;
    const auto back = uses.next_read(held, time_step);
    if (!back) continue;
    if (auto price = recompute_price(file, held, *back, uses)) row.prices.push_back(*price);
    const schedule::Value& value = file.workload.value(held.value);
    if (value.swappable) {
      const double both = copies.out_seconds(held.bytes) + copies.in_seconds(held.bytes);
      const double between = timeline.seconds[static_cast<std::size_t>(*back)] -
                             timeline.seconds[static_cast<std::size_t>(time_step.value)];
      row.prices.push_back({"swap", held.bytes, std::max(0.0, both - between),
                            fmt::format("{} of copies beside {} of other work", human_seconds(both),
                                        human_seconds(between))});
    }
    for (const schedule::Encoding& form : value.encodings) {
      if (form.bytes >= held.bytes) continue;
      row.prices.push_back(
          {"encode", held.bytes - form.bytes, form.encode_seconds + form.decode_seconds,
           fmt::format("{} while it waits; {}", form.name, form.lossless ? "lossless" : "lossy"),
           form.lossless});
    }
  }
  return rows;
}

}  // namespace plimsoll::report

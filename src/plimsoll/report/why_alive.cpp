#include "plimsoll/report/why_alive.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/schedule/workload/graph_encodings.h"
#include "plimsoll/schedule/workload/graph_workload.h"

namespace plimsoll::report {
namespace {

std::string why_of(const Timeline& timeline, const Allocation& allocation, Step time_step) {
  const auto op_name = [&timeline](std::int32_t index) {
    return timeline.texts.text(timeline.operators[static_cast<std::size_t>(index)].name);
  };
  if (timeline.source != "plan") {
    if (allocation.kind == Kind::kOutside)
      return "held by the driver, libraries or other processes";
    if (allocation.kind == Kind::kBefore) return "there before the recording began";
    if (allocation.life.end.value == timeline.time_steps()) return "never freed in this trace";
    if (allocation.last_reader < 0)
      return fmt::format("freed at event {}", grouped(allocation.life.end.value));
    return fmt::format("freed at event {}, after {}", grouped(allocation.life.end.value),
                       op_name(allocation.last_reader));
  }
  if (allocation.kind == Kind::kTemporaries && allocation.producer < 0)
    return "scratch of the operator that runs here";
  if (allocation.last_reader > time_step.value) {
    return fmt::format("read last by step {} ({})", allocation.last_reader,
                       op_name(allocation.last_reader));
  }
  if (allocation.last_reader == time_step.value) return "read by this step for the last time";
  if (allocation.life.end.value == timeline.time_steps())
    return "kept for the next training step, or a result";
  return "its memory is not reused before step " + std::to_string(allocation.life.end.value);
}

// Where values of the graph lie, and until when: a value is gone when another one is written over
// it.
class Contents {
 public:
  explicit Contents(const plan::Plan& plan)
      : plan_(plan), held_(plan.graph.values.size()), seconds_(plan.graph.nodes.size()) {
    for (const plan::ValueSlot& source : plan.sources) put(source.value, source.slot.buffer, 0);
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      const plan::PlanStep& step = plan.steps[s];
      if (!step.node.valid()) continue;
      const ir::Node& node = plan.graph.node(step.node);
      seconds_[step.node.index()] = step.seconds;
      for (std::size_t o = 0; o < node.outputs.size() && o < step.outputs.size(); ++o) {
        put(node.outputs[o], step.outputs[o].buffer, static_cast<std::int32_t>(s));
      }
    }
  }

  bool holds(ValueId value, std::int32_t step) const {
    const Held& held = held_[value.index()];
    return held.buffer.valid() && held.begin < step && step < held.end;
  }

  // The first step after `time_step` that reads the buffer, and the value it wants from it.
  std::optional<std::pair<std::int32_t, ValueId>> next_use(BufferId buffer, Step time_step) const {
    for (auto s = static_cast<std::size_t>(time_step.value) + 1; s < plan_.steps.size(); ++s) {
      const plan::PlanStep& step = plan_.steps[s];
      for (std::size_t i = 0; step.kind != plan::StepKind::kDrop && i < step.inputs.size(); ++i) {
        if (step.inputs[i].buffer != buffer) continue;
        const bool computes = step.node.valid() && i < plan_.graph.node(step.node).inputs.size();
        return std::pair{static_cast<std::int32_t>(s),
                         computes ? plan_.graph.node(step.node).inputs[i] : step.value};
      }
    }
    return std::nullopt;
  }

  struct Chain {
    double seconds = 0;
    int operators = 0;
  };
  // Operators to run before `step` to have `wanted` again without its buffer; nothing where one of
  // them must not run twice or the walk gets long.
  std::optional<Chain> remake(ValueId wanted, BufferId lost, std::int32_t step) const {
    constexpr int kLongest = 64;
    Chain chain;
    std::vector<ValueId> open{wanted};
    std::unordered_set<std::uint32_t> seen;
    while (!open.empty()) {
      const ValueId value = open.back();
      open.pop_back();
      if (!value.valid() || !seen.insert(value.value).second) continue;
      if (holds(value, step) && held_[value.index()].buffer != lost) continue;
      const ir::Value& made = plan_.graph.value(value);
      if (!made.producer.valid()) return std::nullopt;
      const ir::Node& node = plan_.graph.node(made.producer);
      const ops::OpDefinition* definition = ops::find_definition(node.op);
      if (definition == nullptr || definition->recompute == ops::Recompute::kNever ||
          chain.operators >= kLongest)
        return std::nullopt;
      if (definition->recompute != ops::Recompute::kFree) {
        chain.seconds += seconds_[made.producer.index()];
        ++chain.operators;
      }
      open.insert(open.end(), node.inputs.begin(), node.inputs.end());
    }
    return chain;
  }

 private:
  struct Held {
    BufferId buffer;
    std::int32_t begin = -1;
    std::int32_t end = -1;
  };

  void put(ValueId value, BufferId buffer, std::int32_t step) {
    if (!buffer.valid()) return;
    if (last_in_.empty()) last_in_.resize(plan_.buffers.size());
    ValueId& last = last_in_[buffer.index()];
    const bool other =
        last.valid() && held_[last.index()].buffer == buffer && held_[last.index()].begin < step;
    if (other) held_[last.index()].end = step;
    last = value;
    held_[value.index()] = {buffer, plan_.graph.value(value).producer.valid() ? step : -1,
                            plan_.buffer(buffer).lifetime.end.value};
  }

  const plan::Plan& plan_;
  std::vector<Held> held_;
  std::vector<double> seconds_;
  std::vector<ValueId> last_in_;
};

// Dropping a value ends its life; it reads nothing.
bool touches(const plan::PlanStep& step, BufferId buffer) {
  if (step.kind == plan::StepKind::kDrop) return false;
  const auto is = [buffer](const plan::Slot& slot) { return slot.buffer == buffer; };
  return is(step.scratch) || std::any_of(step.inputs.begin(), step.inputs.end(), is) ||
         std::any_of(step.outputs.begin(), step.outputs.end(), is);
}

// The last step up to `time_step` that touches the buffer; -1: none in this training step.
std::int32_t last_use(const plan::Plan& plan, BufferId buffer, Step time_step) {
  for (std::int32_t s = time_step.value; s >= 0; --s) {
    if (touches(plan.steps[static_cast<std::size_t>(s)], buffer)) return s;
  }
  return -1;
}

// Out after step `gone`, back before step `back`.
Price swap_price(const Timeline& timeline, const Allocation& allocation, Step time_step,
                 std::int32_t gone, std::int32_t back, const schedule::CopyRates& copies) {
  const double out = copies.out_seconds(allocation.bytes);
  const double in = copies.in_seconds(allocation.bytes);
  const auto time = [&timeline](std::int32_t step) {
    return timeline.seconds[static_cast<std::size_t>(step)];
  };
  const double before = std::max(0.0, time(time_step.value) - time(gone + 1));
  const double after = std::max(0.0, time(back) - time(time_step.value + 1));
  const double exposed = std::max(0.0, out - before) + std::max(0.0, in - after);
  const std::string hidden = exposed > 0 ? "only partly hidden" : "hidden";
  return {"swap", allocation.bytes, exposed,
          fmt::format("{} of copies, {} behind {} of other work", human_seconds(out + in), hidden,
                      human_seconds(before + after))};
}

// The planner's own offers for the value's memory; forms of the same size are one price, the slower
// one's.
void add_encode_prices(const schedule::GraphWorkload& offers, ValueId value, Bytes bytes,
                       std::vector<Price>& prices) {
  const schedule::Place place = offers.place[value.index()];
  if (!place.value.valid()) return;
  const std::size_t first = prices.size();
  for (const schedule::Encoding& form : offers.workload.value(place.value).encodings) {
    if (form.bytes >= bytes) continue;
    const double seconds = form.encode_seconds + form.decode_seconds;
    const auto same = std::find_if(
        prices.begin() + static_cast<std::ptrdiff_t>(first), prices.end(), [&](const Price& price) {
          return price.saves == bytes - form.bytes && price.lossless == form.lossless;
        });
    if (same == prices.end()) {
      prices.push_back({"encode", bytes - form.bytes, seconds, form.name, form.lossless});
    } else {
      same->seconds = std::max(same->seconds, seconds);
      same->detail += " or " + form.name;
    }
  }
  for (std::size_t p = first; p < prices.size(); ++p)
    prices[p].detail += prices[p].lossless ? " while it waits; lossless" : " while it waits; lossy";
}

}  // namespace

std::string label_of(const Price& price) {
  return price.lossless ? price.remedy : price.remedy + " (lossy)";
}

std::vector<AliveRow> alive_at(const Timeline& timeline, Step time_step) {
  std::vector<AliveRow> rows;
  for (std::size_t b = 0; b < timeline.allocations.size(); ++b) {
    const Allocation& allocation = timeline.allocations[b];
    if (allocation.memory == 0 && allocation.life.contains(time_step))
      rows.push_back({b, why_of(timeline, allocation, time_step), {}});
  }
  std::stable_sort(rows.begin(), rows.end(), [&timeline](const AliveRow& a, const AliveRow& b) {
    return timeline.allocations[a.allocation].bytes > timeline.allocations[b.allocation].bytes;
  });
  return rows;
}

std::vector<AliveRow> alive_at(const Timeline& timeline, Step time_step, const plan::Plan& plan,
                               const schedule::DeviceProfile& profile) {
  std::vector<AliveRow> rows = alive_at(timeline, time_step);
  if (static_cast<std::size_t>(time_step.value) >= plan.steps.size()) return rows;
  const Contents contents(plan);
  schedule::GraphWorkloadOptions every;
  every.codecs = profile.codecs;
  every.lossy = schedule::lossy_forms();
  const auto offers = schedule::make_graph_workload(plan.graph, every);
  for (AliveRow& row : rows) {
    const Allocation& allocation = timeline.allocations[row.allocation];
    if (!allocation.buffer.valid() ||
        touches(plan.steps[static_cast<std::size_t>(time_step.value)], allocation.buffer))
      continue;
    const auto use = contents.next_use(allocation.buffer, time_step);
    if (!use) continue;
    const auto [step, value] = *use;
    // What nothing has to run for is in memory a second time: that is no recomputation.
    if (const auto chain =
            value.valid() ? contents.remake(value, allocation.buffer, step) : std::nullopt;
        chain && chain->operators > 0) {
      row.prices.push_back({"recompute", allocation.bytes, chain->seconds,
                            fmt::format("{} operator{} from what is still in memory",
                                        chain->operators, chain->operators == 1 ? "" : "s")});
    }
    row.prices.push_back(swap_price(timeline, allocation, time_step,
                                    last_use(plan, allocation.buffer, time_step), step,
                                    profile.copies));
    if (value.valid() && offers) add_encode_prices(*offers, value, allocation.bytes, row.prices);
  }
  return rows;
}

}  // namespace plimsoll::report

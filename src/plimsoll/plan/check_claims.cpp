#include "plimsoll/plan/check_claims.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "plimsoll/base/checked.h"
#include "plimsoll/base/utf8.h"
#include "plimsoll/plan/check_streams.h"

namespace plimsoll::plan {
namespace {

constexpr std::size_t kMaxViews = 256;  // that a value is followed through
constexpr double kRounding = 1e-9;      // of sums in another order
// seconds that data from another stream may come later, at most
constexpr double kMostHandover = 2e-6;
constexpr double kSlowedByCopies = 4;

bool is_copy(const PlanStep& step) {
  return step.kind == StepKind::kCopyOut || step.kind == StepKind::kCopyIn;
}

// What the steps do with a buffer.
struct Uses : BufferUses {
  std::int32_t drop = -1;      // the last step that drops it
  std::vector<ValueId> first;  // values that its source or its first step puts there
  NodeId scratch_of;
  std::int64_t needed = 0;  // one past the last byte of it that a value takes
  bool encoded = false;     // holds what a codec made, whose size only the codec knows
};

class Claims {
 public:
  Claims(const Plan& plan, const std::vector<bool>& held_at_end, Problems& problems)
      : plan_(plan),
        problems_(problems),
        uses_(plan.buffers.size()),
        is_output_(plan.graph.values.size(), false),
        is_computed_(plan.graph.nodes.size(), false) {
    for (std::size_t b = 0; b < uses_.size(); ++b) uses_[b].held_at_end = held_at_end[b];
    for (const ValueId output : plan.graph.outputs) is_output_[output.index()] = true;
    for (const PlanStep& step : plan.steps) {
      if (step.node.valid()) is_computed_[step.node.index()] = true;
      has_copies_ = has_copies_ || !step.node.valid();
    }
  }

  void run() {
    find_uses();
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      check_lifetime(b);
      check_content(b);
    }
    check_arenas();
    check_total();
    // What follows is computed from the lifetimes, and says nothing where they are wrong.
    if (problems_.none()) check_proof();
    check_seconds();
  }

 private:
  void find_uses() {
    for (const ValueSlot& source : plan_.sources) {
      Uses& uses = uses_[source.slot.buffer.index()];
      uses.source = true;
      uses.first.push_back(source.value);
      need(source.slot, source.value);
    }
    for (const ValueSlot& result : plan_.results) need(result.slot, result.value);
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      const PlanStep& step = plan_.steps[s];
      const auto at = static_cast<std::int32_t>(s);
      if (step.kind == StepKind::kDrop) {
        for (const Slot& slot : step.inputs) {
          if (slot.buffer.valid()) uses_[slot.buffer.index()].drop = at;
        }
        continue;
      }
      for (const bool writes : {true, false}) {
        const std::vector<Slot>& slots = writes ? step.outputs : step.inputs;
        for (std::size_t i = 0; i < slots.size(); ++i) {
          if (slots[i].buffer.valid()) find_use(at, slots[i], value_at(step, writes, i), writes);
        }
      }
      if (!step.scratch.buffer.valid()) continue;
      uses_[step.scratch.buffer.index()].scratch_of = step.node;
      touch(step.scratch, at);
    }
  }

  ValueId value_at(const PlanStep& step, bool writes, std::size_t i) const {
    if (!is_compute(step)) return step.value;
    const ir::Node& node = plan_.graph.node(step.node);
    return writes ? node.outputs[i] : node.inputs[i];
  }

  void find_use(std::int32_t s, const Slot& slot, ValueId value, bool writes) {
    const StepKind kind = plan_.steps[static_cast<std::size_t>(s)].kind;
    Uses& uses = uses_[slot.buffer.index()];
    if (writes && !uses.source && (uses.steps.empty() || uses.steps.front() == s))
      uses.first.push_back(value);
    if (writes && kind == StepKind::kEncode) uses.encoded = true;
    if (kind != (writes ? StepKind::kEncode : StepKind::kDecode)) need(slot, value);
    touch(slot, s);
  }

  void need(const Slot& slot, ValueId value) {
    std::int64_t& needed = uses_[slot.buffer.index()].needed;
    if (value.valid())
      needed =
          std::max(needed, slot.offset.value + ir::bytes_of(plan_.graph.value(value).type).value);
  }

  void touch(const Slot& slot, std::int32_t step) {
    std::vector<std::int32_t>& steps = uses_[slot.buffer.index()].steps;
    if (steps.empty() || steps.back() != step) steps.push_back(step);
  }

  std::int32_t last_step() const { return static_cast<std::int32_t>(plan_.steps.size()); }

  void check_lifetime(std::size_t b) {
    const PlanBuffer& buffer = plan_.buffers[b];
    const Uses& uses = uses_[b];
    if (!uses.source && uses.steps.empty())
      return problems_.add("buffer {} '{}': nobody uses it", b, excerpt(buffer.name));
    const std::int32_t first = uses.source ? 0 : uses.steps.front();
    std::int32_t end = uses.steps.empty() ? 1 : uses.steps.back() + 1;
    if (uses.drop >= 0) end = std::max(uses.drop, end);
    if (uses.held_at_end) end = std::max(end, last_step());
    const Interval<Step>& said = buffer.lifetime;
    // Beside copies a schedule may hold bytes for longer than a step uses them. That costs memory,
    // which check_proof counts by these lifetimes, and never a value.
    const bool ends_right = has_copies_ ? said.end.value >= end && said.end.value <= last_step()
                                        : said.end.value == end;
    if (said.begin.value != first || !ends_right) {
      problems_.add(
          "buffer {} '{}': the plan says that it is alive in steps [{}, {}), by its steps it is in "
          "[{}, {})",
          b, excerpt(buffer.name), said.begin.value, said.end.value, first, end);
    }
  }

  void check_content(std::size_t b) {
    const PlanBuffer& buffer = plan_.buffers[b];
    const Uses& uses = uses_[b];
    const std::string shown = excerpt(buffer.name);
    if (uses.scratch_of.valid() != !buffer.value.valid())
      return problems_.add("buffer {} '{}': is scratch, and holds a value", b, shown);
    Use use = Use::kTemporary;
    std::string called;
    if (buffer.value.valid()) {
      if (!is_put_there(buffer.value, uses.first))
        return problems_.add(
            "buffer {} '{}': the plan says that it holds '{}' first, which nobody puts there", b,
            shown, excerpt(plan_.graph.value(buffer.value).name));
      use = use_of(buffer.value);
      called = plan_.graph.value(buffer.value).name;
    } else {
      const ir::Node& node = plan_.graph.node(uses.scratch_of);
      called = fmt::format("{}{}{} scratch", node.layer, node.layer.empty() ? "" : "/", node.op);
    }
    if (buffer.value.valid() && !uses.encoded &&
        buffer.bytes.value != round_up(uses.needed, plan_.alignment.value)) {
      problems_.add("buffer {} '{}': the plan says {} bytes, what it holds takes {}", b, shown,
                    buffer.bytes.value, round_up(uses.needed, plan_.alignment.value));
    }
    if (buffer.use != use)
      problems_.add("buffer {} '{}': the plan counts it as {}, it is of {}", b, shown,
                    name(buffer.use), name(use));
    // A file cannot hold a name that is not UTF-8 (base/json.h).
    if (buffer.name != called && is_utf8(called))
      problems_.add("buffer {} '{}': what it holds is called '{}'", b, shown, excerpt(called));
  }

  Use use_of(ValueId id) const {
    switch (plan_.graph.value(id).kind) {
      case ir::ValueKind::kInput:
        return Use::kInput;
      case ir::ValueKind::kOptimizer:
        return Use::kOptimizer;
      case ir::ValueKind::kGradient:
        return Use::kGradient;
      case ir::ValueKind::kActivation:
        return is_output_[id.index()] ? Use::kOutput : Use::kActivation;
      default:
        return Use::kWeight;
    }
  }

  // Is the value one of those, or a view of them, or put together from them?
  bool is_put_there(ValueId value, const std::vector<ValueId>& first) const {
    std::vector<ValueId> open{value};
    for (std::size_t i = 0; i < open.size() && i < kMaxViews; ++i) {
      if (std::find(first.begin(), first.end(), open[i]) != first.end()) return true;
      const NodeId producer = plan_.graph.value(open[i]).producer;
      if (!producer.valid() || is_computed_[producer.index()]) continue;
      for (const ValueId input : plan_.graph.node(producer).inputs) {
        if (input.valid() && open.size() < kMaxViews) open.push_back(input);
      }
    }
    return false;
  }

  void check_arenas() {
    std::vector<std::int64_t> top(plan_.arenas.size(), 0);
    for (const PlanBuffer& buffer : plan_.buffers)
      top[buffer.arena] = std::max(top[buffer.arena], buffer.offset.value + buffer.bytes.value);
    for (std::size_t a = 0; a < plan_.arenas.size(); ++a) {
      if (plan_.arenas[a].bytes.value != top[a])
        problems_.add("arena {} has {} bytes, the buffers in it reach {}", a,
                      plan_.arenas[a].bytes.value, top[a]);
      // Memories beside those two have names of their own.
      const std::string& said = plan_.arenas[a].name;
      const bool other = a > 1 && !said.empty() && said != "device" && said != "host";
      const std::string called = a == 0 ? "device" : a == 1 ? "host" : "another memory";
      if (said != called && !other)
        problems_.add("arena {} is called '{}', it is '{}'", a, excerpt(plan_.arenas[a].name),
                      called);
    }
  }

  // So that loads can be added up.
  void check_total() {
    std::int64_t total = 0;
    for (const PlanBuffer& buffer : plan_.buffers) {
      const auto sum = checked_add(total, buffer.bytes.value);
      if (!sum) return problems_.add("the buffers have more bytes together than can be counted");
      total = *sum;
    }
  }

  void check_proof() {
    const Proof& proof = plan_.proof;
    const Bytes live = peak_live_bytes();
    const Bytes arena = plan_.arena_bytes();
    if (proof.load != live)
      return problems_.add("the proof says that at most {} bytes are alive, it is {}",
                           proof.load.value, live.value);
    if (proof.lower_bound < live)
      problems_.add("the proof's lower bound is {}, below the {} bytes that are alive at once",
                    proof.lower_bound.value, live.value);
    if (proof.lower_bound > arena)
      problems_.add("the proof's lower bound is {}, above the arena of {}", proof.lower_bound.value,
                    arena.value);
    const Bytes proven = proof.lower_bound > live
                             ? std::max(live, bound_of_streams(plan_, {uses_.begin(), uses_.end()}))
                             : live;
    if (proof.lower_bound > proven)
      problems_.add("the proof's lower bound is {}, only {} can be proven", proof.lower_bound.value,
                    proven.value);
    if (proof.optimal != (arena == proof.lower_bound))
      problems_.add("the proof says{} optimal, the arena has {} bytes and the lower bound is {}",
                    proof.optimal ? "" : " not", arena.value, proof.lower_bound.value);
  }

  Bytes peak_live_bytes() const {
    std::map<std::int64_t, std::int64_t> changes;
    for (const PlanBuffer& buffer : plan_.buffers) {
      if (buffer.arena != 0) continue;
      changes[buffer.lifetime.begin.value] += buffer.bytes.value;
      changes[buffer.lifetime.end.value] -= buffer.bytes.value;
    }
    std::int64_t live = 0, most = 0;
    for (const auto& [when, bytes] : changes) most = std::max(most, live += bytes);
    return Bytes(most);
  }

  void check_seconds() {
    std::vector<double> done(plan_.steps.size(), 0);
    std::vector<double> free_at(256, 0);
    double sum = 0;
    bool alone = true;
    bool with_copies = false;
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      const PlanStep& step = plan_.steps[s];
      if (!std::isfinite(step.seconds) || step.seconds < 0)
        return problems_.add("step {}: {} seconds", s, step.seconds);
      double start = free_at[step.stream];
      for (const std::uint32_t wait : step.waits) start = std::max(start, done[wait]);
      done[s] = free_at[step.stream] = start + step.seconds;
      sum += step.seconds;
      alone = alone && step.stream == 0;
      with_copies = with_copies || is_copy(step);
    }
    const double chain = done.empty() ? 0 : *std::max_element(done.begin(), done.end());
    const double low = alone ? sum : chain;
    const double high = alone ? sum
                        : with_copies
                            ? kSlowedByCopies * sum
                            : chain + kMostHandover * static_cast<double>(plan_.steps.size());
    const double said = plan_.predicted_seconds;
    if (!(said >= low * (1 - kRounding) && said <= high * (1 + kRounding))) {
      problems_.add("the plan predicts {} seconds, its steps take {} to {}", said, low, high);
    }
  }

  const Plan& plan_;
  Problems& problems_;
  std::vector<Uses> uses_;  // by buffer
  std::vector<bool> is_output_;
  std::vector<bool> is_computed_;
  bool has_copies_ = false;  // or encodings: steps that only move bytes
};

}  // namespace

void check_claims(const Plan& plan, const std::vector<bool>& held_at_end, Problems& problems) {
  Claims(plan, held_at_end, problems).run();
}

}  // namespace plimsoll::plan

#include "plimsoll/plan/check_claims.h"

#include <algorithm>
#include <cmath>

#include "plimsoll/base/checked.h"
#include "plimsoll/base/utf8.h"
#include "plimsoll/pack/bounds/antichain.h"

namespace plimsoll::plan {
namespace {

constexpr std::size_t kMostClaimProblems = 100;
constexpr std::int64_t kClaimAlignment = 64;
constexpr std::size_t kMaxViews = 256;  // that a value is followed through
constexpr double kRounding = 1e-9;      // of sums in another order
// seconds that data from another stream may come later, at most
constexpr double kMostHandover = 2e-6;
constexpr double kSlowedByCopies = 4;

bool is_compute(const PlanStep& step) {
  return step.kind == StepKind::kCompute || step.kind == StepKind::kRecompute;
}
bool is_copy(const PlanStep& step) {
  return step.kind == StepKind::kCopyOut || step.kind == StepKind::kCopyIn;
}

class Claims {
 public:
  Claims(const Plan& plan, const std::vector<bool>& held_at_end)
      : plan_(plan),
        held_at_end_(held_at_end),
        uses_(plan.buffers.size()),
        is_output_(plan.graph.values.size(), false),
        is_computed_(plan.graph.nodes.size(), false) {
    for (const ValueId output : plan.graph.outputs) is_output_[output.index()] = true;
    for (const PlanStep& step : plan.steps) {
      if (step.node.valid()) is_computed_[step.node.index()] = true;
      has_copies_ = has_copies_ || !step.node.valid();
    }
  }

  std::vector<std::string> run() {
    find_uses();
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      check_lifetime(b);
      check_content(b);
    }
    check_arenas();
    check_total();
    // What follows is computed from the lifetimes, and says nothing where they are wrong.
    if (problems_.empty()) check_proof();
    check_seconds();
    return std::move(problems_);
  }

 private:
  // What the steps do with a buffer.
  struct Uses {
    std::vector<std::int32_t> steps;  // that read, write or work in it, ascending, each once
    std::int32_t drop = -1;           // the last step that drops it
    std::vector<ValueId> first;       // values that its source or its first step puts there
    bool source = false;
    NodeId scratch_of;
    std::int64_t needed = 0;  // one past the last byte of it that a value takes
    bool encoded = false;     // holds what a codec made, whose size only the codec knows
  };

  template <typename... Args>
  void complain(fmt::format_string<Args...> format, Args&&... args) {
    if (problems_.size() < kMostClaimProblems)
      problems_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

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
      for (std::size_t i = 0; i < step.outputs.size(); ++i) {
        if (!step.outputs[i].buffer.valid()) continue;
        Uses& uses = uses_[step.outputs[i].buffer.index()];
        const bool first = !uses.source && (uses.steps.empty() || uses.steps.front() == at);
        touch(step.outputs[i], at);
        const ValueId value =
            is_compute(step) ? plan_.graph.node(step.node).outputs[i] : step.value;
        if (first) uses.first.push_back(value);
        if (step.kind == StepKind::kEncode) uses.encoded = true;
        if (step.kind != StepKind::kEncode) need(step.outputs[i], value);
      }
      for (std::size_t i = 0; i < step.inputs.size(); ++i) {
        touch(step.inputs[i], at);
        if (step.inputs[i].buffer.valid() && step.kind != StepKind::kDecode)
          need(step.inputs[i],
               is_compute(step) ? plan_.graph.node(step.node).inputs[i] : step.value);
      }
      touch(step.scratch, at);
      if (step.scratch.buffer.valid()) uses_[step.scratch.buffer.index()].scratch_of = step.node;
    }
  }

  void need(const Slot& slot, ValueId value) {
    std::int64_t& needed = uses_[slot.buffer.index()].needed;
    if (value.valid())
      needed =
          std::max(needed, slot.offset.value + ir::bytes_of(plan_.graph.value(value).type).value);
  }

  void touch(const Slot& slot, std::int32_t step) {
    if (!slot.buffer.valid()) return;
    std::vector<std::int32_t>& steps = uses_[slot.buffer.index()].steps;
    if (steps.empty() || steps.back() != step) steps.push_back(step);
  }

  std::int32_t last_step() const { return static_cast<std::int32_t>(plan_.steps.size()); }

  void check_lifetime(std::size_t b) {
    const PlanBuffer& buffer = plan_.buffers[b];
    const Uses& uses = uses_[b];
    if (!uses.source && uses.steps.empty())
      return complain("buffer {} '{}': nobody uses it", b, excerpt(buffer.name));
    const std::int32_t first = uses.source ? 0 : uses.steps.front();
    std::int32_t end = uses.steps.empty() ? 1 : uses.steps.back() + 1;
    if (uses.drop >= 0) end = std::max(uses.drop, end);
    if (held_at_end_[b]) end = std::max(end, last_step());
    const Interval<Step>& said = buffer.lifetime;
    // Beside copies a schedule may hold bytes for longer than a step uses them. That costs memory,
    // which check_proof counts by these lifetimes, and never a value.
    const bool ends_right = has_copies_ ? said.end.value >= end && said.end.value <= last_step()
                                        : said.end.value == end;
    if (said.begin.value != first || !ends_right) {
      complain(
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
      return complain("buffer {} '{}': is scratch, and holds a value", b, shown);
    Use use = Use::kTemporary;
    std::string called;
    if (buffer.value.valid()) {
      if (!is_put_there(buffer.value, uses.first))
        return complain(
            "buffer {} '{}': the plan says that it holds '{}' first, which nobody puts there", b,
            shown, excerpt(plan_.graph.value(buffer.value).name));
      use = use_of(plan_.graph, buffer.value, is_output_[buffer.value.index()]);
      called = plan_.graph.value(buffer.value).name;
    } else {
      const ir::Node& node = plan_.graph.node(uses.scratch_of);
      called = fmt::format("{}{}{} scratch", node.layer, node.layer.empty() ? "" : "/", node.op);
    }
    if (buffer.value.valid() && !uses.encoded &&
        buffer.bytes.value != round_up(uses.needed, kClaimAlignment)) {
      complain("buffer {} '{}': the plan says {} bytes, what it holds takes {}", b, shown,
               buffer.bytes.value, round_up(uses.needed, kClaimAlignment));
    }
    if (buffer.use != use)
      complain("buffer {} '{}': the plan counts it as {}, it is of {}", b, shown, name(buffer.use),
               name(use));
    // A file cannot hold a name that is not UTF-8 (base/json.h).
    if (buffer.name != called && is_utf8(called))
      complain("buffer {} '{}': what it holds is called '{}'", b, shown, excerpt(called));
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
        complain("arena {} has {} bytes, the buffers in it reach {}", a,
                 plan_.arenas[a].bytes.value, top[a]);
      const char* called = a == 0 ? "device" : "host";
      if (plan_.arenas[a].name != called)
        complain("arena {} is called '{}', it is '{}'", a, excerpt(plan_.arenas[a].name), called);
    }
  }

  // So that loads can be added up.
  void check_total() {
    std::int64_t total = 0;
    for (const PlanBuffer& buffer : plan_.buffers) {
      const auto sum = checked_add(total, buffer.bytes.value);
      if (!sum) return complain("the buffers have more bytes together than can be counted");
      total = *sum;
    }
  }

  void check_proof() {
    const std::vector<Bytes> alive = bytes_by_step(plan_);
    const Bytes load = *std::max_element(alive.begin(), alive.end());
    const Proof& proof = plan_.proof;
    if (proof.load != load)
      return complain("the proof says that at most {} bytes are alive, it is {}", proof.load.value,
                      load.value);
    if (proof.lower_bound < load)
      complain("the proof's lower bound is {}, below the {} bytes that are alive at once",
               proof.lower_bound.value, load.value);
    if (proof.lower_bound > plan_.arena_bytes())
      complain("the proof's lower bound is {}, above the arena of {}", proof.lower_bound.value,
               plan_.arena_bytes().value);
    if (proof.lower_bound > load) {
      const Bytes proven = std::max(load, bound_of_streams());
      if (proof.lower_bound > proven)
        complain("the proof's lower bound is {}, only {} can be proven", proof.lower_bound.value,
                 proven.value);
    }
    const bool optimal = plan_.arena_bytes() == proof.lower_bound;
    if (proof.optimal != optimal)
      complain("the proof says{} optimal, the arena has {} bytes and the lower bound is {}",
               proof.optimal ? "" : " not", plan_.arena_bytes().value, proof.lower_bound.value);
  }

  // The most bytes of device memory that can be in use at once when streams run beside each other:
  // a bound for every packing, because none of those buffers may share a byte.
  Bytes bound_of_streams() const {
    std::size_t streams = 1;
    for (const PlanStep& step : plan_.steps)
      streams = std::max<std::size_t>(streams, step.stream + 1U);
    if (streams == 1) return Bytes(0);
    const std::vector<std::int64_t> position = positions(streams);
    const std::vector<std::int64_t> known = knowledge(streams, position);
    pack::Problem problem;
    problem.clocks.streams = static_cast<int>(streams);
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      if (plan_.buffers[b].arena != 0) continue;
      problem.buffers.push_back({.size = plan_.buffers[b].bytes});
      add_clocks(problem.clocks, uses_[b], held_at_end_[b], streams, position, known);
    }
    return std::max(heaviest_projection(problem), heaviest_antichain(problem));
  }

  // By step: its number on its own stream, from 1.
  std::vector<std::int64_t> positions(std::size_t streams) const {
    std::vector<std::int64_t> count(streams, 0);
    std::vector<std::int64_t> out;
    for (const PlanStep& step : plan_.steps) out.push_back(++count[step.stream]);
    return out;
  }

  // By step and stream: how many steps of the stream are done for certain when the step begins.
  std::vector<std::int64_t> knowledge(std::size_t streams,
                                      const std::vector<std::int64_t>& position) const {
    std::vector<std::int64_t> known(plan_.steps.size() * streams, 0);
    std::vector<std::int64_t> latest(streams, -1);
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      const auto learn = [&](std::size_t from) {
        for (std::size_t k = 0; k < streams; ++k)
          known[s * streams + k] = std::max(known[s * streams + k], known[from * streams + k]);
        std::int64_t& own = known[s * streams + plan_.steps[from].stream];
        own = std::max(own, position[from]);
      };
      std::int64_t& before = latest[plan_.steps[s].stream];
      if (before >= 0) learn(static_cast<std::size_t>(before));
      for (const std::uint32_t wait : plan_.steps[s].waits) learn(wait);
      before = static_cast<std::int64_t>(s);
    }
    return known;
  }

  // A buffer is out of another's way when every step that uses it is known to be done by every step
  // that uses the other.
  void add_clocks(pack::Clocks& clocks, const Uses& uses, bool stays, std::size_t streams,
                  const std::vector<std::int64_t>& position,
                  const std::vector<std::int64_t>& known) const {
    for (std::size_t k = 0; k < streams; ++k) {
      std::int64_t ready = uses.source || uses.steps.empty() ? 0 : INT64_MAX;
      std::int64_t released = uses.steps.empty() ? 1 : 0;
      for (const std::int32_t s : uses.steps) {
        const auto at = static_cast<std::size_t>(s);
        if (!uses.source) ready = std::min(ready, known[at * streams + k]);
        if (plan_.steps[at].stream == k) released = std::max(released, position[at]);
      }
      clocks.ready.push_back(ready);
      clocks.released.push_back(stays ? static_cast<std::int64_t>(plan_.steps.size()) + 1
                                      : std::max(released, ready));
    }
  }

  static Bytes heaviest_antichain(const pack::Problem& problem) {
    std::vector<char> counted;
    for (std::size_t b = 0; b < problem.size(); ++b)
      counted.push_back(pack::ever_alive(problem, BufferId(b)));
    const auto heaviest = pack::heaviest_antichain(problem, counted);
    return Bytes(heaviest ? heaviest->bytes : 0);
  }

  // Where the antichain is too much work: buffers whose intervals on any one stream overlap meet.
  static Bytes heaviest_projection(const pack::Problem& problem) {
    const auto streams = static_cast<std::size_t>(problem.clocks.streams);
    Bytes most;
    for (std::size_t k = 0; k < streams; ++k) {
      // ends before beginnings: bytes are negative
      std::vector<std::pair<std::int64_t, std::int64_t>> changes;
      for (std::size_t b = 0; b < problem.size(); ++b) {
        if (problem.clocks.ready[b * streams + k] >= problem.clocks.released[b * streams + k])
          continue;
        changes.emplace_back(problem.clocks.ready[b * streams + k], problem.buffers[b].size.value);
        changes.emplace_back(problem.clocks.released[b * streams + k],
                             -problem.buffers[b].size.value);
      }
      std::sort(changes.begin(), changes.end());
      Bytes alive;
      for (const auto& [when, bytes] : changes) most = std::max(most, alive += Bytes(bytes));
    }
    return most;
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
        return complain("step {}: {} seconds", s, step.seconds);
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
      complain("the plan predicts {} seconds, its steps take {} to {}", said, low, high);
    }
  }

  const Plan& plan_;
  const std::vector<bool>& held_at_end_;
  std::vector<Uses> uses_;  // by buffer
  std::vector<bool> is_output_;
  std::vector<bool> is_computed_;
  bool has_copies_ = false;  // or encodings: steps that only move bytes
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> check_claims(const Plan& plan, const std::vector<bool>& held_at_end) {
  return Claims(plan, held_at_end).run();
}

}  // namespace plimsoll::plan

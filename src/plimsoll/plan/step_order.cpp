#include "plimsoll/plan/step_order.h"

#include <algorithm>
#include <map>

namespace plimsoll::plan {
namespace {

constexpr std::size_t kNobody = static_cast<std::size_t>(-1);

// A run of bytes with one history.
struct Run {
  std::int64_t end = 0;
  std::size_t writer = kNobody;      // of a buffer: the step that wrote it last
  std::vector<std::size_t> readers;  // since then
  std::size_t owner = kNobody;       // of an arena: the buffer that lay here last
};
using Runs = std::map<std::int64_t, Run>;

void cut(Runs& runs, std::int64_t at) {
  auto place = runs.upper_bound(at);
  if (place == runs.begin()) return;
  --place;
  if (place->first == at || place->second.end <= at) return;
  Run tail = place->second;
  place->second.end = at;
  runs.emplace(at, std::move(tail));
}

// The runs of [begin, end); bytes that nobody knows yet become one.
template <typename Body>
void for_runs(Runs& runs, std::int64_t begin, std::int64_t end, Body body) {
  cut(runs, begin);
  cut(runs, end);
  std::int64_t at = begin;
  auto place = runs.lower_bound(begin);
  while (at < end) {
    if (place == runs.end() || place->first > at) {
      const std::int64_t hole = place == runs.end() ? end : std::min(end, place->first);
      place = runs.emplace_hint(place, at, Run{hole, kNobody, {}, kNobody});
    }
    body(place->second);
    at = place->second.end;
    ++place;
  }
}

class Orderer {
 public:
  Orderer(const Plan& plan, bool keep_places)
      : plan_(plan),
        keep_places_(keep_places),
        bytes_(plan.buffers.size()),
        arenas_(plan.arenas.size()),
        inherits_(plan.buffers.size()) {
    out_.before.resize(plan.steps.size());
    out_.touched.resize(plan.buffers.size());
  }

  StepOrder run() {
    for (const ValueSlot& source : plan_.sources) settle(source.slot.buffer.index());
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) add(s);
    return std::move(out_);
  }

 private:
  // Bytes of a buffer that a step reads or writes.
  struct Access {
    std::size_t buffer;
    std::int64_t begin, end;
    bool writes;
  };

  void add(std::size_t s) {
    const std::vector<Access> accesses = accesses_of(plan_.steps[s]);
    for (const Access& access : accesses) touch(s, access.buffer);
    for (const Access& access : accesses) {
      for_runs(bytes_[access.buffer], access.begin, access.end, [&](Run& run) {
        follow(s, run.writer);
        if (!access.writes) return run.readers.push_back(s);
        for (const std::size_t reader : run.readers) follow(s, reader);
        run.readers.clear();
        run.writer = s;
      });
    }
  }

  // Reads first. What is no value of a node takes its buffer to the end.
  std::vector<Access> accesses_of(const PlanStep& step) const {
    std::vector<Access> out;
    const auto add_slot = [&](const Slot& slot, const ValueId* value, bool writes) {
      if (!slot.buffer.valid()) return;
      const std::int64_t at = slot.offset.value;
      out.push_back({slot.buffer.index(), at,
                     value != nullptr ? at + ir::bytes_of(plan_.graph.value(*value).type).value
                                      : plan_.buffer(slot.buffer).bytes.value,
                     writes});
    };
    const ir::Node* node = step.node.valid() ? &plan_.graph.node(step.node) : nullptr;
    for (std::size_t i = 0; i < step.inputs.size(); ++i)
      add_slot(step.inputs[i], node != nullptr ? &node->inputs[i] : nullptr, false);
    for (std::size_t i = 0; i < step.outputs.size(); ++i)
      add_slot(step.outputs[i], node != nullptr ? &node->outputs[i] : nullptr, true);
    add_slot(step.scratch, nullptr, true);
    return out;
  }

  void touch(std::size_t s, std::size_t buffer) {
    if (out_.touched[buffer].empty()) settle(buffer);
    if (out_.touched[buffer].empty() || out_.touched[buffer].back() != s)
      out_.touched[buffer].push_back(s);
    for (const std::size_t before : inherits_[buffer]) {
      for (const std::size_t user : out_.touched[before]) follow(s, user);
    }
  }

  // The buffer takes its place: whoever lay there before goes first.
  void settle(std::size_t buffer) {
    if (!keep_places_ || plan_.buffers[buffer].bytes.value == 0) return;
    const PlanBuffer& made = plan_.buffers[buffer];
    std::vector<std::size_t>& previous = inherits_[buffer];
    for_runs(arenas_[made.arena], made.offset.value, made.offset.value + made.bytes.value,
             [&](Run& run) {
               if (run.owner != kNobody && run.owner != buffer) previous.push_back(run.owner);
               run.owner = buffer;
             });
    std::sort(previous.begin(), previous.end());
    previous.erase(std::unique(previous.begin(), previous.end()), previous.end());
  }

  void follow(std::size_t s, std::size_t earlier) {
    if (earlier != kNobody && earlier != s) out_.before[s].push_back(earlier);
  }

  const Plan& plan_;
  bool keep_places_;
  std::vector<Runs> bytes_;   // by buffer
  std::vector<Runs> arenas_;  // by arena
  // by buffer: those that lay on its bytes right before
  std::vector<std::vector<std::size_t>> inherits_;
  StepOrder out_;
};

}  // namespace

StepOrder order_of_steps(const Plan& plan, bool keep_places) {
  return Orderer(plan, keep_places).run();
}

}  // namespace plimsoll::plan

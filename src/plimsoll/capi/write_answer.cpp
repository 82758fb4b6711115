#include "plimsoll/capi/write_answer.h"

namespace plimsoll::capi {
namespace {

using schedule::Action;
using schedule::ActionKind;
using schedule::Instance;
using schedule::InstanceId;

int step_kind(ActionKind kind) {
  switch (kind) {
    case ActionKind::kCompute:
      return PLIMSOLL_STEP_COMPUTE;
    case ActionKind::kRecompute:
      return PLIMSOLL_STEP_RECOMPUTE;
    case ActionKind::kCopyOut:
      return PLIMSOLL_STEP_COPY_OUT;
    case ActionKind::kCopyIn:
      return PLIMSOLL_STEP_COPY_IN;
    case ActionKind::kEncode:
      return PLIMSOLL_STEP_ENCODE;
    case ActionKind::kDecode:
      return PLIMSOLL_STEP_DECODE;
    case ActionKind::kDrop:
      return PLIMSOLL_STEP_FREE;
  }
  return -1;
}

class StepWriter {
 public:
  StepWriter(const Request& request, const schedule::Schedule& schedule, const Arena* arena,
             Answer& answer)
      : request_(request),
        schedule_(schedule),
        arena_(arena),
        answer_(answer),
        lies_on_(schedule.instances.size()),
        device_(request.workload.values.size()) {}

  void write() {
    for (InstanceId id : schedule_.at_start) settle(id);
    for (std::size_t v = 0; v < device_.size(); ++v) {
      if (request_.base[v].valid() && device_[v].valid())
        lies_on_[device_[v].index()] = device_[request_.base[v].index()];
    }
    for (std::size_t a = 0; a < schedule_.actions.size(); ++a) {
      const Action& action = schedule_.actions[a];
      if (action.task.valid()) take_views_again(action);
      place_.push_back(static_cast<std::int64_t>(answer_.all_steps.size()));
      write_action(action, arena_ == nullptr ? -1 : arena_->scratch[a]);
    }
    place_.push_back(static_cast<std::int64_t>(answer_.all_steps.size()));
    for (std::size_t i = 0; i < schedule_.instances.size(); ++i) write_instance(i);
  }

 private:
  void settle(InstanceId id) {
    const Instance& it = schedule_.instances[id.index()];
    if (it.form == schedule::Form::kDevice) device_[it.value.index()] = id;
  }

  ValueId base_of(InstanceId id) const {
    return request_.base[schedule_.instances[id.index()].value.index()];
  }

  void take_views_again(const Action& action) {
    for (InstanceId view : action.reads) {
      const ValueId base = base_of(view);
      if (!base.valid() || lies_on_[view.index()] == device_[base.index()]) continue;
      lies_on_[view.index()] = device_[base.index()];
      plimsoll_step step = {};
      step.kind = PLIMSOLL_STEP_VIEW;
      step.id = schedule_.instances[view.index()].value.value;
      step.first_instance = static_cast<std::int64_t>(answer_.all_step_instances.size());
      step.reads = step.writes = 1;
      answer_.all_step_instances.insert(answer_.all_step_instances.end(),
                                        {device_[base.index()].value, view.value});
      // The base may come from another stream; whoever reads the view waits for it, and so must
      // this.
      add_waits(action, step);
      step.scratch_offset = -1;
      answer_.all_steps.push_back(step);
    }
  }

  void write_action(const Action& action, std::int64_t scratch_offset) {
    for (InstanceId id : action.writes) settle(id);
    for (InstanceId id : action.writes) {
      if (base_of(id).valid()) lies_on_[id.index()] = device_[base_of(id).index()];
    }
    plimsoll_step step = {};
    step.kind = step_kind(action.kind);
    step.stream = static_cast<std::int32_t>(action.stream);
    step.id = action.task.valid()
                  ? request_.given[action.task.index()]
                  : std::int64_t{schedule_.instances[action.reads.front().index()].value.value};
    step.first_instance = static_cast<std::int64_t>(answer_.all_step_instances.size());
    step.reads = static_cast<std::int32_t>(action.reads.size());
    step.writes = static_cast<std::int32_t>(action.writes.size());
    for (InstanceId id : action.reads) answer_.all_step_instances.push_back(id.value);
    for (InstanceId id : action.writes) answer_.all_step_instances.push_back(id.value);
    add_waits(action, step);
    step.seconds = action.seconds * request_.unit;
    step.scratch_offset = scratch_offset;
    answer_.all_steps.push_back(step);
  }

  void add_waits(const Action& action, plimsoll_step& step) {
    step.first_wait = static_cast<std::int64_t>(answer_.all_waits.size());
    step.wait_count = static_cast<std::int64_t>(action.waits.size());
    for (schedule::ActionId other : action.waits)
      answer_.all_waits.push_back(place_[other.index()]);
  }

  void write_instance(std::size_t i) {
    const Instance& it = schedule_.instances[i];
    plimsoll_instance out = {};
    out.value = it.value.value;
    out.form = static_cast<std::int32_t>(it.form);
    const bool encoded = it.form == schedule::Form::kEncoded;
    out.encoding = encoded ? request_.encodings[it.value.index()][it.encoding] : -1;
    out.bytes = it.bytes.value;
    out.takes_over = it.takes_over.valid() ? std::int64_t{it.takes_over.value} : -1;
    out.begin = place_[static_cast<std::size_t>(it.lifetime.begin.value)];
    out.end = place_[static_cast<std::size_t>(it.lifetime.end.value)];
    out.offset = arena_ == nullptr ? -1 : arena_->instances[i];
    answer_.all_instances.push_back(out);
  }

  const Request& request_;
  const schedule::Schedule& schedule_;
  const Arena* arena_;
  Answer& answer_;
  std::vector<InstanceId>
      lies_on_;  // per instance of a view: the instance of its base that it was taken of
  std::vector<InstanceId> device_;   // per value: its newest instance on the device
  std::vector<std::int64_t> place_;  // of each action among the steps
};

}  // namespace

void write_steps(const Request& request, const schedule::Schedule& schedule, const Arena* arena,
                 Answer& answer) {
  StepWriter(request, schedule, arena, answer).write();
}

}  // namespace plimsoll::capi

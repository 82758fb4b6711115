#include "plimsoll/schedule/verify_schedule.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace plimsoll::schedule {
namespace {

// Per stream: how many of its actions are surely finished.
using Clock = std::array<std::int64_t, 3>;

std::size_t lane(Stream stream) {
  return static_cast<std::size_t>(stream);
}

template <typename... Args>
Status wrong(std::size_t action, fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::kInternal, "schedule, action {}: {}", action,
              fmt::format(format, std::forward<Args>(args)...));
}

struct Life {
  bool made = false;
  bool over = false;
  std::size_t maker_lane = 0;
  std::int64_t made_at = -1;   // number on its lane; -1 for sources
  Clock last_use{-1, -1, -1};  // per stream: number of the last action that touched it
  std::int64_t begin = 0;
  std::int64_t end = -1;
};

class Verifier {
 public:
  Verifier(const Workload& workload, const Schedule& schedule, const CopyRates& copies)
      : w_(workload),
        s_(schedule),
        copies_(copies),
        lives_(schedule.instances.size()),
        runs_(workload.tasks.size(), 0) {}

  Result<Verdict> verifier(Bytes budget) {
    PLIMSOLL_RETURN_IF_ERROR(check_instances());
    PLIMSOLL_RETURN_IF_ERROR(start());
    for (std::size_t a = 0; a < s_.actions.size(); ++a) {
      PLIMSOLL_RETURN_IF_ERROR(advance_clock(a));
      PLIMSOLL_RETURN_IF_ERROR(check_action(a));
      peak_ = std::max(peak_, device_);
      host_peak_ = std::max(host_peak_, host_);
      device_ -= scratch_of(s_.actions[a]);
      if (s_.actions[a].kind == ActionKind::kDrop) PLIMSOLL_RETURN_IF_ERROR(drop(a));
    }
    PLIMSOLL_RETURN_IF_ERROR(check_end());
    if (peak_ > budget.value) {
      return fail(ErrorCode::kInternal, "schedule: needs {} bytes, the budget is {}", peak_,
                  budget);
    }
    return Verdict{Bytes(peak_), Bytes(host_peak_), makespan()};
  }

 private:
  const Instance& instance(InstanceId id) const { return s_.instances[id.index()]; }
  bool known(InstanceId id) const { return id.valid() && id.index() < s_.instances.size(); }

  Status check_instances() const {
    for (std::size_t i = 0; i < s_.instances.size(); ++i) {
      const Instance& it = s_.instances[i];
      if (!it.value.valid() || it.value.index() >= w_.values.size()) {
        return fail(ErrorCode::kInternal, "instance {} is of no value", i);
      }
      const Value& value = w_.value(it.value);
      Bytes bytes = value.bytes;
      if (it.form == Form::kEncoded) {
        if (it.encoding >= value.encodings.size()) {
          return fail(ErrorCode::kInternal, "instance {}: '{}' has no such encoding", i,
                      value.name);
        }
        bytes = value.encodings[it.encoding].bytes;
      }
      if (bytes != it.bytes) return fail(ErrorCode::kInternal, "instance {}: wrong bytes", i);
    }
    return {};
  }

  Status start() {
    std::vector<char> placed(w_.values.size(), 0);
    home_.assign(w_.values.size(), Form::kDevice);
    for (InstanceId id : s_.at_start) {
      if (!known(id))
        return fail(ErrorCode::kInternal, "schedule: starts with an unknown instance");
      const Instance& it = instance(id);
      const Value& value = w_.value(it.value);
      if (value.producer.valid() || placed[it.value.index()]++ || it.form == Form::kEncoded ||
          (it.form == Form::kHost && !value.swappable)) {
        return fail(ErrorCode::kInternal, "schedule: '{}' cannot be there at the start",
                    value.name);
      }
      home_[it.value.index()] = it.form;
      lives_[id.index()].made = true;
      hold(it, 1);
    }
    for (std::size_t v = 0; v < w_.values.size(); ++v) {
      if (!w_.values[v].producer.valid() && !placed[v]) {
        return fail(ErrorCode::kInternal, "schedule: source '{}' is missing at the start",
                    w_.values[v].name);
      }
    }
    peak_ = device_;
    host_peak_ = host_;
    return {};
  }

  void hold(const Instance& it, int sign) {
    (it.form == Form::kHost ? host_ : device_) += sign * it.bytes.value;
  }

  Status advance_clock(std::size_t a) {
    const Action& action = s_.actions[a];
    const std::size_t own = lane(action.stream);
    now_ = lane_clock_[own];
    now_[own] = lane_count_[own];
    for (ActionId other : action.waits) {
      if (!other.valid() || other.index() >= a) return wrong(a, "waits for what comes later");
      const Clock& theirs = clocks_[other.index()];
      for (std::size_t k = 0; k < 3; ++k) now_[k] = std::max(now_[k], theirs[k]);
      const std::size_t their_lane = lane(s_.actions[other.index()].stream);
      now_[their_lane] = std::max(now_[their_lane], number_[other.index()] + 1);
    }
    clocks_.push_back(now_);
    lane_clock_[own] = now_;
    number_.push_back(lane_count_[own]++);
    return {};
  }

  bool finished(std::size_t on_lane, std::int64_t number) const { return now_[on_lane] > number; }

  std::int64_t scratch_of(const Action& action) const {
    return action.task.valid() ? w_.task(action.task).scratch.value : 0;
  }

  Status check_action(std::size_t a) {
    const Action& action = s_.actions[a];
    const bool runs = action.kind == ActionKind::kCompute || action.kind == ActionKind::kRecompute;
    if (runs != action.task.valid())
      return wrong(a, "has a task and does not run it, or the reverse");
    if (runs && action.task.index() >= w_.tasks.size()) return wrong(a, "runs an unknown task");
    for (InstanceId id : action.reads) PLIMSOLL_RETURN_IF_ERROR(check_read(a, id));
    PLIMSOLL_RETURN_IF_ERROR(runs ? check_run(a) : check_move(a));
    for (InstanceId id : action.writes) PLIMSOLL_RETURN_IF_ERROR(make(a, id));
    device_ += scratch_of(action);
    return {};
  }

  Status check_read(std::size_t a, InstanceId id) {
    if (!known(id)) return wrong(a, "reads an unknown instance");
    Life& life = lives_[id.index()];
    const std::string& name = w_.value(instance(id).value).name;
    if (!life.made) return wrong(a, "reads '{}' before it is made", name);
    if (life.over) return wrong(a, "reads '{}' after its memory was given away", name);
    if (life.made_at >= 0 && !finished(life.maker_lane, life.made_at)) {
      return wrong(a, "reads '{}' without waiting for it", name);
    }
    const Stream stream = s_.actions[a].stream;
    if (s_.actions[a].kind != ActionKind::kDrop) life.last_use[lane(stream)] = number_[a];
    return {};
  }

  Status check_run(std::size_t a) {
    const Action& action = s_.actions[a];
    const Task& task = w_.task(action.task);
    if (action.stream != Stream::kCompute) return wrong(a, "'{}' runs on a copy stream", task.name);
    const bool first = runs_[action.task.index()]++ == 0;
    if (first != (action.kind == ActionKind::kCompute)) {
      return wrong(a, "'{}' is called first run or rerun wrongly", task.name);
    }
    if (!first && !may_rerun(task)) return wrong(a, "'{}' must not run twice", task.name);
    if (action.seconds != task.seconds) return wrong(a, "'{}' has another time", task.name);
    if (action.reads.size() != task.inputs.size() || action.writes.size() != task.outputs.size()) {
      return wrong(a, "'{}' has other inputs or outputs", task.name);
    }
    for (std::size_t i = 0; i < task.inputs.size(); ++i) {
      const Instance& it = instance(action.reads[i]);
      if (it.value != task.inputs[i] || it.form != Form::kDevice) {
        return wrong(a, "'{}' reads the wrong thing as input {}", task.name, i);
      }
    }
    for (std::size_t i = 0; i < task.outputs.size(); ++i) {
      if (!known(action.writes[i]) || instance(action.writes[i]).value != task.outputs[i] ||
          instance(action.writes[i]).form != Form::kDevice) {
        return wrong(a, "'{}' writes the wrong thing as output {}", task.name, i);
      }
    }
    return {};
  }

  bool may_rerun(const Task& task) const {
    if (task.once) return false;
    for (ValueId id : task.outputs) {
      if (!w_.value(id).recompute) return false;
    }
    return true;
  }

  Status check_move(std::size_t a) {
    const Action& action = s_.actions[a];
    if (action.reads.size() != 1) return wrong(a, "does not act on one instance");
    const Instance& from = instance(action.reads[0]);
    const Value& value = w_.value(from.value);
    if (action.kind == ActionKind::kDrop) {
      if (!action.writes.empty() || action.stream != Stream::kCompute || action.seconds != 0) {
        return wrong(a, "is not a proper drop");
      }
      return {};
    }
    if (action.writes.size() != 1 || !known(action.writes[0])) return wrong(a, "makes nothing");
    const Instance& to = instance(action.writes[0]);
    if (to.value != from.value) return wrong(a, "turns '{}' into another value", value.name);
    const auto is = [&](Form before, Form after, Stream stream, double seconds) {
      return from.form == before && to.form == after && action.stream == stream &&
             action.seconds == seconds;
    };
    bool good = false;
    if (action.kind == ActionKind::kCopyOut) {
      good = value.swappable &&
             is(Form::kDevice, Form::kHost, Stream::kCopyOut, copies_.out_seconds(value.bytes));
    } else if (action.kind == ActionKind::kCopyIn) {
      good = is(Form::kHost, Form::kDevice, Stream::kCopyIn, copies_.in_seconds(value.bytes));
    } else if (action.kind == ActionKind::kEncode) {
      good = to.form == Form::kEncoded && is(Form::kDevice, Form::kEncoded, Stream::kCompute,
                                             value.encodings[to.encoding].encode_seconds);
    } else {
      good = from.form == Form::kEncoded && is(Form::kEncoded, Form::kDevice, Stream::kCompute,
                                               value.encodings[from.encoding].decode_seconds);
    }
    return good ? Status{} : wrong(a, "moves '{}' in a way that is not allowed", value.name);
  }

  Status make(std::size_t a, InstanceId id) {
    const Action& action = s_.actions[a];
    const Instance& it = instance(id);
    Life& life = lives_[id.index()];
    const Value& value = w_.value(it.value);
    if (life.made) return wrong(a, "makes the same instance of '{}' again", value.name);
    const bool on_device = it.form != Form::kHost;
    if (on_device && action.stream != Stream::kCompute &&
        !finished(lane(Stream::kCompute), last_drop_)) {
      return wrong(a, "takes memory for '{}' that may not be free yet", value.name);
    }
    life.made = true;
    life.maker_lane = lane(action.stream);
    life.made_at = number_[a];
    life.begin = static_cast<std::int64_t>(a);
    hold(it, 1);
    const bool required = action.task.valid() && value.in_place && value.in_place->required;
    if (!it.takes_over.valid()) {
      return required ? wrong(a, "'{}' must be written over its old version", value.name)
                      : Status{};
    }
    return take_over(a, it, value);
  }

  Status take_over(std::size_t a, const Instance& it, const Value& value) {
    const Action& action = s_.actions[a];
    const bool reads_it =
        std::find(action.reads.begin(), action.reads.end(), it.takes_over) != action.reads.end();
    if (!reads_it || !value.in_place || instance(it.takes_over).value != value.in_place->input ||
        instance(it.takes_over).form != Form::kDevice || it.form != Form::kDevice) {
      return wrong(a, "'{}' takes memory it was not offered", value.name);
    }
    PLIMSOLL_RETURN_IF_ERROR(end_life(a, it.takes_over));
    last_drop_ = number_[a];
    return {};
  }

  Status end_life(std::size_t a, InstanceId id) {
    Life& life = lives_[id.index()];
    const std::string& name = w_.value(instance(id).value).name;
    if (life.over) return wrong(a, "gives the memory of '{}' away twice", name);
    for (std::size_t k = 0; k < 3; ++k) {
      const bool own = k == lane(s_.actions[a].stream) && life.last_use[k] == number_[a];
      if (life.last_use[k] >= 0 && !own && !finished(k, life.last_use[k])) {
        return wrong(a, "gives the memory of '{}' away while it is read", name);
      }
    }
    life.over = true;
    life.end = static_cast<std::int64_t>(a);
    hold(instance(id), -1);
    return {};
  }

  Status drop(std::size_t a) {
    PLIMSOLL_RETURN_IF_ERROR(end_life(a, s_.actions[a].reads[0]));
    last_drop_ = number_[a];
    return {};
  }

  // A version of a source lives where the source did.
  Form home_of(ValueId id) const {
    while (true) {
      const Value& value = w_.value(id);
      if (!value.producer.valid()) return home_[id.index()];
      if (!value.in_place || !value.in_place->required) return Form::kDevice;
      id = value.in_place->input;
    }
  }

  Status check_end() const {
    const std::size_t end = s_.actions.size();
    for (std::size_t t = 0; t < runs_.size(); ++t) {
      if (runs_[t] == 0) return wrong(end, "task '{}' never runs", w_.tasks[t].name);
    }
    std::vector<char> there(w_.values.size(), 0);
    for (std::size_t i = 0; i < lives_.size(); ++i) {
      const Life& life = lives_[i];
      const Instance& it = s_.instances[i];
      if (!life.made)
        return wrong(end, "an instance of '{}' is never made", w_.value(it.value).name);
      const std::int64_t over = life.over ? life.end : static_cast<std::int64_t>(end);
      if (it.lifetime.begin.value != life.begin || it.lifetime.end.value != over) {
        return wrong(end, "the lifetime of an instance of '{}' is wrong", w_.value(it.value).name);
      }
      if (!life.over && it.form == home_of(it.value)) there[it.value.index()] = 1;
    }
    for (std::size_t v = 0; v < there.size(); ++v) {
      if (w_.values[v].keep && !there[v]) {
        return wrong(end, "'{}' must be kept and is not where it belongs", w_.values[v].name);
      }
    }
    return {};
  }

  double makespan() const {
    std::vector<double> finish(s_.actions.size(), 0);
    std::array<double, 3> free_at{};
    for (std::size_t a = 0; a < s_.actions.size(); ++a) {
      double begin = free_at[lane(s_.actions[a].stream)];
      for (ActionId other : s_.actions[a].waits) begin = std::max(begin, finish[other.index()]);
      finish[a] = begin + s_.actions[a].seconds;
      free_at[lane(s_.actions[a].stream)] = finish[a];
    }
    return std::max({free_at[0], free_at[1], free_at[2]});
  }

  const Workload& w_;
  const Schedule& s_;
  const CopyRates& copies_;
  std::vector<Life> lives_;
  std::vector<int> runs_;
  std::vector<Form> home_;
  std::vector<Clock> clocks_;
  std::vector<std::int64_t> number_;  // of each action on its own stream
  std::array<Clock, 3> lane_clock_{};
  Clock lane_count_{};
  Clock now_{};
  std::int64_t last_drop_ = -1;
  std::int64_t device_ = 0, host_ = 0, peak_ = 0, host_peak_ = 0;
};

}  // namespace

Result<Verdict> verify_schedule(const Workload& workload, const Schedule& schedule, Bytes budget,
                                const CopyRates& copies) {
  return Verifier(workload, schedule, copies).verifier(budget);
}

}  // namespace plimsoll::schedule

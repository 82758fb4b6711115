#include "plimsoll/schedule/verify_schedule.h"

#include <algorithm>
#include <array>

namespace plimsoll::schedule {
namespace {

// By stream: how many of its actions are surely finished.
using Clock = std::array<std::int64_t, 3>;
constexpr std::size_t kComputeStream = static_cast<std::size_t>(Stream::kCompute);

// What is known of an instance so far.
struct Life {
  bool made = false;
  bool over = false;
  std::size_t stream = 0;      // of the action that made it
  std::int64_t number = -1;    // of that action on its stream; -1: there from the start
  Clock last_use{-1, -1, -1};  // by stream: number of the last action that read it
  std::int64_t begin = 0, end = 0;
};

class Verifier {
 public:
  Verifier(const Workload& workload, const Schedule& schedule, const CopyRates& copies)
      : w_(workload),
        s_(schedule),
        copies_(copies),
        lives_(schedule.instances.size()),
        runs_(workload.tasks.size(), 0),
        home_(workload.values.size(), Form::kDevice) {}

  Result<Verdict> run(Bytes budget) {
    PLIMSOLL_RETURN_IF_ERROR(check_instances());
    PLIMSOLL_RETURN_IF_ERROR(start());
    for (at_ = 0; at_ < s_.actions.size(); ++at_) {
      const Action& action = s_.actions[at_];
      const bool runs =
          action.kind == ActionKind::kCompute || action.kind == ActionKind::kRecompute;
      if (runs != action.task.valid() || (runs && action.task.index() >= w_.tasks.size()))
        return wrong("has a task and does not run it, or runs none");
      PLIMSOLL_RETURN_IF_ERROR(advance_clock(action));
      for (const InstanceId id : action.reads) PLIMSOLL_RETURN_IF_ERROR(read(action, id));
      PLIMSOLL_RETURN_IF_ERROR(runs ? check_run(action) : check_move(action));
      for (const InstanceId id : action.writes) PLIMSOLL_RETURN_IF_ERROR(make(action, id));
      peak_ = std::max(peak_, device_ + (runs ? w_.task(action.task).scratch : Bytes(0)));
      host_peak_ = std::max(host_peak_, host_);
      if (action.kind == ActionKind::kDrop) PLIMSOLL_RETURN_IF_ERROR(end_life(action.reads[0]));
    }
    PLIMSOLL_RETURN_IF_ERROR(check_end());
    if (peak_ > budget) return wrong("needs {} bytes, the budget is {}", peak_, budget);
    return Verdict{peak_, host_peak_, *std::max_element(free_at_.begin(), free_at_.end())};
  }

 private:
  template <typename... Args>
  tl::unexpected<Error> wrong(fmt::format_string<Args...> format, Args&&... args) const {
    return fail(ErrorCode::kInternal, "schedule, action {}: {}", at_,
                fmt::format(format, std::forward<Args>(args)...));
  }

  bool known(InstanceId id) const { return id.valid() && id.index() < s_.instances.size(); }
  const Instance& instance(InstanceId id) const { return s_.instances[id.index()]; }
  const std::string& name(InstanceId id) const { return w_.value(instance(id).value).name; }
  bool finished(std::size_t stream, std::int64_t number) const { return now_[stream] > number; }
  Bytes& bytes_where(const Instance& it) { return it.form == Form::kHost ? host_ : device_; }

  Status check_instances() const {
    for (const Instance& it : s_.instances) {
      if (!it.value.valid() || it.value.index() >= w_.values.size())
        return wrong("an instance of no value");
      const Value& value = w_.value(it.value);
      const bool encoded = it.form == Form::kEncoded;
      if (encoded && it.encoding >= value.encodings.size())
        return wrong("'{}' has no such encoding", value.name);
      if (it.bytes != (encoded ? value.encodings[it.encoding].bytes : value.bytes))
        return wrong("an instance of '{}' has other bytes", value.name);
    }
    return {};
  }

  // Every source is there once, on the device or, where it may, on the host; nothing else is.
  Status start() {
    std::vector<char> placed(w_.values.size(), 0);
    for (const InstanceId id : s_.at_start) {
      if (!known(id)) return wrong("starts with an unknown instance");
      const Instance& it = instance(id);
      const Value& value = w_.value(it.value);
      if (value.producer.valid() || placed[it.value.index()]++ || it.form == Form::kEncoded ||
          (it.form == Form::kHost && !value.swappable))
        return wrong("'{}' cannot be there at the start", value.name);
      home_[it.value.index()] = it.form;
      lives_[id.index()].made = true;
      bytes_where(it) += it.bytes;
    }
    for (std::size_t v = 0; v < w_.values.size(); ++v) {
      if (!w_.values[v].producer.valid() && !placed[v])
        return wrong("source '{}' is missing at the start", w_.values[v].name);
    }
    peak_ = device_;
    host_peak_ = host_;
    return {};
  }

  // What is finished when the action begins, and when that is.
  Status advance_clock(const Action& action) {
    const auto stream = static_cast<std::size_t>(action.stream);
    now_ = latest_[stream];
    now_[stream] = count_[stream];
    double begin = free_at_[stream];
    for (const ActionId other : action.waits) {
      if (!other.valid() || other.index() >= at_) return wrong("waits for what comes later");
      const auto theirs = static_cast<std::size_t>(s_.actions[other.index()].stream);
      for (std::size_t k = 0; k < now_.size(); ++k)
        now_[k] = std::max(now_[k], clock_[other.index()][k]);
      now_[theirs] = std::max(now_[theirs], number_[other.index()] + 1);
      begin = std::max(begin, finish_[other.index()]);
    }
    latest_[stream] = now_;
    clock_.push_back(now_);
    number_.push_back(count_[stream]++);
    finish_.push_back(free_at_[stream] = begin + action.seconds);
    return {};
  }

  Status read(const Action& action, InstanceId id) {
    if (!known(id)) return wrong("reads an unknown instance");
    Life& life = lives_[id.index()];
    if (!life.made) return wrong("reads '{}' before it is made", name(id));
    if (life.over) return wrong("reads '{}' after its memory was given away", name(id));
    if (!finished(life.stream, life.number))
      return wrong("reads '{}' without waiting for it", name(id));
    if (action.kind != ActionKind::kDrop)
      life.last_use[static_cast<std::size_t>(action.stream)] = number_[at_];
    return {};
  }

  Status check_run(const Action& action) {
    const Task& task = w_.task(action.task);
    const bool first = runs_[action.task.index()]++ == 0;
    const bool may_rerun =
        !task.once && std::all_of(task.outputs.begin(), task.outputs.end(),
                                  [&](ValueId id) { return w_.value(id).recompute; });
    if (action.stream != Stream::kCompute) return wrong("'{}' runs on a copy stream", task.name);
    if (first != (action.kind == ActionKind::kCompute))
      return wrong("'{}' is called first run or rerun wrongly", task.name);
    if (!first && !may_rerun) return wrong("'{}' must not run twice", task.name);
    if (action.seconds != task.seconds) return wrong("'{}' has another time", task.name);
    const auto right = [&](InstanceId id, ValueId value) {
      return known(id) && instance(id).value == value && instance(id).form == Form::kDevice;
    };
    if (!std::equal(action.reads.begin(), action.reads.end(), task.inputs.begin(),
                    task.inputs.end(), right))
      return wrong("'{}' reads the wrong things", task.name);
    if (!std::equal(action.writes.begin(), action.writes.end(), task.outputs.begin(),
                    task.outputs.end(), right))
      return wrong("'{}' writes the wrong things", task.name);
    return {};
  }

  Status check_move(const Action& action) const {
    const bool drops = action.kind == ActionKind::kDrop;
    if (action.reads.size() != 1 || action.writes.size() != (drops ? 0u : 1u))
      return wrong("does not act on one instance");
    if (drops && (action.stream != Stream::kCompute || action.seconds != 0))
      return wrong("is not a proper drop");
    if (drops) return {};
    if (!known(action.writes[0])) return wrong("makes nothing");
    const Instance& from = instance(action.reads[0]);
    const Instance& to = instance(action.writes[0]);
    const Value& value = w_.value(from.value);
    if (to.value != from.value) return wrong("turns '{}' into another value", value.name);
    if (!is_allowed(action, value, from, to))
      return wrong("moves '{}' in a way that is not allowed", value.name);
    return {};
  }

  // Right forms, right stream, right time.
  bool is_allowed(const Action& action, const Value& value, const Instance& from,
                  const Instance& to) const {
    const auto is = [&](Form before, Form after, Stream stream) {
      return from.form == before && to.form == after && action.stream == stream;
    };
    switch (action.kind) {
      case ActionKind::kCopyOut:
        return value.swappable && is(Form::kDevice, Form::kHost, Stream::kCopyOut) &&
               action.seconds == copies_.out_seconds(value.bytes);
      case ActionKind::kCopyIn:
        return is(Form::kHost, Form::kDevice, Stream::kCopyIn) &&
               action.seconds == copies_.in_seconds(value.bytes);
      case ActionKind::kEncode:
        return is(Form::kDevice, Form::kEncoded, Stream::kCompute) &&
               action.seconds == value.encodings[to.encoding].encode_seconds;
      case ActionKind::kDecode:
        return is(Form::kEncoded, Form::kDevice, Stream::kCompute) &&
               action.seconds == value.encodings[from.encoding].decode_seconds;
      default:
        return false;
    }
  }

  Status make(const Action& action, InstanceId id) {
    const Instance& it = instance(id);
    const Value& value = w_.value(it.value);
    Life& life = lives_[id.index()];
    if (life.made) return wrong("makes the same instance of '{}' again", value.name);
    if (it.form != Form::kHost && action.stream != Stream::kCompute &&
        !finished(kComputeStream, last_drop_))
      return wrong("takes memory for '{}' that may not be free yet", value.name);
    life.made = true;
    life.stream = static_cast<std::size_t>(action.stream);
    life.number = number_[at_];
    life.begin = static_cast<std::int64_t>(at_);
    bytes_where(it) += it.bytes;
    const bool required = action.task.valid() && value.in_place && value.in_place->required;
    if (!it.takes_over.valid() && required)
      return wrong("'{}' must be written over its old version", value.name);
    if (!it.takes_over.valid()) return {};
    if (std::find(action.reads.begin(), action.reads.end(), it.takes_over) == action.reads.end() ||
        !value.in_place || instance(it.takes_over).value != value.in_place->input ||
        instance(it.takes_over).form != Form::kDevice || it.form != Form::kDevice)
      return wrong("'{}' takes memory it was not offered", value.name);
    return end_life(it.takes_over);
  }

  // The memory of an instance is free from here on: whoever read it has finished.
  Status end_life(InstanceId id) {
    Life& life = lives_[id.index()];
    const auto own = static_cast<std::size_t>(s_.actions[at_].stream);
    if (life.over) return wrong("gives the memory of '{}' away twice", name(id));
    for (std::size_t k = 0; k < now_.size(); ++k) {
      const bool this_one = k == own && life.last_use[k] == number_[at_];
      if (!this_one && !finished(k, life.last_use[k]))
        return wrong("gives the memory of '{}' away while it is read", name(id));
    }
    life.over = true;
    life.end = static_cast<std::int64_t>(at_);
    bytes_where(instance(id)) -= instance(id).bytes;
    last_drop_ = number_[at_];
    return {};
  }

  // A source stays where it was at the start, and so does each next version of it.
  Form home_of(ValueId id) const {
    for (; w_.value(id).producer.valid(); id = w_.value(id).in_place->input) {
      if (!w_.value(id).in_place || !w_.value(id).in_place->required) return Form::kDevice;
    }
    return home_[id.index()];
  }

  Status check_end() const {
    for (std::size_t t = 0; t < runs_.size(); ++t) {
      if (runs_[t] == 0) return wrong("task '{}' never runs", w_.tasks[t].name);
    }
    std::vector<char> there(w_.values.size(), 0);
    for (std::size_t i = 0; i < lives_.size(); ++i) {
      const Life& life = lives_[i];
      const Instance& it = s_.instances[i];
      const std::string& value = w_.value(it.value).name;
      if (!life.made) return wrong("an instance of '{}' is never made", value);
      const std::int64_t end = life.over ? life.end : static_cast<std::int64_t>(at_);
      if (it.lifetime.begin.value != life.begin || it.lifetime.end.value != end)
        return wrong("the lifetime of an instance of '{}' is wrong", value);
      if (!life.over && it.form == home_of(it.value)) there[it.value.index()] = 1;
    }
    for (std::size_t v = 0; v < there.size(); ++v) {
      if (w_.values[v].keep && !there[v])
        return wrong("'{}' must be kept and is not where it belongs", w_.values[v].name);
    }
    return {};
  }

  const Workload& w_;
  const Schedule& s_;
  const CopyRates& copies_;
  std::vector<Life> lives_;           // by instance
  std::vector<int> runs_;             // by task
  std::vector<Form> home_;            // by source
  std::size_t at_ = 0;                // the action that is replayed
  std::vector<Clock> clock_;          // by action: what was finished when it began
  std::vector<std::int64_t> number_;  // by action: its number on its stream
  std::vector<double> finish_;        // by action
  std::array<Clock, 3> latest_{};     // by stream: clock of its last action
  Clock count_{};                     // by stream: actions so far
  Clock now_{};                       // of the action that is replayed
  std::array<double, 3> free_at_{};   // by stream
  std::int64_t last_drop_ = -1;       // number on the compute stream of the last one that freed
  Bytes device_, host_, peak_, host_peak_;
};

}  // namespace

Result<Verdict> verify_schedule(const Workload& workload, const Schedule& schedule, Bytes budget,
                                const CopyRates& copies) {
  return Verifier(workload, schedule, copies).run(budget);
}

}  // namespace plimsoll::schedule

#include "plimsoll/schedule/search/action_list.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "plimsoll/base/check.h"

namespace plimsoll::schedule {
namespace {

constexpr Index kForever = std::numeric_limits<Index>::max();

// First pass: which instances there are and where each is last needed. Second pass: actions, with a
// drop after each last need.
class Linker {
 public:
  Linker(const Problem& problem, const ActionList& list) : p_(problem), list_(list) {
    const auto values = at(p_.values);
    device_.assign(values, kNoIndex);
    encoded_.assign(values, kNoIndex);
    host_.assign(values, kNoIndex);
    copies_.assign(values, 0);
    first_run_.assign(at(p_.tasks), 1);
  }

  Schedule link() {
    out_.actions.reserve(list_.actions.size() * 2);
    place_sources();
    for (std::size_t s = 0; s < list_.actions.size(); ++s) trace(static_cast<Index>(s));
    keep_last_versions();
    for (std::size_t s = 0; s < list_.actions.size(); ++s) sort_last_needs(s);
    drop_unread_sources();
    for (std::size_t s = 0; s < list_.actions.size(); ++s) emit(static_cast<Index>(s));
    finish_lifetimes();
    measure();
    return std::move(out_);
  }

 private:
  struct Facts {
    Index made = kNoIndex;                // place in the list, -1 for sources
    Index last = kNoIndex;                // place in the list after which it is not needed
    Index maker = kNoIndex;               // action
    std::vector<ActionId> foreign_users;  // actions on copy streams that read it
  };

  Index make(Index value, Form form, Index step) {
    const auto v = at(value);
    Instance instance;
    instance.value = ValueId(v);
    instance.copy = copies_[v]++;
    instance.form = form;
    instance.bytes = Bytes(form == Form::kEncoded ? p_.encoded_bytes[v] : p_.bytes[v]);
    if (form == Form::kEncoded) instance.encoding = static_cast<std::uint8_t>(p_.encoding[v]);
    out_.instances.push_back(instance);
    facts_.push_back({step, step, kNoIndex, {}});
    return static_cast<Index>(out_.instances.size()) - 1;
  }

  void place_sources() {
    std::vector<char> hosted(at(p_.values), 0);
    for (Index v : list_.on_host_at_start) hosted[at(v)] = 1;
    for (Index v = 0; v < p_.values; ++v) {
      const auto i = at(v);
      if (p_.producer[i] != kNoIndex) continue;
      auto& slot = hosted[i] ? host_[i] : device_[i];
      slot = make(v, hosted[i] ? Form::kHost : Form::kDevice, -1);
      out_.at_start.push_back(InstanceId(at(slot)));
    }
    started_on_host_ = std::move(hosted);
  }

  void need(Index instance, Index step) {
    PLIMSOLL_CHECK(instance != kNoIndex, "action {} of the list reads what is not there", step);
    facts_[at(instance)].last = step;
  }

  void trace(Index step) {
    const ListedAction& now = list_.actions[at(step)];
    const auto id = at(now.id);
    reads_.emplace_back();
    writes_.emplace_back();
    auto& reads = reads_.back();
    auto& writes = writes_.back();
    switch (now.kind) {
      case ActionKind::kCompute:
      case ActionKind::kRecompute:
        for (Index v : p_.inputs[now.id]) reads.push_back(device_[at(v)]);
        for (Index v : p_.outputs[now.id]) writes.push_back(make(v, Form::kDevice, step));
        break;
      case ActionKind::kEncode:
        reads.push_back(device_[id]);
        writes.push_back(encoded_[id] = make(now.id, Form::kEncoded, step));
        break;
      case ActionKind::kDecode:
        reads.push_back(encoded_[id]);
        writes.push_back(make(now.id, Form::kDevice, step));
        break;
      case ActionKind::kCopyOut:
        reads.push_back(device_[id]);
        writes.push_back(host_[id] = make(now.id, Form::kHost, step));
        break;
      case ActionKind::kCopyIn:
        reads.push_back(host_[id]);
        writes.push_back(make(now.id, Form::kDevice, step));
        fetched_from_.resize(out_.instances.size(), kNoIndex);
        fetched_from_.back() = host_[id];
        break;
      case ActionKind::kDrop:
        reads.push_back(device_[id]);
        break;
    }
    for (Index instance : reads) {
      need(instance, step);
      keep_host_until_arrival(instance, step);
    }
    if (now.kind == ActionKind::kDrop) device_[id] = kNoIndex;
    for (Index instance : writes) {
      const Instance& made = out_.instances[at(instance)];
      if (made.form == Form::kDevice) device_[made.value.index()] = instance;
    }
  }

  // The host copy goes once somebody has waited for the fetch anyway, so that its drop never
  // stalls.
  void keep_host_until_arrival(Index instance, Index step) {
    const auto i = at(instance);
    if (i >= fetched_from_.size() || fetched_from_[i] == kNoIndex) return;
    auto& last = facts_[at(fetched_from_[i])].last;
    last = std::max(last, step);
    fetched_from_[i] = kNoIndex;
  }

  // A kept source that started on the host ends there, in its newest version.
  bool ends_on_host(Index value) const {
    for (Index v = value; v != kNoIndex;) {
      const auto i = at(v);
      if (p_.producer[i] == kNoIndex) return started_on_host_[i] != 0;
      v = p_.must_take[i] ? p_.in_place[i] : kNoIndex;
    }
    return false;
  }

  void keep_last_versions() {
    for (Index v = 0; v < p_.values; ++v) {
      const auto i = at(v);
      if (!p_.keep[i]) continue;
      const Index instance = ends_on_host(v) ? host_[i] : device_[i];
      PLIMSOLL_CHECK(instance != kNoIndex, "the list loses value {}, which must be kept", v);
      facts_[at(instance)].last = kForever;
    }
  }

  void sort_last_needs(std::size_t step) {
    ends_.emplace_back();
    const auto collect = [&](Index instance) {
      const auto i = at(instance);
      if (facts_[i].last == static_cast<Index>(step) && !ended(i)) {
        ends_.back().push_back(instance);
        ended_[i] = 1;
      }
    };
    for (Index instance : reads_[step]) {
      collect(instance);
      const auto i = at(instance);
      const Index host = host_source(i);
      if (host != kNoIndex) collect(host);
    }
    for (Index instance : writes_[step]) collect(instance);
  }

  bool ended(std::size_t instance) {
    ended_.resize(out_.instances.size(), 0);
    return ended_[instance] != 0;
  }

  Index host_source(std::size_t instance) const {
    const Index made = facts_[instance].made;
    if (made < 0 || list_.actions[at(made)].kind != ActionKind::kCopyIn) {
      return kNoIndex;
    }
    return reads_[at(made)].front();
  }

  void drop_unread_sources() {
    for (InstanceId id : out_.at_start) {
      if (facts_[id.index()].last == -1) drop(static_cast<Index>(id.value));
    }
  }

  Action& act(ActionKind kind, Stream stream, double seconds) {
    Action action;
    action.kind = kind;
    action.stream = stream;
    action.seconds = seconds;
    out_.actions.push_back(std::move(action));
    Seen& known = known_[static_cast<std::size_t>(stream)];
    clocks_.push_back(known);
    known[static_cast<std::size_t>(stream)] = static_cast<Index>(out_.actions.size()) - 1;
    return out_.actions.back();
  }

  // Only for the newest action. What its stream has already waited for, it need not wait for again.
  void wait(Action& action, ActionId other) {
    const auto theirs = static_cast<std::size_t>(out_.actions[other.index()].stream);
    Seen& known = known_[static_cast<std::size_t>(action.stream)];
    if (known[theirs] >= static_cast<Index>(other.value)) return;
    action.waits.push_back(other);
    const Seen before = clocks_[other.index()];
    for (std::size_t k = 0; k < before.size(); ++k) known[k] = std::max(known[k], before[k]);
    known[theirs] = std::max(known[theirs], static_cast<Index>(other.value));
    const auto own = static_cast<std::size_t>(action.stream);
    const Index self = clocks_.back()[own];
    clocks_.back() = known;
    clocks_.back()[own] = self;
  }

  void drop(Index instance) {
    const auto i = at(instance);
    Action& action = act(ActionKind::kDrop, Stream::kCompute, 0);
    action.reads.push_back(InstanceId(i));
    for (ActionId user : facts_[i].foreign_users) wait(action, user);
    if (facts_[i].maker != kNoIndex) wait(action, ActionId(at(facts_[i].maker)));
    out_.instances[i].lifetime.end = Step(static_cast<std::int64_t>(out_.actions.size()) - 1);
    dropped_.resize(out_.instances.size(), 0);
    dropped_[i] = 1;
    last_compute_ = static_cast<Index>(out_.actions.size()) - 1;
  }

  void emit(Index step) {
    const auto s = at(step);
    const ListedAction& now = list_.actions[s];
    const auto id = at(now.id);
    if (now.kind != ActionKind::kDrop) {
      Action& action = start(now, id);
      for (Index instance : reads_[s]) read(action, instance);
      for (Index instance : writes_[s]) write(action, instance);
      if (action.task.valid()) take_over(action, step);
      // A fetch may only start when everything dropped before it in the list is gone.
      if (action.stream == Stream::kCopyIn && last_compute_ != kNoIndex) {
        wait(action, ActionId(at(last_compute_)));
      }
      if (action.stream == Stream::kCompute) {
        last_compute_ = static_cast<Index>(out_.actions.size()) - 1;
      }
    }
    for (Index instance : ends_[s]) {
      if (!taken(instance)) drop(instance);
    }
  }

  Action& start(const ListedAction& now, std::size_t id) {
    switch (now.kind) {
      case ActionKind::kEncode:
        return act(now.kind, Stream::kCompute, p_.encode_seconds[id]);
      case ActionKind::kDecode:
        return act(now.kind, Stream::kCompute, p_.decode_seconds[id]);
      case ActionKind::kCopyOut:
        return act(now.kind, Stream::kCopyOut, p_.out_seconds[id]);
      case ActionKind::kCopyIn:
        return act(now.kind, Stream::kCopyIn, p_.in_seconds[id]);
      default: {
        const bool first = first_run_[id] != 0;
        first_run_[id] = 0;
        Action& action = act(first ? ActionKind::kCompute : ActionKind::kRecompute,
                             Stream::kCompute, p_.seconds[id]);
        action.task = TaskId(id);
        return action;
      }
    }
  }

  void read(Action& action, Index instance) {
    const auto i = at(instance);
    action.reads.push_back(InstanceId(i));
    if (facts_[i].maker != kNoIndex) wait(action, ActionId(at(facts_[i].maker)));
    if (action.stream != Stream::kCompute) {
      facts_[i].foreign_users.push_back(ActionId(out_.actions.size() - 1));
    }
  }

  void write(Action& action, Index instance) {
    const auto i = at(instance);
    action.writes.push_back(InstanceId(i));
    facts_[i].maker = static_cast<Index>(out_.actions.size()) - 1;
    out_.instances[i].lifetime.begin = Step(static_cast<std::int64_t>(out_.actions.size()) - 1);
  }

  void take_over(Action& action, Index step) {
    const auto s = at(step);
    for (Index made : writes_[s]) {
      const auto o = out_.instances[at(made)].value.index();
      if (p_.in_place[o] == kNoIndex) continue;
      for (Index instance : reads_[s]) {
        const auto i = at(instance);
        if (static_cast<Index>(out_.instances[i].value.value) != p_.in_place[o]) continue;
        if (facts_[i].last != step || taken(instance)) continue;
        out_.instances[at(made)].takes_over = InstanceId(i);
        out_.instances[i].lifetime.end = Step(static_cast<std::int64_t>(out_.actions.size()) - 1);
        for (ActionId user : facts_[i].foreign_users) wait(action, user);
        taken_[i] = 1;
      }
    }
  }

  bool taken(Index instance) {
    taken_.resize(out_.instances.size(), 0);
    return taken_[at(instance)] != 0;
  }

  void finish_lifetimes() {
    dropped_.resize(out_.instances.size(), 0);
    taken_.resize(out_.instances.size(), 0);
    for (std::size_t i = 0; i < out_.instances.size(); ++i) {
      if (!dropped_[i] && !taken_[i]) {
        out_.instances[i].lifetime.end = Step(static_cast<std::int64_t>(out_.actions.size()));
      }
    }
  }

  void measure() {
    std::int64_t device = 0;
    std::int64_t host = 0;
    const auto account = [&](const Instance& instance, int sign) {
      (instance.form == Form::kHost ? host : device) += sign * instance.bytes.value;
    };
    for (InstanceId id : out_.at_start) account(out_.instances[id.index()], 1);
    std::int64_t peak = device;
    std::int64_t host_peak = host;
    std::vector<double> finish(out_.actions.size(), 0);
    std::array<double, 3> stream_free{};
    for (std::size_t a = 0; a < out_.actions.size(); ++a) {
      const Action& action = out_.actions[a];
      for (InstanceId id : action.writes) {
        const Instance& made = out_.instances[id.index()];
        account(made, 1);
        if (made.takes_over.valid()) account(out_.instances[made.takes_over.index()], -1);
      }
      const std::int64_t scratch = action.task.valid() ? p_.scratch[action.task.index()] : 0;
      peak = std::max(peak, device + scratch);
      host_peak = std::max(host_peak, host);
      if (action.kind == ActionKind::kDrop) account(out_.instances[action.reads[0].index()], -1);
      double& free_at = stream_free[static_cast<std::size_t>(action.stream)];
      for (ActionId other : action.waits) free_at = std::max(free_at, finish[other.index()]);
      free_at += action.seconds;
      finish[a] = free_at;
    }
    out_.peak_bytes = Bytes(peak);
    out_.host_peak_bytes = Bytes(host_peak);
    out_.seconds = *std::max_element(stream_free.begin(), stream_free.end());
  }

  const Problem& p_;
  const ActionList& list_;
  Schedule out_;
  std::vector<Facts> facts_;                    // per instance
  std::vector<Index> device_, encoded_, host_;  // per value: the newest instance of each form
  std::vector<std::uint32_t> copies_;
  std::vector<char> first_run_, started_on_host_, ended_, dropped_, taken_;
  std::vector<Index> fetched_from_;  // per instance: the host copy still held for it
  std::vector<std::vector<Index>> reads_, writes_, ends_;  // per listed action
  Index last_compute_ = kNoIndex;
  using Seen = std::array<Index, 3>;  // per stream: the last action known to be finished
  std::array<Seen, 3> known_{Seen{-1, -1, -1}, Seen{-1, -1, -1}, Seen{-1, -1, -1}};
  std::vector<Seen> clocks_;  // per action: what is finished when it starts
};

}  // namespace

ActionList run_in_order(const std::vector<Index>& order) {
  ActionList list;
  for (Index task : order) list.actions.push_back({ActionKind::kCompute, task});
  return list;
}

ActionList action_list_of(const Schedule& schedule) {
  ActionList list;
  for (const Action& action : schedule.actions) {
    if (action.kind == ActionKind::kDrop) continue;
    if (action.task.valid()) {
      list.actions.push_back({ActionKind::kCompute, static_cast<Index>(action.task.value)});
    } else {
      const Instance& read = schedule.instances[action.reads.front().index()];
      list.actions.push_back({action.kind, static_cast<Index>(read.value.value)});
    }
  }
  return list;
}

namespace {

class CopyLister {
 public:
  CopyLister(const Problem& problem, const ActionList& list) : p_(problem), list_(list) {
    const std::size_t size = list.actions.size();
    free_after_.assign(size, 0);
    next_read_.assign(size, 0);
    leaves_.assign(size, 0);
    starts_on_host_.assign(at(problem.values), 0);
    for (const Index v : list.on_host_at_start) starts_on_host_[at(v)] = 1;
    look_back();
    look_ahead();
  }

  ActionList run() {
    sort_neighbours();
    std::vector<std::vector<Index>> sent(list_.actions.size() + 1);  // before each place
    std::size_t last_sent = 0;
    for (const std::size_t k : order_) {
      if (!swaps(k) || list_.actions[k].kind != ActionKind::kEncode) continue;
      last_sent = std::max(last_sent, free_after_[k]);
      sent[last_sent].push_back(list_.actions[k].id);
    }
    ActionList out;
    out.on_host_at_start = list_.on_host_at_start;
    for (std::size_t place = 0; place < order_.size(); ++place) {
      for (const Index v : sent[place]) out.actions.push_back({ActionKind::kCopyOut, v});
      const std::size_t k = order_[place];
      const ListedAction action = list_.actions[k];
      if (!swaps(k))
        out.actions.push_back(action);
      else if (action.kind == ActionKind::kDecode)
        out.actions.push_back({ActionKind::kCopyIn, action.id});
      else if (leaves_[k])
        out.actions.push_back({ActionKind::kDrop, action.id});
    }
    return out;
  }

 private:
  bool swaps(std::size_t k) const {
    const ListedAction& action = list_.actions[k];
    return action.kind != ActionKind::kCompute && is_swap(p_.encoding[at(action.id)]);
  }

  // For what is sent out: the place after the last use before it.
  void look_back() {
    std::vector<std::size_t> after(at(p_.values), 0);
    for (std::size_t k = 0; k < list_.actions.size(); ++k) {
      const ListedAction& action = list_.actions[k];
      if (action.kind == ActionKind::kCompute) {
        for (const Index v : p_.inputs[action.id]) after[at(v)] = k + 1;
        for (const Index v : p_.outputs[action.id]) after[at(v)] = k + 1;
      } else {
        free_after_[k] = after[at(action.id)];
        if (action.kind == ActionKind::kDecode) after[at(action.id)] = k + 1;
      }
    }
  }

  // A kept value that is not on the host at the end is needed then.
  bool ends_on_device(Index value) const {
    if (!p_.keep[at(value)]) return false;
    while (p_.producer[at(value)] != kNoIndex) {
      if (!p_.must_take[at(value)]) return true;
      value = p_.in_place[at(value)];
    }
    return !starts_on_host_[at(value)];
  }

  // For what comes in: where it is read next. For what is sent out: whether nothing reads what
  // stays on the device.
  void look_ahead() {
    const std::size_t never = list_.actions.size() + 1;
    std::vector<std::size_t> read(at(p_.values), never);
    for (Index v = 0; v < p_.values; ++v) {
      if (ends_on_device(v)) read[at(v)] = list_.actions.size();
    }
    for (std::size_t k = list_.actions.size(); k-- > 0;) {
      const ListedAction& action = list_.actions[k];
      if (action.kind == ActionKind::kCompute) {
        for (const Index v : p_.outputs[action.id]) read[at(v)] = never;
        for (const Index v : p_.inputs[action.id]) read[at(v)] = k;
        continue;
      }
      std::size_t& next = read[at(action.id)];
      next_read_[k] = next;
      leaves_[k] = next == never;
      next = action.kind == ActionKind::kEncode ? k : never;
    }
  }

  // Swaps that stand side by side have no order of their own: what was free first leaves first,
  // and what is read first comes first.
  void sort_neighbours() {
    order_.resize(list_.actions.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    const auto sort_run = [&](std::size_t begin, std::size_t end, const auto& keys) {
      std::stable_sort(order_.begin() + static_cast<std::ptrdiff_t>(begin),
                       order_.begin() + static_cast<std::ptrdiff_t>(end),
                       [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
    };
    for (std::size_t begin = 0; begin < order_.size();) {
      std::size_t end = begin + 1;
      const ActionKind kind = list_.actions[begin].kind;
      while (swaps(begin) && end < order_.size() && swaps(end) && list_.actions[end].kind == kind)
        ++end;
      sort_run(begin, end, kind == ActionKind::kEncode ? free_after_ : next_read_);
      begin = end;
    }
  }

  const Problem& p_;
  const ActionList& list_;
  // per listed action
  std::vector<std::size_t> free_after_, next_read_;
  std::vector<char> leaves_;
  std::vector<char> starts_on_host_;  // per value
  std::vector<std::size_t> order_;    // of the actions, as they come out
};

}  // namespace

ActionList with_copies(const Problem& problem, const ActionList& list) {
  return CopyLister(problem, list).run();
}

Schedule link(const Problem& problem, const ActionList& list) {
  return Linker(problem, list).link();
}

}  // namespace plimsoll::schedule

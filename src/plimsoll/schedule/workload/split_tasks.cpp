#include "plimsoll/schedule/workload/split_tasks.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include <fmt/format.h>

#include "plimsoll/base/checked.h"

namespace plimsoll::schedule {
namespace {

// One split of one workload.
class TaskSplitter {
 public:
  TaskSplitter(const Workload& workload, std::int64_t parts)
      : in_(workload),
        parts_(parts),
        region_(workload.tasks.size(), kNone),
        now_(workload.values.size()),
        readers_(workload.values.size()) {
    for (std::size_t t = 0; t < in_.tasks.size(); ++t) {
      names_.insert(in_.tasks[t].name);
      for (const ValueId input : in_.tasks[t].inputs) readers_[input.index()].push_back(t);
    }
    for (const Value& value : in_.values) names_.insert(value.name);
  }

  WorkloadInParts run() {
    find_regions();
    for (std::size_t v = 0; v < in_.values.size(); ++v) {
      if (!in_.values[v].producer.valid()) now_[v] = add_value(in_.values[v]);
    }
    for (std::size_t t : order()) {
      if (region_[t] == kNone) {
        copy_task(t);
      } else if (t == last_[region_[t]]) {
        split_region(region_[t]);
      }
    }
    return std::move(out_);
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  bool may_split(std::size_t t) const {
    const auto& split = in_.tasks[t].split;
    return split && split->parts >= parts_ && !in_.tasks[t].once;
  }
  bool cuts(std::size_t t, ValueId value) const {
    return std::ranges::find(in_.tasks[t].split->cut, value) != in_.tasks[t].split->cut.end();
  }
  // Both tasks take their share of it.
  bool is_shared(ValueId value, std::size_t reader) const {
    const TaskId maker = in_.value(value).producer;
    return maker.valid() && may_split(maker.index()) && may_split(reader) &&
           !in_.task(maker).split->sums && cuts(reader, value);
  }

  void find_regions() {
    std::vector<std::size_t> group(in_.tasks.size());
    std::iota(group.begin(), group.end(), std::size_t{0});
    const auto leader = [&](std::size_t t) {
      while (group[t] != t) t = group[t] = group[group[t]];
      return t;
    };
    for (std::size_t t = 0; t < in_.tasks.size(); ++t) {
      for (const ValueId input : in_.tasks[t].inputs) {
        if (is_shared(input, t)) group[leader(t)] = leader(in_.value(input).producer.index());
      }
    }
    std::map<std::size_t, std::vector<std::size_t>> members;
    for (std::size_t t = 0; t < in_.tasks.size(); ++t) {
      if (may_split(t)) members[leader(t)].push_back(t);
    }
    for (const auto& [first, tasks] : members) {
      for (const std::size_t t : tasks) region_[t] = tasks.front();
      if (is_convex(tasks)) {
        last_[tasks.front()] = tasks.back();
        members_[tasks.front()] = tasks;
      } else {
        for (const std::size_t t : tasks) region_[t] = kNone;
      }
    }
  }

  // Nothing outside both depends on the region and feeds it, and nothing inside reads all of a
  // value of which it is given shares.
  bool is_convex(const std::vector<std::size_t>& tasks) const {
    const std::size_t own = tasks.front();
    std::vector<bool> behind(in_.tasks.size(), false);
    for (std::size_t t = tasks.front(); t <= tasks.back(); ++t) {
      for (const ValueId input : in_.tasks[t].inputs) {
        const TaskId from = in_.value(input).producer;
        if (!from.valid()) continue;
        const bool inside = region_[from.index()] == own;
        if (region_[t] == own) {
          if (behind[from.index()] || (inside && !is_shared(input, t))) return false;
        } else if (inside || behind[from.index()]) {
          behind[t] = true;
        }
      }
    }
    return true;
  }

  // Regions at the place of their last task; what depends on a region behind it.
  std::vector<std::size_t> order() const {
    std::vector<std::size_t> place(in_.tasks.size());
    for (std::size_t t = 0; t < in_.tasks.size(); ++t) {
      place[t] = region_[t] == kNone ? t : last_.at(region_[t]);
      for (const ValueId input : in_.tasks[t].inputs) {
        const TaskId from = in_.value(input).producer;
        if (from.valid() && region_[t] == kNone) place[t] = std::max(place[t], place[from.index()]);
      }
    }
    std::vector<std::size_t> out(in_.tasks.size());
    std::iota(out.begin(), out.end(), std::size_t{0});
    std::ranges::stable_sort(out, {}, [&](std::size_t t) {
      // of those at one place the region first
      return std::pair(place[t], region_[t] == kNone && place[t] != t);
    });
    return out;
  }

  ValueId add_value(Value value) {
    out_.workload.values.push_back(std::move(value));
    return ValueId(out_.workload.values.size() - 1);
  }

  TaskId add_task(Task task) {
    const TaskId id(out_.workload.tasks.size());
    for (const ValueId made : task.outputs) out_.workload.values[made.index()].producer = id;
    out_.workload.tasks.push_back(std::move(task));
    return id;
  }

  void copy_task(std::size_t t) {
    Task task = in_.tasks[t];
    task.split.reset();
    for (ValueId& input : task.inputs) input = now_[input.index()];
    for (ValueId& output : task.outputs) {
      Value value = in_.value(output);
      if (value.in_place) value.in_place->input = now_[value.in_place->input.index()];
      output = now_[output.index()] = add_value(std::move(value));
    }
    if (in_.first_backward == TaskId(t))
      out_.workload.first_backward = TaskId(out_.workload.tasks.size());
    add_task(std::move(task));
  }

  bool leaves(ValueId id) const {
    if (in_.value(id).keep || in_.task(in_.value(id).producer).split->sums) return true;
    const std::size_t own = region_[in_.value(id).producer.index()];
    return std::ranges::any_of(readers_[id.index()],
                               [&](std::size_t reader) { return region_[reader] != own; });
  }

  // "name#2", or with more of # where the user has such a name.
  std::string part_name(const std::string& name, std::int64_t part) const {
    std::string out = fmt::format("{}#{}", name, part + 1);
    while (names_.contains(out)) out.insert(name.size(), "#");
    return out;
  }

  void split_region(std::size_t own) {
    std::map<ValueId, bool> leaving;
    for (const std::size_t t : members_[own]) {
      for (const ValueId output : in_.tasks[t].outputs) leaving[output] = leaves(output);
    }
    for (std::int64_t part = 0; part < parts_; ++part) {
      for (const std::size_t t : members_[own]) add_part(t, part, leaving);
    }
    out_.tasks += std::ssize(members_[own]);
  }

  void add_part(std::size_t t, std::int64_t part, const std::map<ValueId, bool>& leaving) {
    Task task = in_.tasks[t];
    task.split.reset();
    task.name = part_name(task.name, part);
    task.seconds /= static_cast<double>(parts_);
    task.scratch = Bytes(ceil_div(task.scratch.value, parts_));
    for (ValueId& input : task.inputs) input = now_[input.index()];
    for (ValueId& output : task.outputs) {
      Value value = in_.value(output);
      value.name = part_name(value.name, part);
      value.in_place.reset();
      value.encodings.clear();
      const ValueId before = now_[output.index()];
      if (!leaving.at(output)) {
        value.bytes = Bytes(ceil_div(value.bytes.value, parts_));
      } else {
        value.keep = value.keep && part + 1 == parts_;
        if (part > 0) {
          task.inputs.push_back(before);
          value.in_place = InPlace{before, false};
        }
      }
      output = now_[output.index()] = add_value(std::move(value));
    }
    if (in_.first_backward == TaskId(t) && part == 0)
      out_.workload.first_backward = TaskId(out_.workload.tasks.size());
    add_task(std::move(task));
  }

  const Workload& in_;
  std::int64_t parts_;
  std::vector<std::size_t> region_;                          // by task: the first of its region
  std::map<std::size_t, std::size_t> last_;                  // by region
  std::map<std::size_t, std::vector<std::size_t>> members_;  // by region
  std::vector<ValueId> now_;                                 // by value: as it is now
  std::vector<std::vector<std::size_t>> readers_;            // by value: tasks
  std::set<std::string> names_;
  WorkloadInParts out_;
};

}  // namespace

std::int64_t most_parts(const Workload& workload) {
  std::int64_t most = 1;
  for (const Task& task : workload.tasks) {
    if (task.split) most = std::max(most, task.split->parts);
  }
  return most;
}

WorkloadInParts in_parts(const Workload& workload, std::int64_t parts) {
  return TaskSplitter(workload, parts).run();
}

}  // namespace plimsoll::schedule

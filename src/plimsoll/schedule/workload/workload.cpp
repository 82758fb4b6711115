#include "plimsoll/schedule/workload/workload.h"

#include <cmath>
#include <limits>
#include <unordered_set>

#include "plimsoll/base/checked.h"

namespace plimsoll::schedule {
namespace {

// Far below the largest int64, so that the search may add and subtract freely.
constexpr std::int64_t kLargestTotal = std::numeric_limits<std::int64_t>::max() / 16;
// Costs may be seconds, operations or anything else that adds up. So far below the largest double
// that a plan which runs every task many times can still be added up.
constexpr double kLargestCosts = 1e300;

bool is_cost(double seconds) {
  return std::isfinite(seconds) && seconds >= 0;
}

Status check_total(const Workload& workload) {
  std::int64_t total = 0;
  double costs = 0;
  const auto add = [&](Bytes bytes) {
    const auto sum = checked_add(total, bytes.value);
    total = sum.value_or(std::numeric_limits<std::int64_t>::max());
    return bytes.value >= 0 && total <= kLargestTotal;
  };
  for (const Value& value : workload.values) {
    if (!add(value.bytes))
      return bad_input("value '{}': {} bytes is out of range", value.name, value.bytes);
    for (const Encoding& offer : value.encodings) {
      if (!add(offer.bytes) || !is_cost(offer.encode_seconds) || !is_cost(offer.decode_seconds)) {
        return bad_input("value '{}': encoding '{}' is out of range", value.name, offer.name);
      }
      costs += offer.encode_seconds + offer.decode_seconds;
    }
  }
  for (const Task& task : workload.tasks) {
    if (!add(task.scratch))
      return bad_input("task '{}': {} bytes of scratch is out of range", task.name, task.scratch);
    if (!is_cost(task.seconds))
      return bad_input("task '{}': a cost of {} is neither 0 nor more", task.name, task.seconds);
    costs += task.seconds;
  }
  if (!(costs <= kLargestCosts))
    return bad_input("the costs of all tasks add up to {}, above {}: choose a larger unit", costs,
                     kLargestCosts);
  return {};
}

Status check_inputs(const Workload& workload, std::size_t at) {
  const Task& task = workload.tasks[at];
  std::unordered_set<ValueId> seen;
  for (ValueId input : task.inputs) {
    if (!input.valid() || input.index() >= workload.values.size()) {
      return bad_input("task '{}': reads a value that does not exist", task.name);
    }
    const Value& value = workload.value(input);
    if (!seen.insert(input).second) {
      return bad_input("task '{}': names input '{}' twice", task.name, value.name);
    }
    if (value.producer.valid() && value.producer.index() >= at) {
      return bad_input("task '{}': reads '{}' before it is made; give an order that can be run",
                       task.name, value.name);
    }
  }
  return {};
}

Status check_outputs(const Workload& workload, std::size_t at, std::vector<char>& made) {
  const Task& task = workload.tasks[at];
  if (task.outputs.empty()) return bad_input("task '{}': makes nothing", task.name);
  for (ValueId output : task.outputs) {
    if (!output.valid() || output.index() >= workload.values.size()) {
      return bad_input("task '{}': makes a value that does not exist", task.name);
    }
    const Value& value = workload.value(output);
    if (made[output.index()] || value.producer != TaskId(at)) {
      return bad_input("value '{}': made by two tasks", value.name);
    }
    made[output.index()] = 1;
  }
  return {};
}

Status check_in_place(const Workload& workload, const Value& value, std::vector<TaskId>& taker) {
  const ValueId input = value.in_place->input;
  const Task& task = workload.task(value.producer);
  bool reads_it = false;
  for (ValueId id : task.inputs) reads_it = reads_it || id == input;
  if (!reads_it)
    return bad_input("value '{}': is in place of what its task does not read", value.name);
  const Value& old = workload.value(input);
  if (old.bytes != value.bytes) {
    return bad_input("value '{}': has {} bytes and cannot lie in place of '{}' with {}", value.name,
                     value.bytes, old.name, old.bytes);
  }
  if (!value.in_place->required) return {};
  if (!task.once)
    return bad_input("task '{}': overwrites '{}' and must be `once`", task.name, old.name);
  if (old.keep)
    return bad_input("value '{}': is kept, yet task '{}' overwrites it", old.name, task.name);
  if (taker[input.index()].valid()) return bad_input("value '{}': is overwritten twice", old.name);
  taker[input.index()] = value.producer;
  return {};
}

}  // namespace

Status verify(const Workload& workload) {
  constexpr std::size_t kMost = 1u << 26;
  if (workload.tasks.size() > kMost || workload.values.size() > kMost) {
    return bad_input("the graph is too large: {} tasks, {} values", workload.tasks.size(),
                     workload.values.size());
  }
  PLIMSOLL_RETURN_IF_ERROR(check_total(workload));
  std::vector<char> made(workload.values.size(), 0);
  for (const Value& value : workload.values) {
    if (value.producer.valid() && value.producer.index() >= workload.tasks.size()) {
      return bad_input("value '{}': its producer does not exist", value.name);
    }
  }
  for (std::size_t t = 0; t < workload.tasks.size(); ++t) {
    PLIMSOLL_RETURN_IF_ERROR(check_inputs(workload, t));
    PLIMSOLL_RETURN_IF_ERROR(check_outputs(workload, t, made));
  }
  std::vector<TaskId> taker(workload.values.size());
  for (std::size_t v = 0; v < workload.values.size(); ++v) {
    const Value& value = workload.values[v];
    if (value.producer.valid() && !made[v])
      return bad_input("value '{}': its task does not make it", value.name);
    if (!value.in_place) continue;
    if (!value.producer.valid() || !value.in_place->input.valid() ||
        value.in_place->input.index() >= workload.values.size()) {
      return bad_input("value '{}': a source cannot be in place of anything", value.name);
    }
    PLIMSOLL_RETURN_IF_ERROR(check_in_place(workload, value, taker));
  }
  for (std::size_t t = 0; t < workload.tasks.size(); ++t) {
    for (ValueId input : workload.tasks[t].inputs) {
      const TaskId last = taker[input.index()];
      if (last.valid() && last.index() < t) {
        return bad_input("task '{}': reads '{}' after task '{}' has overwritten it",
                         workload.tasks[t].name, workload.value(input).name,
                         workload.task(last).name);
      }
    }
  }
  return {};
}

}  // namespace plimsoll::schedule

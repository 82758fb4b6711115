#include "plimsoll/schedule/search/problem.h"

#include <algorithm>
#include <numeric>

namespace plimsoll::schedule {
namespace {

bool may_rerun(const Workload& workload, const Task& task) {
  if (task.once) return false;
  return std::all_of(task.outputs.begin(), task.outputs.end(),
                     [&](ValueId id) { return workload.value(id).recompute; });
}

Index smallest_encoding(const Value& value, const Remedies& remedies) {
  Index best = kNoIndex;
  if (!remedies.encode) return best;
  for (std::size_t i = 0; i < value.encodings.size() && i < 256; ++i) {
    const Encoding& offer = value.encodings[i];
    if ((!offer.lossless && !remedies.lossy) || offer.bytes >= value.bytes) continue;
    if (best == kNoIndex || offer.bytes < value.encodings[at(best)].bytes) {
      best = static_cast<Index>(i);
    }
  }
  return best;
}

Lists readers_of(const Workload& workload) {
  std::vector<std::vector<Index>> readers(workload.values.size());
  for (std::size_t t = 0; t < workload.tasks.size(); ++t) {
    for (ValueId input : workload.tasks[t].inputs) {
      readers[input.index()].push_back(static_cast<Index>(t));
    }
  }
  Lists out;
  for (const auto& list : readers) {
    out.items.insert(out.items.end(), list.begin(), list.end());
    out.close();
  }
  return out;
}

void append(Lists& lists, const std::vector<ValueId>& ids) {
  for (ValueId id : ids) lists.items.push_back(static_cast<Index>(id.value));
  lists.close();
}

}  // namespace

Problem::Problem(const Workload& workload, const Remedies& remedies, const CopyRates& copies)
    : tasks(static_cast<Index>(workload.tasks.size())),
      values(static_cast<Index>(workload.values.size())),
      readers(readers_of(workload)) {
  for (const Task& task : workload.tasks) {
    seconds.push_back(task.seconds);
    scratch.push_back(task.scratch.value);
    rerunnable.push_back(remedies.recompute && may_rerun(workload, task));
    append(inputs, task.inputs);
    append(outputs, task.outputs);
    total_seconds += task.seconds;
  }
  overwriter.assign(workload.values.size(), kNoIndex);
  for (const Value& value : workload.values) {
    bytes.push_back(value.bytes.value);
    producer.push_back(value.producer.valid() ? static_cast<Index>(value.producer.value)
                                              : kNoIndex);
    keep.push_back(value.keep);
    in_place.push_back(value.in_place ? static_cast<Index>(value.in_place->input.value) : kNoIndex);
    must_take.push_back(value.in_place && value.in_place->required);
    if (must_take.back()) {
      overwriter[value.in_place->input.index()] = producer.back();
      has_overwriters = true;
    }
    swappable.push_back(remedies.swap && value.swappable);
    const Index choice = smallest_encoding(value, remedies);
    encoding.push_back(choice);
    const Encoding offer = choice == kNoIndex ? Encoding{} : value.encodings[at(choice)];
    encoded_bytes.push_back(offer.bytes.value);
    encode_seconds.push_back(offer.encode_seconds);
    decode_seconds.push_back(offer.decode_seconds);
    out_seconds.push_back(copies.out_seconds(value.bytes));
    in_seconds.push_back(copies.in_seconds(value.bytes));
    if (swappable.back()) copy_seconds += out_seconds.back() + in_seconds.back();
  }
}

Sequence::Sequence(const Problem& problem, std::vector<Index> tasks_in_order)
    : order(std::move(tasks_in_order)), position(order.size()) {
  for (std::size_t p = 0; p < order.size(); ++p) {
    position[at(order[p])] = static_cast<Index>(p);
  }
  readers.items.reserve(problem.readers.items.size());
  for (Index v = 0; v < problem.values; ++v) {
    const std::size_t begin = readers.items.size();
    for (Index task : problem.readers[v]) {
      readers.items.push_back(position[at(task)]);
    }
    std::sort(readers.items.begin() + static_cast<std::ptrdiff_t>(begin), readers.items.end());
    readers.close();
  }
}

Sequence given_sequence(const Problem& problem) {
  std::vector<Index> order(at(problem.tasks));
  std::iota(order.begin(), order.end(), 0);
  return Sequence(problem, std::move(order));
}

Problem renumbered(const Problem& problem, const Sequence& sequence) {
  Problem out = problem;
  const auto place = [&](Index task) {
    return task == kNoIndex ? kNoIndex : sequence.position[at(task)];
  };
  out.inputs = out.outputs = Lists{};
  for (std::size_t i = 0; i < sequence.order.size(); ++i) {
    const Index task = sequence.order[i];
    out.seconds[i] = problem.seconds[at(task)];
    out.scratch[i] = problem.scratch[at(task)];
    out.rerunnable[i] = problem.rerunnable[at(task)];
    for (Index u : problem.inputs[task]) out.inputs.items.push_back(u);
    out.inputs.close();
    for (Index v : problem.outputs[task]) out.outputs.items.push_back(v);
    out.outputs.close();
  }
  out.readers = sequence.readers;
  for (Index& task : out.producer) task = place(task);
  for (Index& task : out.overwriter) task = place(task);
  return out;
}

bool is_runnable(const Problem& problem, const std::vector<Index>& order) {
  const Sequence sequence(problem, order);
  const auto place = [&](Index task) { return sequence.position[at(task)]; };
  for (Index v = 0; v < problem.values; ++v) {
    const auto i = at(v);
    for (Index task : problem.readers[v]) {
      if (problem.producer[i] != kNoIndex && place(problem.producer[i]) >= place(task))
        return false;
      const Index last = problem.overwriter[i];
      if (last != kNoIndex && last != task && place(task) >= place(last)) return false;
    }
  }
  return true;
}

}  // namespace plimsoll::schedule

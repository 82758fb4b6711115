#include "plimsoll/capi/read_graph.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <span>

namespace plimsoll::capi {
namespace {

constexpr std::int64_t kMostThings = 1 << 26;
constexpr std::int64_t kMostEdges = std::int64_t{1} << 30;
constexpr std::size_t kMostEncodings = 64;
constexpr std::uint32_t kTaskFlags =
    PLIMSOLL_TASK_ONCE | PLIMSOLL_TASK_RANDOM | PLIMSOLL_TASK_COLLECTIVE;
constexpr std::uint32_t kValueFlags = PLIMSOLL_VALUE_KEEP | PLIMSOLL_VALUE_PINNED |
                                      PLIMSOLL_VALUE_NO_RECOMPUTE | PLIMSOLL_VALUE_NO_SWAP;

std::string name_of(const char* const* names, std::size_t at) {
  return names != nullptr && names[at] != nullptr ? std::string(names[at]) : std::to_string(at);
}

class GraphReader {
 public:
  explicit GraphReader(const plimsoll_plan_request& request) : in_(request) {}

  Status read(Request& out) {
    PLIMSOLL_RETURN_IF_ERROR(check_arrays());
    PLIMSOLL_RETURN_IF_ERROR(read_values());
    PLIMSOLL_RETURN_IF_ERROR(read_encodings(out));
    PLIMSOLL_RETURN_IF_ERROR(read_tasks());
    PLIMSOLL_RETURN_IF_ERROR(find_bases());
    PLIMSOLL_RETURN_IF_ERROR(apply_aliases());
    read_bases_with_views();
    PLIMSOLL_TRY(const std::vector<std::size_t> order, runnable_order());
    put_in_order(order, out);
    return schedule::verify(out.workload);
  }

 private:
  Status check_arrays() {
    for (const auto& [count, what] :
         {std::pair(in_.task_count, "task_count"), std::pair(in_.value_count, "value_count"),
          std::pair(in_.encoding_count, "encoding_count")}) {
      if (count < 0 || count > kMostThings)
        return bad_input("{}: {} is not between 0 and {}", what, count, kMostThings);
    }
    PLIMSOLL_RETURN_IF_ERROR(check_lists(in_.input_offsets, in_.inputs, "input_offsets", "inputs"));
    PLIMSOLL_RETURN_IF_ERROR(
        check_lists(in_.output_offsets, in_.outputs, "output_offsets", "outputs"));
    if (in_.task_count > 0 && in_.task_seconds == nullptr) return missing("task_seconds");
    if (in_.value_count > 0 && in_.value_bytes == nullptr) return missing("value_bytes");
    if (in_.encoding_count > 0 && in_.encodings == nullptr) return missing("encodings");
    tasks_.resize(static_cast<std::size_t>(in_.task_count));
    values_.resize(static_cast<std::size_t>(in_.value_count));
    if (in_.backward_task < 0 || in_.backward_task > in_.task_count)
      return bad_input("backward_task: there is no task {} of {}", in_.backward_task,
                       in_.task_count);
    return {};
  }

  static Status missing(const char* name) { return bad_input("{}: is NULL", name); }

  // Lists of values one behind the other: offsets that ascend from 0, and values that exist.
  Status check_lists(const std::int64_t* offsets, const std::int64_t* items,
                     const char* offsets_name, const char* items_name) const {
    const auto tasks = static_cast<std::size_t>(in_.task_count);
    if (offsets == nullptr) return tasks == 0 ? Status{} : missing(offsets_name);
    if (offsets[0] != 0) return bad_input("{}[0]: is {}, not 0", offsets_name, offsets[0]);
    for (std::size_t t = 0; t < tasks; ++t) {
      if (offsets[t + 1] < offsets[t] || offsets[t + 1] > kMostEdges)
        return bad_input("{}[{}]: is {} after {}; offsets must ascend, up to {}", offsets_name,
                         t + 1, offsets[t + 1], offsets[t], kMostEdges);
    }
    const auto count = static_cast<std::size_t>(offsets[tasks]);
    if (count > 0 && items == nullptr) return missing(items_name);
    for (std::size_t i = 0; i < count; ++i) {
      if (items[i] < 0 || items[i] >= in_.value_count)
        return bad_input("{}[{}]: there is no value {} of {}", items_name, i, items[i],
                         in_.value_count);
    }
    return {};
  }

  Status read_values() {
    for (std::size_t v = 0; v < values_.size(); ++v) {
      schedule::Value& value = values_[v];
      value.name = name_of(in_.value_names, v);
      value.bytes = Bytes(in_.value_bytes[v]);
      if (value.bytes.value < 0)
        return bad_input("value '{}': {} bytes are fewer than none", value.name, value.bytes);
      const std::uint32_t flags = in_.value_flags == nullptr ? 0 : in_.value_flags[v];
      if ((flags & ~kValueFlags) != 0)
        return bad_input("value '{}': unknown bits in value_flags {:#x}", value.name, flags);
      value.keep = (flags & PLIMSOLL_VALUE_KEEP) != 0;
      value.recompute = (flags & (PLIMSOLL_VALUE_PINNED | PLIMSOLL_VALUE_NO_RECOMPUTE)) == 0;
      value.swappable = (flags & (PLIMSOLL_VALUE_PINNED | PLIMSOLL_VALUE_NO_SWAP)) == 0;
    }
    return {};
  }

  bool pinned(std::size_t v) const {
    return in_.value_flags != nullptr && (in_.value_flags[v] & PLIMSOLL_VALUE_PINNED) != 0;
  }

  Status read_encodings(Request& out) {
    if (in_.encoding_count == 0) return {};
    out.encodings.resize(values_.size());
    for (std::int64_t e = 0; e < in_.encoding_count; ++e) {
      const plimsoll_encoding& offer = in_.encodings[e];
      if (offer.value < 0 || offer.value >= in_.value_count)
        return bad_input("encodings[{}]: there is no value {} of {}", e, offer.value,
                         in_.value_count);
      const auto v = static_cast<std::size_t>(offer.value);
      if (is_alias(v, PLIMSOLL_ALIAS_VIEW))
        return bad_input("encodings[{}]: value '{}' is a view; give the encoding to its base", e,
                         values_[v].name);
      if (offer.lossy > 1 || offer.reserved != 0)
        return bad_input("encodings[{}]: `lossy` must be 0 or 1 and `reserved` 0", e);
      if (pinned(v)) continue;
      if (values_[v].encodings.size() == kMostEncodings)
        return bad_input("value '{}': has more than {} encodings", values_[v].name, kMostEncodings);
      values_[v].encodings.push_back({.name = std::to_string(e),
                                      .bytes = Bytes(offer.bytes),
                                      .encode_seconds = offer.encode_seconds,
                                      .decode_seconds = offer.decode_seconds,
                                      .lossless = offer.lossy == 0});
      out.encodings[v].push_back(e);
    }
    return {};
  }

  Status read_tasks() {
    const auto list = [](const std::int64_t* offsets, const std::int64_t* items, std::size_t t) {
      return std::span(items + offsets[t], static_cast<std::size_t>(offsets[t + 1] - offsets[t]));
    };
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      schedule::Task& task = tasks_[t];
      task.name = name_of(in_.task_names, t);
      task.seconds = in_.task_seconds[t];
      task.scratch = Bytes(in_.task_scratch == nullptr ? 0 : in_.task_scratch[t]);
      const std::uint32_t flags = in_.task_flags == nullptr ? 0 : in_.task_flags[t];
      if ((flags & ~kTaskFlags) != 0)
        return bad_input("task '{}': unknown bits in task_flags {:#x}", task.name, flags);
      task.once = flags != 0;
      for (std::int64_t v : list(in_.input_offsets, in_.inputs, t))
        task.inputs.push_back(ValueId(static_cast<std::size_t>(v)));
      for (std::int64_t v : list(in_.output_offsets, in_.outputs, t)) {
        schedule::Value& value = values_[static_cast<std::size_t>(v)];
        if (value.producer.valid())
          return bad_input("value '{}': is made by task '{}' and by task '{}'", value.name,
                           tasks_[value.producer.index()].name, task.name);
        value.producer = schedule::TaskId(t);
        task.outputs.push_back(ValueId(static_cast<std::size_t>(v)));
      }
    }
    return {};
  }

  bool is_alias(std::size_t v, std::uint32_t kind) const {
    if (in_.alias_of == nullptr || in_.alias_of[v] == -1) return false;
    return (in_.alias_kinds == nullptr ? 0u : in_.alias_kinds[v]) == kind;
  }

  // The base of every view, through views of views; each value is walked over once.
  Status find_bases() {
    base_.resize(values_.size());
    if (in_.alias_of == nullptr) return {};
    for (std::size_t v = 0; v < values_.size(); ++v) {
      const std::int64_t of = in_.alias_of[v];
      if (of < -1 || of >= in_.value_count)
        return bad_input("alias_of[{}]: there is no value {} of {}", v, of, in_.value_count);
      if (in_.alias_kinds != nullptr && of >= 0 && in_.alias_kinds[v] > PLIMSOLL_ALIAS_OVERWRITE)
        return bad_input("alias_kinds[{}]: {} is unknown", v, in_.alias_kinds[v]);
    }
    std::vector<std::size_t> chain;
    for (std::size_t v = 0; v < values_.size(); ++v) {
      std::size_t end = v;
      while (is_alias(end, PLIMSOLL_ALIAS_VIEW) && !base_[end].valid()) {
        if (chain.size() > values_.size())
          return bad_input("value '{}': is a view of itself", values_[v].name);
        chain.push_back(end);
        end = static_cast<std::size_t>(in_.alias_of[end]);
      }
      const ValueId base = base_[end].valid() ? base_[end] : ValueId(end);
      for (std::size_t view : chain) base_[view] = base;
      chain.clear();
    }
    return {};
  }

  Status apply_aliases() {
    if (in_.alias_of == nullptr) return {};
    for (std::size_t v = 0; v < values_.size(); ++v) {
      if (in_.alias_of[v] == -1) continue;
      schedule::Value& value = values_[v];
      if (base_[v].valid()) {
        PLIMSOLL_RETURN_IF_ERROR(become_view(v));
        continue;
      }
      if (!value.producer.valid())
        return bad_input("value '{}': no task makes it, so it cannot lie in place of another",
                         value.name);
      const bool required = is_alias(v, PLIMSOLL_ALIAS_OVERWRITE);
      const auto of = static_cast<std::size_t>(in_.alias_of[v]);
      value.in_place = schedule::InPlace{base_[of].valid() ? base_[of] : ValueId(of), required};
      if (required) tasks_[value.producer.index()].once = true;
    }
    return {};
  }

  Status become_view(std::size_t v) {
    schedule::Value& view = values_[v];
    schedule::Value& base = values_[base_[v].index()];
    if (base.producer != view.producer && !reads_base_of(v))
      return bad_input("value '{}': is a view of '{}', which its task neither reads nor makes",
                       view.name, base.name);
    base.keep = base.keep || view.keep;
    base.recompute = base.recompute && view.recompute;
    base.swappable = base.swappable && view.swappable;
    if (pinned(v)) base.encodings.clear();
    view.bytes = Bytes(0);
    view.swappable = false;
    return {};
  }

  bool reads_base_of(std::size_t v) const {
    if (!values_[v].producer.valid()) return false;
    const schedule::Task& task = tasks_[values_[v].producer.index()];
    return std::any_of(task.inputs.begin(), task.inputs.end(), [&](ValueId input) {
      return input == base_[v] || base_[input.index()] == base_[v];
    });
  }

  void read_bases_with_views() {
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      std::vector<ValueId>& inputs = tasks_[t].inputs;
      for (std::size_t i = 0, count = inputs.size(); i < count; ++i) {
        const ValueId base = base_[inputs[i].index()];
        if (base.valid()) inputs.push_back(base);
      }
      std::sort(inputs.begin(), inputs.end());
      inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    }
  }

  // Of the tasks that can run, always the first. An overwriting task comes after every reader of
  // the old version.
  Result<std::vector<std::size_t>> runnable_order() const {
    std::vector<std::size_t> missing(tasks_.size());
    std::vector<std::vector<std::size_t>> later(tasks_.size());
    const auto before = [&](std::size_t first, std::size_t second) {
      later[first].push_back(second);
      ++missing[second];
    };
    std::vector<schedule::TaskId> overwriter(values_.size());
    for (const schedule::Value& value : values_) {
      if (value.in_place && value.in_place->required)
        overwriter[value.in_place->input.index()] = value.producer;
    }
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      for (ValueId input : tasks_[t].inputs) {
        const schedule::TaskId maker = values_[input.index()].producer;
        if (maker.valid()) before(maker.index(), t);
        const schedule::TaskId last = overwriter[input.index()];
        if (last.valid() && last.index() != t) before(t, last.index());
      }
    }
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      if (missing[t] == 0) ready.push(t);
    }
    std::vector<std::size_t> order;
    while (!ready.empty()) {
      const std::size_t task = ready.top();
      ready.pop();
      order.push_back(task);
      for (std::size_t next : later[task]) {
        if (--missing[next] == 0) ready.push(next);
      }
    }
    if (order.size() == tasks_.size()) return order;
    const auto stuck =
        std::find_if(missing.begin(), missing.end(), [](std::size_t m) { return m > 0; }) -
        missing.begin();
    return bad_input("task '{}': is part of a cycle, or reads from one",
                     tasks_[static_cast<std::size_t>(stuck)].name);
  }

  void put_in_order(const std::vector<std::size_t>& order, Request& out) {
    std::vector<std::size_t> position(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) position[order[i]] = i;
    for (std::size_t task : order) {
      out.given.push_back(static_cast<std::int64_t>(task));
      out.workload.tasks.push_back(std::move(tasks_[task]));
    }
    for (schedule::Value& value : values_) {
      if (value.producer.valid())
        value.producer = schedule::TaskId(position[value.producer.index()]);
    }
    out.workload.values = std::move(values_);
    out.base = std::move(base_);
    const auto turn = static_cast<std::size_t>(in_.backward_task);
    if (turn > 0 && turn < order.size())
      out.workload.first_backward = schedule::TaskId(position[turn]);
  }

  const plimsoll_plan_request& in_;
  std::vector<schedule::Task> tasks_;
  std::vector<schedule::Value> values_;
  std::vector<ValueId> base_;
};

}  // namespace

Status read_graph(const plimsoll_plan_request& request, Request& out) {
  return GraphReader(request).read(out);
}

}  // namespace plimsoll::capi

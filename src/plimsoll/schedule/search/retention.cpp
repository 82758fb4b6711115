#include "plimsoll/schedule/search/retention.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "plimsoll/base/check.h"

namespace plimsoll::schedule {
namespace {

void erase_one(std::vector<Index>& list, Index value) {
  const auto found = std::find(list.begin(), list.end(), value);
  PLIMSOLL_DCHECK(found != list.end());
  *found = list.back();
  list.pop_back();
}

}  // namespace

Retention::Retention(const Problem& problem, std::vector<Index> order, bool hold_all)
    : p_(&problem), order_(std::move(order)), position_(order_.size()), loads_(order_.size() + 1) {
  const std::size_t stages = order_.size();
  const std::size_t values = at(problem.values);
  for (std::size_t t = 0; t < stages; ++t) position_[at(order_[t])] = static_cast<Index>(t);
  encodes_ = std::any_of(problem.encoding.begin(), problem.encoding.end(),
                         [](Index e) { return e != kNoIndex; });
  plain_ = BitRows(values, stages + 1);
  if (encodes_) encoded_ = BitRows(values, stages + 1);
  used_ = BitRows(values, stages + 1);
  ran_ = BitRows(stages, stages + 1);
  starts_.resize(stages + 1);
  encode_starts_.resize(stages + 1);
  runs_.resize(stages);
  stage_seconds_.assign(stages, 0);
  stage_extra_.assign(stages, 0);
  stage_broken_.assign(stages, 0);
  value_mark_.assign(values, 0);
  task_mark_.assign(stages, 0);
  last_item_.assign(values, 0);
  last_mark_.assign(values, 0);
  if (!hold_all) return;
  for (Index v = 0; v < problem.values; ++v) {
    const Index made = problem.producer[at(v)];
    const Index begin = made == kNoIndex ? 0 : position_[at(made)] + 1;
    Index end = begin;
    for (Index reader : problem.readers[v]) end = std::max(end, position_[at(reader)] + 1);
    if (problem.keep[at(v)]) end = problem.tasks + 1;
    plain_.fill(v, begin, end, true);
  }
  build();
}

Retention::Retention(const Problem& problem, std::vector<Index> order)
    : Retention(problem, std::move(order), true) {}

Retention Retention::from_script(const Problem& problem, const Sequence& sequence,
                                 const Script& script) {
  Retention out(problem, sequence.order, false);
  std::vector<Index> made(at(problem.values), kNoIndex);  // stage + 1 of the newest plain instance
  std::vector<Index> encoded(at(problem.values), kNoIndex);
  const auto hold_until = [&](BitRows& rows, Index value, Index begin, Index stage) {
    if (begin != kNoIndex && begin <= stage) rows.fill(value, begin, stage + 1, true);
  };
  for (Index v = 0; v < problem.values; ++v) {
    if (problem.producer[at(v)] == kNoIndex) made[at(v)] = 0;
  }
  Index stage = 0;
  for (const ScriptStep& step : script.steps) {
    const auto id = at(step.id);
    if (step.kind == ScriptStep::Kind::kRun) {
      for (Index u : problem.inputs[step.id]) hold_until(out.plain_, u, made[at(u)], stage);
      for (Index v : problem.outputs[step.id]) made[at(v)] = stage + 1;
      if (stage < problem.tasks && sequence.order[at(stage)] == step.id) ++stage;
    } else if (step.kind == ScriptStep::Kind::kEncode) {
      hold_until(out.plain_, step.id, made[id], stage);
      encoded[id] = stage + 1;
    } else if (step.kind == ScriptStep::Kind::kDecode) {
      hold_until(out.encoded_, step.id, encoded[id], stage);
      made[id] = stage + 1;
    }
  }
  for (Index v = 0; v < problem.values; ++v) {
    if (problem.keep[at(v)]) hold_until(out.plain_, v, made[at(v)], problem.tasks);
  }
  out.build();
  return out;
}

void Retention::build() {
  std::vector<std::int64_t> changes(at(p_->tasks) + 2, 0);  // of the load, from a stage on
  const auto base = [&](const BitRows& rows, Index v, std::int64_t bytes, auto& starts) {
    Index begin = rows.first_at_or_after(v, 0);
    while (begin != kNoIndex && begin <= p_->tasks) {
      Index end = rows.first_at_or_after(v, begin, false);
      if (end == kNoIndex || end > p_->tasks + 1) end = p_->tasks + 1;
      changes[at(begin)] += bytes;
      changes[at(end)] -= bytes;
      if (begin > 0) starts[at(begin - 1)].push_back(v);
      begin = end > p_->tasks ? kNoIndex : rows.first_at_or_after(v, end);
    }
  };
  for (Index v = 0; v < p_->values; ++v) {
    base(plain_, v, p_->bytes[at(v)], starts_);
    if (encodes_) base(encoded_, v, p_->encoded_bytes[at(v)], encode_starts_);
  }
  loads_.add_from(changes);
  for (Index t = 0; t < p_->tasks; ++t) redo(t);
}

Index Retention::key_of(Index item) const {
  if (item < p_->tasks) return 2 * position_[at(item)] + 1;
  if (item >= p_->tasks + p_->values) return std::numeric_limits<Index>::max();
  const Index task = p_->producer[at(item - p_->tasks)];
  return task == kNoIndex ? 0 : 2 * position_[at(task)];
}

// What has to run in a stage: the closure of what its own task and its new holdings miss. False
// when that cannot be.
bool Retention::collect(Index stage, std::vector<Index>& items, double& seconds) {
  items.clear();
  seconds = 0;
  ++mark_now_;
  stack_.clear();
  bool possible = true;
  const auto need_task = [&](Index task) {
    if (task_mark_[at(task)] == mark_now_) return;
    task_mark_[at(task)] = mark_now_;
    const bool own = task == order_[at(stage)];
    possible = possible && (own || (p_->rerunnable[at(task)] && position_[at(task)] < stage));
    stack_.push_back(task);
  };
  const auto need_value = [&](Index v) {
    if (plain_.get(v, stage)) return;
    if (encodes_ && encoded_.get(v, stage)) {
      if (value_mark_[at(v)] == mark_now_) return;
      value_mark_[at(v)] = mark_now_;
      items.push_back(p_->tasks + v);
      seconds += p_->decode_seconds[at(v)];
      return;
    }
    if (p_->producer[at(v)] == kNoIndex) {
      possible = false;
    } else {
      need_task(p_->producer[at(v)]);
    }
  };
  need_task(order_[at(stage)]);
  for (Index v : starts_[at(stage)]) need_value(v);
  for (Index v : encode_starts_[at(stage)]) {
    need_value(v);
    items.push_back(p_->tasks + p_->values + v);
    seconds += p_->encode_seconds[at(v)];
  }
  while (!stack_.empty() && possible) {
    const Index task = stack_.back();
    stack_.pop_back();
    items.push_back(task);
    seconds += p_->seconds[at(task)];
    for (Index u : p_->inputs[task]) need_value(u);
  }
  return possible;
}

void Retention::sort_by_key(std::vector<Index>& items) {
  keyed_.clear();
  for (Index item : items) {
    keyed_.push_back(static_cast<std::uint64_t>(key_of(item)) << 32 |
                     static_cast<std::uint32_t>(item));
  }
  std::sort(keyed_.begin(), keyed_.end());
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i] = static_cast<Index>(keyed_[i] & 0xffffffffU);
  }
}

template <typename Visit>
void Retention::for_each_read(Index, Index item, Visit visit) const {
  if (item < p_->tasks) {
    for (Index u : p_->inputs[item]) visit(u);
  } else if (item >= p_->tasks + p_->values) {
    visit(item - p_->tasks - p_->values);
  }
}

// The highest bytes over what is held at the start of the stage.
std::int64_t Retention::walk(Index stage, const std::vector<Index>& items) {
  ++mark_now_;
  for (std::size_t k = 0; k < items.size(); ++k) {
    for_each_read(stage, items[k], [&](Index u) {
      last_item_[at(u)] = static_cast<std::int32_t>(k);
      last_mark_[at(u)] = mark_now_;
    });
  }
  std::int64_t now = 0;
  std::int64_t highest = 0;
  const auto ends_here = [&](Index u, std::size_t k) {
    return last_mark_[at(u)] == mark_now_ && last_item_[at(u)] == static_cast<std::int32_t>(k) &&
           !plain_.get(u, stage + 1);
  };
  const auto drop_if_unused = [&](Index v, std::size_t k) {
    const bool later =
        last_mark_[at(v)] == mark_now_ && last_item_[at(v)] > static_cast<std::int32_t>(k);
    if (plain_.get(v, stage) || (!later && !plain_.get(v, stage + 1))) now -= p_->bytes[at(v)];
  };
  for (std::size_t k = 0; k < items.size(); ++k) {
    const Index item = items[k];
    if (item >= p_->tasks + p_->values) {
      const Index v = item - p_->tasks - p_->values;
      now += p_->encoded_bytes[at(v)];
      highest = std::max(highest, now);
      if (!plain_.get(v, stage + 1)) now -= p_->bytes[at(v)];
    } else if (item >= p_->tasks) {
      const Index v = item - p_->tasks;
      now += p_->bytes[at(v)];
      highest = std::max(highest, now);
      if (!encoded_.get(v, stage + 1)) now -= p_->encoded_bytes[at(v)];
      drop_if_unused(v, k);
    } else {
      for (Index v : p_->outputs[item]) {
        const Index from = p_->in_place[at(v)];
        if (from != kNoIndex && ends_here(from, k)) {
          last_mark_[at(from)] = 0;
        } else {
          now += p_->bytes[at(v)];
        }
      }
      highest = std::max(highest, now + p_->scratch[at(item)]);
      for (Index u : p_->inputs[item]) {
        if (ends_here(u, k)) now -= p_->bytes[at(u)];
      }
      for (Index v : p_->outputs[item]) drop_if_unused(v, k);
    }
  }
  return highest;
}

void Retention::touches(Index stage, bool on) {
  for (Index item : runs_[at(stage)]) {
    if (item < p_->tasks) ran_.set(item, stage, on);
    for_each_read(stage, item, [&](Index u) { used_.set(u, stage, on); });
  }
}

void Retention::redo(Index stage) {
  const auto t = at(stage);
  touches(stage, false);
  double seconds = 0;
  const bool possible = collect(stage, items_, seconds);
  if (items_.size() > 1) sort_by_key(items_);
  runs_[t] = items_;
  const std::int64_t extra = walk(stage, runs_[t]);
  touches(stage, true);
  total_ += seconds - stage_seconds_[t];
  stage_seconds_[t] = seconds;
  loads_.add(t, t + 1, extra - stage_extra_[t]);
  stage_extra_[t] = extra;
  broken_ += static_cast<int>(!possible) - stage_broken_[t];
  stage_broken_[t] = !possible;
}

void Retention::refresh_total() {
  total_ = std::accumulate(stage_seconds_.begin(), stage_seconds_.end(), 0.0);
}

void Retention::soil(Index stage) {
  if (stage >= 0 && stage < p_->tasks) soiled_.push_back(stage);
}

void Retention::settle() {
  std::sort(soiled_.begin(), soiled_.end());
  soiled_.erase(std::unique(soiled_.begin(), soiled_.end()), soiled_.end());
  for (Index stage : soiled_) redo(stage);
  soiled_.clear();
}

void Retention::hold_raw(Index value, Gap gap, Hold how, bool on) {
  BitRows& rows = how == Hold::kPlain ? plain_ : encoded_;
  auto& starts = how == Hold::kPlain ? starts_ : encode_starts_;
  const auto update = [&](bool before_begin, bool before_end) {
    if (gap.begin > 0 &&
        before_begin != (rows.get(value, gap.begin) && !rows.get(value, gap.begin - 1))) {
      if (before_begin)
        erase_one(starts[at(gap.begin - 1)], value);
      else
        starts[at(gap.begin - 1)].push_back(value);
    }
    if (gap.end > p_->tasks) return;
    if (before_end != (rows.get(value, gap.end) && !rows.get(value, gap.end - 1))) {
      if (before_end)
        erase_one(starts[at(gap.end - 1)], value);
      else
        starts[at(gap.end - 1)].push_back(value);
    }
  };
  const bool begin_was =
      gap.begin > 0 && rows.get(value, gap.begin) && !rows.get(value, gap.begin - 1);
  const bool end_was =
      gap.end <= p_->tasks && rows.get(value, gap.end) && !rows.get(value, gap.end - 1);
  rows.fill(value, gap.begin, gap.end, on);
  update(begin_was, end_was);
  const std::int64_t bytes =
      how == Hold::kPlain ? p_->bytes[at(value)] : p_->encoded_bytes[at(value)];
  loads_.add(at(gap.begin), at(gap.end), on ? bytes : -bytes);
  soil(gap.begin - 1);
  soil(gap.end - 1);
}

void Retention::hold(Index value, Gap gap, Hold how, bool on) {
  if (gap.begin >= gap.end) return;
  log_.push_back({Change::Kind::kHold, how, on, value, gap});
  hold_raw(value, gap, how, on);
  settle();
}

void Retention::roll_back(std::size_t mark) {
  while (log_.size() > mark) {
    const Change change = log_.back();
    log_.pop_back();
    if (change.kind == Change::Kind::kHold)
      hold_raw(change.value, change.gap, change.how, !change.on);
    else
      transpose_raw(change.gap.begin);
  }
  settle();
}

Retention::Gap Retention::gap_at(Index value, Index stage) const {
  if (stage < 0 || stage >= p_->tasks || !plain_.get(value, stage)) return {};
  Index before = std::max(plain_.last_clear_at_or_before(value, stage - 1),
                          used_.last_at_or_before(value, stage - 1));
  const Index made = p_->producer[at(value)];
  if (made != kNoIndex) before = std::max(before, ran_.last_at_or_before(made, stage - 1));
  Index end = plain_.first_at_or_after(value, stage, false);
  if (end == kNoIndex || end > p_->tasks) end = p_->keep[at(value)] ? p_->tasks : p_->tasks + 1;
  const Index used = used_.first_at_or_after(value, stage);
  if (used != kNoIndex) end = std::min(end, used + 1);
  return {before + 1, end};
}

Index Retention::some_held(Index value, Index stage) const {
  const Index next = plain_.first_at_or_after(value, stage);
  return next != kNoIndex ? next : plain_.first_at_or_after(value, 0);
}

Index Retention::last_available(Index value, Index stage) const {
  Index last = std::max(plain_.last_at_or_before(value, stage - 1),
                        used_.last_at_or_before(value, stage - 1));
  const Index made = p_->producer[at(value)];
  if (made != kNoIndex) last = std::max(last, ran_.last_at_or_before(made, stage - 1));
  return last;
}

double Retention::encode_price(Index value) const {
  return p_->encode_seconds[at(value)] + p_->decode_seconds[at(value)];
}

// What a stage would take longer if it had to make the value too: the tasks it does not run yet.
double Retention::remake_price(Index value, Index stage, double most) {
  ++mark_now_;
  stack_.clear();
  double price = 0;
  bool possible = true;
  const auto need = [&](Index v) {
    const Index task = p_->producer[at(v)];
    if (encodes_ && encoded_.get(v, stage)) {
      if (!used_.get(v, stage)) price += p_->decode_seconds[at(v)];
    } else if (task == kNoIndex) {
      possible = false;
    } else if (!ran_.get(task, stage) && task_mark_[at(task)] != mark_now_) {
      task_mark_[at(task)] = mark_now_;
      possible = possible && p_->rerunnable[at(task)] && position_[at(task)] < stage;
      price += p_->seconds[at(task)];
      stack_.push_back(task);
    }
  };
  need(value);
  while (!stack_.empty() && possible && price <= most) {
    const Index task = stack_.back();
    stack_.pop_back();
    for (Index u : p_->inputs[task]) {
      if (!plain_.get(u, stage)) need(u);
    }
  }
  return possible && price <= most ? price : kAnyPrice;
}

double Retention::drop_price(Index value, Gap gap, double most) {
  double price = 0;
  // What the first stage made only to be held from there on it need not make any more.
  const Index first = gap.begin - 1;
  if (first >= 0 && !plain_.get(value, first) && p_->producer[at(value)] != order_[at(first)]) {
    double seconds = 0;
    erase_one(starts_[at(first)], value);
    collect(first, items_, seconds);
    starts_[at(first)].push_back(value);
    price = seconds - stage_seconds_[at(first)];
  }
  const Index last = gap.end - 1;
  if (last >= p_->tasks) return price;
  const bool held_on = gap.end <= p_->tasks && plain_.get(value, gap.end);
  if (!held_on && !used_.get(value, last)) return price;
  return price + remake_price(value, last, most - price);
}

bool Retention::can_transpose(Index stage) const {
  if (stage < 0 || stage + 1 >= p_->tasks) return false;
  const Index first = order_[at(stage)];
  const Index second = order_[at(stage + 1)];
  for (Index u : p_->inputs[second]) {
    if (p_->producer[at(u)] == first) return false;
  }
  for (Index u : p_->inputs[first]) {
    if (p_->overwriter[at(u)] == second) return false;
  }
  return true;
}

void Retention::transpose_raw(Index stage) {
  const Index first = order_[at(stage)];
  const Index second = order_[at(stage + 1)];
  std::swap(order_[at(stage)], order_[at(stage + 1)]);
  position_[at(first)] = stage + 1;
  position_[at(second)] = stage;
  soil(stage);
  soil(stage + 1);
  ran_.for_each_common(first, second, [&](Index both) { soil(both); });
}

bool Retention::transpose(Index stage) {
  if (!can_transpose(stage)) return false;
  const Index first = order_[at(stage)];
  const Index second = order_[at(stage + 1)];
  const Gap boundary{stage + 1, stage + 2};
  const auto change = [&](Index value, Hold how, bool on) {
    log_.push_back({Change::Kind::kHold, how, on, value, boundary});
    hold_raw(value, boundary, how, on);
  };
  for (Index v : p_->outputs[first]) {
    if (plain_.get(v, stage + 1)) change(v, Hold::kPlain, false);
    if (held_encoded(v, stage + 1)) change(v, Hold::kEncoded, false);
  }
  const auto inputs_of_first = p_->inputs[first];
  for (Index u : inputs_of_first) {
    if (plain_.get(u, stage) && !plain_.get(u, stage + 1)) change(u, Hold::kPlain, true);
  }
  for (Index u : p_->inputs[second]) {
    const bool shared =
        std::find(inputs_of_first.begin(), inputs_of_first.end(), u) != inputs_of_first.end();
    const bool only_here = plain_.get(u, stage + 1) && !plain_.get(u, stage + 2) && !shared;
    if (only_here && (p_->remakeable(u) || p_->overwriter[at(u)] == second))
      change(u, Hold::kPlain, false);
  }
  for (Index v : p_->outputs[second]) {
    if (plain_.get(v, stage + 2) && !plain_.get(v, stage + 1)) change(v, Hold::kPlain, true);
  }
  log_.push_back({Change::Kind::kTranspose, Hold::kPlain, true, kNoIndex, {stage, stage + 1}});
  transpose_raw(stage);
  settle();
  return true;
}

Script Retention::script() const {
  Script script;
  for (const auto& items : runs_) {
    for (Index item : items) {
      if (item < p_->tasks)
        script.steps.push_back({ScriptStep::Kind::kRun, item});
      else if (item < p_->tasks + p_->values)
        script.steps.push_back({ScriptStep::Kind::kDecode, item - p_->tasks});
      else
        script.steps.push_back({ScriptStep::Kind::kEncode, item - p_->tasks - p_->values});
    }
  }
  return script;
}

}  // namespace plimsoll::schedule

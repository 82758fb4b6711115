#include "plimsoll/schedule/search/retention.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "plimsoll/base/check.h"

namespace plimsoll::schedule {

void Retention::erase_one(std::vector<Index>& list, Index value) {
  const auto found = std::find(list.begin(), list.end(), value);
  PLIMSOLL_DCHECK(found != list.end());
  *found = list.back();
  list.pop_back();
}

Retention::Retention(const Problem& problem, std::vector<Index> order, bool hold_all)
    : p_(&problem),
      order_(std::move(order)),
      position_(order_.size()),
      live_bytes_(order_.size() + 1) {
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
  actions_.resize(stages);
  stage_seconds_.assign(stages, 0);
  stage_extra_.assign(stages, 0);
  stage_broken_.assign(stages, 0);
  value_mark_.assign(values, 0);
  task_mark_.assign(stages, 0);
  last_read_.assign(values, 0);
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

Retention Retention::from_actions(const Problem& problem, const Sequence& sequence,
                                  const ActionList& list) {
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
  for (const ListedAction& action : list.actions) {
    const auto id = at(action.id);
    if (action.kind == ActionKind::kCompute) {
      for (Index u : problem.inputs[action.id]) hold_until(out.plain_, u, made[at(u)], stage);
      for (Index v : problem.outputs[action.id]) made[at(v)] = stage + 1;
      if (stage < problem.tasks && sequence.order[at(stage)] == action.id) ++stage;
    } else if (action.kind == ActionKind::kEncode) {
      hold_until(out.plain_, action.id, made[id], stage);
      encoded[id] = stage + 1;
    } else if (action.kind == ActionKind::kDecode) {
      hold_until(out.encoded_, action.id, encoded[id], stage);
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
  std::vector<std::int64_t> changes(at(p_->tasks) + 2, 0);  // of the live bytes, from a stage on
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
  live_bytes_.add_from(changes);
  for (Index t = 0; t < p_->tasks; ++t) redo(t);
}

void Retention::refresh_total() {
  total_ = std::accumulate(stage_seconds_.begin(), stage_seconds_.end(), 0.0);
}

void Retention::mark_dirty(Index stage) {
  if (stage >= 0 && stage < p_->tasks) dirty_.push_back(stage);
}

void Retention::flush() {
  std::sort(dirty_.begin(), dirty_.end());
  dirty_.erase(std::unique(dirty_.begin(), dirty_.end()), dirty_.end());
  for (Index stage : dirty_) redo(stage);
  dirty_.clear();
}

void Retention::hold_raw(Index value, Gap gap, Form form, bool on) {
  BitRows& rows = form == Form::kDevice ? plain_ : encoded_;
  auto& starts = form == Form::kDevice ? starts_ : encode_starts_;
  const auto starts_at = [&](Index stage) {
    return stage > 0 && stage <= p_->tasks && rows.get(value, stage) && !rows.get(value, stage - 1);
  };
  const auto update = [&](Index stage, bool before) {
    if (starts_at(stage) == before) return;
    if (before)
      erase_one(starts[at(stage - 1)], value);
    else
      starts[at(stage - 1)].push_back(value);
  };
  const bool begin_was = starts_at(gap.begin);
  const bool end_was = starts_at(gap.end);
  rows.fill(value, gap.begin, gap.end, on);
  update(gap.begin, begin_was);
  update(gap.end, end_was);
  const std::int64_t bytes =
      form == Form::kDevice ? p_->bytes[at(value)] : p_->encoded_bytes[at(value)];
  live_bytes_.add(at(gap.begin), at(gap.end), on ? bytes : -bytes);
  mark_dirty(gap.begin - 1);
  mark_dirty(gap.end - 1);
}

void Retention::hold(Index value, Gap gap, Form form, bool on) {
  if (gap.begin >= gap.end) return;
  log_.push_back({Change::Kind::kHold, form, on, value, gap});
  hold_raw(value, gap, form, on);
  flush();
}

void Retention::roll_back(std::size_t mark) {
  while (log_.size() > mark) {
    const Change change = log_.back();
    log_.pop_back();
    if (change.kind == Change::Kind::kHold)
      hold_raw(change.value, change.gap, change.form, !change.on);
    else
      transpose_raw(change.gap.begin);
  }
  flush();
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
  mark_dirty(stage);
  mark_dirty(stage + 1);
  ran_.for_each_common(first, second, [&](Index both) { mark_dirty(both); });
}

bool Retention::transpose(Index stage) {
  if (!can_transpose(stage)) return false;
  const Index first = order_[at(stage)];
  const Index second = order_[at(stage + 1)];
  const Gap boundary{stage + 1, stage + 2};
  const auto change = [&](Index value, Form form, bool on) {
    log_.push_back({Change::Kind::kHold, form, on, value, boundary});
    hold_raw(value, boundary, form, on);
  };
  for (Index v : p_->outputs[first]) {
    if (plain_.get(v, stage + 1)) change(v, Form::kDevice, false);
    if (held_encoded(v, stage + 1)) change(v, Form::kEncoded, false);
  }
  const auto inputs_of_first = p_->inputs[first];
  for (Index u : inputs_of_first) {
    if (plain_.get(u, stage) && !plain_.get(u, stage + 1)) change(u, Form::kDevice, true);
  }
  for (Index u : p_->inputs[second]) {
    const bool shared =
        std::find(inputs_of_first.begin(), inputs_of_first.end(), u) != inputs_of_first.end();
    const bool only_here = plain_.get(u, stage + 1) && !plain_.get(u, stage + 2) && !shared;
    if (only_here && (p_->recomputable(u) || p_->overwriter[at(u)] == second))
      change(u, Form::kDevice, false);
  }
  for (Index v : p_->outputs[second]) {
    if (plain_.get(v, stage + 2) && !plain_.get(v, stage + 1)) change(v, Form::kDevice, true);
  }
  log_.push_back({Change::Kind::kTranspose, Form::kDevice, true, kNoIndex, {stage, stage + 1}});
  transpose_raw(stage);
  flush();
  return true;
}

ActionList Retention::action_list() const {
  ActionList list;
  for (const auto& actions : actions_) {
    list.actions.insert(list.actions.end(), actions.begin(), actions.end());
  }
  for (Index v = 0; v < p_->values; ++v) {
    if (p_->producer[at(v)] == kNoIndex && held_encoded(v, 0)) list.on_host_at_start.push_back(v);
  }
  return list;
}

}  // namespace plimsoll::schedule

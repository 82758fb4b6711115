// What one stage runs, how long that takes and how many bytes it needs; and what dropping a value
// would add to that.
#include <algorithm>
#include <limits>

#include "plimsoll/schedule/search/retention.h"

namespace plimsoll::schedule {

// What has to run in a stage: the closure of what its own task and its new holdings miss. False
// when that cannot be.
bool Retention::collect(Index stage, std::vector<ListedAction>& actions, double& seconds) {
  actions.clear();
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
      actions.push_back({ActionKind::kDecode, v});
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
    actions.push_back({ActionKind::kEncode, v});
    seconds += p_->encode_seconds[at(v)];
  }
  while (!stack_.empty() && possible) {
    const Index task = stack_.back();
    stack_.pop_back();
    actions.push_back({ActionKind::kCompute, task});
    seconds += p_->seconds[at(task)];
    for (Index u : p_->inputs[task]) need_value(u);
  }
  return possible;
}

// Within a stage: tasks by their positions, a decode before everything at and after the position of
// the value's own task, encodes last.
Index Retention::place_of(ListedAction action) const {
  if (action.kind == ActionKind::kEncode) return std::numeric_limits<Index>::max();
  if (action.kind == ActionKind::kCompute) return 2 * position_[at(action.id)] + 1;
  const Index task = p_->producer[at(action.id)];
  return task == kNoIndex ? 0 : 2 * position_[at(task)];
}

// Actions of different kinds never share a place, so that place and id together order them all.
void Retention::sort_by_place(std::vector<ListedAction>& actions) {
  placed_.clear();
  for (const ListedAction action : actions) {
    placed_.emplace_back(
        static_cast<std::uint64_t>(place_of(action)) << 32 | static_cast<std::uint32_t>(action.id),
        action);
  }
  std::sort(placed_.begin(), placed_.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < actions.size(); ++i) actions[i] = placed_[i].second;
}

template <typename Visit>
void Retention::for_each_read(ListedAction action, Visit visit) const {
  if (action.kind == ActionKind::kCompute) {
    for (Index u : p_->inputs[action.id]) visit(u);
  } else if (action.kind == ActionKind::kEncode) {
    visit(action.id);
  }
}

// Over what is held at the start of the stage.
std::int64_t Retention::highest_bytes(Index stage, const std::vector<ListedAction>& actions) {
  ++mark_now_;
  for (std::size_t k = 0; k < actions.size(); ++k) {
    for_each_read(actions[k], [&](Index u) {
      last_read_[at(u)] = static_cast<std::int32_t>(k);
      last_mark_[at(u)] = mark_now_;
    });
  }
  std::int64_t now = 0;
  std::int64_t highest = 0;
  const auto ends_here = [&](Index u, std::size_t k) {
    return last_mark_[at(u)] == mark_now_ && last_read_[at(u)] == static_cast<std::int32_t>(k) &&
           !plain_.get(u, stage + 1);
  };
  const auto drop_if_unused = [&](Index v, std::size_t k) {
    const bool later =
        last_mark_[at(v)] == mark_now_ && last_read_[at(v)] > static_cast<std::int32_t>(k);
    if (plain_.get(v, stage) || (!later && !plain_.get(v, stage + 1))) now -= p_->bytes[at(v)];
  };
  for (std::size_t k = 0; k < actions.size(); ++k) {
    const Index id = actions[k].id;
    if (actions[k].kind == ActionKind::kEncode) {
      now += p_->encoded_bytes[at(id)];
      highest = std::max(highest, now);
      if (!plain_.get(id, stage + 1)) now -= p_->bytes[at(id)];
    } else if (actions[k].kind == ActionKind::kDecode) {
      now += p_->bytes[at(id)];
      highest = std::max(highest, now);
      if (!encoded_.get(id, stage + 1)) now -= p_->encoded_bytes[at(id)];
      drop_if_unused(id, k);
    } else {
      for (Index v : p_->outputs[id]) {
        const Index from = p_->in_place[at(v)];
        if (from != kNoIndex && ends_here(from, k)) {
          last_mark_[at(from)] = 0;
        } else {
          now += p_->bytes[at(v)];
        }
      }
      highest = std::max(highest, now + p_->scratch[at(id)]);
      for (Index u : p_->inputs[id]) {
        if (ends_here(u, k)) now -= p_->bytes[at(u)];
      }
      for (Index v : p_->outputs[id]) drop_if_unused(v, k);
    }
  }
  return highest;
}

void Retention::note_uses(Index stage, bool on) {
  for (const ListedAction action : actions_[at(stage)]) {
    if (action.kind == ActionKind::kCompute) ran_.set(action.id, stage, on);
    for_each_read(action, [&](Index u) { used_.set(u, stage, on); });
  }
}

void Retention::redo(Index stage) {
  const auto t = at(stage);
  note_uses(stage, false);
  double seconds = 0;
  const bool possible = collect(stage, collected_, seconds);
  if (collected_.size() > 1) sort_by_place(collected_);
  actions_[t] = collected_;
  const std::int64_t extra = highest_bytes(stage, actions_[t]);
  note_uses(stage, true);
  total_ += seconds - stage_seconds_[t];
  stage_seconds_[t] = seconds;
  live_bytes_.add(t, t + 1, extra - stage_extra_[t]);
  stage_extra_[t] = extra;
  broken_ += static_cast<int>(!possible) - stage_broken_[t];
  stage_broken_[t] = !possible;
}

// What a stage would take longer if it had to recompute the value too: the tasks it does not run
// yet.
double Retention::recompute_price(Index value, Index stage, double most) {
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
    collect(first, collected_, seconds);
    starts_[at(first)].push_back(value);
    price = seconds - stage_seconds_[at(first)];
  }
  const Index last = gap.end - 1;
  if (last >= p_->tasks) return price;
  const bool held_on = gap.end <= p_->tasks && plain_.get(value, gap.end);
  if (!held_on && !used_.get(value, last)) return price;
  return price + recompute_price(value, last, most - price);
}

}  // namespace plimsoll::schedule

#include "plimsoll/schedule/search/greedy_evictor.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace plimsoll::schedule {

GreedyEvictor::GreedyEvictor(const Problem& problem, const Sequence& sequence, std::uint64_t seed,
                             const EvictorOptions& options)
    : p_(problem), q_(&sequence), random_(seed), how_(options), may_leave_(at(problem.values), 0) {
  for (Index v = 0; v < p_.values; ++v) {
    const bool removable =
        p_.recomputable(v) || p_.swappable[at(v)] || p_.encoding[at(v)] != kNoIndex;
    const bool ends = !p_.keep[at(v)] && p_.overwriter[at(v)] == kNoIndex;
    may_leave_[at(v)] = p_.bytes[at(v)] > 0 && (removable || ends);
  }
  set_sequence(sequence);
}

void GreedyEvictor::set_sequence(const Sequence& sequence) {
  q_ = &sequence;
  expires_.assign(at(p_.tasks), kNever);
  for (Index v = 0; v < p_.values && p_.has_overwriters; ++v) {
    const Index last = p_.overwriter[at(v)];
    if (last == kNoIndex) continue;
    for (Index task : p_.readers[v]) {
      if (task != last) expires_[at(task)] = std::min(expires_[at(task)], q_->position[at(last)]);
    }
  }
  chain_expires_ = expires_;
  for (Index task : q_->order) {
    for (Index u : p_.inputs[task]) {
      if (p_.recomputable(u))
        chain_expires_[at(task)] =
            std::min(chain_expires_[at(task)], chain_expires_[at(p_.producer[at(u)])]);
    }
  }
  start_of_.assign(at(p_.tasks) + 1, 0);
  for (std::size_t i = 0; i < q_->order.size(); ++i) {
    start_of_[i + 1] = start_of_[i] + p_.seconds[at(q_->order[i])];
  }
}

void GreedyEvictor::reset(const EvictorSettings& settings) {
  settings_ = settings;
  if (power_alpha_ != settings.alpha) {
    power_alpha_ = settings.alpha;
    distance_power_.resize(at(p_.tasks) + 3);
    for (std::size_t d = 0; d < distance_power_.size(); ++d) {
      distance_power_[d] =
          std::pow(static_cast<double>(std::max<std::size_t>(d, 1)), settings.alpha);
    }
  }
  const std::size_t values = at(p_.values);
  clock_ = out_free_ = in_free_ = 0;
  used_ = 0;
  now_at_ = 0;
  evictable_.clear();
  place_.assign(values, kNoIndex);
  for (auto* flags : {&resident_, &encoded_, &hosted_, &touched_, &starts_on_host_}) {
    flags->assign(values, 0);
  }
  pins_.assign(values, 0);
  pending_.assign(values, 0);
  cursor_.assign(values, 0);
  ready_at_.assign(values, 0);
  out_done_.assign(values, 0);
  touch_clock_.assign(values, 0);
  touch_place_.assign(values, 0);
  mark_.assign(values, 0);
  mark_now_ = 0;
  away_.clear();
  actions_.clear();
  left_.clear();
  left_gaps_.clear();
  copies_out_.clear();
  last_copy_out_ = 0;
}

double GreedyEvictor::seconds() const {
  return std::max({clock_, out_free_, in_free_});
}

bool GreedyEvictor::home_is_host(Index value) const {
  for (Index v = value; v != kNoIndex;) {
    if (p_.producer[at(v)] == kNoIndex) return starts_on_host_[at(v)] != 0;
    v = p_.must_take[at(v)] ? p_.in_place[at(v)] : kNoIndex;
  }
  return false;
}

bool GreedyEvictor::evict(std::int64_t need, Index nearest_allowed) {
  while (used_ + need > settings_.budget) {
    Victim best;
    const bool all = evictable_.size() <= how_.sample;
    const std::size_t tries = all ? evictable_.size() : how_.sample;
    const auto consider = [&](Index value) {
      if (pins_[at(value)] > 0) return;
      if (nearest_allowed > 0 && next_use(value) < nearest_allowed) return;
      const Victim victim = price(value);
      if (victim.value != kNoIndex && (best.value == kNoIndex || victim.price < best.price))
        best = victim;
    };
    for (std::size_t i = 0; i < tries && best.price >= 0; ++i) {
      consider(all ? evictable_[i]
                   : evictable_[at(static_cast<Index>(
                         random_.below(static_cast<std::int64_t>(evictable_.size()))))]);
    }
    if (best.value == kNoIndex && !all && nearest_allowed == 0) {
      for (std::size_t i = 0; i < evictable_.size() && best.value == kNoIndex; ++i)
        consider(evictable_[i]);
    }
    if (best.value == kNoIndex) return false;
    leave(best);
  }
  return true;
}

void GreedyEvictor::leave(const Victim& victim) {
  const auto v = at(victim.value);
  if (victim.price >= 0) {
    left_.push_back(victim.value);
    left_gaps_.push_back(gap_of(victim.value));
  }
  if (victim.remedy == Remedy::kEncode) {
    note(ActionKind::kEncode, victim.value);
    clock_ += p_.encode_seconds[v];
    used_ += p_.encoded_bytes[v];
    encoded_[v] = 1;
  } else if (victim.remedy == Remedy::kSwap) {
    const bool never_here = p_.producer[v] == kNoIndex && !touched_[v] && !hosted_[v];
    if (never_here) {
      starts_on_host_[v] = 1;
    } else if (!hosted_[v]) {
      last_copy_out_ = std::max(last_copy_out_, touch_place_[v]);
      copies_out_.emplace_back(last_copy_out_, victim.value);
      out_free_ = std::max(out_free_, touch_clock_[v]) + p_.out_seconds[v];
      out_done_[v] = out_free_;
    }
    hosted_[v] = 1;
    away_.emplace_back(next_use(victim.value), victim.value);
    std::push_heap(away_.begin(), away_.end(), std::greater<>());
    if (!never_here) note(ActionKind::kDrop, victim.value);
    clock_ = std::max({clock_, out_done_[v], ready_at_[v]});
  } else if (hosted_[v]) {
    note(ActionKind::kDrop, victim.value);
    clock_ = std::max(clock_, out_done_[v]);
  }
  remove(victim.value);
}

void GreedyEvictor::offload_large() {
  for (std::size_t i = evictable_.size(); i-- > 0;) {
    const Index value = evictable_[i];
    if (!p_.swappable[at(value)] || p_.bytes[at(value)] <= *settings_.stays) continue;
    leave({value, Remedy::kSwap, 0});
  }
}

void GreedyEvictor::add(Index value) {
  const auto v = at(value);
  resident_[v] = 1;
  used_ += p_.bytes[v];
  if (!may_leave_[v]) return;
  place_[v] = static_cast<Index>(evictable_.size());
  evictable_.push_back(value);
}

void GreedyEvictor::remove(Index value) {
  const auto v = at(value);
  resident_[v] = 0;
  used_ -= p_.bytes[v];
  const Index hole = place_[v];
  if (hole == kNoIndex) return;
  evictable_[at(hole)] = evictable_.back();
  place_[at(evictable_[at(hole)])] = hole;
  evictable_.pop_back();
  place_[v] = kNoIndex;
}

void GreedyEvictor::touch(Index value) {
  touched_[at(value)] = 1;
  touch_clock_[at(value)] = clock_;
  touch_place_[at(value)] = static_cast<std::int32_t>(actions_.size());
}

bool GreedyEvictor::copy_in(Index value) {
  const auto v = at(value);
  if (!evict(p_.bytes[v])) return false;
  note(ActionKind::kCopyIn, value);
  in_free_ = std::max({in_free_, clock_, out_done_[v]}) + p_.in_seconds[v];
  ready_at_[v] = in_free_;
  touched_[v] = 1;
  touch_clock_[v] = in_free_;
  touch_place_[v] = static_cast<std::int32_t>(actions_.size());
  add(value);
  return true;
}

bool GreedyEvictor::decode(Index value) {
  const auto v = at(value);
  if (!evict(p_.bytes[v])) return false;
  note(ActionKind::kDecode, value);
  clock_ += p_.decode_seconds[v];
  encoded_[v] = 0;
  used_ -= p_.encoded_bytes[v];
  add(value);
  touch(value);
  return true;
}

bool GreedyEvictor::make_present(Index value, int depth) {
  if (resident_[at(value)]) return true;
  if (hosted_[at(value)]) return copy_in(value);
  if (encoded_[at(value)]) return decode(value);
  return depth < how_.deepest && p_.recomputable(value) &&
         run_task(p_.producer[at(value)], depth + 1);
}

// The task and every task that has to run again before it, by position.
std::vector<Index> GreedyEvictor::missing_tasks(Index task) {
  std::vector<Index> missing{task};
  ++mark_now_;
  for (Index made : p_.outputs[task]) mark_[at(made)] = mark_now_;
  for (std::size_t i = 0; i < missing.size(); ++i) {
    for (Index u : p_.inputs[missing[i]]) {
      if (!absent(u) || mark_[at(u)] == mark_now_ || !p_.recomputable(u)) continue;
      missing.push_back(p_.producer[at(u)]);
      for (Index made : p_.outputs[missing.back()]) mark_[at(made)] = mark_now_;
    }
  }
  std::sort(missing.begin(), missing.end(),
            [&](Index a, Index b) { return q_->position[at(a)] < q_->position[at(b)]; });
  return missing;
}

bool GreedyEvictor::run_task(Index task, int depth) {
  const std::vector<Index> missing = missing_tasks(task);
  for (Index one : missing) {
    for (Index u : p_.inputs[one]) ++pending_[at(u)];
  }
  const Index own = now_at_ < p_.tasks ? q_->order[at(now_at_)] : kNoIndex;
  for (Index one : missing) {
    if (one != own && expires_[at(one)] <= now_at_) return false;
    for (Index u : p_.inputs[one]) {
      if (!make_present(u, depth)) return false;
      ++pins_[at(u)];
      --pending_[at(u)];
    }
    if (!execute(one)) return false;
  }
  return true;
}

// The inputs that results may be written over: those of no use once the task has run.
std::vector<Index> GreedyEvictor::taken_by(Index task) {
  std::vector<Index> taken;
  // The first run of this position's own task is the last that positions up to here ask for.
  const bool own = now_at_ < p_.tasks && q_->order[at(now_at_)] == task;
  const Moment after{own ? now_at_ + 1 : now_at_, task};
  for (Index made : p_.outputs[task]) {
    const Index from = p_.in_place[at(made)];
    if (from == kNoIndex || std::find(taken.begin(), taken.end(), from) != taken.end()) continue;
    if (p_.must_take[at(made)] || (pins_[at(from)] == 1 && next_use(from, after) == kNever))
      taken.push_back(from);
  }
  return taken;
}

bool GreedyEvictor::execute(Index task) {
  if (clock_ > settings_.give_up_seconds) return false;
  const std::size_t every = how_.actions_between_stops;
  if (settings_.stop && actions_.size() % every == every - 1 && settings_.stop()) return false;
  std::int64_t need = p_.scratch[at(task)];
  for (Index made : p_.outputs[task]) need += p_.bytes[at(made)];
  const std::vector<Index> taken = taken_by(task);
  for (Index from : taken) need -= p_.bytes[at(from)];
  if (!evict(need)) return false;
  for (Index u : p_.inputs[task]) clock_ = std::max(clock_, ready_at_[at(u)]);
  note(ActionKind::kCompute, task);
  clock_ += p_.seconds[at(task)];
  for (Index u : p_.inputs[task]) {
    --pins_[at(u)];
    touch(u);
  }
  for (Index from : taken) {
    clock_ = std::max(clock_, hosted_[at(from)] ? out_done_[at(from)] : 0.0);
    remove(from);
    hosted_[at(from)] = 0;
  }
  for (Index made : p_.outputs[task]) {
    if (!resident_[at(made)]) add(made);
    ready_at_[at(made)] = 0;
    if (encoded_[at(made)]) {
      encoded_[at(made)] = 0;
      used_ -= p_.encoded_bytes[at(made)];
    }
    touch(made);
    if (p_.keep[at(made)] && p_.must_take[at(made)] && home_is_host(made)) {
      last_copy_out_ = std::max(last_copy_out_, touch_place_[at(made)]);
      copies_out_.emplace_back(last_copy_out_, made);
      out_free_ = std::max(out_free_, clock_) + p_.out_seconds[at(made)];
      out_done_[at(made)] = out_free_;
      hosted_[at(made)] = 1;
    }
  }
  return true;
}

void GreedyEvictor::free_dead(Index task) {
  const auto consider = [&](Index value) {
    const auto v = at(value);
    if (!resident_[v] || pins_[v] > 0 || hosted_[v]) return;
    if (!p_.recomputable(value) && p_.producer[v] == kNoIndex) return;
    if (next_use(value) == kNever) remove(value);
  };
  for (Index u : p_.inputs[task]) consider(u);
  for (Index v : p_.outputs[task]) consider(v);
}

// Starts fetching what will be needed soon, as far as memory of later use can be had for it.
void GreedyEvictor::prefetch() {
  while (!away_.empty()) {
    const auto [next, value] = away_.front();
    const auto v = at(value);
    const bool stale = resident_[v] || !hosted_[v] || next < now_at_ || next == kNever;
    if (!stale) {
      const double wait = std::max(0.0, in_free_ - clock_);
      // Waiting until the next position must still leave time for the copy.
      const double until = start_of_[at(std::min(next, p_.tasks))] - start_of_[at(now_at_ + 1)];
      if (until > choice_of(value).lead * (wait + p_.in_seconds[v])) return;
      if (!evict(p_.bytes[v], next + 1) || !copy_in(value)) return;
    }
    std::pop_heap(away_.begin(), away_.end(), std::greater<>());
    away_.pop_back();
  }
}

bool GreedyEvictor::finish_step() {
  now_at_ = p_.tasks;
  for (Index v = 0; v < p_.values; ++v) {
    if (!p_.keep[at(v)] || home_is_host(v)) continue;
    if (!make_present(v, 0)) return false;
    ++pins_[at(v)];
    clock_ = std::max(clock_, ready_at_[at(v)]);
  }
  for (Index v = 0; v < p_.values; ++v) {
    if (resident_[at(v)] && hosted_[at(v)] && home_is_host(v)) note(ActionKind::kDrop, v);
  }
  return true;
}

bool GreedyEvictor::run(const EvictorSettings& settings) {
  reset(settings);
  for (Index v = 0; v < p_.values; ++v) {
    if (p_.producer[at(v)] == kNoIndex) add(v);
  }
  if (settings.stays) offload_large();
  if (!evict(0)) return false;
  while (now_at_ < p_.tasks) {
    if (!settings.stays && !away_.empty()) prefetch();
    const Index task = q_->order[at(now_at_)];
    if (!run_task(task, 0)) return false;
    ++now_at_;
    free_dead(task);
    if (settings.stays) offload_large();
  }
  return finish_step();
}

ActionList GreedyEvictor::action_list() const {
  ActionList list;
  list.actions.reserve(actions_.size() + copies_out_.size());
  std::size_t send = 0;
  for (std::size_t i = 0; i <= actions_.size(); ++i) {
    while (send < copies_out_.size() && at(copies_out_[send].first) <= i) {
      list.actions.push_back({ActionKind::kCopyOut, copies_out_[send].second});
      ++send;
    }
    if (i < actions_.size()) list.actions.push_back(actions_[i]);
  }
  for (Index v = 0; v < p_.values; ++v) {
    if (starts_on_host_[at(v)]) list.on_host_at_start.push_back(v);
  }
  return list;
}

}  // namespace plimsoll::schedule

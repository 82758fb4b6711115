// What it would cost to let a value go: when it is needed next, what recomputing it would take.
#include <algorithm>

#include "plimsoll/schedule/search/greedy_evictor.h"

namespace plimsoll::schedule {

Index GreedyEvictor::next_static(Index value, Index position) {
  const auto readers = q_->readers[value];
  auto& cursor = cursor_[at(value)];
  while (at(cursor) < readers.size() && readers[at(cursor)] < position) ++cursor;
  if (at(cursor) < readers.size()) return readers[at(cursor)];
  return p_.keep[at(value)] && !home_is_host(value) ? p_.tasks : kNever;
}

Index GreedyEvictor::next_use(Index value, Moment when) {
  if (pending_[at(value)] > 0) return when.position;
  Index next = next_static(value, when.position);
  if (next != kNever) return next;
  ++mark_now_;
  ahead_.assign(1, value);
  for (std::size_t i = 0; i < ahead_.size() && next > when.position; ++i) {
    for (Index reader : q_->readers[ahead_[i]]) {
      if (reader >= when.position) break;
      const Index task = q_->order[at(reader)];
      if (task == when.finished) continue;
      for (Index made : p_.outputs[task]) {
        if (!absent(made) || mark_[at(made)] == mark_now_) continue;
        mark_[at(made)] = mark_now_;
        const Index use = pending_[at(made)] > 0 ? when.position : next_static(made, when.position);
        next = std::min(next, use);
        if (use == kNever && ahead_.size() < how_.look_ahead) ahead_.push_back(made);
      }
    }
  }
  return next;
}

// The last position at which the value, or something to be recomputed from it, is read.
Index GreedyEvictor::last_use(Index value) {
  ++mark_now_;
  stack_.assign(1, value);
  mark_[at(value)] = mark_now_;
  Index last = 0;
  int seen = 0;
  while (!stack_.empty()) {
    const Index v = stack_.back();
    stack_.pop_back();
    if (++seen > how_.last_use_cap) return kNever;
    if (p_.keep[at(v)]) last = std::max(last, p_.tasks);
    const auto readers = q_->readers[v];
    if (!readers.empty()) last = std::max(last, readers.back());
    for (Index reader : readers) {
      if (reader >= now_at_) break;
      for (Index made : p_.outputs[q_->order[at(reader)]]) {
        if (absent(made) && mark_[at(made)] != mark_now_) {
          mark_[at(made)] = mark_now_;
          stack_.push_back(made);
        }
      }
    }
  }
  return last;
}

GreedyEvictor::Closure GreedyEvictor::closure_of(Index value) {
  Closure closure;
  ++mark_now_;
  stack_.assign(1, value);
  mark_[at(value)] = mark_now_;
  int seen = 0;
  while (!stack_.empty()) {
    const Index v = stack_.back();
    stack_.pop_back();
    if (!p_.recomputable(v)) {
      closure.possible = false;
      return closure;
    }
    const Index task = p_.producer[at(v)];
    closure.seconds += p_.seconds[at(task)];
    closure.expires = std::min(closure.expires, expires_[at(task)]);
    if (++seen > how_.closure_cap) {
      closure.seconds *= how_.closure_penalty;
      for (Index left : stack_) {
        closure.possible = closure.possible && p_.recomputable(left);
        if (p_.recomputable(left))
          closure.expires = std::min(closure.expires, chain_expires_[at(p_.producer[at(left)])]);
      }
      for (Index u : p_.inputs[task]) {
        if (absent(u) && p_.recomputable(u))
          closure.expires = std::min(closure.expires, chain_expires_[at(p_.producer[at(u)])]);
      }
      return closure;
    }
    for (Index made : p_.outputs[task]) mark_[at(made)] = mark_now_;
    for (Index u : p_.inputs[task]) {
      if (resident_[at(u)] || mark_[at(u)] == mark_now_) continue;
      mark_[at(u)] = mark_now_;
      if (hosted_[at(u)])
        closure.seconds += p_.in_seconds[at(u)];
      else if (encoded_[at(u)])
        closure.seconds += p_.decode_seconds[at(u)];
      else
        stack_.push_back(u);
    }
  }
  return closure;
}

bool GreedyEvictor::may_recompute(Index value, const Closure& closure) {
  if (!closure.possible) return false;
  return closure.expires == kNever || last_use(value) < closure.expires;
}

GreedyEvictor::Victim GreedyEvictor::price(Index value) {
  const auto v = at(value);
  const Index next = next_use(value);
  if (next == kNever && !(hosted_[v] && out_done_[v] > clock_)) return {value, Remedy::kDrop, -1};
  if (next == kNever)
    return {value, Remedy::kDrop, (out_done_[v] - clock_) / static_cast<double>(p_.bytes[v] + 1)};
  const double weight = settings_.weights.empty() ? 1 : settings_.weights[v];
  const double reach = distance_power_[at(std::min(next, p_.tasks) - now_at_ + 1)];
  const auto per_byte = [&](double seconds, std::int64_t freed) {
    return weight * seconds / (static_cast<double>(freed) * reach);
  };
  Victim best{kNoIndex, Remedy::kDrop, 0};
  const Remedy decided = choice_of(value).remedy;
  const auto offer = [&](Remedy remedy, double cost) {
    if (decided == Remedy::kKeep) cost /= how_.decided_factor;
    if (decided == remedy) cost *= how_.decided_factor;
    if (best.value == kNoIndex || cost < best.price) best = {value, remedy, cost};
  };
  if (p_.bytes[v] <= 0) return best;
  if (p_.recomputable(value) && !hosted_[v]) {
    const Closure closure = closure_of(value);
    if (may_recompute(value, closure)) offer(Remedy::kDrop, per_byte(closure.seconds, p_.bytes[v]));
  }
  if (p_.encoding[v] != kNoIndex && used_ + p_.encoded_bytes[v] <= settings_.budget) {
    offer(Remedy::kEncode,
          per_byte(p_.encode_seconds[v] + p_.decode_seconds[v], p_.bytes[v] - p_.encoded_bytes[v]));
  }
  if (p_.swappable[v]) {
    const bool sends = !hosted_[v] && (touched_[v] || p_.producer[v] != kNoIndex);
    const double out_done =
        sends ? std::max(out_free_, touch_clock_[v]) + p_.out_seconds[v] : clock_;
    const double until_use = start_of_[at(std::min(next, p_.tasks))] - start_of_[at(now_at_)];
    const double stall =
        std::max(0.0, out_done - clock_) + std::max(0.0, p_.in_seconds[v] - until_use);
    const double busy = (sends ? p_.out_seconds[v] : 0) + p_.in_seconds[v];
    const double bias = settings_.swap_weights.empty() ? 1 : settings_.swap_weights[v];
    offer(Remedy::kSwap, bias * per_byte(stall + settings_.copy_weight * busy, p_.bytes[v]));
  }
  return best;
}

}  // namespace plimsoll::schedule

// What it would cost to let a value go: when it is needed next, what making it again would take.
#include <algorithm>

#include "plimsoll/schedule/search/construct.h"

namespace plimsoll::schedule {
namespace {

// Larger closures are never worth it; they are priced as if four times as long.
constexpr int kClosureCap = 256;
// Through how many evicted successors a next use is followed.
constexpr std::size_t kLookAhead = 256;
constexpr int kLastUseCap = 4096;
// What a decided departure costs, in its price; staying, the inverse.
constexpr double kDecided = 1e-3;

}  // namespace

Index Construct::next_static(Index value) {
  const auto readers = q_->readers[value];
  auto& cursor = cursor_[at(value)];
  while (at(cursor) < readers.size() && readers[at(cursor)] < now_at_) ++cursor;
  if (at(cursor) < readers.size()) return readers[at(cursor)];
  return p_.keep[at(value)] && !home_is_host(value) ? p_.tasks : kNever;
}

Index Construct::next_use(Index value) {
  if (pending_[at(value)] > 0) return now_at_;
  Index next = next_static(value);
  if (next != kNever) return next;
  ++mark_now_;
  ahead_.assign(1, value);
  for (std::size_t i = 0; i < ahead_.size() && next > now_at_; ++i) {
    for (Index reader : q_->readers[ahead_[i]]) {
      if (reader >= now_at_) break;
      for (Index made : p_.outputs[q_->order[at(reader)]]) {
        if (!absent(made) || mark_[at(made)] == mark_now_) continue;
        mark_[at(made)] = mark_now_;
        const Index use = pending_[at(made)] > 0 ? now_at_ : next_static(made);
        next = std::min(next, use);
        if (use == kNever && ahead_.size() < kLookAhead) ahead_.push_back(made);
      }
    }
  }
  return next;
}

// The last position at which the value, or something to be remade from it, is read.
Index Construct::last_use(Index value) {
  ++mark_now_;
  stack_.assign(1, value);
  mark_[at(value)] = mark_now_;
  Index last = 0;
  int seen = 0;
  while (!stack_.empty()) {
    const Index v = stack_.back();
    stack_.pop_back();
    if (++seen > kLastUseCap) return kNever;
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

Construct::Closure Construct::closure_of(Index value) {
  Closure closure;
  ++mark_now_;
  stack_.assign(1, value);
  mark_[at(value)] = mark_now_;
  int seen = 0;
  while (!stack_.empty()) {
    const Index v = stack_.back();
    stack_.pop_back();
    if (!p_.remakeable(v)) {
      closure.possible = false;
      return closure;
    }
    const Index task = p_.producer[at(v)];
    closure.seconds += p_.seconds[at(task)];
    closure.expires = std::min(closure.expires, expires_[at(task)]);
    if (++seen > kClosureCap) {
      closure.seconds *= 4;
      for (Index left : stack_) {
        closure.possible = closure.possible && p_.remakeable(left);
        if (p_.remakeable(left))
          closure.expires = std::min(closure.expires, chain_expires_[at(p_.producer[at(left)])]);
      }
      for (Index u : p_.inputs[task]) {
        if (absent(u) && p_.remakeable(u))
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

bool Construct::may_remake(Index value, const Closure& closure) {
  if (!closure.possible) return false;
  return closure.expires == kNever || last_use(value) < closure.expires;
}

GapMode Construct::mode_of(Mode mode) {
  switch (mode) {
    case Mode::kDrop:
      return GapMode::kDrop;
    case Mode::kSwap:
      return GapMode::kSwap;
    default:
      return GapMode::kEncode;
  }
}

Construct::Victim Construct::price(Index value) {
  const auto v = at(value);
  const Index next = next_use(value);
  if (next == kNever && !(hosted_[v] && out_done_[v] > clock_)) return {value, Mode::kDrop, -1};
  if (next == kNever)
    return {value, Mode::kDrop, (out_done_[v] - clock_) / static_cast<double>(p_.bytes[v] + 1)};
  const double weight = settings_.weights.empty() ? 1 : settings_.weights[v];
  const double reach = distance_power_[at(std::min(next, p_.tasks) - now_at_ + 1)];
  const auto per_byte = [&](double seconds, std::int64_t freed) {
    return weight * seconds / (static_cast<double>(freed) * reach);
  };
  Victim best{kNoIndex, Mode::kDrop, 0};
  const GapMode decided = choice_of(value).mode;
  const auto offer = [&](Mode mode, double cost) {
    if (decided == GapMode::kStay) cost /= kDecided;
    if (decided == mode_of(mode)) cost *= kDecided;
    if (best.value == kNoIndex || cost < best.price) best = {value, mode, cost};
  };
  if (p_.bytes[v] <= 0) return best;
  if (p_.remakeable(value) && !hosted_[v]) {
    const Closure closure = closure_of(value);
    if (may_remake(value, closure)) offer(Mode::kDrop, per_byte(closure.seconds, p_.bytes[v]));
  }
  if (p_.encoding[v] != kNoIndex && used_ + p_.encoded_bytes[v] <= settings_.budget) {
    offer(Mode::kEncode,
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
    offer(Mode::kSwap, bias * per_byte(stall + settings_.copy_weight * busy, p_.bytes[v]));
  }
  return best;
}

}  // namespace plimsoll::schedule

// How much work may still be done: by the clock, or counted.
//
// Engines call spend(work) with a rough count of elementary steps and stop when it says false. By
// the clock, the count only decides how often the clock is read. In counted mode (--deterministic)
// no clock is read: the deadline is worth kStepsPerSecond steps a second, on every machine the
// same. One Budget belongs to one thread; `stop` may be raised by another, and ends both.
#pragma once

#include <atomic>
#include <cstdint>

#include "plimsoll/base/clock.h"

namespace plimsoll::pack {

class Budget {
 public:
  static constexpr double kStepsPerSecond = 1.8e8;

  Budget(double seconds, bool counted, const std::atomic<bool>* stop = nullptr)
      : counted_(counted), seconds_(seconds), left_(seconds * kStepsPerSecond), stop_(stop) {}

  // What is left, for one of several that do the same: over when `won` is raised, too.
  Budget in_race(const std::atomic<bool>& won) const {
    Budget out(left_seconds(), counted_, stop_);
    out.won_ = &won;
    return out;
  }

  // A budget for a part of the work: never more than what is left of this one.
  Budget share(double fraction) const {
    Budget part = *this;
    const double seconds = fraction * left_seconds();
    part.left_ = seconds * kStepsPerSecond;
    part.seconds_ = counted_ ? seconds : seconds_ - left_seconds() + seconds;
    return part;
  }
  // Counted work done under a share is paid by the whole.
  void settle(const Budget& part) {
    if (counted_) left_ -= part.spent_;
    if (left_ <= 0) over_ = true;
  }

  bool spend(std::int64_t steps) {
    spent_ += static_cast<double>(steps);
    if (counted_) {
      left_ -= static_cast<double>(steps);
      if (left_ <= 0) over_ = true;
    }
    unread_ += steps;
    if (unread_ >= kReadEvery) {
      unread_ = 0;
      over();
    }
    return !over_;
  }
  bool over() {
    if ((!counted_ && watch_.seconds() >= seconds_) || is_stopped()) over_ = true;
    return over_;
  }
  double left_seconds() const {
    const double left = counted_ ? left_ / kStepsPerSecond : seconds_ - watch_.seconds();
    return left > 0 ? left : 0;
  }

 private:
  bool is_stopped() const {
    return (stop_ != nullptr && stop_->load(std::memory_order_relaxed)) ||
           (won_ != nullptr && won_->load(std::memory_order_relaxed));
  }

  static constexpr std::int64_t kReadEvery = 50'000;
  bool counted_;
  bool over_ = false;
  double seconds_;
  double left_;
  double spent_ = 0;
  std::int64_t unread_ = 0;
  Stopwatch watch_;
  const std::atomic<bool>* stop_;
  const std::atomic<bool>* won_ = nullptr;
};

}  // namespace plimsoll::pack

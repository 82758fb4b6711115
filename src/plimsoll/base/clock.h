// Time for deadlines and measurements. Code that must be deterministic counts work instead.
#pragma once

#include <chrono>
#include <limits>

namespace plimsoll {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

class Deadline {
 public:
  static Deadline never() { return Deadline(std::numeric_limits<double>::infinity()); }
  explicit Deadline(double seconds_from_now) : limit_(seconds_from_now) {}
  bool passed() const { return watch_.seconds() >= limit_; }
  double left() const { return limit_ - watch_.seconds(); }

 private:
  Stopwatch watch_;
  double limit_;
};

}  // namespace plimsoll

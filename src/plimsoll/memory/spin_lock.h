// A lock for sections of some tens of nanoseconds: one atomic exchange to enter, one store to leave
// (a std::mutex needs two exchanges, and the pair is a third of what an allocation may cost).
//
// Who finds it taken spins a little, then gives its time slice away, so a holder that was
// interrupted can finish.
#pragma once

#include <sched.h>

#include <atomic>

namespace plimsoll::memory {

class SpinLock {
 public:
  void lock() {
    while (taken_.exchange(true, std::memory_order_acquire)) [[unlikely]] wait();
  }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  void wait() const {
    for (int turn = 0; taken_.load(std::memory_order_relaxed); ++turn) {
      if (turn < 64) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      } else {
        ::sched_yield();
      }
    }
  }

  std::atomic<bool> taken_{false};
};

}  // namespace plimsoll::memory

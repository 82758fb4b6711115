#include "plimsoll/cli/short_slices.h"

#include <cstdint>

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace plimsoll::cli {
namespace {

// The kernel's struct sched_attr in its first form; the C library has no name for it.
struct SchedulingWish {
  std::uint32_t size = sizeof(SchedulingWish);
  std::uint32_t policy = SCHED_OTHER;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t slice_nanoseconds = 0;  // 0: as usual
  std::uint64_t deadline = 0;
  std::uint64_t period = 0;
};

// A policy that somebody chose for us (batch, idle, real time) is left alone, and so is niceness.
void ask_for_slices(std::uint64_t nanoseconds) {
  if (sched_getscheduler(0) != SCHED_OTHER) return;
  SchedulingWish wish;
  wish.nice = getpriority(PRIO_PROCESS, 0);
  wish.slice_nanoseconds = nanoseconds;
  syscall(SYS_sched_setattr, 0, &wish, 0);  // a wish: refused, all stays as it is
}

}  // namespace

void ask_for_short_slices() {
  ask_for_slices(100'000);
}

void ask_for_usual_slices() {
  ask_for_slices(0);
}

}  // namespace plimsoll::cli

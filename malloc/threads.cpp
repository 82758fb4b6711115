#include "threads.h"

#include <limits.h>
#include <pthread.h>

#include "span_heap.h"
#include "trace.h"

namespace plimsoll::heap {

constinit Pool newcomer_pool;
constinit Pool gone_pool;
thread_local constinit Pool* this_pool = &newcomer_pool;

namespace {

constinit std::atomic<bool> fork_handlers{false};
constinit std::atomic<bool> common_only{false};
constinit Lock key_lock;
constinit bool key_made = false;
constinit pthread_key_t key = 0;

// ThreadSanitizer ends the thread for itself in the last round; atomics crash from then on.
#ifdef PLIMSOLL_SANITIZED
constexpr std::uintptr_t kRounds = PTHREAD_DESTRUCTOR_ITERATIONS - 1;
#else
constexpr std::uintptr_t kRounds = PTHREAD_DESTRUCTOR_ITERATIONS;
#endif

// The value of the key counts the rounds of destructors that are left.
void end_of_thread(void* rounds_left) {
  const auto left = reinterpret_cast<std::uintptr_t>(rounds_left);
  if (left > 1) {
    ::pthread_setspecific(key, reinterpret_cast<void*>(left - 1));
    return;
  }
  Pool* pool = this_pool;
  if (pool == &newcomer_pool || pool == &gone_pool) return;
  this_pool = &gone_pool;
  retire_pool(pool);
}

void watch_for_end_of_thread() {
  {
    Guard guard(key_lock);
    if (!key_made && ::pthread_key_create(&key, end_of_thread) != 0) return;
    key_made = true;
  }
  // May allocate, which is why the pool is in place already.
  ::pthread_setspecific(key, reinterpret_cast<void*>(kRounds));
}

void before_fork() {
  key_lock.lock();
  common_lock.lock();
  pools_lock.lock();
  heap_lock.lock();
  trace_lock.lock();
}

void after_fork() {
  trace_lock.unlock();
  heap_lock.unlock();
  pools_lock.unlock();
  common_lock.unlock();
  key_lock.unlock();
}

void after_fork_in_child() {
  stop_trace_in_child();
  after_fork();
}

}  // namespace

void register_fork_handlers() {
  if (!fork_handlers.exchange(true)) ::pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

void use_common_pool_only() {
  common_only.store(true);
  this_pool = &gone_pool;
}

void release_what_waits() {
  if (this_pool->is_working) this_pool->settle_waiting_own();
  release_idle_pools();
}

Pool* pool_for_this_thread() {
  if (this_pool == &gone_pool) return nullptr;
  if (this_pool != &newcomer_pool) return this_pool;
  if (common_only.load(std::memory_order_relaxed)) {
    this_pool = &gone_pool;
    return nullptr;
  }
  Pool* pool = take_pool();
  if (pool == nullptr) return nullptr;
  this_pool = pool;
  if (thread_id() != process_id()) {
    register_fork_handlers();
    watch_for_end_of_thread();
  }
  return pool;
}

}  // namespace plimsoll::heap

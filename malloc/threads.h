// Which pool a thread uses: one word of thread-local storage.
//
// The word is of the initial-exec model, since the dynamic ones call malloc. It starts at an empty
// pool, whose lists are all exhausted and which owns no page: so malloc and free need no test
// whether the thread was set up, they fall into their slow paths, and those set it up.
//
//   newcomer   the empty pool `newcomer_pool`  → the first slow path takes a pool
//   at work    a pool of its own
//   gone       the empty pool `gone_pool`: after the thread's own was retired. Allocations come
//              from the common pool under
//              its lock, frees count as remote. No pool is taken any more, so none can leak.
//
// A pool is retired by the destructor of a pthread key, in its last round: destructors of other
// keys still find a pool in the rounds before. The C++ destructors of thread-local objects run
// before all of them. The main thread keeps its pool, because exit handlers run on it.
//
// fork: handlers take every lock before and release it after, on both sides. Pools of threads that
// do not exist in the child are left alone, whatever state they were in; their free memory is lost
// to the child. The handlers are registered when the library is loaded and, should somebody be
// earlier, when the first pool is taken.
#pragma once

#include "pool.h"

namespace plimsoll::heap {

extern constinit Pool newcomer_pool;
extern constinit Pool gone_pool;

extern thread_local constinit Pool* this_pool __attribute__((tls_model("initial-exec")));

// The slow path's pool: takes one for a newcomer. Null for a thread that is gone, and when there is
// no memory.
Pool* pool_for_this_thread();

// Gives back free pages that pools hold on to: of pools that no thread has all, of this thread's
// those whose last blocks wait (pool.h).
void release_what_waits();

void register_fork_handlers();
// From now on no thread has a pool of its own: everything goes through the common one
// (check_mode.h).
void use_common_pool_only();

}  // namespace plimsoll::heap

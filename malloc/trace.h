// PLIMSOLL_MALLOC_TRACE=file: every allocation and free above 32 KiB, in the trace format of
// docs/formats/trace.md.
//
// `plimsoll view`, `replay` and `convert` read it. Lines are gathered in one buffer and written by
// raw system calls when it is full and at exit; a line is one allocation, so order is the order
// under the trace's lock, and an address is freed in the file before it is allocated again. A
// forked child does not write.
#pragma once

#include <atomic>
#include <cstddef>

#include "kernel.h"

namespace plimsoll::heap {

extern constinit Lock trace_lock;
extern constinit std::atomic<int> trace_file;  // -1: none

inline bool tracing() {
  return trace_file.load(std::memory_order_relaxed) >= 0;
}

bool start_trace(const char* path);
void finish_trace();
void stop_trace_in_child();  // trace_lock is held

void write_trace(const char* kind, const void* block, std::size_t bytes);

inline void trace_allocation(const void* block, std::size_t bytes) {
  if (tracing()) [[unlikely]]
    write_trace("allocation", block, bytes);
}
// Before the block is freed.
inline void trace_free(const void* block) {
  if (tracing()) [[unlikely]]
    write_trace("free", block, 0);
}

}  // namespace plimsoll::heap

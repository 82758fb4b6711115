// When the library is loaded and unloaded: options from the environment, limits of the machine, the
// line at exit.
//
// Nothing here is needed for allocating: the loader allocates before any constructor runs. Options
// are
//
//   PLIMSOLL_MALLOC_STATS=1|FILE   a line on stderr at exit, or JSON in FILE
//   PLIMSOLL_MALLOC_TRACE=FILE     every allocation above 32 KiB
//   PLIMSOLL_MALLOC_CHECK=1        canaries and guard pages
//   PLIMSOLL_MALLOC_PROCESS=PID    only this process writes the first two (set by `plimsoll exec`)
#include <cstdlib>
#include <cstring>

#include "check_mode.h"
#include "machine_limits.h"
#include "span_heap.h"
#include "statistics.h"
#include "text.h"
#include "threads.h"
#include "trace.h"

namespace plimsoll::heap {
namespace {

constinit const char* statistics_to = nullptr;

const char* value_of(char** environment, const char* name) {
  const std::size_t length = std::strlen(name);
  for (char** at = environment; at != nullptr && *at != nullptr; ++at) {
    if (std::strncmp(*at, name, length) == 0 && (*at)[length] == '=') return *at + length + 1;
  }
  return nullptr;
}

bool is_on(const char* value) {
  return value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
}

__attribute__((constructor)) void loaded(int, char**, char** environment) {
  register_fork_handlers();
  {
    Guard guard(heap_lock);
    span_heap.set_nodes(numa_nodes());
    span_heap.footprint().limit_to(cgroup_memory_limit());
  }
  if (is_on(value_of(environment, "PLIMSOLL_MALLOC_CHECK"))) begin_checking();
  const char* only = value_of(environment, "PLIMSOLL_MALLOC_PROCESS");
  if (only != nullptr && std::atoi(only) != process_id()) return;
  const char* wanted = value_of(environment, "PLIMSOLL_MALLOC_STATS");
  if (is_on(wanted)) statistics_to = wanted;
  const char* trace = value_of(environment, "PLIMSOLL_MALLOC_TRACE");
  if (is_on(trace) && !start_trace(trace)) {
    Text line;
    line << "plimsoll malloc: cannot write the trace " << trace << "\n";
    line.write_to(2);
  }
}

__attribute__((destructor)) void unloaded() {
  if (this_pool->is_working) {
    this_pool->send_all();
    this_pool->collect();
  }
  finish_trace();
  if (statistics_to == nullptr) return;
  if (std::strcmp(statistics_to, "1") == 0) {
    print_statistics(2);
  } else if (!write_statistics(statistics_to)) {
    Text line;
    line << "plimsoll malloc: cannot write statistics to " << statistics_to << "\n";
    line.write_to(2);
  }
}

}  // namespace
}  // namespace plimsoll::heap

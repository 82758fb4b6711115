// Limits and shape of the machine, read from /proc and /sys by raw system calls.
#pragma once

#include <cstddef>

namespace plimsoll::heap {

// The smallest limit on memory among this process's cgroup and those above it, of version 2
// (memory.max) and 1 (memory.limit_in_bytes); SIZE_MAX when there is none.
std::size_t cgroup_memory_limit();
unsigned numa_nodes();

// Their parsers, for tests.
std::size_t limit_in(const char* text);      // "max" or a number of bytes
unsigned highest_node_in(const char* text);  // "0-1,4": 4

}  // namespace plimsoll::heap

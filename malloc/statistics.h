// What the allocator did, in numbers: for the C interface, for a line at exit, and as JSON for
// `plimsoll exec`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plimsoll_malloc.h"

namespace plimsoll::heap {

plimsoll_malloc_statistics statistics();
// One line for people, on a file descriptor.
void print_statistics(int file);
// One JSON object; false when the file cannot be written.
bool write_statistics(const char* path);

}  // namespace plimsoll::heap

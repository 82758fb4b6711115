// Pages for the thread pools: segments of 2 MiB cut into pages of 64 KiB, or four of them.
//
// A segment is one unit of the span heap, with its 32 page descriptors beside each other in
// metadata. Pages are taken from a segment that has some in use before a free one, and within it
// first where memory is resident. A segment without pages in use goes back to the span heap.
//
// Threads: takes heap_lock.
#pragma once

#include <cstddef>

#include "page.h"

namespace plimsoll::heap {

// A page with the class's size and capacity filled in and nothing carved; null when there is no
// memory.
Page* acquire_page(unsigned size_class, Pool* owner);
void release_page(Page* page);

}  // namespace plimsoll::heap

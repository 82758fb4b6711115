#include "page_source.h"

#include <bit>

#include "metadata.h"
#include "slices.h"
#include "span_heap.h"

namespace plimsoll::heap {
namespace {

constexpr std::uint32_t kAllGranules = ~std::uint32_t{0};

struct Segment {
  Page pages[kGranulesOfUnit];  // first, see segment_of; a wide page uses the first of its four
  Span* span = nullptr;
  std::uint32_t free = kAllGranules;  // granules
  Segment* next = nullptr;            // among those with free granules, or spare
  Segment* previous = nullptr;

  std::uint32_t resident() const {
    return span->region->resident[span->region->unit_of(span->start)];
  }
};

constinit Segment* with_room = nullptr;
constinit Segment* spare = nullptr;  // descriptors

void link(Segment* segment) {
  segment->previous = nullptr;
  segment->next = with_room;
  if (with_room != nullptr) with_room->previous = segment;
  with_room = segment;
}

void unlink(Segment* segment) {
  (segment->previous != nullptr ? segment->previous->next : with_room) = segment->next;
  if (segment->next != nullptr) segment->next->previous = segment->previous;
}

// The first granule of every run of `count` (1 or 4, aligned) in which all bits are set.
std::uint32_t runs(std::uint32_t bits, unsigned count) {
  if (count == 1) return bits;
  bits &= bits >> 1;
  bits &= bits >> 2;
  return bits & 0x11111111u;
}

Segment* new_segment() {
  Segment* segment = spare;
  if (segment == nullptr) {
    segment = new_metadata<Segment>();
    if (segment == nullptr) return nullptr;
  } else {
    spare = segment->next;
  }
  segment->span = span_heap.allocate(Use::kSegment, kGranulesOfUnit, kHugePage);
  if (segment->span == nullptr) {
    segment->next = spare;
    spare = segment;
    return nullptr;
  }
  segment->free = kAllGranules;
  link(segment);
  return segment;
}

Segment* segment_with(unsigned granules) {
  for (Segment* segment = with_room; segment != nullptr; segment = segment->next) {
    if (runs(segment->free, granules) != 0) return segment;
  }
  return new_segment();
}

// A page's number in its segment follows from its address.
Segment* segment_of(Page* page) {
  const auto index = reinterpret_cast<std::uintptr_t>(page->start) / kGranule % kGranulesOfUnit;
  return reinterpret_cast<Segment*>(page - index);
}

std::size_t purge_free_pages(std::size_t bytes) {
  std::size_t done = 0;
  for (Segment* segment = with_room; segment != nullptr && done < bytes; segment = segment->next) {
    for (std::uint32_t bits = segment->free & segment->resident(); bits != 0 && done < bytes;
         bits &= bits - 1) {
      char* at = segment->span->start + static_cast<unsigned>(std::countr_zero(bits)) * kGranule;
      done += span_heap.purge_range(*segment->span->region, at, at + kGranule);
    }
  }
  return done;
}

}  // namespace

Page* acquire_page(unsigned size_class, Pool* owner) {
  const unsigned granules = granules_of_page(size_class);
  Guard guard(heap_lock);
  Segment* segment = segment_with(granules);
  if (segment == nullptr) return nullptr;
  const std::uint32_t places = runs(segment->free, granules);
  const std::uint32_t warm = places & segment->resident();
  const auto index = static_cast<unsigned>(std::countr_zero(warm != 0 ? warm : places));
  segment->free &= ~(((std::uint32_t{1} << granules) - 1) << index);
  if (segment->free == 0) unlink(segment);

  Page* page = new (&segment->pages[index]) Page;
  page->start = segment->span->start + index * kGranule;
  page->granules = static_cast<std::uint8_t>(granules);
  page->size_class = static_cast<std::uint8_t>(size_class);
  page->block = static_cast<std::uint32_t>(block_bytes(size_class));
  page->capacity = static_cast<std::uint32_t>(page->bytes() / page->block);
  page->owner.store(owner, std::memory_order_relaxed);
  for (unsigned i = 0; i < granules; ++i) page_map.set(page->start + i * kGranule, page);

  span_heap.footprint().allocated(page->bytes());
  span_heap.occupy(*segment->span->region, page->start, page->start + page->bytes());
  span_heap.trim();
  return page;
}

void release_page(Page* page) {
  Guard guard(heap_lock);
  Segment* segment = segment_of(page);
  const auto index = static_cast<unsigned>(page - segment->pages);
  for (unsigned i = 0; i < page->granules; ++i) page_map.set(page->start + i * kGranule, nullptr);
  page->owner.store(nullptr, std::memory_order_relaxed);
  span_heap.footprint().freed(page->bytes());
  span_heap.vacate(*segment->span->region, page->start, page->start + page->bytes());

  if (segment->free == 0) link(segment);
  segment->free |= ((std::uint32_t{1} << page->granules) - 1) << index;
  if (segment->free == kAllGranules) {
    unlink(segment);
    span_heap.free(segment->span);
    segment->next = spare;
    spare = segment;
  } else {
    span_heap.trim();
  }
}

std::size_t purge_inside_segments(std::size_t bytes) {
  const std::size_t done = purge_free_pages(bytes);
  return done < bytes ? done + purge_free_slices(bytes - done) : done;
}

}  // namespace plimsoll::heap

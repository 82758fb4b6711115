#include "slices.h"

#include <bit>
#include <cstdint>
#include <new>

#include "metadata.h"
#include "span_heap.h"

namespace plimsoll::heap {
namespace {

constexpr std::size_t kSlice = kKernelPage;
constexpr unsigned kSlices = kHugePage / kSlice;
constexpr unsigned kSlicesOfGranule = kGranule / kSlice;
constexpr unsigned kBins = 17;  // longest free run, in 32nds of a segment; the last: empty

struct Segment : Descriptor {
  Span* span = nullptr;
  std::uint64_t used[kSlices / 64] = {};
  std::uint16_t length[kSlices] = {};  // in slices, at a block's first
  unsigned longest = kSlices;          // free run
  Segment* next = nullptr;             // in its bin, or spare
  Segment* previous = nullptr;

  char* base() const { return span->start; }
  unsigned index_of(const void* block) const {
    return static_cast<unsigned>(
        static_cast<std::size_t>(static_cast<const char*>(block) - base()) / kSlice);
  }
  bool is_used(unsigned slice) const { return (used[slice / 64] >> slice % 64 & 1) != 0; }
  // The 16 slices of a granule, as bits.
  std::uint64_t granule(unsigned index) const {
    return used[index / 4] >> index % 4 * kSlicesOfGranule & 0xFFFF;
  }
};

constinit Segment* bins[kBins] = {};
constinit Segment* spare = nullptr;
constinit std::size_t allocations = 0;

unsigned bin_of(const Segment& segment) {
  return segment.longest / (kSlices / (kBins - 1));
}

void link(Segment* segment) {
  Segment*& bin = bins[bin_of(*segment)];
  segment->previous = nullptr;
  segment->next = bin;
  if (bin != nullptr) bin->previous = segment;
  bin = segment;
}

void unlink(Segment* segment) {
  (segment->previous != nullptr ? segment->previous->next : bins[bin_of(*segment)]) = segment->next;
  if (segment->next != nullptr) segment->next->previous = segment->previous;
}

// The first slice at or behind `from` whose bit is `value`; kSlices when there is none.
unsigned find(const Segment& segment, unsigned from, bool value) {
  for (unsigned word = from / 64; word < kSlices / 64; ++word) {
    std::uint64_t bits = value ? segment.used[word] : ~segment.used[word];
    if (word == from / 64) bits &= ~std::uint64_t{0} << from % 64;
    if (bits != 0) return word * 64 + static_cast<unsigned>(std::countr_zero(bits));
  }
  return kSlices;
}

// Calls visit(begin, end) for every run of free slices.
template <typename Visit>
void for_free_runs(const Segment& segment, Visit visit) {
  for (unsigned begin = find(segment, 0, false); begin < kSlices;) {
    const unsigned end = find(segment, begin, true);
    visit(begin, end);
    begin = end < kSlices ? find(segment, end, false) : kSlices;
  }
}

void set_used(Segment& segment, unsigned begin, unsigned end, bool value) {
  for (unsigned slice = begin; slice < end;) {
    const unsigned stop = (slice / 64 + 1) * 64 < end ? (slice / 64 + 1) * 64 : end;
    const unsigned count = stop - slice;
    const std::uint64_t bits = (count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1)
                               << slice % 64;
    if (value) {
      segment.used[slice / 64] |= bits;
    } else {
      segment.used[slice / 64] &= ~bits;
    }
    slice = stop;
  }
}

// Marks slices used or free, and tells the heap of granules that come into use or fall out of it.
void mark(Segment& segment, unsigned begin, unsigned end, bool value) {
  const unsigned first = begin / kSlicesOfGranule;
  const unsigned last = (end - 1) / kSlicesOfGranule;
  Region& region = *segment.span->region;
  const auto at = [&](unsigned granule) { return segment.base() + granule * kGranule; };
  if (!value) set_used(segment, begin, end, false);
  for (unsigned granule = first; granule <= last; ++granule) {
    if (segment.granule(granule) != 0) continue;
    if (value) {
      span_heap.occupy(region, at(granule), at(granule + 1));
    } else {
      span_heap.vacate(region, at(granule), at(granule + 1));
    }
  }
  if (value) set_used(segment, begin, end, true);
  const std::size_t bytes = (end - begin) * kSlice;
  if (value) {
    span_heap.footprint().allocated(bytes);
  } else {
    span_heap.footprint().freed(bytes);
  }
}

void measure(Segment& segment) {
  segment.longest = 0;
  for_free_runs(segment, [&](unsigned begin, unsigned end) {
    if (end - begin > segment.longest) segment.longest = end - begin;
  });
}

struct Run {
  unsigned begin = kSlices;
  unsigned length = kSlices + 1;
};

Run best_fit(const Segment& segment, unsigned slices, unsigned alignment) {
  Run best;
  for_free_runs(segment, [&](unsigned begin, unsigned end) {
    const unsigned aligned = (begin + alignment - 1) & ~(alignment - 1);
    if (aligned + slices <= end && end - begin < best.length) best = {aligned, end - begin};
  });
  return best;
}

Segment* new_segment() {
  Segment* segment = spare;
  if (segment != nullptr) {
    spare = segment->next;
    new (segment) Segment;
  } else {
    segment = new_metadata<Segment>();
    if (segment == nullptr) return nullptr;
  }
  segment->kind = Kind::kSlices;
  segment->span = span_heap.allocate(Use::kSegment, kGranulesOfUnit, kHugePage);
  if (segment->span == nullptr) {
    segment->next = spare;
    spare = segment;
    return nullptr;
  }
  for (unsigned i = 0; i < kGranulesOfUnit; ++i)
    page_map.set(segment->base() + i * kGranule, segment);
  link(segment);
  return segment;
}

void delete_segment(Segment* segment) {
  unlink(segment);
  for (unsigned i = 0; i < kGranulesOfUnit; ++i)
    page_map.set(segment->base() + i * kGranule, nullptr);
  span_heap.free(segment->span);
  segment->next = spare;
  spare = segment;
}

}  // namespace

void* allocate_slices(std::size_t bytes, std::size_t alignment) {
  const auto slices = static_cast<unsigned>(round_up(bytes, kSlice) / kSlice);
  const auto step = static_cast<unsigned>(alignment > kSlice ? alignment / kSlice : 1);
  Guard guard(heap_lock);
  Segment* segment = nullptr;
  Run run;
  for (unsigned bin = slices / (kSlices / (kBins - 1)); bin < kBins && segment == nullptr; ++bin) {
    for (Segment* at = bins[bin]; at != nullptr && segment == nullptr; at = at->next) {
      if (at->longest < slices) continue;
      run = best_fit(*at, slices, step);
      if (run.begin < kSlices) segment = at;
    }
  }
  if (segment == nullptr) {
    segment = new_segment();
    if (segment == nullptr) return nullptr;
    run = best_fit(*segment, slices, step);
  }
  ++allocations;
  unlink(segment);
  segment->length[run.begin] = static_cast<std::uint16_t>(slices);
  mark(*segment, run.begin, run.begin + slices, true);
  if (run.length == segment->longest) measure(*segment);
  link(segment);
  span_heap.trim();
  return segment->base() + run.begin * kSlice;
}

std::size_t slice_allocations() {
  return allocations;
}

std::size_t slice_bytes(const Descriptor* descriptor, const void* block) {
  const auto& segment = static_cast<const Segment&>(*descriptor);
  if (reinterpret_cast<std::uintptr_t>(block) % kSlice != 0) return 0;
  return segment.length[segment.index_of(block)] * kSlice;
}

bool is_free_slice(const Descriptor* descriptor, const void* address) {
  const auto& segment = static_cast<const Segment&>(*descriptor);
  return reinterpret_cast<std::uintptr_t>(address) % kSlice == 0 &&
         !segment.is_used(segment.index_of(address));
}

bool free_slices(Descriptor* descriptor, void* block) {
  auto* segment = static_cast<Segment*>(descriptor);
  Guard guard(heap_lock);
  const unsigned begin = segment->index_of(block);
  const unsigned slices = segment->length[begin];
  if (reinterpret_cast<std::uintptr_t>(block) % kSlice != 0 || slices == 0) return false;
  unlink(segment);
  segment->length[begin] = 0;
  mark(*segment, begin, begin + slices, false);
  measure(*segment);
  link(segment);
  if (segment->longest == kSlices) {
    delete_segment(segment);
  } else {
    span_heap.trim();
  }
  return true;
}

bool resize_slices(Descriptor* descriptor, void* block, std::size_t bytes) {
  auto& segment = static_cast<Segment&>(*descriptor);
  const auto slices = static_cast<unsigned>(round_up(bytes, kSlice) / kSlice);
  Guard guard(heap_lock);
  const unsigned begin = segment.index_of(block);
  const unsigned had = segment.length[begin];
  if (slices == had) return true;
  if (slices > had) {
    if (begin + slices > kSlices || find(segment, begin + had, true) < begin + slices) return false;
  }
  unlink(&segment);
  segment.length[begin] = static_cast<std::uint16_t>(slices);
  if (slices > had) {
    mark(segment, begin + had, begin + slices, true);
  } else {
    mark(segment, begin + slices, begin + had, false);
  }
  measure(segment);
  link(&segment);
  span_heap.trim();
  return true;
}

std::size_t purge_free_slices(std::size_t bytes) {
  std::size_t done = 0;
  for (Segment* bin : bins) {
    for (Segment* segment = bin; segment != nullptr && done < bytes; segment = segment->next) {
      for (unsigned granule = 0; granule < kGranulesOfUnit; ++granule) {
        if (segment->granule(granule) != 0) continue;
        char* at = segment->base() + granule * kGranule;
        done += span_heap.purge_range(*segment->span->region, at, at + kGranule);
      }
    }
  }
  return done;
}

}  // namespace plimsoll::heap

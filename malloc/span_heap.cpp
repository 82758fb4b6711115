#include "span_heap.h"

#include <bit>
#include <initializer_list>
#include <new>

#include "metadata.h"

namespace plimsoll::heap {

constinit Lock heap_lock;
constinit SpanHeap span_heap;

namespace {

constexpr std::size_t kHugeAfter = std::size_t{16} << 20;  // of the first segments
constexpr std::size_t kCommitStep = std::size_t{32} << 20;
constexpr std::size_t kLargestRegion = std::size_t{16} << 30;
constexpr int kCandidates = 32;
constexpr int kMostVisited = 256;         // free spans, under the lock
constexpr std::size_t kMostMoved = 8192;  // units: at most two mappings each, of 65,530

// The granules of a unit that lie in [begin, end), as bits.
std::uint32_t granule_bits(const Region& region, std::size_t unit, const char* begin,
                           const char* end) {
  const char* base = region.base + unit * kHugePage;
  const std::size_t first = begin > base ? static_cast<std::size_t>(begin - base) / kGranule : 0;
  const std::size_t last =
      end < base + kHugePage ? static_cast<std::size_t>(end - base) / kGranule : kGranulesOfUnit;
  const std::uint64_t below_last = (std::uint64_t{1} << last) - 1;
  return static_cast<std::uint32_t>(below_last & ~((std::uint64_t{1} << first) - 1));
}

std::size_t bytes_of(std::uint32_t granules) {
  return static_cast<std::size_t>(std::popcount(granules)) * kGranule;
}

unsigned index_of(Use use) {
  return static_cast<unsigned>(use);
}
Use other(Use use) {
  return use == Use::kBlock ? Use::kSegment : Use::kBlock;
}

}  // namespace

unsigned SpanHeap::bin_of(std::size_t granules) {
  if (granules < 16) return static_cast<unsigned>(granules);
  const auto top = static_cast<unsigned>(std::bit_width(granules)) - 1;
  const unsigned bin = 16 + (top - 4) * 8 + static_cast<unsigned>(granules >> (top - 3) & 7);
  return bin < kBins ? bin : kBins - 1;
}

// ---- Descriptors and bins

Span* SpanHeap::new_span(Region* region, char* start, std::size_t granules) {
  Span* span = spare_;
  if (span != nullptr) {
    spare_ = span->next;
    new (span) Span;
  } else {
    span = new_metadata<Span>();
    if (span == nullptr) return nullptr;
  }
  span->region = region;
  span->start = start;
  span->granules = granules;
  return span;
}

void SpanHeap::delete_span(Span* span) {
  span->next = spare_;
  spare_ = span;
}

void SpanHeap::enter(Span* span, Kind kind) {
  span->kind = kind;
  page_map.set(span->start, span);
  page_map.set(span->end() - kGranule, span);
}

void SpanHeap::erase(const Span* span) {
  page_map.set(span->start, nullptr);
  page_map.set(span->end() - kGranule, nullptr);
}

void SpanHeap::insert_free(Span* span) {
  enter(span, Kind::kFreeSpan);
  const unsigned use = index_of(span->region->use);
  const unsigned bin = bin_of(span->granules);
  span->previous = nullptr;
  span->next = bins_[use][bin];
  if (span->next != nullptr) span->next->previous = span;
  bins_[use][bin] = span;
  used_bins_[use][bin / 64] |= std::uint64_t{1} << bin % 64;

  span->newer = nullptr;
  span->older = newest_;
  (newest_ != nullptr ? newest_->newer : oldest_) = span;
  newest_ = span;
}

void SpanHeap::remove_free(Span* span) {
  erase(span);
  const unsigned use = index_of(span->region->use);
  const unsigned bin = bin_of(span->granules);
  (span->previous != nullptr ? span->previous->next : bins_[use][bin]) = span->next;
  if (span->next != nullptr) span->next->previous = span->previous;
  if (bins_[use][bin] == nullptr) used_bins_[use][bin / 64] &= ~(std::uint64_t{1} << bin % 64);

  (span->newer != nullptr ? span->newer->older : newest_) = span->older;
  (span->older != nullptr ? span->older->newer : oldest_) = span->newer;
}

// ---- Residency

std::size_t SpanHeap::resident_in(const Region& region, const char* begin, const char* end) const {
  const auto node = static_cast<std::uint8_t>(nodes_ > 1 ? numa_node() : 0);
  std::size_t bytes = 0;
  for (std::size_t unit = region.unit_of(begin); unit <= region.unit_of(end - 1); ++unit) {
    if (nodes_ > 1 && region.node[unit] != node) continue;
    bytes += bytes_of(region.resident[unit] & granule_bits(region, unit, begin, end));
  }
  return bytes;
}

bool SpanHeap::occupy(Region& region, char* begin, char* end) {
  const auto node = static_cast<std::uint8_t>(nodes_ > 1 ? numa_node() : 0);
  bool zero = true;
  for (std::size_t unit = region.unit_of(begin); unit <= region.unit_of(end - 1); ++unit) {
    std::uint32_t& resident = region.resident[unit];
    const std::uint32_t wanted = granule_bits(region, unit, begin, end);
    if (nodes_ > 1 && (resident & wanted) != 0 && region.node[unit] != node) {
      char* base = region.base + unit * kHugePage;
      purge_range(region, begin > base ? begin : base,
                  end < base + kHugePage ? end : base + kHugePage);
    }
    const std::size_t had = bytes_of(resident & wanted);
    reused_ += had;
    footprint_.cache_shrank(had);
    if (had > 0) zero = false;
    if (resident == 0) region.node[unit] = node;
    const bool huge = unit * kHugePage >= region.huge_from && region.split[unit] == 0;
    if (resident == 0 && huge) {
      resident = ~std::uint32_t{0};  // the kernel fills the whole unit at the first touch
      footprint_.cache_grew(bytes_of(~wanted));
    } else {
      resident |= wanted;
    }
  }
  return zero;
}

void SpanHeap::vacate(Region& region, const char* begin, const char* end) {
  std::size_t bytes = 0;
  for (std::size_t unit = region.unit_of(begin); unit <= region.unit_of(end - 1); ++unit) {
    bytes += bytes_of(region.resident[unit] & granule_bits(region, unit, begin, end));
  }
  footprint_.cache_grew(bytes);
}

std::size_t SpanHeap::purge_range(Region& region, char* begin, char* end) {
  std::size_t bytes = 0;
  for (std::size_t unit = region.unit_of(begin); unit <= region.unit_of(end - 1); ++unit) {
    const std::uint32_t here = granule_bits(region, unit, begin, end);
    bytes += bytes_of(region.resident[unit] & here);
    region.resident[unit] &= ~here;
    region.split[unit] = region.resident[unit] != 0;
  }
  if (bytes > 0) purge(begin, static_cast<std::size_t>(end - begin));
  footprint_.cache_shrank(bytes);
  purged_ += bytes;
  return bytes;
}

// From the high end down, since the low end is used again first.
std::size_t SpanHeap::purge_span(Span* span, std::size_t bytes, bool parts) {
  Region& region = *span->region;
  std::size_t done = 0;
  const std::size_t first = region.unit_of(span->start);
  for (std::size_t unit = region.unit_of(span->end() - 1) + 1; unit-- > first && done < bytes;) {
    char* begin = region.base + unit * kHugePage;
    const bool whole = begin >= span->start && begin + kHugePage <= span->end();
    if (region.resident[unit] == 0 || (!whole && !parts)) continue;
    char* end = begin + kHugePage < span->end() ? begin + kHugePage : span->end();
    // Runs of whole units go in one call.
    while (whole && unit > first && region.resident[unit - 1] != 0 &&
           begin - kHugePage >= span->start &&
           done + static_cast<std::size_t>(end - begin) < bytes) {
      --unit;
      begin -= kHugePage;
    }
    done += purge_range(region, begin > span->start ? begin : span->start, end);
  }
  return done;
}

bool SpanHeap::move_units(Region& from, std::size_t source, Region& to, std::size_t target,
                          std::size_t units) {
  std::size_t fresh = 0;
  for (std::size_t i = 0; i < units; ++i) fresh += to.moved[target + i] == 0;
  if (moved_ + fresh > kMostMoved) return false;
  moved_ += fresh;
  for (std::size_t i = 0; i < units; ++i) to.moved[target + i] = 1;
  if (!move_pages(from.base + source * kHugePage, to.base + target * kHugePage, units * kHugePage))
    return false;
  for (std::size_t i = 0; i < units; ++i) {
    to.resident[target + i] = from.resident[source + i];
    to.split[target + i] = from.split[source + i];
    to.node[target + i] = from.node[source + i];
    from.resident[source + i] = 0;
    from.split[source + i] = 0;
  }
  return true;
}

// Moves cached units to where a new block lies and nothing is resident. They stay cached until the
// block occupies them.
void SpanHeap::adopt_resident_units(Region& to, char* begin, char* end) {
  std::size_t target = to.unit_of(begin + kHugePage - 1);
  const std::size_t last = to.unit_of(end);  // units wholly inside end here
  while (target < last && to.resident[target] != 0) ++target;
  if (target >= last || footprint_.cached() < kHugePage) return;
  const auto node = static_cast<std::uint8_t>(nodes_ > 1 ? numa_node() : 0);
  int visits = kMostVisited;
  for (Span* span = oldest_; span != nullptr && visits > 0; span = span->newer, --visits) {
    Region& from = *span->region;
    const std::size_t first = from.unit_of(span->start + kHugePage - 1);
    const auto gives = [&](std::size_t unit) {
      return from.resident[unit] == ~std::uint32_t{0} && unit * kHugePage >= from.huge_from &&
             (nodes_ == 1 || from.node[unit] == node);
    };
    for (std::size_t source = from.unit_of(span->end()); source > first;) {
      while (target < last && to.resident[target] != 0) ++target;
      if (target >= last) return;
      if (!gives(--source)) continue;
      std::size_t units = 1;  // the run that ends at `source`, as far as the target is empty
      while (moves_runs_ && source > first && gives(source - 1) && target + units < last &&
             to.resident[target + units] == 0) {
        --source;
        ++units;
      }
      if (move_units(from, source, to, target, units)) continue;
      if (units == 1) return;
      for (std::size_t i = 0; i < units; ++i) {
        if (!move_units(from, source + i, to, target + i, 1)) return;
      }
      moves_runs_ = false;
    }
  }
}

std::size_t SpanHeap::trim(bool everything) {
  footprint_.at_time(now_coarse_ns());
  std::size_t excess = everything ? footprint_.cached() : footprint_.excess();
  if (excess == 0) {
    footprint_.settled();
    return 0;
  }
  const std::size_t before = purged_;
  const auto left = [&] { return before + excess - purged_; };
  for (const bool parts : {false, true}) {
    for (Span* span = oldest_; span != nullptr && purged_ < before + excess; span = span->newer) {
      purge_span(span, left(), parts);
    }
    // Pages inside segments next, with some to spare: finding them means walking the segments.
    if (!parts && purged_ < before + excess) purge_inside_segments(left() + footprint_.bound() / 8);
  }
  footprint_.settled();
  return purged_ - before;
}

// ---- Regions

bool SpanHeap::make_region(Use use, std::size_t bytes) {
  const std::size_t units = bytes / kHugePage;
  void* base = reserve_addresses(bytes, kHugePage);
  if (base == nullptr) return false;
  auto* region = new_metadata<Region>();
  if (region != nullptr && page_map.prepare(base, bytes)) {
    region->resident = static_cast<std::uint32_t*>(metadata_bytes(units * 4, 4));
    region->split = static_cast<std::uint8_t*>(metadata_bytes(units, 1));
    region->node = static_cast<std::uint8_t*>(metadata_bytes(units, 1));
    region->moved = static_cast<std::uint8_t*>(metadata_bytes(units, 1));
  }
  Span* span = region != nullptr && region->node != nullptr && region->split != nullptr &&
                       region->resident != nullptr && region->moved != nullptr
                   ? new_span(region, static_cast<char*>(base), bytes / kGranule)
                   : nullptr;
  if (span == nullptr) {
    release_addresses(base, bytes);
    return false;
  }
  const bool first_segments = use == Use::kSegment && next_region_[index_of(use)] == std::size_t{1}
                                                                                         << 30;
  region->use = use;
  region->base = static_cast<char*>(base);
  region->bytes = bytes;
  region->huge_from = first_segments ? kHugeAfter : 0;
  if (bytes > region->huge_from)
    ask_for_huge_pages(region->base + region->huge_from, bytes - region->huge_from);
  region->next = regions_;
  regions_ = region;
  reserved_ += bytes;
  insert_free(span);
  return true;
}

bool SpanHeap::add_region(Use use, std::size_t bytes) {
  const std::size_t least = round_up(bytes, kHugePage);
  if (least < bytes) return false;
  std::size_t& next = next_region_[index_of(use)];
  std::size_t size = next;
  // Addresses are scarce under RLIMIT_AS: small steps leave the rest of the program its own.
  const std::size_t limit = address_limit();
  if (limit != SIZE_MAX && size > limit / 64) size = round_up(limit / 64, kHugePage);
  while (true) {
    if (size < least) size = least;
    if (make_region(use, size)) break;
    if (size == least) {
      if (!release_free_regions()) return false;
    } else {
      size = round_up(size / 2, kHugePage);
    }
  }
  if (next < kLargestRegion) next *= 2;
  return true;
}

// Regions in which nothing lives are given back when addresses run out.
bool SpanHeap::release_free_regions() {
  bool any = false;
  for (Region** at = &regions_; *at != nullptr;) {
    Region* region = *at;
    auto* span = static_cast<Span*>(page_map.find(region->base));
    if (span == nullptr || span->kind != Kind::kFreeSpan || span->length() != region->bytes) {
      at = &region->next;
      continue;
    }
    footprint_.cache_shrank(resident_in(*region, region->base, region->base + region->bytes));
    remove_free(span);
    delete_span(span);
    for (std::size_t unit = 0; unit < region->bytes / kHugePage; ++unit)
      moved_ -= region->moved[unit];
    release_addresses(region->base, region->bytes);
    reserved_ -= region->bytes;
    *at = region->next;
    any = true;
  }
  return any;
}

bool SpanHeap::commit_to(Region& region, const char* end) {
  const std::size_t needed = round_up(static_cast<std::size_t>(end - region.base), kHugePage);
  if (needed <= region.committed) return true;
  const std::size_t left = region.bytes - region.committed;
  std::size_t step = needed - region.committed;
  if (step < kCommitStep && left > step) step = left < kCommitStep ? left : kCommitStep;
  if (!commit(region.base + region.committed, step)) {
    // A strict commit limit: only what is needed.
    step = needed - region.committed;
    if (!commit(region.base + region.committed, step)) return false;
  }
  region.committed += step;
  return true;
}

// ---- Allocation

void SpanHeap::consider(Place& best, Span* span, std::size_t granules, std::size_t alignment,
                        std::size_t phase) const {
  const std::size_t length = granules * kGranule;
  if (span->granules < granules) return;
  const auto start = reinterpret_cast<std::uintptr_t>(span->start);
  const auto end = reinterpret_cast<std::uintptr_t>(span->end());
  const std::uintptr_t low = round_up(start - phase, alignment) + phase;
  const std::uintptr_t high = ((end - length - phase) & ~(alignment - 1)) + phase;
  if (low < start || low + length > end) return;
  for (const std::uintptr_t address : {low, high}) {
    if (address < start || address + length > end) continue;
    char* at = reinterpret_cast<char*>(address);
    const std::size_t resident = resident_in(*span->region, at, at + length);
    const bool better =
        best.span == nullptr || resident > best.resident ||
        (resident == best.resident && (span->granules < best.span->granules ||
                                       (span->granules == best.span->granules && at < best.at)));
    if (better) best = {span, at, resident};
  }
}

SpanHeap::Place SpanHeap::find_place(Use use, std::size_t granules, std::size_t alignment,
                                     std::size_t phase) const {
  Place best;
  int seen = 0;
  unsigned bin = bin_of(granules);
  std::uint64_t word = used_bins_[index_of(use)][bin / 64] & ~std::uint64_t{0} << bin % 64;
  for (unsigned at = bin / 64; at < kBins / 64;
       word = ++at < kBins / 64 ? used_bins_[index_of(use)][at] : 0) {
    for (; word != 0; word &= word - 1) {
      bin = at * 64 + static_cast<unsigned>(std::countr_zero(word));
      for (Span* span = bins_[index_of(use)][bin]; span != nullptr; span = span->next) {
        consider(best, span, granules, alignment, phase);
        if (best.span != nullptr && ++seen >= kCandidates) return best;
      }
    }
  }
  return best;
}

Span* SpanHeap::carve(const Place& place, std::size_t granules) {
  Span* whole = place.span;
  Region* region = whole->region;
  const std::size_t before = static_cast<std::size_t>(place.at - whole->start) / kGranule;
  const std::size_t behind = whole->granules - before - granules;
  char* tail_at = place.at + granules * kGranule;
  Span* head = before > 0 ? new_span(region, whole->start, before) : nullptr;
  Span* tail = behind > 0 ? new_span(region, tail_at, behind) : nullptr;
  if ((before > 0 && head == nullptr) || (behind > 0 && tail == nullptr)) {
    if (head != nullptr) delete_span(head);
    if (tail != nullptr) delete_span(tail);
    return nullptr;
  }
  remove_free(whole);
  whole->start = place.at;
  whole->granules = granules;
  if (head != nullptr) insert_free(head);
  if (tail != nullptr) insert_free(tail);
  return whole;
}

Span* SpanHeap::allocate(Use use, std::size_t granules, std::size_t alignment, std::size_t phase,
                         std::size_t incoming) {
  const std::size_t length = granules * kGranule;
  if (granules == 0 || length / kGranule != granules) return nullptr;
  Place place = find_place(use, granules, alignment, phase);
  if (place.span == nullptr) {
    const std::size_t slack = alignment > kHugePage || phase > 0 ? alignment : 0;
    if (length + slack < length) return nullptr;
    // Where addresses have run out, a free span of the other kind of region will do.
    const bool added = add_region(use, length + slack);
    place = find_place(added ? use : other(use), granules, alignment, phase);
    if (place.span == nullptr) return nullptr;
  }
  if (!commit_to(*place.span->region, place.at + length)) return nullptr;
  Span* span = carve(place, granules);
  if (span == nullptr) return nullptr;
  enter(span, Kind::kSpan);
  span->block = use == Use::kBlock;
  if (span->block) {
    ++blocks_;
    footprint_.allocated(length);
    adopt_resident_units(*span->region, span->start + incoming, span->end());
    span->zero = occupy(*span->region, span->start, span->end());
    trim();
  }
  return span;
}

void SpanHeap::free(Span* span) {
  Region& region = *span->region;
  if (span->block) {
    footprint_.freed(span->length());
    vacate(region, span->start, span->end());
  }
  erase(span);
  const auto free_neighbour = [&](const char* granule) -> Span* {
    if (granule < region.base || granule >= region.base + region.bytes) return nullptr;
    Descriptor* found = page_map.find(granule);
    return found != nullptr && found->kind == Kind::kFreeSpan ? static_cast<Span*>(found) : nullptr;
  };
  if (Span* left = free_neighbour(span->start - kGranule)) {
    remove_free(left);
    span->start = left->start;
    span->granules += left->granules;
    delete_span(left);
  }
  if (Span* right = free_neighbour(span->end())) {
    remove_free(right);
    span->granules += right->granules;
    delete_span(right);
  }
  insert_free(span);
  trim();
}

bool SpanHeap::grow(Span* span, std::size_t granules) {
  Region& region = *span->region;
  char* end = span->end();
  const std::size_t more = granules - span->granules;
  if (more >= region.bytes / kGranule || end >= region.base + region.bytes) return false;
  Descriptor* found = page_map.find(end);
  if (found == nullptr || found->kind != Kind::kFreeSpan) return false;
  auto* next = static_cast<Span*>(found);
  if (next->granules < more || !commit_to(region, end + more * kGranule)) return false;
  remove_free(next);
  next->start += more * kGranule;
  next->granules -= more;
  if (next->granules > 0) {
    insert_free(next);
  } else {
    delete_span(next);
  }
  erase(span);
  span->granules = granules;
  enter(span, Kind::kSpan);
  footprint_.allocated(more * kGranule);
  adopt_resident_units(region, end, span->end());
  occupy(region, end, span->end());
  trim();
  return true;
}

void SpanHeap::shrink(Span* span, std::size_t granules) {
  Span* tail = new_span(span->region, span->start + granules * kGranule, span->granules - granules);
  if (tail == nullptr) return;  // the block stays as long as it was
  tail->block = true;
  erase(span);
  span->granules = granules;
  enter(span, Kind::kSpan);
  enter(tail, Kind::kSpan);
  free(tail);
}

void SpanHeap::forget_pages(Span* block) {
  Region& region = *block->region;
  for (std::size_t unit = region.unit_of(block->start); unit <= region.unit_of(block->end() - 1);
       ++unit) {
    region.resident[unit] &= ~granule_bits(region, unit, block->start, block->end());
    region.split[unit] = region.resident[unit] != 0;
  }
}

}  // namespace plimsoll::heap

#include "blocks.h"

#include <cstring>

#include "check_mode.h"
#include "slices.h"
#include "span_heap.h"
#include "text.h"
#include "trace.h"

namespace plimsoll::heap {
// ---- Large blocks

Span* allocate_span(std::size_t bytes, std::size_t alignment, std::size_t phase,
                    std::size_t incoming) {
  if (bytes > kLargestRequest || alignment > kLargestRequest) return nullptr;
  const std::size_t granules = round_up(bytes, kGranule) / kGranule;
  if (alignment < kGranule) alignment = kGranule;
  const auto allocate = [&](bool trim_before) {
    Guard guard(heap_lock);
    if (trim_before) span_heap.trim(true);
    Span* span = span_heap.allocate(Use::kBlock, granules, alignment, phase, incoming);
    if (span != nullptr) span->bytes = bytes;
    return span;
  };
  if (Span* span = allocate(false)) return span;
  // The commit limit may be met by what is cached, or by what dead threads left.
  release_what_waits();
  return allocate(true);
}

namespace {

void free_span(Span* span) {
  if (span->guarded) commit(span->start + span->payload(), kKernelPage);
  span->guarded = false;
  Guard guard(heap_lock);
  span_heap.free(span);
}

bool resize_in_place(Span* span, std::size_t bytes) {
  const std::size_t granules = round_up(bytes, kGranule) / kGranule;
  Guard guard(heap_lock);
  if (granules > span->granules && !span_heap.grow(span, granules)) return false;
  if (granules < span->granules) span_heap.shrink(span, granules);
  span->bytes = bytes;
  return true;
}

// Pages move by their page tables when both places agree modulo a huge page; that also moves huge
// pages whole.
void* move_span(Span* from, std::size_t bytes) {
  const std::size_t phase = reinterpret_cast<std::uintptr_t>(from->start) % kHugePage;
  Span* to = allocate_span(bytes, kHugePage, phase, from->length());
  if (to == nullptr) return nullptr;
  if (move_pages(from->start, to->start, from->length())) {
    Guard guard(heap_lock);
    span_heap.forget_pages(from);
  } else {
    std::memcpy(to->start, from->start, from->bytes < bytes ? from->bytes : bytes);
  }
  free_span(from);
  return to->start;
}

// ---- Any block

[[noreturn]] void refuse(const char* call, const void* block, const Descriptor* found) {
  if (found == nullptr) die(call, block, "was not allocated here, or was freed already");
  if ((found->kind == Kind::kFreeSpan && static_cast<const Span*>(found)->start == block) ||
      (found->kind == Kind::kSlices && is_free_slice(found, block))) {
    die(call, block, "was freed already (double free)");
  }
  die(call, block, "is not the beginning of a block");
}

Found find_block(const void* block) {
  Found out{page_map.find(block), 0};
  if (out.descriptor == nullptr) return out;
  switch (out.descriptor->kind) {
    case Kind::kPage: {
      const auto& page = static_cast<const Page&>(*out.descriptor);
      const auto at = static_cast<std::size_t>(static_cast<const char*>(block) - page.start);
      if (at % page.block == 0 && at / page.block < page.carved) out.usable = page.block;
      break;
    }
    case Kind::kSlices:
      out.usable = slice_bytes(out.descriptor, block);
      break;
    case Kind::kSpan: {
      const auto& span = static_cast<const Span&>(*out.descriptor);
      if (span.start == block) out.usable = span.payload();
      break;
    }
    case Kind::kFreeSpan:
      break;
  }
  return out;
}

}  // namespace

Found require_block(const char* call, const void* block) {
  const Found found = find_block(block);
  if (found.usable == 0) refuse(call, block, found.descriptor);
  return found;
}

namespace {

void* allocate_small(std::size_t bytes) {
  const unsigned size_class = class_of(bytes);
  if (Pool* pool = pool_for_this_thread()) return pool->pop(size_class);
  Guard guard(common_lock);
  Pool* pool = common_pool();
  return pool == nullptr ? nullptr : pool->pop(size_class);
}

void* allocate_unchecked(std::size_t bytes, std::size_t alignment) {
  // Rounding to the alignment makes a small block's class a multiple of it (size_class.h).
  const std::size_t rounded =
      alignment <= kSmallLimit && bytes <= kSmallLimit ? round_up(bytes, alignment) : bytes;
  if (rounded <= kSmallLimit && alignment <= kSmallLimit) return allocate_small(rounded);
  void* block = nullptr;
  if (bytes <= kMediumLimit && alignment <= kMediumLimit) {
    block = allocate_slices(bytes, alignment);
  } else if (Span* span = allocate_span(bytes, alignment)) {
    block = span->start;
  }
  if (block != nullptr) trace_allocation(block, bytes);
  return block;
}

void release_small(Page* page, void* block) {
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  Pool* pool = pool_for_this_thread();
  if (pool == nullptr) {
    send_alone(page, address);
  } else if (page->owner.load(std::memory_order_relaxed) == pool) {
    pool->push(page, address);
  } else {
    pool->push_elsewhere(page, address);
  }
}

}  // namespace

void release_unchecked(void* block) {
  Descriptor* found = page_map.find(block);
  if (found == nullptr) refuse("free", block, found);
  if (found->kind == Kind::kPage) return release_small(static_cast<Page*>(found), block);
  trace_free(block);
  if (found->kind == Kind::kSlices) {
    if (!free_slices(found, block)) refuse("free", block, found);
  } else if (found->kind == Kind::kSpan && static_cast<Span*>(found)->start == block) {
    free_span(static_cast<Span*>(found));
  } else {
    refuse("free", block, found);
  }
}

namespace {

bool resize_where_it_is(const Found& found, void* block, std::size_t bytes) {
  if (found.descriptor->kind == Kind::kPage)
    return bytes <= found.usable && bytes >= found.usable / 2;
  bool done = false;
  if (found.descriptor->kind == Kind::kSlices) {
    done = bytes > kSmallLimit && bytes <= kMediumLimit &&
           resize_slices(found.descriptor, block, bytes);
  } else if (!static_cast<Span*>(found.descriptor)->guarded) {
    done = bytes > kMediumLimit && bytes <= kLargestRequest &&
           resize_in_place(static_cast<Span*>(found.descriptor), bytes);
  }
  if (done && tracing()) {
    trace_free(block);
    trace_allocation(block, bytes);
  }
  return done;
}

}  // namespace

void* allocate_slow(std::size_t bytes) {
  if (bytes <= kSmallLimit) [[likely]] {
    Pool* pool = this_pool;
    const unsigned size_class = class_of(bytes);
    if (void* block = pool->try_pop(size_class)) [[likely]]
      return block;
    if (void* block = pool->try_swap(size_class)) [[likely]]
      return block;
  }
  if (checking()) [[unlikely]]
    return checked_allocate(bytes, kWord);
  if (bytes <= kSmallLimit) [[likely]]
    return allocate_small(bytes);
  return allocate_unchecked(bytes, kWord);
}

// A block that is not of the thread's own pages.
void release_elsewhere(Descriptor* found, void* block) {
  Pool* pool = this_pool;
  if (found != nullptr && found->kind == Kind::kPage && pool->is_working) [[likely]] {
    return pool->push_elsewhere(static_cast<Page*>(found), reinterpret_cast<std::uintptr_t>(block));
  }
  release_slow(block);
}

void release_slow(void* block) {
  if (block == nullptr) return;
  if (checking()) [[unlikely]]
    return checked_release(block);
  release_unchecked(block);
}

void* allocate_aligned(std::size_t bytes, std::size_t alignment) {
  if (checking()) [[unlikely]]
    return checked_allocate(bytes, alignment);
  if (alignment <= kWord) return allocate(bytes);
  return allocate_unchecked(bytes == 0 ? alignment : bytes, alignment);
}

void* allocate_zeroed(std::size_t bytes) {
  void* block = allocate(bytes);
  if (block == nullptr) return nullptr;
  if (bytes > kMediumLimit && !checking()) {
    const auto* span = static_cast<const Span*>(page_map.find(block));
    if (span->zero) return block;
  }
  return std::memset(block, 0, bytes);
}

void* reallocate(void* block, std::size_t bytes) {
  if (checking()) [[unlikely]]
    return checked_reallocate(block, bytes);
  const Found found = require_block("realloc", block);
  if (resize_where_it_is(found, block, bytes)) return block;
  if (found.descriptor->kind == Kind::kSpan && bytes > found.usable &&
      !static_cast<Span*>(found.descriptor)->guarded) {
    void* moved = move_span(static_cast<Span*>(found.descriptor), bytes);
    if (moved != nullptr && tracing()) {
      trace_free(block);
      trace_allocation(moved, bytes);
    }
    return moved;
  }
  void* moved = allocate(bytes);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, block, found.usable < bytes ? found.usable : bytes);
  release(block);
  return moved;
}

std::size_t usable_bytes(const void* block) {
  if (checking()) [[unlikely]]
    return checked_bytes(block);
  return require_block("malloc_usable_size", block).usable;
}

}  // namespace plimsoll::heap

#include "check_mode.h"

#include <sys/auxv.h>

#include <cstring>

#include "blocks.h"
#include "span_heap.h"
#include "text.h"

namespace plimsoll::heap {

constinit std::atomic<bool> check_mode{false};

namespace {

constexpr unsigned char kCanary = 0xCA;
constexpr unsigned char kFreed = 0xDF;
constexpr std::size_t kTrailer = 16;  // at least one canary word, and the size

std::uint64_t* size_word(const void* block, std::size_t usable) {
  return reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::uintptr_t>(block) + usable - 8);
}

// The kernel's random bytes for this process, which stand at any address.
std::uint64_t random_of_process() {
  std::uint64_t out = 0x9E3779B97F4A7C15ull;
  if (const auto* random = reinterpret_cast<const char*>(::getauxval(AT_RANDOM)))
    std::memcpy(&out, random + sizeof out, sizeof out);
  return out;
}

std::uint64_t mask(const void* block) {
  return random_of_process() ^ reinterpret_cast<std::uintptr_t>(block);
}

bool is_checked_page(const Found& found) {
  return found.descriptor->kind == Kind::kPage &&
         found.descriptor->owner.load(std::memory_order_relaxed) == common_pool();
}

bool is_guarded(const Found& found) {
  return found.descriptor->kind == Kind::kSpan &&
         static_cast<const Span*>(found.descriptor)->guarded;
}

void require_canary(const char* call, const void* block, std::size_t bytes, std::size_t end) {
  auto* at = static_cast<const unsigned char*>(block);
  for (std::size_t i = bytes; i < end; ++i) {
    if (at[i] == kCanary) continue;
    Text what;
    what << "the block has " << std::uint64_t{bytes} << " bytes, and the one at offset "
         << std::uint64_t{i} << " behind them was overwritten";
    die(call, block, what.c_str());
  }
}

// The size as requested; aborts when the block's canary was hit.
std::size_t require_intact(const char* call, const void* block, const Found& found) {
  if (is_guarded(found)) {
    const auto* span = static_cast<const Span*>(found.descriptor);
    require_canary(call, block, span->bytes, span->payload());
    return span->bytes;
  }
  if (is_freed(reinterpret_cast<std::uintptr_t>(block)))
    die(call, block, "was freed already (double free)");
  const std::uint64_t bytes = *size_word(block, found.usable) ^ mask(block);
  if (bytes > found.usable - kTrailer)
    die(call, block, "what follows the block was overwritten, its size too");
  require_canary(call, block, bytes, found.usable - 8);
  return bytes;
}

void* guarded_span(std::size_t bytes, std::size_t alignment) {
  Span* span = allocate_span(bytes + 2 * kKernelPage, alignment);
  if (span == nullptr) return nullptr;
  span->bytes = bytes;
  span->guarded = true;
  protect(span->start + span->payload(), kKernelPage);
  std::memset(span->start + bytes, kCanary, span->payload() - bytes);
  return span->start;
}

}  // namespace

void begin_checking() {
  use_common_pool_only();
  check_mode.store(true);
}

void* checked_allocate(std::size_t bytes, std::size_t alignment) {
  if (bytes > kLargestRequest) return nullptr;
  if (alignment > kKernelPage || round_up(bytes + kTrailer, alignment) > kSmallLimit)
    return guarded_span(bytes, alignment);
  const unsigned size_class = class_of(round_up(bytes + kTrailer, alignment));
  Guard guard(common_lock);
  Pool* pool = common_pool();
  auto* block = pool == nullptr ? nullptr : static_cast<unsigned char*>(pool->pop(size_class));
  if (block == nullptr) return nullptr;
  const std::size_t usable = block_bytes(size_class);
  std::memset(block + bytes, kCanary, usable - 8 - bytes);
  *size_word(block, usable) = bytes ^ mask(block);
  return block;
}

void checked_release(void* block) {
  const Found found = require_block("free", block);
  if (is_guarded(found)) {
    require_intact("free", block, found);
    return release_unchecked(block);
  }
  Guard guard(common_lock);
  if (!is_checked_page(found)) return release_unchecked(block);
  require_intact("free", block, found);
  std::memset(block, kFreed, found.usable);
  common_pool()->push(static_cast<Page*>(found.descriptor),
                      reinterpret_cast<std::uintptr_t>(block));
  common_pool()->settle_waiting();
}

std::size_t checked_bytes(const void* block) {
  const Found found = require_block("malloc_usable_size", block);
  Guard guard(common_lock);
  return is_guarded(found) || is_checked_page(found)
             ? require_intact("malloc_usable_size", block, found)
             : found.usable;
}

void* checked_reallocate(void* block, std::size_t bytes) {
  const std::size_t had = checked_bytes(block);
  void* moved = checked_allocate(bytes, kWord);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, block, had < bytes ? had : bytes);
  checked_release(block);
  return moved;
}

}  // namespace plimsoll::heap

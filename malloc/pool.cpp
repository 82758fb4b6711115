#include "pool.h"

#include <sys/auxv.h>

#include "metadata.h"
#include "page_source.h"
#include "span_heap.h"
#include "text.h"

namespace plimsoll::heap {

constinit Lock common_lock;

namespace {

constexpr std::size_t kCarveBytes = 4096;
constexpr std::size_t kChainBytes = 4 << 10;
constexpr unsigned kRefillsBetweenFlushes = 64;

constinit Pool* idle_pools = nullptr;  // under heap_lock
constinit Pool* all_pools = nullptr;
constinit Pool* common = nullptr;
constinit std::uint64_t key_of_process = 0;

}  // namespace

std::uint64_t link_key() {
  if (key_of_process == 0) {
    // The kernel's random bytes for this process; odd bits in every byte of the address part.
    // They stand at any address.
    std::uint64_t seed = 0x9E3779B97F4A7C15ull;
    if (const auto* random = reinterpret_cast<const char*>(::getauxval(AT_RANDOM)))
      __builtin_memcpy(&seed, random + sizeof seed, sizeof seed);
    key_of_process = (seed | std::uint64_t{1} << 62) & ~std::uint64_t{1};
  }
  return key_of_process;
}

// ---- Lists and pages

void Pool::settle_waiting() {
  const Waiting own = waiting;
  const Waiting remote = waiting_remote;
  waiting = waiting_remote = {};
  if (own.page != nullptr) settle(own.page, own.block);
  if (remote.page != nullptr) settle_remote(remote.page, remote.block);
}

void* Pool::refill(unsigned size_class) {
  settle_waiting();
  if (!pending.empty()) collect();
  if (++refills % kRefillsBetweenFlushes == 0) flush_chains();
  Page* page = current[size_class];
  if (page != nullptr) {
    if (is_end(page->freed) && page->carved < page->capacity) carve(page);
    if (!is_end(page->freed)) return take_list(page);
    put_to_sleep(page);
  }
  page = available[size_class];
  if (page != nullptr) {
    remove_available(page);
  } else {
    flush_chains();
    if (++pages_taken % 32 == 0) collect_idle_pools();
    page = acquire_page(size_class, this);
    current[size_class] = page;
    if (page == nullptr) return nullptr;
    carve(page);
  }
  page->state = PageState::kCurrent;
  current[size_class] = page;
  return take_list(page);
}

void* Pool::take_list(Page* page) {
  handed_out.add(page->carved - (page->countdown + page->sleeping));
  page->countdown = page->carved;
  page->sleeping = 0;
  list[page->size_class] = page->freed;
  page->freed = page->end_mark();
  return pop(page->size_class);
}

// Links the next blocks that were never touched, in the order of their addresses. Only when `freed`
// is empty.
void Pool::carve(Page* page) {
  std::uint32_t count = static_cast<std::uint32_t>(kCarveBytes / page->block);
  if (count == 0) count = 1;
  if (count > page->capacity - page->carved) count = page->capacity - page->carved;
  const auto first =
      reinterpret_cast<std::uintptr_t>(page->start) + std::size_t{page->carved} * page->block;
  std::uintptr_t block = first;
  for (std::uint32_t i = 1; i < count; ++i, block += page->block)
    set_next(block, block + page->block, key);
  set_next(block, page->end_mark(), key);
  page->freed = first;
  page->carved += count;
}

void Pool::put_to_sleep(Page* page) {
  // All blocks are outstanding; two have to come back before the page is of use again. (Sixteen
  // cost a third more memory on random replacement, and saved nothing.)
  constexpr std::uint32_t wake = 2;
  const std::uint32_t outstanding = page->countdown;
  current[page->size_class] = nullptr;
  page->state = PageState::kAsleep;
  page->countdown = wake < outstanding ? wake : outstanding;
  page->sleeping = outstanding - page->countdown;
}

void Pool::make_available(Page* page) {
  Page*& head = available[page->size_class];
  page->state = PageState::kAvailable;
  page->previous = nullptr;
  page->next = head;
  if (head != nullptr) head->previous = page;
  head = page;
}

void Pool::remove_available(Page* page) {
  (page->previous != nullptr ? page->previous->next : available[page->size_class]) = page->next;
  if (page->next != nullptr) page->next->previous = page->previous;
}

void Pool::counted_down(Page* page) {
  if (page->state == PageState::kCurrent) return;
  if (page->state == PageState::kAsleep) {
    page->countdown = page->sleeping;
    page->sleeping = 0;
    make_available(page);
    if (page->countdown > 0) return;
  }
  remove_available(page);
  release_page(page);
}

void Pool::release_free_pages() {
  for (unsigned size_class = 0; size_class < kClasses; ++size_class) {
    Page* page = current[size_class];
    if (page == nullptr) continue;
    // The list goes back to its page first.
    while (!is_end(list[size_class])) {
      const std::uintptr_t block = list[size_class];
      list[size_class] = next_of(block, key);
      set_next(block, page->freed, key);
      page->freed = block;
      --page->countdown;
    }
    if (page->countdown > 0) continue;
    current[size_class] = nullptr;
    release_page(page);
  }
}

// ---- Frees from other threads

void Pool::settle_remote(Page* page, std::uintptr_t block) {
  // Another thread's lists cannot be walked to be sure; the word alone speaks, wrong once in 2^46.
  if (looks_freed(block, key)) [[unlikely]]
    refuse_double_free(block);
  auto& chain = chains[reinterpret_cast<std::uintptr_t>(page) / sizeof(Page) % kChains];
  if (chain.page == page) {
    set_next(block, chain.head, key);
    chain.head = block;
    if (++chain.count * std::size_t{page->block} < kChainBytes) return;
  }
  const auto full = chain;
  chain.page = nullptr;
  if (full.page != page) {
    chain = {page, block, block, 1};
    set_next(block, page->end_mark(), key);
    if (full.page == nullptr) return;
  }
  remote_frees.add(full.count);
  const auto link = [&](std::uintptr_t behind) {
    set_next(full.tail, behind != 0 ? behind : full.page->end_mark(), key);
  };
  if (full.page->remote.push({full.head, full.count}, link)) {
    full.page->owner.load(std::memory_order_relaxed)->pending.push(full.page);
  }
}

void Pool::flush_chains() {
  for (auto& chain : chains) {
    if (chain.page == nullptr) continue;
    Page* page = chain.page;
    chain.page = nullptr;
    remote_frees.add(chain.count);
    const auto link = [&](std::uintptr_t behind) {
      set_next(chain.tail, behind != 0 ? behind : page->end_mark(), key);
    };
    if (page->remote.push({chain.head, chain.count}, link)) {
      page->owner.load(std::memory_order_relaxed)->pending.push(page);
    }
  }
}

void push_remote_alone(Page* page, std::uintptr_t block) {
  const std::uint64_t key = link_key();
  const auto link = [&](std::uintptr_t behind) {
    set_next(block, behind != 0 ? behind : page->end_mark(), key);
  };
  if (page->remote.push({block, 1}, link))
    page->owner.load(std::memory_order_relaxed)->pending.push(page);
}

void Pool::collect() {
  pending.take([this](Page* page) { take_back(page, page->remote.take()); });
}

void Pool::take_back(Page* page, Chain chain) {
  if (is_end(page->freed)) {
    page->freed = chain.head;
  } else {
    std::uintptr_t tail = chain.head;
    for (unsigned i = 1; i < chain.count; ++i) tail = next_of(tail, key);
    set_next(tail, page->freed, key);
    page->freed = chain.head;
  }
  if (chain.count < page->countdown) {
    page->countdown -= chain.count;
    return;
  }
  // an asleep page; otherwise nothing is left over
  page->sleeping -= chain.count - page->countdown;
  page->countdown = 0;
  counted_down(page);
}

// ---- Errors

namespace {

bool is_on_list(std::uintptr_t head, std::uintptr_t block, const Page* page, std::uint64_t key) {
  for (std::uint32_t i = 0; i <= page->capacity && head != 0 && !is_end(head); ++i) {
    if (head == block) return true;
    if ((head ^ reinterpret_cast<std::uintptr_t>(page->start)) >> kPageWindowBits != 0)
      return false;
    head = next_of(head, key);
  }
  return false;
}

}  // namespace

void Pool::refuse_double_free(std::uintptr_t block) {
  die("free", reinterpret_cast<void*>(block), "was freed already (double free)");
}

// The block's word looks like a link: its page's lists are walked to be sure.
void Pool::settle_suspect(Page* page, std::uintptr_t block) {
  if (is_on_list(page->freed, block, page, key) ||
      is_on_list(list[page->size_class], block, page, key)) {
    refuse_double_free(block);
  }
  push_own(page, block);
}

// ---- Pools

Pool* take_pool() {
  Guard guard(heap_lock);
  Pool* pool = idle_pools;
  if (pool != nullptr) {
    idle_pools = pool->next;
    return pool;
  }
  pool = new_metadata<Pool>();
  if (pool == nullptr) return nullptr;
  pool->key = link_key();
  pool->next_of_all = all_pools;
  all_pools = pool;
  return pool;
}

void retire_pool(Pool* pool) {
  pool->settle_waiting();
  pool->flush_chains();
  pool->collect();
  pool->release_free_pages();
  Guard guard(heap_lock);
  pool->next = idle_pools;
  idle_pools = pool;
}

void collect_idle_pools() {
  // All idle pools are taken out, looked through without the lock, and put back.
  Pool* taken;
  {
    Guard guard(heap_lock);
    taken = idle_pools;
    idle_pools = nullptr;
  }
  if (taken == nullptr) return;
  Pool* last = taken;
  for (Pool* pool = taken; pool != nullptr; pool = pool->next) {
    pool->collect();
    last = pool;
  }
  Guard guard(heap_lock);
  last->next = idle_pools;
  idle_pools = taken;
}

Pool* common_pool() {
  if (common == nullptr) common = take_pool();
  return common;
}

PoolTotals pool_totals() {
  PoolTotals out;
  Guard guard(heap_lock);
  for (const Pool* pool = all_pools; pool != nullptr; pool = pool->next_of_all) {
    ++out.pools;
    out.blocks += pool->handed_out.value();
    out.remote_frees += pool->remote_frees.value();
  }
  return out;
}

}  // namespace plimsoll::heap

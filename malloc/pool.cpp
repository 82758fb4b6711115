#include "pool.h"

#include <algorithm>
#include <utility>

#include "metadata.h"
#include "page_source.h"
#include "span_heap.h"
#include "text.h"

namespace plimsoll::heap {

constinit Lock pools_lock;
constinit Lock common_lock;

namespace {

constexpr unsigned kWarmPools = 8;

constinit Pool* idle_pools = nullptr;  // under pools_lock
constinit unsigned idle_count = 0;
constinit Pool* all_pools = nullptr;
constinit Pool* common = nullptr;

}  // namespace

// ---- Lists and pages

void Pool::settle_waiting_own() {
  const std::size_t oldest = oldest_waiting / sizeof(Waiting);
  for (std::size_t i = 0; i < kWaiting; ++i) {
    const Waiting own = std::exchange(waiting[(oldest + i) % kWaiting], Waiting{});
    if (own.page != nullptr) settle(own.page, own.block);
  }
}

void Pool::settle_waiting() {
  settle_waiting_own();
  for (Magazine& magazine : magazines) spill(magazine, magazine.count);
}

void* Pool::refill(unsigned size_class) {
  if (void* block = try_exchanged(size_class)) return block;
  collect();
  if (++refills % kRefillsBetweenFlushes == 0) send_parcels();
  if (void* block = try_pop(size_class)) return block;
  Page* page = current[size_class];
  if (page != nullptr) {
    if (page->freed == 0 && page->carved < page->capacity) {
      settle_waiting_own();
      if (void* block = try_pop(size_class)) return block;
      if (page->freed == 0) carve(page);
    }
    if (page->freed != 0) return take_list(page);
    put_to_sleep(page);
  }
  page = available[size_class];
  if (page != nullptr) {
    remove_available(page);
    page->sleeping = page->carved - page->countdown;
    page->countdown = Page::kMostFrees;
  } else {
    send_all();
    if (void* block = try_pop(size_class)) return block;  // of those that waited
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

void Pool::count_handed_out() {
  for (Page* page : current) {
    if (page != nullptr && page->home != &page->freed) count_handed_out(page);
  }
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
  for (std::uint32_t i = 1; i < count; ++i, block += page->block) {
    set_next(block, block + page->block);
  }
  set_next(block, 0);
  page->freed = first;
  page->carved += count;
  page->sleeping += count;
  carved_bytes += std::size_t{count} * page->block;
  blocks_wait = carved_bytes >= kCachedBytes;
}

// A page that is wholly free.
void Pool::give_back(Page* page) {
  carved_bytes -= std::size_t{page->carved} * page->block;
  release_page(page);
  // Or blocks would wait for ever.
  if (std::exchange(blocks_wait, carved_bytes >= kCachedBytes) && !blocks_wait)
    settle_waiting_own();
}

void Pool::put_to_sleep(Page* page) {
  // All blocks are outstanding; a thirty-second of the page's, and two at least, have to come back
  // before it is of use again: a page of which each free woke it gave its two blocks and slept
  // again, and a tenth of the time of random replacement (bench/malloc's pareto) went into that.
  // (Sixteen of any size of blocks cost a third more memory there.)
  const std::uint32_t wake = std::clamp<std::uint32_t>(page->capacity / 32, 2, 64);
  const std::uint32_t outstanding = page->carved;
  count_handed_out(page);
  current[page->size_class] = nullptr;
  page->home = &page->freed;
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
  if (page->state == PageState::kCurrent) return count_handed_out(page);
  if (page->state == PageState::kAsleep) {
    page->countdown = page->sleeping;
    page->sleeping = 0;
    make_available(page);
    if (page->countdown > 0) return;
  }
  remove_available(page);
  give_back(page);
}

void Pool::release_free_pages() {
  for (unsigned size_class = 0; size_class < kClasses; ++size_class) {
    Page* page = current[size_class];
    // The lists go back first: to this page, or home.
    std::uintptr_t& rest = magazines[size_class].rest;
    while (list[size_class] != 0 || rest != 0) {
      std::uintptr_t& head = list[size_class] != 0 ? list[size_class] : rest;
      const std::uintptr_t block = head;
      head = next_of(block);
      auto* from = static_cast<Page*>(page_map.find(reinterpret_cast<void*>(block)));
      if (from == page) {
        set_next(block, page->freed);
        page->freed = block;
      } else {
        clear_mark(block);
        go_home(block);
      }
    }
    if (page == nullptr) continue;
    std::uint32_t free = 0;
    for (std::uintptr_t block = page->freed; block != 0; block = next_of(block)) ++free;
    count_handed_out(page);
    page->home = &page->freed;
    if (free < page->carved) continue;
    current[size_class] = nullptr;
    give_back(page);
  }
  send_all();
}

// ---- Frees from other threads

void Pool::push_unexchanged(Page* page, std::uintptr_t block, bool own) {
  if (own) {
    set_apart(page, false);
    return push(page, block);
  }
  send(page, block);
}

void* Pool::take_magazine(unsigned size_class) {
  string_magazine(size_class);
  return try_pop(size_class);
}

// The magazine becomes the class's list, which is empty or was put aside.
void Pool::string_magazine(unsigned size_class) {
  Magazine& magazine = magazines[size_class];
  const unsigned count = magazine.count;
  std::uintptr_t first = 0;
  for (unsigned i = 0; i < count; ++i) {
    const std::uintptr_t block = magazine.blocks[i];
    require_not_freed(block);
    set_next(block, first);
    first = block;
  }
  magazine.count = 0;
  note_refill(size_class, count);
  handed_out.add(count);
  // The current page's frees do not mix with them: their page would not get them back.
  if (Page* own = current[size_class]) own->home = &own->freed;
  magazine.page_gave_list = false;
  list[size_class] = first;
}

// For a magazine that is full. Its blocks were freed later than those of a list that a page gave.
void Pool::make_room(unsigned size_class) {
  Magazine& magazine = magazines[size_class];
  if (!magazine.page_gave_list || magazine.rest != 0 || list[size_class] == 0)
    return spill(magazine, magazine.count / 2u + 1);
  magazine.rest = list[size_class];
  string_magazine(size_class);
}

// The oldest blocks of a magazine leave it.
void Pool::spill(Magazine& magazine, unsigned count) {
  if (count == 0) return;
  std::uintptr_t blocks[Magazine::kMost];
  std::copy_n(magazine.blocks, count, blocks);
  std::copy(magazine.blocks + count, magazine.blocks + magazine.count, magazine.blocks);
  magazine.count = static_cast<std::uint16_t>(magazine.count - count);
  for (unsigned i = 0; i < count; ++i) go_home(blocks[i]);
}

void Pool::go_home(std::uintptr_t block) {
  Page* page = page_of(block);
  if (page->owner.load(std::memory_order_relaxed) != this) return send(page, block);
  settle(page, block);
}

void Pool::set_apart(Page* page, bool apart) {
  page->apart = apart;
  for (unsigned i = 0; i < page->granules; ++i)
    page_map.set_owner(page->start + i * kGranule, apart ? nullptr : this);
}

void Pool::send(Page* page, std::uintptr_t block) {
  Pool* to = page->owner.load(std::memory_order_relaxed);
  const std::uint64_t mixed = reinterpret_cast<std::uintptr_t>(to) * 0x9E3779B97F4A7C15ull;
  Outgoing& out = outgoing[mixed >> 60];
  if (out.to != to) [[unlikely]] {
    if (out.to != nullptr) send_off(out);
    out.to = to;
  }
  out.bytes += page->block;
  if (out.places == 0) {
    add_node(out, page, block);
  } else {
    *out.next_place++ = block;
    --out.places;
  }
  if (out.bytes >= kSentBytes || (out.places == 0 && out.count >= PoolParcel::kMost)) [[unlikely]]
    send_off(out);
}

// Addresses that a block can carry.
unsigned Pool::places_of(const Page* page) {
  return std::min<unsigned>(page->block / sizeof(std::uint64_t) - 2, PoolParcel::kMost);
}

// A parcel that is at home, or else the block itself.
void Pool::add_node(Outgoing& out, Page* page, std::uintptr_t block) {
  std::uintptr_t node = block;
  PoolParcel* parcel = parcels != nullptr ? &parcels[next_parcel % kParcels] : nullptr;
  if (parcel != nullptr && parcel->take_out()) {
    ++next_parcel;
    node = reinterpret_cast<std::uintptr_t>(parcel);
    parcel->blocks[0] = block;
    parcel->link = out.first;
    out.next_place = parcel->blocks + 1;
    out.places = PoolParcel::kMost - 1;
  } else {
    require_not_freed(block);
    set_next(block, out.first);
    out.next_place = words_of(block) + 2;
    out.places = places_of(page);
  }
  out.count += 1 + out.places;
  out.first = node;
  if (out.last == 0) out.last = node;
}

void Pool::send_off(Outgoing& out) {
  if (out.places != 0) *out.next_place = 0;
  remote_frees.add(out.count - out.places);
  const auto link = [&](std::uintptr_t behind) { *link_of(out.last) = behind; };
  out.to->remote.push(out.first, link);
  out = {};
}

void Pool::send_all() {
  settle_waiting();
  send_parcels();
}

void Pool::send_parcels() {
  for (Outgoing& out : outgoing) {
    if (out.to != nullptr) send_off(out);
  }
}

void send_alone(Page* page, std::uintptr_t block) {
  Pool::require_not_freed(block);
  if (page->block > 2 * sizeof(std::uint64_t)) words_of(block)[2] = 0;
  const auto link = [&](std::uintptr_t behind) { set_next(block, behind); };
  page->owner.load(std::memory_order_relaxed)->remote.push(block, link);
}

void Pool::collect() {
  if (remote.empty()) return;
  std::uintptr_t node = remote.take();
  while (node != 0) {
    const std::uintptr_t behind = next_node_of(node);
    __builtin_prefetch(reinterpret_cast<void*>(behind));
    if (is_parcel(node)) {
      auto* parcel = reinterpret_cast<PoolParcel*>(node);
      take_home(parcel->blocks, PoolParcel::kMost);
      parcel->give_back();
    } else {
      Page* page = own_page_of(node);
      take_home(words_of(node) + 2, places_of(page));
      push_own(page, node);
    }
    node = behind;
  }
}

// Neighbours are mostly of the same page: they go home together.
void Pool::take_home(const std::uintptr_t* blocks, unsigned most) {
  constexpr unsigned kAhead = 8;
  for (unsigned i = 0; i < most && i < kAhead && blocks[i] != 0; ++i) prefetch_to_write(blocks[i]);
  unsigned i = 0;
  while (i < most && blocks[i] != 0) {
    const std::uintptr_t last = blocks[i];
    Page* page = own_page_of(last);
    std::uintptr_t first = 0;
    const unsigned begin = i;
    do {
      const std::uintptr_t block = blocks[i++];
      if (i + kAhead <= most) prefetch_to_write(blocks[i + kAhead - 1]);
      require_not_freed(block);
      set_next(block, first);
      first = block;
    } while (i < most && (blocks[i] ^ last) / kGranule == 0);
    take_back(page, first, last, i - begin);
  }
}

void Pool::take_back(Page* page, std::uintptr_t first, std::uintptr_t last, unsigned count) {
  if (page->freed != 0) set_next(last, page->freed);
  page->freed = first;
  if (is_exchanged(page) && !page->apart) set_apart(page, true);
  if (page->state == PageState::kCurrent) {
    page->sleeping += count;
    return;
  }
  if (count < page->countdown) {
    page->countdown -= count;
    return;
  }
  // an asleep page; otherwise nothing is left over
  page->sleeping -= count - page->countdown;
  page->countdown = 0;
  counted_down(page);
}

// A block that was freed twice may be of a page that is another's by now, or nobody's.
Page* Pool::page_of(std::uintptr_t block) {
  Descriptor* found = page_map.find(reinterpret_cast<void*>(block));
  if (found == nullptr || found->kind != Kind::kPage) [[unlikely]]
    refuse_double_free(block);
  return static_cast<Page*>(found);
}

Page* Pool::own_page_of(std::uintptr_t block) const {
  Page* page = page_of(block);
  if (page->owner.load(std::memory_order_relaxed) != this) [[unlikely]]
    refuse_double_free(block);
  return page;
}

void Pool::refuse_double_free(std::uintptr_t block) {
  die("free", reinterpret_cast<void*>(block), "was freed already (double free)");
}

void Pool::refuse_settled(std::uintptr_t block) {
  refuse_double_free(block);
}

// ---- Pools

Pool* take_pool() {
  Guard pools(pools_lock);
  Pool* pool = idle_pools;
  if (pool != nullptr) {
    idle_pools = pool->next;
    --idle_count;
    return pool;
  }
  Guard guard(heap_lock);
  constexpr std::size_t kPlaces = Magazine::kMost * sizeof(std::uintptr_t);
  auto* places = static_cast<char*>(metadata_bytes(kClasses * kPlaces, 64));
  pool = places == nullptr ? nullptr : new_metadata<Pool>();
  if (pool == nullptr) return nullptr;
  pool->is_working = true;
  for (unsigned i = 0; i < kClasses; ++i)
    pool->magazines[i].blocks = reinterpret_cast<std::uintptr_t*>(places + i * kPlaces);
  pool->parcels = static_cast<Pool::PoolParcel*>(
      metadata_bytes(Pool::kParcels * sizeof(Pool::PoolParcel), alignof(Pool::PoolParcel)));
  pool->next_of_all = all_pools;
  all_pools = pool;
  return pool;
}

void retire_pool(Pool* pool) {
  pool->send_all();
  pool->collect();
  pool->count_handed_out();
  Guard guard(pools_lock);
  if (idle_count >= kWarmPools) pool->release_free_pages();
  pool->next = idle_pools;
  idle_pools = pool;
  ++idle_count;
}

void collect_idle_pools() {
  Guard guard(pools_lock);
  for (Pool* pool = idle_pools; pool != nullptr; pool = pool->next) pool->collect();
}

void release_idle_pools() {
  Guard guard(pools_lock);
  for (Pool* pool = idle_pools; pool != nullptr; pool = pool->next) {
    pool->collect();
    pool->release_free_pages();
  }
}

Pool* common_pool() {
  if (common == nullptr) common = take_pool();
  return common;
}

PoolTotals pool_totals() {
  PoolTotals out;
  Guard guard(pools_lock);
  for (const Pool* pool = all_pools; pool != nullptr; pool = pool->next_of_all) {
    ++out.pools;
    out.blocks += pool->handed_out.value();
    out.remote_frees += pool->remote_frees.value();
  }
  return out;
}

}  // namespace plimsoll::heap

// The allocator's parts, linked beside the program's own malloc; also what TSan looks at.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "footprint.h"
#include "kernel.h"
#include "machine_limits.h"
#include "magazine.h"
#include "plimsoll_malloc.h"
#include "pool.h"
#include "size_class.h"
#include "slices.h"
#include "span_heap.h"
#include "text.h"

namespace plimsoll::heap {
namespace {

// From now on this thread gets ENOMEM for the system call.
void refuse_this_thread(unsigned system_call) {
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, system_call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(steps), steps};
  ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

TEST(SizeClass, RoundsUpByAtMostANinth) {
  for (std::size_t bytes = 1; bytes <= kSmallLimit; ++bytes) {
    const unsigned size_class = class_of(bytes);
    ASSERT_LT(size_class, kClasses);
    ASSERT_GE(block_bytes(size_class), bytes);
    if (size_class > 1) {
      ASSERT_LT(block_bytes(size_class - 1), bytes);
    }
    if (bytes > kDirectLimit) {
      ASSERT_LE(block_bytes(size_class) - bytes, bytes / 8);
    }
  }
}

TEST(SizeClass, KeepsEveryPowerOfTwoThatDividesTheSize) {
  for (std::size_t alignment = 16; alignment <= kSmallLimit; alignment *= 2) {
    for (std::size_t bytes = alignment; bytes <= kSmallLimit; bytes += alignment) {
      ASSERT_EQ(block_bytes(class_of(bytes)) % alignment, 0u) << bytes << " at " << alignment;
    }
  }
}

TEST(Magazine, IsUsedOnceHalfAndUntilLessThanAnEighthAreFreedForOthers) {
  Magazine magazine;
  magazine.freed = 1000;
  magazine.note_refill(Magazine::kWindow - 1, 5);
  EXPECT_FALSE(magazine.is_exchanged());  // nothing was allocated before
  magazine.note_refill(1, 5);
  EXPECT_FALSE(magazine.is_exchanged());  // one too few
  magazine.freed = Magazine::kWindow / 2 - 1;
  magazine.note_refill(Magazine::kWindow, 5);
  EXPECT_FALSE(magazine.is_exchanged());
  magazine.freed = Magazine::kWindow / 2;
  magazine.note_refill(Magazine::kLongWindow, 5);
  EXPECT_TRUE(magazine.is_exchanged());
  magazine.freed = Magazine::kLongWindow / 8;
  magazine.note_refill(Magazine::kLongWindow, 5);
  EXPECT_TRUE(magazine.is_exchanged());
  magazine.freed = Magazine::kLongWindow / 8 - 1;
  magazine.note_refill(1, 5);
  EXPECT_FALSE(magazine.is_exchanged());
}

TEST(Magazine, HoldsWhatSixteenKibibytesAreAndNoMoreThanItsPlaces) {
  EXPECT_EQ(kMagazineBlocks[class_of(16)], Magazine::kMost);
  EXPECT_EQ(kMagazineBlocks[class_of(1024)], 16u);
  EXPECT_EQ(kMagazineBlocks[class_of(20000)], 0u);
}

// A block on a list is known whatever follows it; data, zero and pointers are not taken for links.
TEST(Links, AreRecognisedAndNothingElseIs) {
  constexpr std::size_t kBytes = 48;
  alignas(64) static std::uint64_t memory[2][512];
  const std::uint64_t key = link_key();
  EXPECT_EQ(key % 2, 1u);
  Page page;
  page.start = reinterpret_cast<char*>(memory[0]);
  page.block = kBytes;
  page.capacity = sizeof memory[0] / kBytes;
  const auto at = [&](std::size_t i) {
    return reinterpret_cast<std::uintptr_t>(memory[0]) + i * kBytes;
  };
  const auto elsewhere = reinterpret_cast<std::uintptr_t>(memory[1]);
  for (std::size_t i = 0; i + 1 < page.capacity; ++i) {
    for (const std::uintptr_t next : {at(i + 1), at(0), std::uintptr_t{0}, kCarrier}) {
      set_next(at(i), next, key);
      EXPECT_EQ(next_of(at(i), key), next);
      EXPECT_TRUE(looks_freed(at(i), key) && is_freed(&page, at(i), key));
      set_next(at(i + 1), next, key);
      words_of(at(i))[0] = words_of(at(i + 1))[0];  // copied from another block
      EXPECT_FALSE(is_freed(&page, at(i), key));
      clear_link(at(i + 1));
    }
    set_next_elsewhere(at(i), elsewhere, key);
    EXPECT_EQ(next_of(at(i), key), elsewhere);
    EXPECT_TRUE(is_freed(&page, at(i), key));
    // The second word stays when the block is used; zero and pointers in the first are no links.
    clear_link(at(i));
    EXPECT_FALSE(is_freed(&page, at(i), key));
    words_of(at(i))[0] = at(i + 1);
    EXPECT_FALSE(is_freed(&page, at(i), key));
    // Not even data that has the upper bits of a link.
    words_of(at(i))[0] = (elsewhere + kWord) ^ link_mask(at(i), key);
    EXPECT_TRUE(looks_freed(at(i), key));
    EXPECT_FALSE(is_freed(&page, at(i), key));
  }
}

// A block that carried others home is used again without its second word being touched. Where that
// was the last node of a list, it must not vouch for a first word that is 0.
TEST(Links, OfCarriersAreNotTakenForThoseOfFreedBlocks) {
  alignas(64) static std::uint64_t memory[64];
  const auto block = reinterpret_cast<std::uintptr_t>(memory);
  // A key with which a first word of 0 has the upper bits of this block's link.
  const std::uint64_t key = link_mask(block, (std::uint64_t{1} << 47) - 1);
  Page page;
  page.start = reinterpret_cast<char*>(memory);
  page.block = 64;
  page.capacity = sizeof memory / 64;
  for (const std::uintptr_t behind : {std::uintptr_t{0}, block + 64}) {
    set_next(block, kCarrier, key);
    set_next_node(block, behind, key);
    EXPECT_EQ(next_node_of(block, key), behind);
    EXPECT_TRUE(is_freed(&page, block, key));
    clear_link(block);
    EXPECT_TRUE(looks_freed(block, key));
    EXPECT_FALSE(is_freed(&page, block, key));
  }
}

TEST(Footprint, KeepsASixteenthOfTheRecentPeak) {
  Footprint footprint;
  constexpr std::size_t kMiB = 1 << 20;
  footprint.at_time(10 * Footprint::kWindowNs);
  footprint.allocated(1600 * kMiB);
  footprint.freed(1000 * kMiB);
  footprint.cache_grew(1000 * kMiB);
  EXPECT_EQ(footprint.bound(), 1100 * kMiB);  // 1600 + 100 - 600
  EXPECT_EQ(footprint.excess(), 0u);
  footprint.at_time(11 * Footprint::kWindowNs);
  EXPECT_EQ(footprint.excess(), 0u);  // the peak is a second old
  footprint.at_time(12 * Footprint::kWindowNs);
  EXPECT_EQ(footprint.bound(), 600 * kMiB / 16);
  EXPECT_EQ(footprint.excess(), 1000 * kMiB - 600 * kMiB / 16);
}

// What lived until now was in use, however long ago the allocator was called last.
TEST(Footprint, KeepsWhatLivedThroughAPause) {
  Footprint footprint;
  constexpr std::size_t kMiB = 1 << 20;
  footprint.allocated(1600 * kMiB);
  footprint.at_time(10 * Footprint::kWindowNs);
  footprint.freed(1600 * kMiB);
  footprint.cache_grew(1600 * kMiB);
  footprint.at_time(20 * Footprint::kWindowNs);
  EXPECT_EQ(footprint.bound(), 1700 * kMiB);
  footprint.at_time(23 * Footprint::kWindowNs);
  EXPECT_EQ(footprint.bound(), Footprint::kFloor);
}

TEST(Footprint, KeepsEightMebibytesOfASmallProgram) {
  Footprint footprint;
  footprint.allocated(1 << 20);
  EXPECT_EQ(footprint.bound(), Footprint::kFloor);
}

TEST(Footprint, StaysBelowTheLimitOfACgroup) {
  Footprint footprint;
  footprint.limit_to(std::size_t{1} << 30);
  footprint.allocated(std::size_t{930} << 20);
  EXPECT_EQ(footprint.bound(), std::size_t{30} << 20);  // 960 - 930; a sixteenth would be 58
  footprint.allocated(std::size_t{100} << 20);
  EXPECT_EQ(footprint.bound(), 0u);
}

// Some kernels unmap the target before they refuse: what was there, nothing then, is no hole.
TEST(Kernel, ARefusedMoveLeavesTheTargetCommitted) {
  constexpr std::size_t kBytes = 2 * kHugePage;
  for (const bool unmapped : {false, true}) {
    auto* from = static_cast<char*>(reserve_addresses(kBytes, kHugePage));
    auto* to = static_cast<unsigned char*>(reserve_addresses(kBytes, kHugePage));
    ASSERT_TRUE(from != nullptr && to != nullptr && commit(from, kBytes) && commit(to, kBytes));
    std::memset(from, 1, kBytes);
    std::memset(to, 2, kBytes);
    release_addresses(from, kHugePage);  // a source that does not begin with a mapping is refused
    if (unmapped) release_addresses(to, kBytes);
    EXPECT_FALSE(move_pages(from, to, kBytes));
    EXPECT_EQ(std::count(to, to + kBytes, 0), static_cast<std::ptrdiff_t>(kBytes));
    std::memset(to, 3, kBytes);
    EXPECT_EQ(std::count(from + kHugePage, from + kBytes, 1),
              static_cast<std::ptrdiff_t>(kHugePage));
    release_addresses(from + kHugePage, kHugePage);
    release_addresses(to, kBytes);
  }
}

TEST(Limits, ReadCgroupAndNodeFiles) {
  EXPECT_EQ(limit_in("max\n"), SIZE_MAX);
  EXPECT_EQ(limit_in("1073741824\n"), std::size_t{1} << 30);
  EXPECT_EQ(highest_node_in("0\n"), 0u);
  EXPECT_EQ(highest_node_in("0-3\n"), 3u);
  EXPECT_EQ(highest_node_in("0-1,4-12\n"), 12u);
}

TEST(Text, WritesNumbersAndSizes) {
  Text text;
  text << std::uint64_t{0} << " " << std::uint64_t{1234567} << " ";
  text.size(1536) << " ";
  text.size(std::uint64_t{5} << 30);
  EXPECT_STREQ(text.c_str(), "0 1234567 1.5 KiB 5.0 GiB");
}

std::size_t live_bytes() {
  plimsoll_malloc_statistics now;
  plimsoll_malloc_get_statistics(&now);
  return now.live_bytes;
}

TEST(Heap, ReturnsToNothingLiveWhenAllIsFreed) {
  plimsoll_free(plimsoll_malloc(10));
  const std::size_t before = live_bytes();
  std::vector<void*> blocks;
  for (std::size_t bytes = 40000; bytes < std::size_t{40} << 20; bytes += bytes / 5)
    blocks.push_back(plimsoll_malloc(bytes));
  EXPECT_GT(live_bytes(), before + (std::size_t{200} << 20));
  for (void* block : blocks) plimsoll_free(block);
  EXPECT_EQ(live_bytes(), before);
}

TEST(Heap, TrimGivesBackEverythingCached) {
  void* block = plimsoll_malloc(std::size_t{64} << 20);
  std::memset(block, 1, std::size_t{64} << 20);
  plimsoll_free(block);
  plimsoll_malloc_statistics now;
  plimsoll_malloc_get_statistics(&now);
  EXPECT_GE(now.cached_bytes, std::size_t{64} << 20);
  EXPECT_GE(plimsoll_malloc_trim(), std::size_t{64} << 20);
  plimsoll_malloc_get_statistics(&now);
  EXPECT_EQ(now.cached_bytes, 0u);
}

TEST(Heap, ReusesResidentMemoryBeforeFresh) {
  plimsoll_malloc_trim();
  void* block = plimsoll_malloc(std::size_t{50} << 20);
  void* keep = plimsoll_malloc(std::size_t{20} << 20);
  plimsoll_free(block);
  plimsoll_malloc_statistics before;
  plimsoll_malloc_get_statistics(&before);
  void* again = plimsoll_malloc(std::size_t{48} << 20);
  plimsoll_malloc_statistics after;
  plimsoll_malloc_get_statistics(&after);
  EXPECT_EQ(after.reused_bytes - before.reused_bytes, std::size_t{48} << 20);
  EXPECT_EQ(after.purged_bytes, before.purged_bytes);
  plimsoll_free(again);
  plimsoll_free(keep);
}

// Two holes of 32 MiB are memory for one block of 60: their pages are moved, none is cleared anew.
TEST(Heap, MovesResidentMemoryUnderABlockThatFitsNoHole) {
  plimsoll_malloc_trim();
  constexpr std::size_t kHole = std::size_t{32} << 20;
  constexpr std::size_t kLong = std::size_t{60} << 20;
  std::vector<unsigned char*> blocks;
  for (int i = 0; i < 4; ++i) {
    blocks.push_back(static_cast<unsigned char*>(plimsoll_malloc(kHole)));
    std::memset(blocks.back(), i + 1, kHole);
  }
  plimsoll_free(blocks[0]);
  plimsoll_free(blocks[2]);
  plimsoll_malloc_statistics before;
  plimsoll_malloc_get_statistics(&before);
  auto* zeroed = static_cast<unsigned char*>(plimsoll_calloc(1, kLong));
  plimsoll_malloc_statistics after;
  plimsoll_malloc_get_statistics(&after);
  // All but the units that the blocks share with their neighbours.
  EXPECT_GE(after.reused_bytes - before.reused_bytes, kLong - 4 * kHugePage);
  EXPECT_EQ(after.purged_bytes, before.purged_bytes);
  EXPECT_EQ(std::count(zeroed, zeroed + kLong, 0), static_cast<std::ptrdiff_t>(kLong));
  EXPECT_EQ(std::count(blocks[1], blocks[1] + kHole, 2), static_cast<std::ptrdiff_t>(kHole));
  EXPECT_EQ(std::count(blocks[3], blocks[3] + kHole, 4), static_cast<std::ptrdiff_t>(kHole));
  plimsoll_free(zeroed);
  plimsoll_free(blocks[1]);
  plimsoll_free(blocks[3]);
}

// As where a kernel lacks the call, or has no mappings left: growing blocks are copied, and a block
// that fits no hole gets fresh memory.
TEST(Heap, DoesWithoutAKernelThatMovesPages) {
  std::thread([] {
    refuse_this_thread(SYS_mremap);
    ASSERT_EQ(::mremap(nullptr, 0, 0, 0), MAP_FAILED);
    ASSERT_EQ(errno, ENOMEM);
    constexpr std::size_t kHole = std::size_t{32} << 20;
    constexpr std::size_t kLong = std::size_t{60} << 20;
    std::vector<unsigned char*> blocks;
    for (int i = 0; i < 4; ++i) {
      blocks.push_back(static_cast<unsigned char*>(plimsoll_malloc(kHole)));
      std::memset(blocks.back(), i + 1, kHole);
    }
    plimsoll_free(blocks[0]);
    plimsoll_free(blocks[2]);
    auto* zeroed = static_cast<unsigned char*>(plimsoll_calloc(1, kLong));
    EXPECT_EQ(std::count(zeroed, zeroed + kLong, 0), static_cast<std::ptrdiff_t>(kLong));
    std::memset(zeroed, 9, kLong);
    auto* grown = static_cast<unsigned char*>(plimsoll_realloc(blocks[1], kLong));
    EXPECT_EQ(std::count(grown, grown + kHole, 2), static_cast<std::ptrdiff_t>(kHole));
    EXPECT_EQ(std::count(blocks[3], blocks[3] + kHole, 4), static_cast<std::ptrdiff_t>(kHole));
    for (void* block : {zeroed, grown, blocks[3]}) plimsoll_free(block);
  }).join();
}

// Memory that another node's thread made resident is given back before it is used here.
TEST(Heap, TakesNoMemoryOfAnotherNumaNode) {
  constexpr std::size_t kBytes = std::size_t{48} << 20;
  plimsoll_malloc_trim();
  span_heap.set_nodes(2);
  auto* block = static_cast<unsigned char*>(plimsoll_malloc(kBytes));
  std::memset(block, 1, kBytes);
  Region& region = *static_cast<Span*>(page_map.find(block))->region;
  for (std::size_t at = 0; at < kBytes; at += kHugePage)
    region.node[region.unit_of(reinterpret_cast<char*>(block) + at)] = 1;
  plimsoll_free(block);
  plimsoll_malloc_statistics before;
  plimsoll_malloc_get_statistics(&before);
  auto* again = static_cast<unsigned char*>(plimsoll_malloc(kBytes));
  plimsoll_malloc_statistics after;
  plimsoll_malloc_get_statistics(&after);
  EXPECT_EQ(std::count(again, again + kBytes, 0), static_cast<std::ptrdiff_t>(kBytes));
  EXPECT_GE(after.purged_bytes - before.purged_bytes, kBytes - 2 * kHugePage);
  EXPECT_LE(after.reused_bytes - before.reused_bytes, 2 * kHugePage);
  plimsoll_free(again);
  plimsoll_malloc_trim();
  span_heap.set_nodes(1);
}

// The bound itself: whatever a program does, live and cached stay within a sixteenth of its peak
// (or 8 MiB).
TEST(Heap, NeverHoldsMoreThanTheBoundAllows) {
  std::mt19937_64 random(7);
  std::vector<void*> blocks(24);
  plimsoll_malloc_statistics now;
  for (int step = 0; step < 3000; ++step) {
    void*& block = blocks[random() % blocks.size()];
    plimsoll_free(block);
    block = plimsoll_malloc((std::size_t{64} << 10) << random() % 9);
    plimsoll_malloc_get_statistics(&now);
    const std::size_t most =
        std::max(now.live_bytes + Footprint::kFloor, now.peak_bytes + now.peak_bytes / 16);
    ASSERT_LE(now.live_bytes + now.cached_bytes, most) << "step " << step;
  }
  for (void* block : blocks) plimsoll_free(block);
}

TEST(Heap, ReserveGivesAnAlignedPopulatedSlab) {
  const std::size_t bytes = (std::size_t{6} << 20) + 12345;
  auto* slab = static_cast<char*>(
      plimsoll_malloc_reserve(bytes, PLIMSOLL_MALLOC_POPULATE | PLIMSOLL_MALLOC_GUARD));
  ASSERT_NE(slab, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(slab) % kHugePage, 0u);
  std::memset(slab, 1, bytes);
  EXPECT_EQ(plimsoll_malloc_usable_size(slab), std::size_t{8} << 20);
  EXPECT_DEATH(*const_cast<volatile char*>(slab + (8 << 20)) = 1, "");
  plimsoll_free(slab);
  // The guard is gone with it.
  auto* again = static_cast<char*>(plimsoll_malloc(std::size_t{9} << 20));
  std::memset(again, 1, std::size_t{9} << 20);
  plimsoll_free(again);
}

TEST(Heap, MovesGrowingBlocksWithTheirContents) {
  auto* block = static_cast<char*>(plimsoll_malloc(std::size_t{3} << 20));
  std::memset(block, 5, std::size_t{3} << 20);
  std::vector<void*> in_the_way;
  for (std::size_t bytes = std::size_t{4} << 20; bytes <= std::size_t{64} << 20; bytes *= 2) {
    in_the_way.push_back(plimsoll_malloc(std::size_t{2} << 20));
    block = static_cast<char*>(plimsoll_realloc(block, bytes));
    for (std::size_t at = 0; at < bytes / 2; at += 4096)
      ASSERT_EQ(block[at], 5) << at << " of " << bytes;
    std::memset(block, 5, bytes);
  }
  plimsoll_free(block);
  for (void* other : in_the_way) plimsoll_free(other);
}

TEST(Slices, FillHolesExactly) {
  std::vector<void*> blocks;
  for (int i = 0; i < 64; ++i) blocks.push_back(plimsoll_malloc(64 << 10));
  void* hole = blocks[10];
  plimsoll_free(hole);
  void* other = blocks[40];
  plimsoll_free(other);
  plimsoll_free(blocks[41]);
  EXPECT_EQ(plimsoll_malloc(60 << 10), hole);  // the hole of 64 KiB, not the one of 128
  EXPECT_EQ(plimsoll_malloc(128 << 10), other);
  plimsoll_free(hole);
  plimsoll_free(other);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i != 10 && i != 40 && i != 41) plimsoll_free(blocks[i]);
  }
}

// Threads allocate, pass blocks around and free each other's; contents must stay whole. Under TSan
// this is the test of the allocator's own ordering.
TEST(HeapThreads, FreeEachOthersBlocks) {
  constexpr int kThreads = 4;
#ifdef PLIMSOLL_SANITIZED
  constexpr int kSteps = 20000;
#else
  constexpr int kSteps = 100000;
#endif
  std::atomic<unsigned char*> table[64] = {};
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      std::mt19937 random(static_cast<unsigned>(id));
      for (int step = 0; step < kSteps; ++step) {
        const std::size_t bytes = random() % 512 == 0 ? 100000 : random() % 300 + 2;
        auto* block = static_cast<unsigned char*>(plimsoll_malloc(bytes));
        block[0] = static_cast<unsigned char>(bytes % 251);
        block[1] = static_cast<unsigned char>(~block[0]);
        unsigned char* other = table[random() % 64].exchange(block, std::memory_order_acq_rel);
        if (other == nullptr) continue;
        if (other[1] != static_cast<unsigned char>(~other[0])) ++wrong;
        plimsoll_free(other);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  for (auto& slot : table) plimsoll_free(slot.load());
}

TEST(HeapThreads, ComeAndGoWithoutPilingUpPools) {
  for (int round = 0; round < 200; ++round) {
    void* left_behind = nullptr;
    std::thread([&] { left_behind = plimsoll_malloc(100); }).join();
    plimsoll_free(left_behind);
  }
  plimsoll_malloc_statistics now;
  plimsoll_malloc_get_statistics(&now);
  EXPECT_LE(now.pools, 8u);
}

// A thread that begins while another looks through the idle pools waits for one of them.
TEST(HeapThreads, BeginBesideOthersWithoutPilingUpPools) {
  const auto work = [] {
    std::vector<void*> blocks;
    for (int i = 0; i < 4000; ++i) blocks.push_back(plimsoll_malloc(1000));
    for (void* block : blocks) plimsoll_free(block);
  };
  plimsoll_malloc_statistics now;
  plimsoll_malloc_get_statistics(&now);
  const auto before = now.pools;
  for (int round = 0; round < 100; ++round) {
    std::thread first(work);
    std::thread second(work);
    first.join();
    second.join();
  }
  plimsoll_malloc_get_statistics(&now);
  EXPECT_LE(now.pools, std::max<std::size_t>(before, 3));
}

// Blocks that a thread freed for others serve its own requests, and still go home in the end.
TEST(HeapThreads, ReuseBlocksTheyFreeForOthers) {
  constexpr int kBlocks = 6 * Magazine::kWindow;
  plimsoll_malloc_statistics now;
  plimsoll_malloc_get_statistics(&now);
  const std::size_t live = now.live_bytes;
  std::vector<void*> mine;
  for (int i = 0; i < kBlocks; ++i) mine.push_back(plimsoll_malloc(700));
  const std::set<void*> before(mine.begin(), mine.end());
  std::thread([&] {
    std::size_t reused = 0;
    for (int round = 0; round < 10; ++round) {
      for (void*& block : mine) {
        plimsoll_free(block);
        block = plimsoll_malloc(700);
        std::memset(block, round, 700);
        reused += before.count(block);
      }
      ASSERT_EQ(std::set<void*>(mine.begin(), mine.end()).size(), mine.size());
      for (void* block : mine) ASSERT_EQ(*static_cast<char*>(block), round);
    }
    EXPECT_GT(reused, std::size_t{kBlocks});
  }).join();
  for (void* block : mine) plimsoll_free(block);
  mine.clear();
  plimsoll_free(plimsoll_malloc(20000));  // makes this thread look at what came home
  plimsoll_malloc_trim();
  plimsoll_malloc_get_statistics(&now);
  EXPECT_LE(now.live_bytes, live + 16 * kGranule);
}

// Two threads that replace each other's blocks use them again, their own like the other's: few
// go home, and in the end all do.
TEST(HeapThreads, ExchangeBlocksWithoutSendingThemHome) {
  constexpr int kBlocks = 4000;
  constexpr int kRounds = 50;
  plimsoll_malloc_statistics now;
  plimsoll_malloc_get_statistics(&now);
  const auto live = now.live_bytes;
  const auto sent = now.remote_frees;
  std::vector<void*> offered[2] = {std::vector<void*>(kBlocks), std::vector<void*>(kBlocks)};
  std::barrier together(2);
  std::atomic<int> wrong{0};
  const auto work = [&](int id) {
    std::mt19937 random(static_cast<unsigned>(id));
    for (int round = 0; round < kRounds; ++round) {
      for (void*& block : offered[(id + round) % 2]) {
        if (block != nullptr && *static_cast<int*>(block) != round - 1) ++wrong;
        plimsoll_free(block);
        block = plimsoll_malloc(random() % 120 + 8);
        *static_cast<int*>(block) = round;
      }
      together.arrive_and_wait();
    }
  };
  std::thread first(work, 0);
  std::thread second(work, 1);
  first.join();
  second.join();
  EXPECT_EQ(wrong, 0);
  plimsoll_malloc_get_statistics(&now);
  EXPECT_LT(now.remote_frees - sent, std::uint64_t{2} * kBlocks * kRounds / 8);
  for (const auto& blocks : offered) {
    for (void* block : blocks) plimsoll_free(block);
  }
  plimsoll_malloc_trim();
  plimsoll_malloc_get_statistics(&now);
  EXPECT_LE(now.live_bytes, live + 32 * kGranule);
}

// One thread only allocates, another only frees: the blocks come home in parcels and, while the
// owner does not look, in any number in each other. Of sizes that carry none, some and many others.
TEST(HeapThreads, TakeHomeAllThatOthersFreed) {
  plimsoll_malloc_statistics now;
  plimsoll_malloc_get_statistics(&now);
  const std::size_t live = now.live_bytes;
  for (const std::size_t bytes : {16, 24, 64, 1000, 5000, 20000}) {
    std::thread([&] {
      for (int round = 0; round < 3; ++round) {
        std::vector<void*> blocks;
        for (int i = 0; i < 6000; ++i) {
          blocks.push_back(plimsoll_malloc(bytes));
          std::memset(blocks.back(), round, bytes);
        }
        std::thread([&] {
          for (void* block : blocks) plimsoll_free(block);
        }).join();
      }
      // makes the owner look
      for (int i = 0; i < 3; ++i) plimsoll_free(plimsoll_malloc(40000));
    }).join();
  }
  plimsoll_malloc_trim();
  plimsoll_malloc_get_statistics(&now);
  EXPECT_LE(now.live_bytes, live + 32 * kGranule);
}

}  // namespace
}  // namespace plimsoll::heap

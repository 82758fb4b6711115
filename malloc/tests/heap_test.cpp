// The allocator as a whole, linked beside the program's own malloc.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "footprint.h"
#include "kernel.h"
#include "plimsoll_malloc.h"
#include "slices.h"
#include "span_heap.h"

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

// Four blocks in a row, filled with 1 to 4; the first and the third are free again.
std::vector<unsigned char*> blocks_around_holes(std::size_t bytes) {
  std::vector<unsigned char*> blocks;
  for (int i = 0; i < 4; ++i) {
    blocks.push_back(static_cast<unsigned char*>(plimsoll_malloc(bytes)));
    std::memset(blocks.back(), i + 1, bytes);
  }
  plimsoll_free(blocks[0]);
  plimsoll_free(blocks[2]);
  return blocks;
}

// Two holes of 32 MiB are memory for one block of 60: their pages are moved, none is cleared anew.
TEST(Heap, MovesResidentMemoryUnderABlockThatFitsNoHole) {
  plimsoll_malloc_trim();
  constexpr std::size_t kHole = std::size_t{32} << 20;
  constexpr std::size_t kLong = std::size_t{60} << 20;
  const std::vector<unsigned char*> blocks = blocks_around_holes(kHole);
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
    const std::vector<unsigned char*> blocks = blocks_around_holes(kHole);
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

// Blocks of some kibibytes altogether go to their lists at once, those of mebibytes wait (pool.h).
class HeapOfBlocks : public ::testing::TestWithParam<std::size_t> {};

TEST_P(HeapOfBlocks, FreedBlocksAreUsedBeforeFreshMemory) {
  constexpr std::size_t kBytes = 112;
  std::vector<void*> blocks(GetParam());
  for (void*& block : blocks) block = plimsoll_malloc(kBytes);
  std::set<void*> freed(blocks.end() - 20, blocks.end());
  blocks.resize(blocks.size() - 20);
  for (void* block : freed) plimsoll_free(block);
  // What was carved last may come first: 4 KiB.
  for (std::size_t i = 0; i < 20 + 4096 / kBytes; ++i) {
    blocks.push_back(plimsoll_malloc(kBytes));
    freed.erase(blocks.back());
  }
  EXPECT_EQ(freed.size(), 0u);
  for (void* block : blocks) plimsoll_free(block);
}

INSTANTIATE_TEST_SUITE_P(SmallAndLarge, HeapOfBlocks, ::testing::Values(100, 40000));

// Every page of blocks of 1 KiB, but the one that is allocated from, is free when they are.
constexpr std::size_t kKibibyte = 1024;

TEST(Heap, TrimGivesBackThePagesOfBlocksThatWait) {
  plimsoll_free(plimsoll_malloc(kKibibyte));
  const std::size_t before = live_bytes();
  std::vector<void*> blocks(40 * kGranule / kKibibyte);
  for (void*& block : blocks) block = plimsoll_malloc(kKibibyte);
  std::set<std::uintptr_t> pages;
  // The first block of each page last.
  for (int last = 0; last < 2; ++last) {
    for (void*& block : blocks) {
      const bool is_first = pages.insert(reinterpret_cast<std::uintptr_t>(block) / kGranule).second;
      if (is_first == (last == 0)) continue;
      plimsoll_free(std::exchange(block, nullptr));
    }
    std::erase(blocks, nullptr);
    pages.clear();
  }
  EXPECT_TRUE(blocks.empty());
  EXPECT_GT(live_bytes(), before + 16 * kGranule);
  plimsoll_malloc_trim();
  EXPECT_LE(live_bytes(), before + kGranule);
}

TEST(Heap, KeepsNoBlocksWaitingWhenItIsSmallAgain) {
  plimsoll_free(plimsoll_malloc(kKibibyte));
  std::vector<void*> others(40);
  for (void*& other : others) other = plimsoll_malloc(48);
  const std::size_t before = live_bytes();
  std::vector<void*> blocks(20 * kGranule / kKibibyte);
  for (void*& block : blocks) block = plimsoll_malloc(kKibibyte);
  for (void* block : blocks) plimsoll_free(block);
  for (void* other : others) plimsoll_free(other);
  EXPECT_LE(live_bytes(), before);
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

}  // namespace
}  // namespace plimsoll::heap

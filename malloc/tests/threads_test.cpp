// Pools of several threads, linked beside the program's own malloc; also what TSan looks at.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "magazine.h"
#include "plimsoll_malloc.h"
#include "pool.h"

namespace plimsoll::heap {
namespace {

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

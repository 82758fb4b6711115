#include "plimsoll/runtime/outside_bytes.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>

#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

namespace plimsoll::runtime {
namespace {

constexpr std::size_t kMiB = 1 << 20;

class OutsideBytesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!OutsideBytes::available()) GTEST_SKIP() << "sanitizers bring an allocator of their own";
  }
};

// The compiler may take a pair of malloc and free away.
void* kept(void* block) {
  asm volatile("" : "+r"(block) : : "memory");
  return block;
}

void* map(std::size_t bytes, void* where = nullptr, int flags = 0) {
  return ::mmap(where, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

// The example of the header.
TEST_F(OutsideBytesTest, CountsWhatIsAliveAndItsPeak) {
  void* const old = kept(std::malloc(9 * kMiB));
  const OutsideBytes outside;
  void* const six = kept(std::malloc(6 * kMiB));
  EXPECT_EQ(outside.live(), Bytes(6 * kMiB));
  void* const one = kept(std::malloc(kMiB));
  std::free(six);
  EXPECT_EQ(outside.live(), Bytes(kMiB));
  void* const two = map(2 * kMiB);
  EXPECT_EQ(outside.live(), Bytes(3 * kMiB));
  std::free(old);
  EXPECT_EQ(outside.live(), Bytes(3 * kMiB));
  EXPECT_EQ(outside.peak(), Bytes(7 * kMiB));
  EXPECT_EQ(outside.large_allocations(), 3);
  std::free(one);
  ::munmap(two, 2 * kMiB);
  EXPECT_EQ(outside.live(), Bytes(0));
}

TEST_F(OutsideBytesTest, CountsEveryFunctionThatTakesMemory) {
  const OutsideBytes outside;
  void* aligned = nullptr;
  ASSERT_EQ(::posix_memalign(&aligned, 64, 1000), 0);
  EXPECT_EQ(outside.live(), Bytes(1000));
  std::free(kept(aligned));
  for (void* block :
       {std::malloc(1000), std::calloc(10, 100), std::realloc(nullptr, 1000),
        std::aligned_alloc(64, 1000), ::memalign(64, 1000), ::valloc(1000), ::operator new(1000)}) {
    std::free(kept(block));
  }
  EXPECT_EQ(outside.live(), Bytes(0));
  EXPECT_EQ(outside.peak(), Bytes(7000));
  const auto number = std::make_unique<char[]>(5000);
  EXPECT_EQ(outside.live(), Bytes(5000)) << kept(number.get());
}

TEST_F(OutsideBytesTest, FollowsWhatIsMoved) {
  const OutsideBytes outside;
  void* block = kept(std::malloc(1000));
  block = kept(std::realloc(block, 64 * kMiB));
  EXPECT_EQ(outside.live(), Bytes(64 * kMiB));
  EXPECT_EQ(std::realloc(kept(block), SIZE_MAX / 4), nullptr);
  EXPECT_EQ(outside.live(), Bytes(64 * kMiB)) << "a refused realloc leaves the block";
  block = kept(std::realloc(block, 10));
  EXPECT_EQ(outside.live(), Bytes(10));
  std::free(block);
  void* range = map(kMiB);
  range = ::mremap(range, kMiB, 5 * kMiB, MREMAP_MAYMOVE);
  EXPECT_EQ(outside.live(), Bytes(5 * kMiB));
  ::munmap(range, 5 * kMiB);
  EXPECT_EQ(outside.live(), Bytes(0));
}

TEST_F(OutsideBytesTest, CountsPartsOfMappings) {
  const OutsideBytes outside;
  auto* const range = static_cast<char*>(map(8 * kMiB));
  ::munmap(range + 2 * kMiB, kMiB);
  EXPECT_EQ(outside.live(), Bytes(7 * kMiB));
  EXPECT_EQ(map(2 * kMiB, range + kMiB, MAP_FIXED), range + kMiB);
  EXPECT_EQ(outside.live(), Bytes(8 * kMiB))
      << "one of the two was mapped over, the other had gone";
  ::munmap(range, 8 * kMiB);
  EXPECT_EQ(outside.live(), Bytes(0));
  EXPECT_EQ(outside.peak(), Bytes(8 * kMiB));
}

TEST_F(OutsideBytesTest, LeavesInstrumentsOutAndSeesEveryThread) {
  const OutsideBytes outside;
  void* counted = kept(std::malloc(5000));
  void* instrument = nullptr;
  {
    const Uncounted own;
    instrument = kept(std::malloc(7000));
    std::free(counted);  // whoever frees it
  }
  EXPECT_EQ(outside.live(), Bytes(0));
  EXPECT_EQ(outside.peak(), Bytes(5000));
  std::free(instrument);
  EXPECT_EQ(outside.live(), Bytes(0));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 1000; ++i) {
        void* const small = kept(std::malloc(100 + static_cast<std::size_t>(i)));
        void* const large = kept(std::malloc(kMiB));
        std::free(small);
        std::free(large);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(outside.large_allocations(), 4001);
  EXPECT_GE(outside.peak(), Bytes(kMiB + 1099));
  EXPECT_LE(outside.live(), Bytes(OutsideBytes::kLarge))
      << "the vector of threads and what they left behind";
}

TEST_F(OutsideBytesTest, BeginsAtZeroEachTime) {
  {
    const OutsideBytes first;
    std::free(kept(std::malloc(kMiB)));
    EXPECT_EQ(first.peak(), Bytes(kMiB));
  }
  std::free(kept(std::malloc(kMiB)));
  const OutsideBytes second;
  EXPECT_EQ(second.peak(), Bytes(0));
}

}  // namespace
}  // namespace plimsoll::runtime

// The caching allocator on a real device: what the fake one cannot show is that bytes stay where
// they are while slabs move, and that streams really wait. Everything else is tested on the fake
// device.
#include "plimsoll/device/cuda/slab_providers.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "plimsoll/memory/caching_allocator.h"

namespace plimsoll::device::cuda {
namespace {

using memory::CachingAllocator;
using memory::StreamId;

// The few calls that only a test needs.
struct Calls {
  decltype(&cuMemsetD8Async) fill = find<decltype(&cuMemsetD8Async)>("cuMemsetD8Async");
  decltype(&cuMemcpyDtoH) copy_out = find<decltype(&cuMemcpyDtoH)>("cuMemcpyDtoH_v2");
  decltype(&cuStreamCreate) make_stream = find<decltype(&cuStreamCreate)>("cuStreamCreate");
  decltype(&cuStreamDestroy) drop_stream = find<decltype(&cuStreamDestroy)>("cuStreamDestroy_v2");
  decltype(&cuCtxSynchronize) finish = find<decltype(&cuCtxSynchronize)>("cuCtxSynchronize");

 private:
  template <typename Function>
  static Function find(const char* name) {
    void* library = ::dlopen("libcuda.so.1", RTLD_NOW);
    Function function = nullptr;
    void* symbol = library == nullptr ? nullptr : ::dlsym(library, name);
    std::memcpy(&function, &symbol, sizeof symbol);
    return function;
  }
};

class CudaAllocator : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = open_device(0);
    ASSERT_TRUE(opened) << opened.error().message;
    device_ = *opened;
    scope_ = std::make_unique<ContextScope>(*device_.driver, device_.context);
    for (CUstream& stream : streams_) {
      ASSERT_EQ(calls_.make_stream(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    }
  }
  void TearDown() override {
    for (CUstream stream : streams_) {
      if (stream != nullptr) calls_.drop_stream(stream);
    }
  }

  StreamId stream(std::size_t which) const {
    return {reinterpret_cast<std::uint64_t>(streams_[which])};
  }
  void fill(Address at, Bytes size, int value, std::size_t which) {
    ASSERT_EQ(calls_.fill(at, static_cast<unsigned char>(value),
                          static_cast<std::size_t>(size.value), streams_[which]),
              CUDA_SUCCESS);
  }
  // True when all of it is `value`, once the device has done everything.
  bool holds(Address at, Bytes size, int value) {
    std::vector<unsigned char> bytes(static_cast<std::size_t>(size.value));
    EXPECT_EQ(calls_.finish(), CUDA_SUCCESS);
    EXPECT_EQ(calls_.copy_out(bytes.data(), at, bytes.size()), CUDA_SUCCESS);
    for (const unsigned char byte : bytes) {
      if (byte != value) return false;
    }
    return true;
  }

  static constexpr Bytes kBusySize = 512_MiB;

  // Frees `at` while stream `user` is busy writing it; the block that stream `next` gets instead,
  // with no other memory left, must hold what `next` writes.
  void expect_next_owner_writes_last(CachingAllocator& allocator, Address at, std::size_t user,
                                     std::size_t next) {
    for (int turn = 0; turn < 50; ++turn) fill(at, kBusySize, 1, user);
    allocator.free(at);
    allocator.set_limit(kBusySize);
    const Address after = allocator.allocate(kBusySize, stream(next));
    ASSERT_NE(after, 0u) << "waits for the other stream rather than refuse";
    fill(after, kBusySize, 2, next);
    EXPECT_TRUE(holds(after, kBusySize, 2));
  }

  Calls calls_;
  CudaDevice device_;
  std::unique_ptr<ContextScope> scope_;
  std::array<CUstream, 2> streams_{};
};

TEST_F(CudaAllocator, BytesStayWhileSlabsMove) {
  VmmProvider provider(device_);
  CudaOrder order(device_);
  CachingAllocator allocator(provider, order);
  const Address a = allocator.allocate(30_MiB, stream(0));
  const Address b = allocator.allocate(30_MiB, stream(0));
  const Address c = allocator.allocate(30_MiB, stream(0));
  fill(a, 30_MiB, 1, 0);
  fill(b, 30_MiB, 2, 0);
  fill(c, 30_MiB, 3, 0);
  allocator.free(a);
  allocator.free(c);
  const Address d = allocator.allocate(50_MiB, stream(0));
  ASSERT_NE(d, 0u);
  fill(d, 50_MiB, 4, 0);
  EXPECT_EQ(allocator.counts().reserved_bytes.peak, (90_MiB).value);
  EXPECT_EQ(allocator.counts().bytes_remapped, 20_MiB);
  EXPECT_TRUE(holds(b, 30_MiB, 2));
  EXPECT_TRUE(holds(d, 50_MiB, 4));
  EXPECT_EQ(allocator.verify(), "");
}

TEST_F(CudaAllocator, ABorrowerWritesAfterTheLender) {
  VmmProvider provider(device_);
  CudaOrder order(device_);
  CachingAllocator allocator(provider, order);
  const Address a = allocator.allocate(kBusySize, stream(0));
  expect_next_owner_writes_last(allocator, a, 0, 1);
  EXPECT_EQ(allocator.counts().stream_waits, 1);
}

TEST_F(CudaAllocator, ARecordedStreamKeepsABlock) {
  VmmProvider provider(device_);
  CudaOrder order(device_);
  CachingAllocator allocator(provider, order);
  const Address a = allocator.allocate(kBusySize, stream(0));
  ASSERT_TRUE(allocator.record_stream(a, stream(1)));
  expect_next_owner_writes_last(allocator, a, 1, 0);
}

// |a 3|1 free| and 7 more, with no room behind: the free end of a's slab is written through a
// second window.
TEST_F(CudaAllocator, HalvesOfASlabAreWrittenThroughTwoWindows) {
  VmmProvider provider(device_);
  CudaOrder order(device_);
  memory::CachingOptions options;
  options.largest_slab = 2_MiB;
  options.address_space = 12_MiB;
  CachingAllocator allocator(provider, order, options);
  EXPECT_TRUE(allocator.free(allocator.allocate(7_MiB, stream(0)))) << "a size that will come back";
  EXPECT_EQ(allocator.trim(), 8_MiB);
  const Address a = allocator.allocate(3_MiB, stream(0));
  const Address b = allocator.allocate(7_MiB, stream(0));
  ASSERT_NE(b, 0u);
  EXPECT_EQ(allocator.counts().reserved_bytes.current, (10_MiB).value);
  fill(a, 3_MiB, 1, 0);
  fill(b, 7_MiB, 2, 0);
  EXPECT_TRUE(holds(a, 3_MiB, 1));
  EXPECT_TRUE(holds(b, 7_MiB, 2));
  EXPECT_EQ(allocator.verify(), "");
}

TEST_F(CudaAllocator, RefusesTrimsAndGoesOn) {
  VmmProvider provider(device_);
  CudaOrder order(device_);
  CachingAllocator allocator(provider, order);
  EXPECT_EQ(allocator.allocate(device_.capacity + 1_GiB, stream(0)), 0u);
  EXPECT_EQ(allocator.verify(), "");
  const Address a = allocator.allocate(64_MiB, stream(0));
  ASSERT_NE(a, 0u);
  allocator.free(a);
  EXPECT_EQ(allocator.trim(), 64_MiB);
  EXPECT_EQ(allocator.counts().reserved_bytes.current, 0);
}

TEST_F(CudaAllocator, WorksWithoutMapping) {
  PlainProvider provider(device_);
  CudaOrder order(device_);
  CachingAllocator allocator(provider, order);
  const Address a = allocator.allocate(5_MiB, stream(0));
  ASSERT_NE(a, 0u);
  fill(a, 5_MiB, 7, 0);
  EXPECT_TRUE(holds(a, 5_MiB, 7));
  allocator.free(a);
  EXPECT_EQ(allocator.trim(), 6_MiB);
}

TEST_F(CudaAllocator, PinnedMemoryIsTheHosts) {
  PinnedProvider provider(device_);
  CudaOrder order(device_);
  CachingAllocator allocator(provider, order);
  const Address a = allocator.allocate(3_MiB, stream(0));
  ASSERT_NE(a, 0u);
  std::memset(reinterpret_cast<void*>(a), 9, 3 << 20);
  EXPECT_TRUE(holds(a, 3_MiB, 9));
  allocator.free(a);
}

}  // namespace
}  // namespace plimsoll::device::cuda

// Spilling through the calls of the CUDA driver, on a driver that is a table of functions of our
// own: handles are files in memory, and what is mapped can be read by this test. No GPU is needed;
// what a real driver does with the same calls is checked by tests named Cuda.
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <span>

#include "plimsoll/device/cuda/slab_providers.h"
#include "plimsoll/memory/caching_allocator.h"
#include "plimsoll/memory/fake_device.h"

namespace plimsoll::device::cuda {
namespace {

namespace fake_calls {

// What the fake driver has been told. Functions of a driver have no object, so neither has this.
struct Machine {
  int host_mapping = 1;  // the attribute
  int node = 1;          // next to the device
  CUresult host_result = CUDA_SUCCESS;
  std::map<CUmemGenericAllocationHandle, CUmemLocationType> handles;  // by file
  int last_node = -1;
  int access_calls = 0;
  int copies = 0;
  bool access_refused = false;
};
Machine machine;

void* pointer(CUdeviceptr at) {
  return reinterpret_cast<void*>(at);
}

CUresult attribute(int* value, CUdevice_attribute which, CUdevice) {
  const bool asks = which == CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
  *value = asks ? machine.host_mapping : machine.node;
  return CUDA_SUCCESS;
}
CUresult reserve(CUdeviceptr* at, std::size_t size, std::size_t, CUdeviceptr, unsigned long long) {
  void* made = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  *at = reinterpret_cast<CUdeviceptr>(made);
  return made == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
CUresult unreserve(CUdeviceptr at, std::size_t size) {
  return ::munmap(pointer(at), size) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult create(CUmemGenericAllocationHandle* handle, std::size_t size,
                const CUmemAllocationProp* kind, unsigned long long) {
  const bool on_host = kind->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
  if (on_host && machine.host_result != CUDA_SUCCESS) return machine.host_result;
  if (on_host) machine.last_node = kind->location.id;
  const int file = ::memfd_create("slab", 0);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(size)) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = static_cast<CUmemGenericAllocationHandle>(file);
  machine.handles[*handle] = kind->location.type;
  return CUDA_SUCCESS;
}
CUresult release(CUmemGenericAllocationHandle handle) {
  if (machine.handles.erase(handle) == 0) return CUDA_ERROR_INVALID_VALUE;
  return ::close(static_cast<int>(handle)) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult map(CUdeviceptr at, std::size_t size, std::size_t, CUmemGenericAllocationHandle handle,
             unsigned long long) {
  const void* made =
      ::mmap(pointer(at), size, PROT_NONE, MAP_SHARED | MAP_FIXED, static_cast<int>(handle), 0);
  return made == MAP_FAILED ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult set_access(CUdeviceptr at, std::size_t size, const CUmemAccessDesc* who,
                    std::size_t count) {
  ++machine.access_calls;
  if (machine.access_refused || count != 1 || who->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return ::mprotect(pointer(at), size, PROT_READ | PROT_WRITE) == 0 ? CUDA_SUCCESS
                                                                    : CUDA_ERROR_INVALID_VALUE;
}
CUresult unmap(CUdeviceptr at, std::size_t size) {
  const void* gone = ::mmap(pointer(at), size, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return gone == MAP_FAILED ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult copy(CUdeviceptr to, CUdeviceptr from, std::size_t size, CUstream) {
  ++machine.copies;
  std::memcpy(pointer(to), pointer(from), size);
  return CUDA_SUCCESS;
}
CUresult name_of(CUresult, const char** name) {
  *name = "CUDA_ERROR_NOT_PERMITTED";
  return CUDA_SUCCESS;
}

Driver fake_driver() {
  Driver out{};
  out.error_name = name_of;
  out.device_attribute = attribute;
  out.push_context = [](CUcontext) { return CUDA_SUCCESS; };
  out.pop_context = [](CUcontext*) { return CUDA_SUCCESS; };
  out.exchange_capture_mode = [](CUstreamCaptureMode*) { return CUDA_SUCCESS; };
  out.reserve = reserve;
  out.unreserve = unreserve;
  out.create = create;
  out.release = release;
  out.map = map;
  out.unmap = unmap;
  out.set_access = set_access;
  out.copy = copy;
  out.synchronize = [] { return CUDA_SUCCESS; };
  return out;
}

}  // namespace fake_calls

using fake_calls::machine;

class FakeDriver : public ::testing::Test {
 protected:
  void SetUp() override { machine = fake_calls::Machine{}; }
  void TearDown() override { EXPECT_TRUE(machine.handles.empty()) << "a handle was not released"; }
  CudaDevice device() const {
    CudaDevice out;
    out.driver = &driver_;
    out.capacity = 1_GiB;
    out.mapping = true;
    return out;
  }
  static memory::CachingOptions small_slabs() {
    memory::CachingOptions out;
    out.largest_slab = 2_MiB;
    out.address_space = 256_MiB;
    return out;
  }
  static long on(CUmemLocationType place) {
    long count = 0;
    for (const auto& [handle, where] : machine.handles) count += where == place ? 1 : 0;
    return count;
  }

  const Driver driver_ = fake_calls::fake_driver();
};

TEST_F(FakeDriver, SpillsAndRestoresBytesAtTheirAddress) {
  VmmProvider provider(device());
  memory::FakeDevice order;
  memory::CachingAllocator allocator(provider, order, small_slabs());
  constexpr std::size_t kWords = (std::size_t{8} << 20) / sizeof(std::uint64_t);
  const memory::Address at = allocator.allocate(8_MiB, {});
  const std::span words(reinterpret_cast<std::uint64_t*>(at), kWords);
  for (std::size_t i = 0; i < kWords; ++i) words[i] = i * 0x9e3779b97f4a7c15;
  const auto intact = [&] {
    for (std::size_t i = 0; i < kWords; ++i) {
      if (words[i] != i * 0x9e3779b97f4a7c15) return false;
    }
    return true;
  };

  const auto there = allocator.spill(std::span(&at, 1));
  EXPECT_EQ(there.problem, "");
  EXPECT_EQ(there.moved, 8_MiB);
  EXPECT_EQ(on(CU_MEM_LOCATION_TYPE_DEVICE), 0);
  EXPECT_EQ(on(CU_MEM_LOCATION_TYPE_HOST_NUMA), 4);
  EXPECT_EQ(machine.last_node, 1) << "of the node next to the device";
  EXPECT_TRUE(intact()) << "the address is backed by host pages";

  EXPECT_EQ(allocator.restore(std::span(&at, 1)).moved, 8_MiB);
  EXPECT_EQ(on(CU_MEM_LOCATION_TYPE_DEVICE), 4);
  EXPECT_TRUE(intact());
  EXPECT_TRUE(allocator.free(at));
}

// Twenty microseconds a call on an H200: for a row of slabs it is made once.
TEST_F(FakeDriver, GivesAccessToARowOfSlabsOnce) {
  VmmProvider provider(device());
  memory::FakeDevice order;
  memory::CachingAllocator allocator(provider, order, small_slabs());
  const memory::Address at = allocator.allocate(32_MiB, {});
  EXPECT_EQ(on(CU_MEM_LOCATION_TYPE_DEVICE), 16);
  EXPECT_EQ(machine.access_calls, 1);
  machine.access_refused = true;
  EXPECT_EQ(allocator.allocate(32_MiB, {}), 0u);
  EXPECT_EQ(on(CU_MEM_LOCATION_TYPE_DEVICE), 16) << "what was created for it is given back";
  EXPECT_EQ(allocator.verify(), "");
  EXPECT_TRUE(allocator.free(at));
}

// Thirty-two slabs of 2 MiB are one row: mapped twice, and copied at once, each way.
TEST_F(FakeDriver, MovesARowOfSlabsWithOneCopy) {
  VmmProvider provider(device());
  memory::FakeDevice order;
  memory::CachingAllocator allocator(provider, order, small_slabs());
  const memory::Address at = allocator.allocate(64_MiB, {});
  for (const bool there : {true, false}) {
    const fake_calls::Machine before = machine;
    const auto moved =
        there ? allocator.spill(std::span(&at, 1)) : allocator.restore(std::span(&at, 1));
    EXPECT_EQ(moved.moved, 64_MiB);
    EXPECT_EQ(machine.copies - before.copies, 1);
    // Whether host memory can be mapped is asked once, with a slab of its own.
    EXPECT_EQ(machine.access_calls - before.access_calls, there ? 3 : 2);
  }
  EXPECT_TRUE(allocator.free(at));
}

TEST_F(FakeDriver, SaysWhatTheDriverCannot) {
  VmmProvider able(device());
  EXPECT_EQ(able.host_refusal(), "");
  machine.host_mapping = 0;
  VmmProvider unable(device());
  EXPECT_NE(unable.host_refusal().find("cannot map host memory"), std::string::npos);
  machine.host_mapping = 1;
  machine.host_result = CUDA_ERROR_NOT_PERMITTED;
  VmmProvider forbidden(device());
  EXPECT_NE(forbidden.host_refusal().find("CUDA_ERROR_NOT_PERMITTED"), std::string::npos);
}

TEST_F(FakeDriver, AMachineWithoutNumaIsNodeZero) {
  machine.node = -1;
  VmmProvider provider(device());
  EXPECT_EQ(provider.host_refusal(), "");
  EXPECT_EQ(machine.last_node, 0);
}

}  // namespace
}  // namespace plimsoll::device::cuda

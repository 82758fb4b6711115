// Where the caching allocator gets CUDA memory from, and how it orders streams.
//
//   VmmProvider     device memory by virtual memory management: physical handles mapped into one
//                   reserved range, movable; the one to use
//   PlainProvider   cuMemAlloc, for devices without it
//   PinnedProvider  page-locked host memory: a caching allocator on it is the pinned pool (pinning
//                   256 MiB takes 105 ms, so it is done once)
//   CudaOrder       marks are events from a pool
//
// Threads: each is called under its allocator's lock. Failures: a refusal by the driver is an empty
// optional; what cannot be refused (unmap, release) is ignored after the process has begun to exit,
// when the driver is gone already.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/device/address_registry.h"
#include "plimsoll/device/cuda/driver.h"
#include "plimsoll/memory/slab_provider.h"

namespace plimsoll::device::cuda {

using memory::Address;
using memory::PhysicalHandle;

// The device's primary context and facts.
struct CudaDevice {
  const Driver* driver = nullptr;
  CUdevice device = 0;
  CUcontext context = nullptr;
  int index = 0;
  Bytes capacity{0};
  bool mapping = false;
  bool rdma = false;
  DeviceNumber number = kHost;  // under which what is mapped is entered; kHost: it is not
};

Result<CudaDevice> open_device(int index);
Result<int> device_count();

class VmmProvider final : public memory::SlabProvider {
 public:
  explicit VmmProvider(const CudaDevice& device) : device_(device) {}
  std::string name() const override;
  bool supports_mapping() const override { return true; }
  Bytes capacity() const override { return device_.capacity; }
  Bytes granularity() const override { return 2_MiB; }
  Bytes largest_handle() const override { return 64_MiB; }
  std::optional<Address> reserve(Bytes size) override;
  void unreserve(Address address, Bytes size) override;
  std::optional<PhysicalHandle> create(Bytes size) override;
  void release(PhysicalHandle handle, Bytes size) override;
  bool map(Address address, PhysicalHandle handle, Bytes size) override;
  bool map_row(Address address, std::span<const memory::RowEntry> row) override;
  void unmap(Address address, Bytes size) override;
  // Host memory is of the NUMA node next to the device. The first question creates and maps a slab
  // of it to see whether the driver does; the answer is kept.
  std::string host_refusal() override;
  std::optional<PhysicalHandle> create_on_host(Bytes size) override;
  bool copy(Address to, Address from, Bytes size) override;
  bool synchronize() override;
  std::optional<Address> allocate_slab(Bytes) override { return std::nullopt; }
  void free_slab(Address, Bytes) override {}

  // Kernels of `peer` may use what is mapped from now on.
  void allow_peer(int peer);

 private:
  CUresult create_at(CUmemLocation place, Bytes size, PhysicalHandle& out);
  std::string find_host_refusal();

  CudaDevice device_;
  std::vector<CUmemAccessDesc> access_;
  std::optional<std::string> host_refusal_;
};

// Providers that give memory and address in one call.
class WholeSlabProvider : public memory::SlabProvider {
 public:
  explicit WholeSlabProvider(const CudaDevice& device) : device_(device) {}
  bool supports_mapping() const override { return false; }
  Bytes granularity() const override { return 2_MiB; }
  Bytes largest_handle() const override { return Bytes::max(); }
  std::optional<Address> reserve(Bytes) override { return std::nullopt; }
  void unreserve(Address, Bytes) override {}
  std::optional<PhysicalHandle> create(Bytes) override { return std::nullopt; }
  void release(PhysicalHandle, Bytes) override {}
  bool map(Address, PhysicalHandle, Bytes) override { return false; }
  void unmap(Address, Bytes) override {}

 protected:
  const CudaDevice& device() const { return device_; }

 private:
  CudaDevice device_;
};

class PlainProvider final : public WholeSlabProvider {
 public:
  using WholeSlabProvider::WholeSlabProvider;
  std::string name() const override { return "CUDA device, plain allocation"; }
  Bytes capacity() const override { return device().capacity; }
  std::optional<Address> allocate_slab(Bytes size) override;
  void free_slab(Address address, Bytes size) override;
};

class PinnedProvider final : public WholeSlabProvider {
 public:
  using WholeSlabProvider::WholeSlabProvider;
  std::string name() const override { return "pinned host memory"; }
  Bytes capacity() const override { return 0_bytes; }
  std::optional<Address> allocate_slab(Bytes size) override;
  void free_slab(Address address, Bytes size) override;
};

class CudaOrder final : public memory::StreamOrder {
 public:
  explicit CudaOrder(const CudaDevice& device) : device_(device) {}
  bool can_mark(memory::StreamId stream) override;
  memory::OrderMark record(memory::StreamId stream) override;
  bool reached(memory::OrderMark mark) override;
  void wait(memory::StreamId stream, memory::OrderMark mark) override;
  void synchronize(memory::OrderMark mark) override;
  void forget(memory::OrderMark mark) override;

 private:
  CudaDevice device_;
  std::vector<CUevent> spare_;
};

}  // namespace plimsoll::device::cuda

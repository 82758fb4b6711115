#include "plimsoll/device/cuda/slab_providers.h"

#include <algorithm>

#include "plimsoll/base/check.h"

namespace plimsoll::device::cuda {
namespace {

CUstream stream_of(memory::StreamId stream) {
  return reinterpret_cast<CUstream>(stream.value);
}
CUevent event_of(memory::OrderMark mark) {
  return reinterpret_cast<CUevent>(mark.value);
}

CUmemAccessDesc access_for(int device) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return access;
}

CUmemLocation host_of(const CudaDevice& device) {
  int node = 0;
  const CUresult code =
      device.driver->device_attribute(&node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, device.device);
  CUmemLocation place{};
  place.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
  place.id = code == CUDA_SUCCESS ? std::max(0, node) : 0;
  return place;
}

bool has(const CudaDevice& device, CUdevice_attribute attribute) {
  int value = 0;
  return device.driver->device_attribute(&value, attribute, device.device) == CUDA_SUCCESS &&
         value != 0;
}

}  // namespace

Result<int> device_count() {
  PLIMSOLL_TRY(const Driver* calls, driver());
  int count = 0;
  const CUresult code = calls->device_count(&count);
  if (code != CUDA_SUCCESS) {
    return fail(ErrorCode::kDevice, "CUDA: cannot count devices: {}", describe(*calls, code));
  }
  return count;
}

Result<CudaDevice> open_device(int index) {
  PLIMSOLL_TRY(const Driver* calls, driver());
  CudaDevice out;
  out.driver = calls;
  out.index = index;
  CUresult code = calls->device_get(&out.device, index);
  if (code == CUDA_SUCCESS) code = calls->primary_context(&out.context, out.device);
  std::size_t total = 0;
  if (code == CUDA_SUCCESS) code = calls->device_total(&total, out.device);
  if (code != CUDA_SUCCESS) {
    return fail(ErrorCode::kDevice, "CUDA device {}: {}", index, describe(*calls, code));
  }
  out.capacity = Bytes(static_cast<std::int64_t>(total));
  out.mapping = has(out, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
  out.rdma = has(out, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
  return out;
}

std::string VmmProvider::name() const {
  return fmt::format("CUDA device {}", device_.index);
}

std::optional<Address> VmmProvider::reserve(Bytes size) {
  const ContextScope scope(*device_.driver, device_.context);
  CUdeviceptr at = 0;
  const auto bytes = static_cast<std::size_t>(size.value);
  if (device_.driver->reserve(&at, bytes, 2 << 20, 0, 0) != CUDA_SUCCESS) return std::nullopt;
  return at;
}

void VmmProvider::unreserve(Address address, Bytes size) {
  const ContextScope scope(*device_.driver, device_.context);
  device_.driver->unreserve(address, static_cast<std::size_t>(size.value));
}

CUresult VmmProvider::create_at(CUmemLocation place, Bytes size, PhysicalHandle& out) {
  const ContextScope scope(*device_.driver, device_.context);
  CUmemAllocationProp kind{};
  kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind.location = place;
  const bool on_device = place.type == CU_MEM_LOCATION_TYPE_DEVICE;
  kind.allocFlags.gpuDirectRDMACapable = on_device && device_.rdma ? 1 : 0;
  CUmemGenericAllocationHandle handle = 0;
  const CUresult code =
      device_.driver->create(&handle, static_cast<std::size_t>(size.value), &kind, 0);
  out = {handle};
  return code;
}

std::optional<PhysicalHandle> VmmProvider::create(Bytes size) {
  PhysicalHandle out;
  const CUmemLocation place = access_for(device_.index).location;
  return create_at(place, size, out) == CUDA_SUCCESS ? std::optional(out) : std::nullopt;
}

std::optional<PhysicalHandle> VmmProvider::create_on_host(Bytes size) {
  PhysicalHandle out;
  return create_at(host_of(device_), size, out) == CUDA_SUCCESS ? std::optional(out) : std::nullopt;
}

std::string VmmProvider::host_refusal() {
  if (!host_refusal_) host_refusal_ = find_host_refusal();
  return *host_refusal_;
}

std::string VmmProvider::find_host_refusal() {
  int known = 0;
  const CUresult asked = device_.driver->device_attribute(
      &known, CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device_.device);
  if (asked == CUDA_SUCCESS && known == 0) {
    return name() + " says that it cannot map host memory (HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT)";
  }
  // A driver that does not know the question may do it all the same, and one that says yes may not.
  PhysicalHandle handle;
  const CUresult code = create_at(host_of(device_), granularity(), handle);
  if (code != CUDA_SUCCESS) {
    return fmt::format("{}: the driver gives no host memory that can be mapped ({})", name(),
                       describe(*device_.driver, code));
  }
  const auto at = reserve(granularity());
  const bool mapped = at && map(*at, handle, granularity());
  if (mapped) unmap(*at, granularity());
  if (at) unreserve(*at, granularity());
  release(handle, granularity());
  return mapped ? "" : name() + ": host memory could be had, and not be mapped";
}

bool VmmProvider::copy(Address to, Address from, Bytes size) {
  const ContextScope scope(*device_.driver, device_.context);
  return device_.driver->copy(to, from, static_cast<std::size_t>(size.value), nullptr) ==
         CUDA_SUCCESS;
}

bool VmmProvider::synchronize() {
  const ContextScope scope(*device_.driver, device_.context);
  return device_.driver->synchronize() == CUDA_SUCCESS;
}

void VmmProvider::release(PhysicalHandle handle, Bytes) {
  const ContextScope scope(*device_.driver, device_.context);
  device_.driver->release(handle.value);
}

bool VmmProvider::map(Address address, PhysicalHandle handle, Bytes size) {
  const memory::RowEntry one{handle, size};
  return map_row(address, {&one, 1});
}

bool VmmProvider::map_row(Address address, std::span<const memory::RowEntry> row) {
  const ContextScope scope(*device_.driver, device_.context);
  if (access_.empty()) access_.push_back(access_for(device_.index));
  std::size_t mapped = 0;
  std::size_t done = 0;
  for (; done < row.size(); ++done) {
    const auto bytes = static_cast<std::size_t>(row[done].size.value);
    if (device_.driver->map(address + mapped, bytes, 0, row[done].handle.value, 0) != CUDA_SUCCESS)
      break;
    mapped += bytes;
  }
  if (done == row.size() &&
      device_.driver->set_access(address, mapped, access_.data(), access_.size()) == CUDA_SUCCESS) {
    for (const memory::RowEntry& one : row) {
      const auto bytes = static_cast<std::size_t>(one.size.value);
      if (device_.number != kHost)
        addresses().add(reinterpret_cast<const void*>(address), bytes, device_.number);
      address += bytes;
    }
    return true;
  }
  for (std::size_t i = 0; i < done; ++i) {
    const auto bytes = static_cast<std::size_t>(row[i].size.value);
    device_.driver->unmap(address, bytes);
    address += bytes;
  }
  return false;
}

void VmmProvider::unmap(Address address, Bytes size) {
  const ContextScope scope(*device_.driver, device_.context);
  if (device_.number != kHost)
    addresses().remove(reinterpret_cast<const void*>(address),
                       static_cast<std::size_t>(size.value));
  device_.driver->unmap(address, static_cast<std::size_t>(size.value));
}

void VmmProvider::allow_peer(int peer) {
  if (access_.empty()) access_.push_back(access_for(device_.index));
  const auto known =
      std::find_if(access_.begin(), access_.end(),
                   [&](const CUmemAccessDesc& entry) { return entry.location.id == peer; });
  if (known == access_.end()) access_.push_back(access_for(peer));
}

std::optional<Address> PlainProvider::allocate_slab(Bytes size) {
  const ContextScope scope(*device().driver, device().context);
  CUdeviceptr at = 0;
  const auto bytes = static_cast<std::size_t>(size.value);
  if (device().driver->allocate(&at, bytes) != CUDA_SUCCESS) return std::nullopt;
  return at;
}

void PlainProvider::free_slab(Address address, Bytes) {
  const ContextScope scope(*device().driver, device().context);
  device().driver->free(address);
}

std::optional<Address> PinnedProvider::allocate_slab(Bytes size) {
  const ContextScope scope(*device().driver, device().context);
  void* at = nullptr;
  const auto bytes = static_cast<std::size_t>(size.value);
  if (device().driver->host_allocate(&at, bytes, CU_MEMHOSTALLOC_PORTABLE) != CUDA_SUCCESS) {
    return std::nullopt;
  }
  return reinterpret_cast<Address>(at);
}

void PinnedProvider::free_slab(Address address, Bytes) {
  const ContextScope scope(*device().driver, device().context);
  device().driver->host_free(reinterpret_cast<void*>(address));
}

bool CudaOrder::can_mark(memory::StreamId stream) {
  const ContextScope scope(*device_.driver, device_.context);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult code = device_.driver->stream_is_capturing(stream_of(stream), &status);
  return code == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_NONE;
}

memory::OrderMark CudaOrder::record(memory::StreamId stream) {
  const ContextScope scope(*device_.driver, device_.context);
  CUevent event = nullptr;
  if (spare_.empty()) {
    const CUresult made = device_.driver->event_create(&event, CU_EVENT_DISABLE_TIMING);
    PLIMSOLL_CHECK(made == CUDA_SUCCESS, "CUDA: no event: {}", describe(*device_.driver, made));
  } else {
    event = spare_.back();
    spare_.pop_back();
  }
  device_.driver->event_record(event, stream_of(stream));
  return {reinterpret_cast<std::uint64_t>(event)};
}

bool CudaOrder::reached(memory::OrderMark mark) {
  const ContextScope scope(*device_.driver, device_.context);
  return device_.driver->event_query(event_of(mark)) != CUDA_ERROR_NOT_READY;
}

void CudaOrder::wait(memory::StreamId stream, memory::OrderMark mark) {
  const ContextScope scope(*device_.driver, device_.context);
  device_.driver->stream_wait(stream_of(stream), event_of(mark), 0);
}

void CudaOrder::synchronize(memory::OrderMark mark) {
  const ContextScope scope(*device_.driver, device_.context);
  device_.driver->event_synchronize(event_of(mark));
}

void CudaOrder::forget(memory::OrderMark mark) {
  spare_.push_back(event_of(mark));
}

}  // namespace plimsoll::device::cuda

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

std::optional<PhysicalHandle> VmmProvider::create(Bytes size) {
  const ContextScope scope(*device_.driver, device_.context);
  CUmemAllocationProp kind{};
  kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  kind.location.id = device_.index;
  kind.allocFlags.gpuDirectRDMACapable = device_.rdma ? 1 : 0;
  CUmemGenericAllocationHandle handle = 0;
  const CUresult code =
      device_.driver->create(&handle, static_cast<std::size_t>(size.value), &kind, 0);
  if (code != CUDA_SUCCESS) return std::nullopt;
  return PhysicalHandle{handle};
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

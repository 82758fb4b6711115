#include "plimsoll/device/cuda/driver.h"

#include <dlfcn.h>

namespace plimsoll::device::cuda {
namespace {

// cuda.h maps names to their current version by macro; the name in the library has that suffix.
#define PLIMSOLL_NAME_INNER(symbol) #symbol
#define PLIMSOLL_NAME(symbol) PLIMSOLL_NAME_INNER(symbol)

class Library {
 public:
  Library() : handle_(::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL)) {}
  bool open() const { return handle_ != nullptr; }
  template <typename Function>
  void find(const char* name, Function& out) {
    out = reinterpret_cast<Function>(::dlsym(handle_, name));
    if (out == nullptr && missing_ == nullptr) missing_ = name;
  }
  const char* missing() const { return missing_; }

 private:
  void* handle_;
  const char* missing_ = nullptr;
};

void find_all(Library& library, Driver& out) {
  library.find(PLIMSOLL_NAME(cuInit), out.init);
  library.find(PLIMSOLL_NAME(cuGetErrorName), out.error_name);
  library.find(PLIMSOLL_NAME(cuDeviceGet), out.device_get);
  library.find(PLIMSOLL_NAME(cuDeviceGetCount), out.device_count);
  library.find(PLIMSOLL_NAME(cuDeviceGetAttribute), out.device_attribute);
  library.find(PLIMSOLL_NAME(cuDeviceTotalMem), out.device_total);
  library.find(PLIMSOLL_NAME(cuDevicePrimaryCtxRetain), out.primary_context);
  library.find(PLIMSOLL_NAME(cuCtxPushCurrent), out.push_context);
  library.find(PLIMSOLL_NAME(cuCtxPopCurrent), out.pop_context);
  library.find(PLIMSOLL_NAME(cuMemAddressReserve), out.reserve);
  library.find(PLIMSOLL_NAME(cuMemAddressFree), out.unreserve);
  library.find(PLIMSOLL_NAME(cuMemCreate), out.create);
  library.find(PLIMSOLL_NAME(cuMemRelease), out.release);
  library.find(PLIMSOLL_NAME(cuMemMap), out.map);
  library.find(PLIMSOLL_NAME(cuMemUnmap), out.unmap);
  library.find(PLIMSOLL_NAME(cuMemSetAccess), out.set_access);
  library.find(PLIMSOLL_NAME(cuMemGetAllocationGranularity), out.granularity);
  library.find(PLIMSOLL_NAME(cuMemAlloc), out.allocate);
  library.find(PLIMSOLL_NAME(cuMemFree), out.free);
  library.find(PLIMSOLL_NAME(cuMemHostAlloc), out.host_allocate);
  library.find(PLIMSOLL_NAME(cuMemFreeHost), out.host_free);
  library.find(PLIMSOLL_NAME(cuMemcpyAsync), out.copy);
  library.find(PLIMSOLL_NAME(cuCtxSynchronize), out.synchronize);
  library.find(PLIMSOLL_NAME(cuEventCreate), out.event_create);
  library.find(PLIMSOLL_NAME(cuEventDestroy), out.event_destroy);
  library.find(PLIMSOLL_NAME(cuEventRecord), out.event_record);
  library.find(PLIMSOLL_NAME(cuEventQuery), out.event_query);
  library.find(PLIMSOLL_NAME(cuEventSynchronize), out.event_synchronize);
  library.find(PLIMSOLL_NAME(cuStreamWaitEvent), out.stream_wait);
  library.find(PLIMSOLL_NAME(cuStreamIsCapturing), out.stream_is_capturing);
  library.find(PLIMSOLL_NAME(cuThreadExchangeStreamCaptureMode), out.exchange_capture_mode);
}

Result<const Driver*> open_driver() {
  static Library library;
  static Driver table{};
  if (!library.open()) {
    return fail(ErrorCode::kDevice, "CUDA: no driver on this machine (libcuda.so.1 not found)");
  }
  find_all(library, table);
  if (library.missing() != nullptr) {
    return fail(ErrorCode::kDevice, "CUDA: the driver has no {}: it is too old", library.missing());
  }
  const CUresult started = table.init(0);
  if (started != CUDA_SUCCESS) {
    return fail(ErrorCode::kDevice, "CUDA: cannot start the driver: {}", describe(table, started));
  }
  return &table;
}

}  // namespace

Result<const Driver*> driver() {
  static const Result<const Driver*> kOpened = open_driver();
  return kOpened;
}

std::string describe(const Driver& driver, CUresult code) {
  const char* name = nullptr;
  if (driver.error_name(code, &name) != CUDA_SUCCESS || name == nullptr) return "unknown error";
  return name;
}

ContextScope::ContextScope(const Driver& driver, CUcontext context) : driver_(driver) {
  driver_.push_context(context);
  driver_.exchange_capture_mode(&mode_);
}

ContextScope::~ContextScope() {
  driver_.exchange_capture_mode(&mode_);
  CUcontext popped = nullptr;
  driver_.pop_context(&popped);
}

}  // namespace plimsoll::device::cuda

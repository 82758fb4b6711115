// The CUDA driver, found at run time: a table of the calls the memory code needs.
//
// libcuda is opened by name, not linked, so one build serves machines with and without a GPU: where
// there is no driver, driver() says why. Every call is made with the device's primary context
// current (the one PyTorch and the runtime API use) and in relaxed capture mode, so that growing
// while another stream is being captured into a graph does not spoil the capture.
#pragma once

#include <cuda.h>

#include <string>

#include "plimsoll/base/result.h"

namespace plimsoll::device::cuda {

struct Driver {
  decltype(&cuInit) init;
  decltype(&cuGetErrorName) error_name;
  decltype(&cuDeviceGet) device_get;
  decltype(&cuDeviceGetCount) device_count;
  decltype(&cuDeviceGetAttribute) device_attribute;
  decltype(&cuDeviceTotalMem) device_total;
  decltype(&cuDevicePrimaryCtxRetain) primary_context;
  decltype(&cuCtxPushCurrent) push_context;
  decltype(&cuCtxPopCurrent) pop_context;
  decltype(&cuMemAddressReserve) reserve;
  decltype(&cuMemAddressFree) unreserve;
  decltype(&cuMemCreate) create;
  decltype(&cuMemRelease) release;
  decltype(&cuMemMap) map;
  decltype(&cuMemUnmap) unmap;
  decltype(&cuMemSetAccess) set_access;
  decltype(&cuMemGetAllocationGranularity) granularity;
  decltype(&cuMemAlloc) allocate;
  decltype(&cuMemFree) free;
  decltype(&cuMemHostAlloc) host_allocate;
  decltype(&cuMemFreeHost) host_free;
  decltype(&cuMemcpyAsync) copy;
  decltype(&cuCtxSynchronize) synchronize;
  decltype(&cuEventCreate) event_create;
  decltype(&cuEventDestroy) event_destroy;
  decltype(&cuEventRecord) event_record;
  decltype(&cuEventQuery) event_query;
  decltype(&cuEventSynchronize) event_synchronize;
  decltype(&cuStreamWaitEvent) stream_wait;
  decltype(&cuStreamIsCapturing) stream_is_capturing;
  decltype(&cuThreadExchangeStreamCaptureMode) exchange_capture_mode;
};

// Opened once per process. An Error of kDevice when there is no driver or no device.
Result<const Driver*> driver();

std::string describe(const Driver& driver, CUresult code);

// The primary context of a device, current for as long as this lives, in relaxed capture mode.
class ContextScope {
 public:
  ContextScope(const Driver& driver, CUcontext context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  const Driver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace plimsoll::device::cuda

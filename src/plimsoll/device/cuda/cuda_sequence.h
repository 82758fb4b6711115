// Commands on CUDA streams: launched one by one, or as one graph (cuda_device.h).
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>
#include <vector>

#include "plimsoll/device/device.h"

namespace plimsoll::device::cuda {

// kDevice with what was being done, unless the call went well.
Status check(cudaError_t code, std::string_view what);

class CudaStream final : public Stream {
 public:
  // Of the device that copies for it.
  static Result<std::unique_ptr<CudaStream>> make(DeviceNumber device);
  explicit CudaStream(DeviceNumber device) : device_(device) {}
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  ~CudaStream() override;

  Status run(Work& work) override;
  Status fill(std::byte* to, std::byte value, std::size_t bytes) override;
  Status copy(std::byte* to, const std::byte* from, std::size_t bytes) override;
  Status synchronize() override;
  Result<std::int64_t> mark() override;
  Status wait(Stream& other, std::int64_t mark) override;
  void* queue() const override { return stream_; }
  cudaStream_t get() const { return stream_; }

 private:
  DeviceNumber device_;
  cudaStream_t stream_ = nullptr;
  std::vector<cudaEvent_t> marks_;  // used again after synchronize()
  std::size_t marked_ = 0;          // of them, since
  std::int64_t before_ = 0;         // marks that synchronize() saw pass
};

Result<std::unique_ptr<Sequence>> make_cuda_sequence(DeviceNumber device,
                                                     std::vector<Command> commands);

}  // namespace plimsoll::device::cuda

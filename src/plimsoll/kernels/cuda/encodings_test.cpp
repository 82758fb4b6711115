// The kernels that compress activations, on a card, against the codecs of the CPU. Where there is
// no card: encodings_on_host_test.cpp.
#include <cuda_runtime_api.h>

#include "plimsoll/kernels/cuda/cuda_kernels.h"
#include "plimsoll/kernels/cuda/testing/encoding_contract.h"

namespace plimsoll::kernels::cuda {
namespace {

std::size_t padded(std::size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

// Device memory for the activation and its buffer, pinned memory for the rest; all copied there and
// back.
void on_a_card(EncodingMemory& memory, bool encodes) {
  const std::size_t plain = padded(memory.plain.size());
  const std::size_t small = padded(memory.compressed.size());
  std::byte* device = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&device), plain + small), cudaSuccess);
  std::byte* pinned = nullptr;
  const std::size_t host = padded(memory.host.size());
  const std::size_t errors = padded(memory.errors.size() * sizeof(ActivationError));
  ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&pinned), 256 + host + errors), cudaSuccess);
  auto* const step = new (pinned) EncodingStep(memory.step);
  Overflow overflow(*memory.encoding.codec, memory.plain.size());
  overflow.take_memory({pinned + 256, memory.host.size()});
  std::memcpy(pinned + 256, memory.host.data(), memory.host.size());
  auto* const lost = reinterpret_cast<ActivationError*>(pinned + 256 + host);
  cudaMemcpy(device, memory.plain.data(), memory.plain.size(), cudaMemcpyDefault);
  cudaMemcpy(device + plain, memory.compressed.data(), memory.compressed.size(), cudaMemcpyDefault);
  ActivationEncoding there = memory.encoding;
  there.plain = {device, memory.plain.size()};
  there.compressed = {reinterpret_cast<std::uint8_t*>(device + plain), memory.compressed.size()};
  there.overflow = &overflow;
  there.step = step;
  there.errors = {lost, memory.errors.size()};
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaDeviceSynchronize();
  const Status status = encodes ? encode_on_card(there, stream) : decode_on_card(there, stream);
  EXPECT_TRUE(status) << status.error().message;
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess) << cudaGetErrorString(cudaGetLastError());
  cudaStreamDestroy(stream);
  cudaMemcpy(memory.plain.data(), device, memory.plain.size(), cudaMemcpyDefault);
  cudaMemcpy(memory.compressed.data(), device + plain, memory.compressed.size(), cudaMemcpyDefault);
  std::memcpy(memory.host.data(), pinned + 256, memory.host.size());
  if (encodes) std::copy(lost, lost + memory.errors.size(), memory.errors.begin());
  cudaFreeHost(pinned);
  cudaFree(device);
}

TEST(CudaEncodings, WriteTheBytesOfTheCpusCodecs) {
  expect_encoding_contract_of_all(40, on_a_card);
}

TEST(CudaEncodings, SurviveWhateverABufferHolds) {
  expect_damage_is_survived(20, on_a_card);
}

}  // namespace
}  // namespace plimsoll::kernels::cuda

// Runs one node on the GPU: inputs are copied there, outputs back. For tests only.
//
// Every tensor and the scratch has a guard behind it, and is filled with what a lazy kernel would
// trip over (0xFF: NaNs, the largest indices).
#pragma once

#include <optional>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "plimsoll/kernels/cpu/packed_bytes.h"
#include "plimsoll/kernels/cuda/cuda_kernels.h"
#include "plimsoll/kernels/testing/differential_case.h"

namespace plimsoll::kernels::cuda {

// One allocation on the device with all tensors of a run.
class DeviceMemory {
 public:
  static constexpr std::size_t kGuardBytes = 256;
  static constexpr int kGuardValue = 0xA5;
  static constexpr int kFillValue = 0xFF;

  // The sizes of its blocks in bytes.
  explicit DeviceMemory(const std::vector<std::size_t>& sizes) : sizes_(sizes) {
    std::size_t total = 0;
    for (const std::size_t size : sizes_) {
      offsets_.push_back(total);
      total += (size + kGuardBytes + kGuardBytes - 1) / kGuardBytes * kGuardBytes;
    }
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&data_), total + kGuardBytes), cudaSuccess);
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      cudaMemset(block(i), kFillValue, sizes_[i]);
      cudaMemset(block(i) + sizes_[i], kGuardValue, guard_of(i));
    }
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() { cudaFree(data_); }

  std::byte* block(std::size_t i) { return data_ + offsets_[i]; }
  void write(std::size_t i, const std::vector<std::byte>& bytes) {
    cudaMemcpy(block(i), bytes.data(), bytes.size(), cudaMemcpyHostToDevice);
  }
  std::vector<std::byte> read(const std::byte* from, std::size_t bytes) {
    std::vector<std::byte> out(bytes);
    cudaMemcpy(out.data(), from, bytes, cudaMemcpyDeviceToHost);
    return out;
  }
  bool intact() {
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      for (const std::byte byte : read(block(i) + sizes_[i], guard_of(i))) {
        if (byte != std::byte{kGuardValue}) return false;
      }
    }
    return true;
  }

 private:
  std::size_t guard_of(std::size_t i) const {
    const std::size_t taken =
        (sizes_[i] + kGuardBytes + kGuardBytes - 1) / kGuardBytes * kGuardBytes;
    return taken - sizes_[i];
  }
  std::vector<std::size_t> sizes_;
  std::vector<std::size_t> offsets_;
  std::byte* data_ = nullptr;
};

enum class Launching { kPlain, kCaptured };

// The outputs of the graph's one node, row-major. Captured: the run is recorded into a CUDA graph
// (after a first plain one, which loads code) and replayed.
inline Outputs run_on_device(const Built& built, Kernel& kernel,
                             std::optional<ops::InPlace::Pair> overlaid = std::nullopt,
                             Launching how = Launching::kPlain) {
  const ir::Node& node = built.graph.nodes.front();
  const auto size_of = [&](ValueId id) {
    return id.valid() ? static_cast<std::size_t>(ir::bytes_of(built.graph.value(id).type).value)
                      : std::size_t{0};
  };
  std::vector<std::size_t> sizes;
  for (const ValueId id : node.inputs) sizes.push_back(size_of(id));
  for (const ValueId id : node.outputs) sizes.push_back(size_of(id));
  sizes.push_back(static_cast<std::size_t>(kernel.scratch().value));
  DeviceMemory memory(sizes);
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  const auto fill_inputs = [&] {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.inputs[i].valid()) continue;
      memory.write(
          i, from_row_major(built.graph.value(node.inputs[i]).type, built.arrays[i].to_bytes()));
    }
  };
  fill_inputs();
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    inputs.push_back(node.inputs[i].valid() ? memory.block(i) : nullptr);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const bool over = overlaid && overlaid->output == static_cast<int>(i);
    outputs.push_back(over ? memory.block(static_cast<std::size_t>(overlaid->input))
                           : memory.block(node.inputs.size() + i));
  }
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  const Arguments arguments{inputs, outputs, memory.block(sizes.size() - 1), stream};
  cudaDeviceSynchronize();  // the copies above are another stream's
  kernel.run(arguments);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess) << cudaGetErrorString(cudaGetLastError());
  if (how == Launching::kCaptured) {
    fill_inputs();
    cudaDeviceSynchronize();
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    kernel.run(arguments);
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess) << "cannot be captured";
    EXPECT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
  }
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  cudaStreamDestroy(stream);
  EXPECT_TRUE(memory.intact()) << "wrote behind a tensor or its scratch";
  Outputs out;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const ir::TensorType& type = built.graph.value(node.outputs[i]).type;
    out.push_back(to_row_major(type, memory.read(outputs[i], size_of(node.outputs[i]))));
  }
  return out;
}

// All a kernel promises: it agrees with the reference, two runs and a captured one have the same
// bits, and so has a result that lies over an input.
inline void expect_kept_promises(const Differential& d, const Built& built, Kernel& kernel) {
  const Outputs once = run_on_device(built, kernel);
  compare(d, built, once);
  EXPECT_EQ(once, run_on_device(built, kernel)) << "two runs differ";
  EXPECT_EQ(once, run_on_device(built, kernel, std::nullopt, Launching::kCaptured))
      << "a captured run differs";
  if (!kernel.in_place()) return;
  for (const ops::InPlace::Pair& pair : overlays(built)) {
    EXPECT_EQ(once, run_on_device(built, kernel, pair))
        << "output " << pair.output << " laid over input " << pair.input << " differs";
  }
}

}  // namespace plimsoll::kernels::cuda

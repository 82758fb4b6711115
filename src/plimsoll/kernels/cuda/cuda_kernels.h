// The kernels of a CUDA device: one per node, chosen by operator, types and layouts.
//
// What stands where:
//   pointwise.h       every operator whose elements do not depend on each other, and every copy:
//                     one generator that writes CUDA from an expression and compiles it with NVRTC
//   product.h         matrix products, by cuBLASLt; attention_flash.cu: attention on tensor cores
//   cudnn_convolution.h   convolutions, by cuDNN's backend API (the graph API without its C++ front
//                     end, which Debian does not have); direct kernels for what cuDNN refuses
//   reduction.h       sums, extremes, statistics and parameter gradients: one deterministic scheme
//   *.cu              the kernels themselves and the functions that launch them, with plain
//                     arguments, in C++17
//
// Promises, beyond those of kernels/kernel.h:
//  1. run() only enqueues on Arguments::queue: no allocation, no synchronisation, capturable. The
//     first run of a kernel may load its code: run once before capturing.
//  2. The same inputs give the same bits: no floating-point atomics, no algorithm that a library
//     calls nondeterministic, none chosen by time or by free memory.
//  3. Scratch is what the chosen algorithm states.
//  4. An operator or a type without a kernel is an error that names both.
//
// Arithmetic: fp32 is fp32 unless `tf32` allows products and convolutions to round their operands
// to 10 bits of mantissa, as PyTorch's switch does; bf16 and fp16 are computed in fp32. Addresses
// are aligned to 256 bytes.
//
// Threads: kernels of one device may run from several threads when each has a stream of its own.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "plimsoll/kernels/activation_encoding.h"
#include "plimsoll/kernels/cuda/kernel_options.h"
#include "plimsoll/kernels/kernel.h"

namespace plimsoll::kernels::cuda {

// A kernel for this node on the given device, which becomes the thread's current one.
Result<std::unique_ptr<Kernel>> make_cuda_kernel(const ir::Graph& graph, NodeId node,
                                                 const CudaKernelOptions& options);
// The same with the engines of this text (engine_trail.h), which a kernel of its signature took.
Result<std::unique_ptr<Kernel>> make_cuda_kernel(const ir::Graph& graph, NodeId node,
                                                 const CudaKernelOptions& options,
                                                 const std::string& engines);

// The facts of every node of the graph, for planning on the machine that runs.
Result<ops::KernelTable> cuda_kernel_facts(const ir::Graph& graph,
                                           const CudaKernelOptions& options);

// An activation into its compressed buffer and out of it, enqueued on a stream. The bytes of a
// block are those that the CPU's codec writes (coded_blocks.cuh).
Status encode_on_card(const ActivationEncoding& encoding, void* queue);
Status decode_on_card(const ActivationEncoding& encoding, void* queue);

// Whether the table has a kernel for this operator (of some types).
bool has_cuda_kernel(std::string_view op);

// Whose kernels they are: "cuDNN 9.19.0, cuBLASLt 13.1.0". Plans name it.
std::string cuda_kernel_library();

}  // namespace plimsoll::kernels::cuda

#include "plimsoll/kernels/cuda/cuda_kernels.h"

#include <algorithm>

#include <cublasLt.h>
#include <cudnn.h>

#include "plimsoll/kernels/cuda/table.h"

namespace plimsoll::kernels::cuda {
namespace {

Status use_device(int device) {
  if (const cudaError_t error = cudaSetDevice(device); error != cudaSuccess) {
    return fail(ErrorCode::kDevice, "CUDA device {}: {}", device, cudaGetErrorString(error));
  }
  return {};
}

bool is_empty(const ir::TensorType& type) {
  return type.shape.elements() == 0;
}

bool makes_nothing(const Site& site) {
  for (int i = 0; i < site.outputs(); ++i) {
    if (!is_empty(site.out(i))) return false;
  }
  return true;
}

Made make_with(const ir::Graph& graph, NodeId id, const CudaKernelOptions& options) {
  PLIMSOLL_RETURN_IF_ERROR(use_device(options.device));
  const ir::Node& node = graph.node(id);
  const Site site{{graph, node}, options};
  if (!has_cuda_kernel(node.op))
    return bad_input("{}: has no CUDA kernel; run this model with --device cpu", node.op);
  if (makes_nothing(site)) return nothing_to_do();
  for (const TableEntry& entry : cuda_table()) {
    if (entry.op != node.op) continue;
    Made kernel = entry.make(site);
    if (!kernel) return forward(kernel, node.op);
    if (*kernel != nullptr) return kernel;
  }
  return bad_input("{}: has no CUDA kernel for {}; run this model with --device cpu", node.op,
                   ops::signature(graph, node));
}

Made make_on(EngineTrail trail, const ir::Graph& graph, NodeId id, CudaKernelOptions options) {
  options.engines = &trail;
  PLIMSOLL_TRY(std::unique_ptr<Kernel> kernel, make_with(graph, id, options));
  if (const Status used = trail.finish(); !used) return forward(used, graph.node(id).op);
  kernel->set_engine(trail.text());
  return kernel;
}

}  // namespace

Made make_cuda_kernel(const ir::Graph& graph, NodeId id, const CudaKernelOptions& options) {
  return make_on(EngineTrail(), graph, id, options);
}

Made make_cuda_kernel(const ir::Graph& graph, NodeId id, const CudaKernelOptions& options,
                      const std::string& engines) {
  return make_on(EngineTrail(engines), graph, id, options);
}

Result<ops::KernelTable> cuda_kernel_facts(const ir::Graph& graph,
                                           const CudaKernelOptions& options) {
  ops::KernelTable table;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    std::string key = ops::signature(graph, graph.nodes[n]);
    if (table.facts.contains(key)) continue;
    PLIMSOLL_TRY(const std::unique_ptr<Kernel> kernel, make_cuda_kernel(graph, NodeId(n), options));
    table.facts.emplace(std::move(key), ops::KernelFacts{kernel->scratch(), kernel->in_place(), 0,
                                                         kernel->engine()});
  }
  return table;
}

bool has_cuda_kernel(std::string_view op) {
  return std::ranges::any_of(cuda_table(), [&](const TableEntry& entry) { return entry.op == op; });
}

std::string cuda_kernel_library() {
  const std::size_t dnn = cudnnGetVersion();
  const std::size_t blas = cublasLtGetVersion();
  return fmt::format("cuDNN {}.{}.{}, cuBLASLt {}.{}.{}", dnn / 10000, dnn / 100 % 100, dnn % 100,
                     blas / 10000, blas / 100 % 100, blas % 100);
}

}  // namespace plimsoll::kernels::cuda

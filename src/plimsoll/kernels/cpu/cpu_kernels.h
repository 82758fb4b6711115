// The kernels of the CPU: one per node, chosen by operator and types.
#pragma once

#include <memory>
#include <string>

#include "plimsoll/kernels/kernel.h"

namespace plimsoll::kernels {

struct CpuKernelOptions {
  int threads = 0;  // 0: as many as the machine has
};

// A kernel for this node, or an error that names the operator and its types. Where no hand-made
// kernel takes the types (fp64, rare integer types), the reference evaluation of the operator's
// definition serves.
Result<std::unique_ptr<Kernel>> make_cpu_kernel(const ir::Graph& graph, const ir::Node& node,
                                                const CpuKernelOptions& options);

// Whether a hand-made kernel takes this node: what the zoo trains on must not fall back.
bool has_special_kernel(const ir::Graph& graph, const ir::Node& node);

// The facts of every node of the graph, for planning on the machine that runs.
Result<ops::KernelTable> cpu_kernel_facts(const ir::Graph& graph, const CpuKernelOptions& options);
// The same beside what the table has of other graphs.
Status add_cpu_kernel_facts(const ir::Graph& graph, const CpuKernelOptions& options,
                            ops::KernelTable& table);

// What kernels choose by, and whose they are: "avx512_core", "oneDNN 2.6.3". Plans name both.
std::string cpu_instruction_set();
std::string cpu_kernel_library();

}  // namespace plimsoll::kernels

#include "plimsoll/kernels/cpu/cpu_kernels.h"

#include <algorithm>

#include <omp.h>
#include <dnnl.hpp>

#include "plimsoll/kernels/cpu/reference.h"
#include "plimsoll/kernels/cpu/table.h"
#include "plimsoll/kernels/cpu/widened.h"
#include "plimsoll/ops/collective/collective.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::kernels {
namespace {

std::unique_ptr<Kernel> special_kernel(const Site& site) {
  for (const TableEntry& entry : cpu_table()) {
    if (entry.op != site.node.op) continue;
    try {
      if (auto kernel = entry.make(site)) return kernel;
      if (entry.names_dtype) continue;
      if (auto kernel = make_widened(site, entry.make, entry.pointwise)) return kernel;
    } catch (const dnnl::error&) {
      // oneDNN has no primitive for these types or layouts on this machine.
    }
  }
  return nullptr;
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_cpu_kernel(const ir::Graph& graph, const ir::Node& node,
                                                const CpuKernelOptions& options) {
  const Site site{graph, node, options.threads > 0 ? options.threads : omp_get_num_procs()};
  use_threads(site.threads);
  if (auto kernel = special_kernel(site)) return kernel;
  if (ops::is_collective(node.op)) {
    const std::int64_t ranks = ops::attributes_of(node).integer("ranks");
    if (ranks > 1)
      return bad_input("{}: is a step of {} ranks; run it with --ranks {}", node.op, ranks, ranks);
  }
  if (ops::find_definition(node.op) == nullptr)
    return bad_input("{}: no kernel and no reference evaluation", node.op);
  return make_reference(site);
}

bool has_special_kernel(const ir::Graph& graph, const ir::Node& node) {
  return special_kernel(Site{graph, node, omp_get_num_procs()}) != nullptr;
}

Result<ops::KernelTable> cpu_kernel_facts(const ir::Graph& graph, const CpuKernelOptions& options) {
  ops::KernelTable table;
  PLIMSOLL_RETURN_IF_ERROR(add_cpu_kernel_facts(graph, options, table));
  return table;
}

Status add_cpu_kernel_facts(const ir::Graph& graph, const CpuKernelOptions& options,
                            ops::KernelTable& table) {
  for (const ir::Node& node : graph.nodes) {
    std::string key = ops::signature(graph, node);
    if (table.facts.contains(key)) continue;
    PLIMSOLL_TRY(const std::unique_ptr<Kernel> kernel, make_cpu_kernel(graph, node, options));
    table.facts.emplace(std::move(key), ops::KernelFacts{kernel->scratch(), kernel->in_place(), 0});
  }
  return {};
}

}  // namespace plimsoll::kernels

#include "plimsoll/runtime/executor.h"

#include <chrono>
#include <unordered_map>

#include "plimsoll/kernels/cpu/cpu_kernels.h"
#include "plimsoll/ops/kernel_facts.h"

namespace plimsoll::runtime {

Result<KernelSet> KernelSet::make(const ir::Graph& graph, const ExecutorOptions& options) {
  KernelSet out;
  std::unordered_map<std::string, std::size_t> known;
  for (const ir::Node& node : graph.nodes) {
    const std::string key =
        options.watch_kernel ? fmt::format("{}", out.index_.size()) : ops::signature(graph, node);
    const auto [place, fresh] = known.try_emplace(key, out.kernels_.size());
    if (fresh) {
      PLIMSOLL_TRY(std::unique_ptr<kernels::Kernel> kernel,
                   kernels::make_cpu_kernel(graph, node, {options.threads}));
      if (options.wrap_kernel) kernel = options.wrap_kernel(node, std::move(kernel));
      if (options.watch_kernel) kernel = options.watch_kernel(graph, node, std::move(kernel));
      out.kernels_.push_back(std::move(kernel));
    }
    out.index_.push_back(place->second);
  }
  return out;
}

trace::Category category_of(const ir::Graph& graph, ValueId value) {
  switch (graph.value(value).kind) {
    case ir::ValueKind::kInput:
      return trace::Category::kInput;
    case ir::ValueKind::kWeight:
    case ir::ValueKind::kState:
    case ir::ValueKind::kConstant:
      return trace::Category::kWeight;
    case ir::ValueKind::kOptimizer:
      return trace::Category::kOptimizer;
    case ir::ValueKind::kActivation:
      return trace::Category::kActivation;
    case ir::ValueKind::kGradient:
      return trace::Category::kGradient;
  }
  return trace::Category::kUnknown;
}

std::string display_name(const ir::Node& node) {
  return fmt::format("{}{}{}", node.layer, node.layer.empty() ? "" : "/", node.op);
}

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace plimsoll::runtime

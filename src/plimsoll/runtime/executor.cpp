#include "plimsoll/runtime/executor.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <unordered_map>

#include "plimsoll/base/check.h"
#include "plimsoll/ops/kernel_facts.h"

namespace plimsoll::runtime {

Status Executor::write(ValueId source, std::span<const std::byte> bytes) {
  return write(source, [&](std::span<std::byte> memory) -> Status {
    PLIMSOLL_CHECK(memory.size() == bytes.size(), "a source was given too much or too little");
    std::copy(bytes.begin(), bytes.end(), memory.begin());
    return {};
  });
}

Result<std::vector<std::byte>> Executor::read(ValueId source) {
  std::vector<std::byte> out;
  PLIMSOLL_RETURN_IF_ERROR(read(source, [&](std::span<const std::byte> memory) -> Status {
    out.assign(memory.begin(), memory.end());
    return {};
  }));
  return out;
}

Result<std::vector<std::byte>> Executor::result(ValueId output) {
  std::vector<std::byte> out;
  PLIMSOLL_RETURN_IF_ERROR(result(output, [&](std::span<const std::byte> memory) -> Status {
    out.assign(memory.begin(), memory.end());
    return {};
  }));
  return out;
}

std::shared_ptr<kernels::Backend> backend_of(const ExecutorOptions& options) {
  return options.backend ? options.backend : kernels::make_cpu_backend(options.threads);
}

Result<KernelSet> KernelSet::make(const ir::Graph& graph, kernels::Backend& backend,
                                  const ExecutorOptions& options, const std::vector<bool>& wanted) {
  KernelSet out;
  std::unordered_map<std::string, std::size_t> known;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const ir::Node& node = graph.nodes[n];
    if (!wanted.empty() && !wanted[n]) {
      out.index_.push_back(std::numeric_limits<std::size_t>::max());
      continue;
    }
    const std::string key =
        options.watch_kernel ? fmt::format("{}", n) : ops::signature(graph, node);
    const auto [place, fresh] = known.try_emplace(key, out.kernels_.size());
    if (fresh) {
      PLIMSOLL_TRY(std::unique_ptr<kernels::Kernel> kernel, backend.make_kernel(graph, NodeId(n)));
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

void KernelSet::add_rounding(std::optional<kernels::Rounding>& all) const {
  for (const auto& kernel : kernels_) {
    const auto one = kernel->rounding();
    if (!one) continue;
    if (!all) all.emplace();
    all->add(*one);
  }
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

#include "plimsoll/kernels/backend/backend.h"

#include <charconv>

#include "plimsoll/device/cpu/cpu_device.h"
#include "plimsoll/kernels/cpu/compressed_activation.h"
#include "plimsoll/kernels/cpu/convolution_layout.h"
#include "plimsoll/kernels/cpu/cpu_kernels.h"

namespace plimsoll::kernels {
namespace {

class CpuKernels : public Backend {
 public:
  CpuKernels(std::unique_ptr<device::Device> device, int threads, const BackendRewrites& rewrites)
      : device_(std::move(device)), threads_(threads), rewrites_(rewrites) {}

  device::Device& device() const override { return *device_; }
  Result<std::unique_ptr<Kernel>> make_kernel(const ir::Graph& graph, NodeId node) override {
    return make_cpu_kernel(graph, graph.node(node), {threads_});
  }
  ir::Layout weights_layout(const ir::Graph& graph, const ir::Node& node) const override {
    return convolution_weights_layout(graph, node, {threads_});
  }
  // Three channels fill no vector.
  std::int64_t least_channels_last() const override { return 8; }
  BackendRewrites rewrites() const override { return rewrites_; }
  std::string instruction_set() const override { return cpu_instruction_set(); }
  std::string library() const override { return cpu_kernel_library(); }
  Status encode(const ActivationEncoding& encoding, void* /*queue*/) override {
    encode_on_host(encoding);
    return {};
  }
  Status decode(const ActivationEncoding& encoding, void* /*queue*/) override {
    decode_on_host(encoding);
    return {};
  }

 private:
  std::unique_ptr<device::Device> device_;
  int threads_;
  BackendRewrites rewrites_;
};

}  // namespace

Result<std::optional<int>> parse_cuda(std::string_view device) {
  constexpr std::string_view kCuda = "cuda";
  if (!device.starts_with(kCuda)) return std::optional<int>();
  const std::string_view rest = device.substr(kCuda.size());
  if (rest.empty()) return std::optional(0);
  int index = -1;
  const char* const end = rest.data() + rest.size();
  if (rest.front() != ':') return std::optional<int>();
  const auto [stopped, code] = std::from_chars(rest.data() + 1, end, index);
  if (code != std::errc() || stopped != end || index < 0)
    return fail(ErrorCode::kUsage, "device '{}': expects cuda, or cuda:0 for the first card",
                device);
  return std::optional(index);
}

std::shared_ptr<Backend> make_cpu_backend(int threads) {
  return std::make_shared<CpuKernels>(device::make_cpu_device(), threads, BackendRewrites{});
}

std::shared_ptr<Backend> make_fake_backend(const device::FakeDeviceOptions& options) {
  // As on a card, where the CPU's kernels can: they widen what they read in scratch.
  return std::make_shared<CpuKernels>(
      device::make_fake_device(options), 1,
      BackendRewrites{.drops_casts = true, .lays_out_weights = true});
}

Result<ops::KernelTable> kernel_facts(Backend& backend, const ir::Graph& graph) {
  ops::KernelTable table;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    std::string key = ops::signature(graph, graph.nodes[n]);
    if (table.facts.contains(key)) continue;
    if (const std::optional<ops::KernelFacts> known = backend.known_facts(key)) {
      table.facts.emplace(std::move(key), *known);
      continue;
    }
    PLIMSOLL_TRY(std::unique_ptr<Kernel> kernel, backend.make_kernel(graph, NodeId(n)));
    const ops::KernelFacts facts{kernel->scratch(), kernel->in_place(), 0, kernel->engine()};
    backend.keep(key, std::move(kernel));
    table.facts.emplace(std::move(key), facts);
  }
  return table;
}

}  // namespace plimsoll::kernels

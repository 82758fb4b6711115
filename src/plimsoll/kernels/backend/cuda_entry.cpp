// libplimsoll_cuda.so: the way from the program to a card and its kernels (cuda_library.h).
#include <map>
#include <vector>

#include "plimsoll/device/cuda/cuda_device.h"
#include "plimsoll/device/cuda/cuda_sequence.h"
#include "plimsoll/kernels/backend/card_wishes.h"
#include "plimsoll/kernels/backend/cuda_library.h"
#include "plimsoll/kernels/cuda/cuda_kernels.h"

namespace plimsoll::kernels {
namespace {

class CudaBackend final : public Backend {
 public:
  CudaBackend(std::unique_ptr<device::cuda::CudaCard> card, const CudaOptions& options)
      : card_(std::move(card)), options_{options.tf32, options.index, nullptr} {}

  device::Device& device() const override { return *card_; }
  Result<std::unique_ptr<Kernel>> make_kernel(const ir::Graph& graph, NodeId node) override {
    const std::string signature = ops::signature(graph, graph.node(node));
    const auto wanted = engines_.find(signature);
    const auto kept = kept_.find(signature);
    if (kept != kept_.end()) {
      std::unique_ptr<Kernel> out = std::move(kept->second);
      kept_.erase(kept);
      if (wanted == engines_.end() || out->engine() == wanted->second) return out;
    }
    if (wanted == engines_.end()) return cuda::make_cuda_kernel(graph, node, options_);
    return cuda::make_cuda_kernel(graph, node, options_, wanted->second);
  }
  void use_engines(const std::map<std::string, std::string>& engines) override {
    engines_ = engines;
  }
  void keep(const std::string& signature, std::unique_ptr<Kernel> kernel) override {
    kept_.emplace(signature, std::move(kernel));
  }
  ir::Layout weights_layout(const ir::Graph& graph, const ir::Node& node) const override {
    return card_weights_layout(graph, node);
  }
  std::int64_t least_channels_last() const override { return kLeastChannelsOfCard; }
  BackendRewrites rewrites() const override { return card_rewrites(); }
  std::string instruction_set() const override {
    return options_.tf32 ? card_->architecture() + " tf32" : card_->architecture();
  }
  std::string library() const override { return cuda::cuda_kernel_library(); }
  Status call_host(void* queue, void (*call)(void*), void* subject) override {
    return device::cuda::check(cudaLaunchHostFunc(static_cast<cudaStream_t>(queue), call, subject),
                               "a call of the host");
  }
  Status encode(const ActivationEncoding& encoding, void* queue) override {
    return cuda::encode_on_card(encoding, queue);
  }
  Status decode(const ActivationEncoding& encoding, void* queue) override {
    return cuda::decode_on_card(encoding, queue);
  }
  Bytes context_bytes() const override { return card_->context_bytes(); }
  Bytes bare_context_bytes() const override { return card_->bare_context_bytes(); }
  std::string neighbours() const override { return card_->neighbours(); }

 private:
  std::unique_ptr<device::cuda::CudaCard> card_;
  cuda::CudaKernelOptions options_;
  std::map<std::string, std::string> engines_;           // by signature
  std::map<std::string, std::unique_ptr<Kernel>> kept_;  // gone before the card
};

Result<std::shared_ptr<Backend>> open(const CudaOptions& options) {
  device::use_addresses(*options.addresses);  // the program's, not this library's
  PLIMSOLL_TRY(std::unique_ptr<device::cuda::CudaCard> card,
               device::cuda::open_cuda_card(options.index));
  return std::make_shared<CudaBackend>(std::move(card), options);
}

}  // namespace
}  // namespace plimsoll::kernels

extern "C" {

__attribute__((visibility("default"))) std::uint64_t plimsoll_cuda_build() {
  return plimsoll::kernels::cuda_library_build();
}

__attribute__((visibility("default"))) void plimsoll_cuda_open(
    const plimsoll::kernels::CudaOptions& options,
    plimsoll::Result<std::shared_ptr<plimsoll::kernels::Backend>>& out) {
  out = plimsoll::kernels::open(options);
}
}

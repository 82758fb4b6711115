#include "plimsoll/kernels/backend/paper_card.h"

#include "plimsoll/kernels/backend/card_wishes.h"

namespace plimsoll::kernels {
namespace {

constexpr Bytes kAlignmentOfCard(256);

class PaperDevice final : public device::Device {
 public:
  PaperDevice(std::string name, Bytes memory) : name_(std::move(name)), memory_(memory) {}

  std::string name() const override { return name_; }
  Bytes alignment() const override { return kAlignmentOfCard; }
  bool computes_on_host() const override { return false; }
  Result<device::MemoryInfo> memory_info() override { return device::MemoryInfo{memory_, memory_}; }
  Result<std::unique_ptr<device::Arena>> make_arena(Bytes /*bytes*/) override { return nothing(); }
  Result<std::unique_ptr<device::Arena>> make_host_arena(Bytes /*bytes*/) override {
    return nothing();
  }
  Result<std::unique_ptr<device::Pool>> make_pool(device::Stream& /*stream*/) override {
    return nothing();
  }
  Result<std::unique_ptr<device::Stream>> make_stream() override { return nothing(); }
  Result<std::unique_ptr<device::Sequence>> make_sequence(
      std::vector<device::Command> /*commands*/) override {
    return nothing();
  }
  Status write(std::byte* /*to*/, std::span<const std::byte> /*from*/) override {
    return nothing();
  }
  Status read(std::span<std::byte> /*to*/, const std::byte* /*from*/) override { return nothing(); }

  tl::unexpected<Error> nothing() const {
    return fail(ErrorCode::kDevice, "device '{}': a profile to plan with; nothing runs on it",
                name_);
  }

 private:
  std::string name_;
  Bytes memory_;
};

class PaperKernels final : public Backend {
 public:
  explicit PaperKernels(PaperCard card)
      : card_(std::move(card)), device_(card_.name, card_.memory) {}

  device::Device& device() const override { return device_; }
  Result<std::unique_ptr<Kernel>> make_kernel(const ir::Graph& /*graph*/,
                                              NodeId /*node*/) override {
    return device_.nothing();
  }
  std::optional<ops::KernelFacts> known_facts(const std::string& signature) const override {
    const auto known = card_.kernels.find(signature);
    return known == card_.kernels.end() ? ops::KernelFacts{} : known->second;
  }
  bool is_here() const override { return false; }
  ir::Layout weights_layout(const ir::Graph& graph, const ir::Node& node) const override {
    return card_weights_layout(graph, node);
  }
  std::int64_t least_channels_last() const override { return kLeastChannelsOfCard; }
  BackendRewrites rewrites() const override { return card_rewrites(); }
  std::string instruction_set() const override { return card_.instruction_set; }
  std::string library() const override { return card_.library; }

 private:
  PaperCard card_;
  mutable PaperDevice device_;
};

}  // namespace

std::shared_ptr<Backend> make_paper_card(PaperCard card) {
  return std::make_shared<PaperKernels>(std::move(card));
}

}  // namespace plimsoll::kernels

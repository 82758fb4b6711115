#include "plimsoll/device/cuda/cuda_device.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/checked.h"
#include "plimsoll/device/cuda/card_usage.h"
#include "plimsoll/device/cuda/cuda_sequence.h"
#include "plimsoll/device/cuda/pinned_arena.h"
#include "plimsoll/device/cuda/slab_providers.h"
#include "plimsoll/memory/caching_allocator.h"

namespace plimsoll::device::cuda {
namespace {

constexpr std::int64_t kCudaAlignment = 256;
constexpr std::int64_t kGranularity = 2 << 20;

// One range of addresses: mapped, then a hole.
class MappedArena final : public Arena {
 public:
  MappedArena(const CudaDevice& device, Bytes& taken) : provider_(device), taken_(taken) {}
  MappedArena(const MappedArena&) = delete;
  MappedArena& operator=(const MappedArena&) = delete;
  ~MappedArena() override {
    if (mapped_) provider_.unmap(base_, room_);
    if (handle_) provider_.release(*handle_, room_);
    if (base_ != 0) provider_.unreserve(base_, room_ + Bytes(kGranularity));
    if (mapped_) taken_ -= room_;
  }

  bool take(Bytes bytes) {
    const std::int64_t wanted = std::max<std::int64_t>(bytes.value, 1);
    const auto rounded = checked_round_up(wanted, kGranularity);
    if (!rounded || *rounded > (std::int64_t{1} << 46)) return false;
    room_ = Bytes(*rounded);
    const auto base = provider_.reserve(room_ + Bytes(kGranularity));
    if (!base) return false;
    base_ = *base;
    handle_ = provider_.create(room_);
    if (!handle_) return false;
    mapped_ = provider_.map(base_, *handle_, room_);
    if (!mapped_) return false;
    taken_ += room_;
    const memory::Address end = base_ + static_cast<memory::Address>(room_.value);
    data_ = reinterpret_cast<std::byte*>(
        end - static_cast<memory::Address>(round_up(wanted, kCudaAlignment)));
    size_ = bytes;
    return true;
  }

 private:
  VmmProvider provider_;
  Bytes& taken_;
  Bytes room_;
  memory::Address base_ = 0;
  std::optional<PhysicalHandle> handle_;
  bool mapped_ = false;
};

class CudaPool final : public Pool {
 public:
  CudaPool(const CudaDevice& device, Stream& stream)
      : provider_(device),
        order_(device),
        stream_{reinterpret_cast<std::uint64_t>(stream.queue())},
        allocator_(provider_, order_) {}

  std::byte* allocate(Bytes bytes) override {
    return reinterpret_cast<std::byte*>(allocator_.allocate(std::max(bytes, Bytes(1)), stream_));
  }
  void free(std::byte* memory) override {
    if (memory != nullptr) allocator_.free(reinterpret_cast<memory::Address>(memory));
  }
  Bytes peak_in_use() const override { return Bytes(allocator_.counts().all.requested.peak); }

 private:
  VmmProvider provider_;
  CudaOrder order_;
  memory::StreamId stream_;
  memory::CachingAllocator allocator_;
};

class Card final : public CudaCard {
 public:
  Status start(int index) {
    PLIMSOLL_TRY(const int count, device_count());
    if (index >= count)
      return fail(ErrorCode::kDevice, "CUDA: there is no card {}: this machine has {}", index,
                  count);
    std::array<char, 32> address{};
    PLIMSOLL_RETURN_IF_ERROR(
        check(cudaDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()), index),
              "the card cannot be opened"));
    pci_address_ = address.data();
    before_ = used_on_card(pci_address_);
    PLIMSOLL_RETURN_IF_ERROR(
        check(cudaGetDeviceProperties(&properties_, index), "the card cannot be opened"));
    if (properties_.major < 8)
      return fail(ErrorCode::kDevice, "CUDA: {} is sm_{}{}; sm_80 or later is needed",
                  properties_.name, properties_.major, properties_.minor);
    PLIMSOLL_RETURN_IF_ERROR(check(cudaSetDevice(index), "the card cannot be opened"));
    PLIMSOLL_RETURN_IF_ERROR(check(cudaFree(nullptr), "no context on the card"));
    PLIMSOLL_TRY(facts_, open_device(index));
    facts_.number = enrolled_.emplace(fmt::format("cuda:{}", index)).number();
    if (!facts_.mapping)
      return fail(ErrorCode::kDevice, "CUDA: {} cannot map memory (no virtual memory management)",
                  properties_.name);
    bare_ = context_bytes();
    return {};
  }

  std::string name() const override { return fmt::format("cuda:{}", facts_.index); }
  DeviceNumber number() const override { return facts_.number; }
  Bytes alignment() const override { return Bytes(kCudaAlignment); }
  bool computes_on_host() const override { return false; }
  std::string description() const override {
    return fmt::format("{}, {}", properties_.name, architecture());
  }
  std::string architecture() const override {
    return fmt::format("sm_{}{}", properties_.major, properties_.minor);
  }

  Result<MemoryInfo> memory_info() override {
    std::size_t free = 0;
    std::size_t total = 0;
    PLIMSOLL_RETURN_IF_ERROR(check(cudaMemGetInfo(&free, &total), "the free memory of the card"));
    return MemoryInfo{Bytes(static_cast<std::int64_t>(free)),
                      Bytes(static_cast<std::int64_t>(total))};
  }

  Result<std::unique_ptr<Arena>> make_arena(Bytes bytes) override {
    auto out = std::make_unique<MappedArena>(facts_, taken_);
    if (out->take(bytes)) return out;
    out.reset();
    PLIMSOLL_TRY(const MemoryInfo info, memory_info());
    return fail(ErrorCode::kDoesNotFit, "{} ({}): {} are needed, {} of {} are free{}", name(),
                properties_.name, human(bytes), human(info.free), human(info.total),
                neighbours().empty() ? "" : "; " + neighbours());
  }
  Result<std::unique_ptr<Arena>> make_host_arena(Bytes bytes) override {
    auto out = std::make_unique<PinnedArena>();
    if (const cudaError_t code = out->take(bytes); code != cudaSuccess) {
      cudaGetLastError();
      return fail(ErrorCode::kDoesNotFit, "{} of host memory cannot be pinned: {}", human(bytes),
                  cudaGetErrorString(code));
    }
    return out;
  }
  Result<std::unique_ptr<Pool>> make_pool(Stream& stream) override {
    return std::make_unique<CudaPool>(facts_, stream);
  }
  Result<std::unique_ptr<Stream>> make_stream() override {
    PLIMSOLL_TRY(std::unique_ptr<CudaStream> out, CudaStream::make(facts_.number));
    return out;
  }
  Result<std::unique_ptr<Sequence>> make_sequence(std::vector<Command> commands) override {
    return make_cuda_sequence(facts_.number, std::move(commands));
  }

  Status write(std::byte* to, std::span<const std::byte> from) override {
    if (from.empty()) return {};
    PLIMSOLL_RETURN_IF_ERROR(check_copy(facts_.number, to, from.data(), [&] {
      return fmt::format("write of {} bytes", from.size());
    }));
    return check(cudaMemcpy(to, from.data(), from.size(), cudaMemcpyDefault), "a copy to the card");
  }
  Status read(std::span<std::byte> to, const std::byte* from) override {
    if (to.empty()) return {};
    PLIMSOLL_RETURN_IF_ERROR(check_copy(facts_.number, to.data(), from, [&] {
      return fmt::format("read of {} bytes", to.size());
    }));
    return check(cudaMemcpy(to.data(), from, to.size(), cudaMemcpyDefault), "a copy from the card");
  }
  Status read_between(void* queue, std::span<std::byte> to, const std::byte* from) override {
    if (to.empty()) return {};
    auto* const stream = static_cast<cudaStream_t>(queue);
    PLIMSOLL_RETURN_IF_ERROR(
        check(cudaMemcpyAsync(to.data(), from, to.size(), cudaMemcpyDefault, stream),
              "a copy from the card"));
    return check(cudaStreamSynchronize(stream), "a copy from the card");
  }

  Bytes context_bytes() const override {
    const auto now = used_on_card(pci_address_);
    if (!now || !before_) return Bytes(0);
    return std::max(Bytes(0), *now - *before_ - taken_);
  }
  Bytes bare_context_bytes() const override { return bare_; }
  std::string neighbours() const override {
    const std::vector<unsigned> others = other_processes(pci_address_);
    return others.empty()
               ? ""
               : fmt::format("other processes use the card too: {}", fmt::join(others, ", "));
  }

 private:
  std::optional<Enrolled> enrolled_;
  CudaDevice facts_;
  cudaDeviceProp properties_{};
  std::string pci_address_;
  std::optional<Bytes> before_;  // used before this process had a context
  Bytes bare_;
  Bytes taken_;  // mapped by arenas
};

}  // namespace

Result<std::unique_ptr<CudaCard>> open_cuda_card(int index) {
  auto out = std::make_unique<Card>();
  PLIMSOLL_RETURN_IF_ERROR(out->start(index));
  return out;
}

}  // namespace plimsoll::device::cuda

// libplimsoll_nccl.so: ranks with a CUDA card each. Collectives are enqueued on the stream that
// they are handed and can be captured into a graph; without a stream they are waited for.
//
// The ranks meet through the communicator for host memory, which also watches who is still there.
#include <cuda_runtime.h>
#include <nccl.h>

#include <cstdlib>
#include <optional>

#include "plimsoll/dist/communicator_library.h"

namespace plimsoll::dist {
namespace {

std::optional<ncclDataType_t> type_of(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kF64:
      return ncclFloat64;
    case ir::DType::kF32:
      return ncclFloat32;
    case ir::DType::kF16:
      return ncclFloat16;
    case ir::DType::kBF16:
      return ncclBfloat16;
    case ir::DType::kI64:
      return ncclInt64;
    case ir::DType::kI32:
      return ncclInt32;
    case ir::DType::kU64:
      return ncclUint64;
    case ir::DType::kU32:
      return ncclUint32;
    case ir::DType::kI8:
      return ncclInt8;
    case ir::DType::kU8:
      return ncclUint8;
    default:
      return std::nullopt;
  }
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::shared_ptr<Communicator> host, ncclComm_t comm)
      : Communicator(host->rank(), host->size()), host_(std::move(host)), comm_(comm) {}
  ~NcclCommunicator() override { leave(); }

  std::string_view name() const override { return "nccl"; }
  int local_rank() const override { return host_->local_rank(); }
  int local_size() const override { return host_->local_size(); }
  bool adds_in_order() const override { return false; }
  [[noreturn]] void abort(ErrorCode code, const std::string& line) override {
    host_->abort(code, line);
    std::abort();  // never reached; the compiler cannot see it
  }
  void abort_at_exit(ErrorCode code) override {
    comm_ = nullptr;
    host_->abort_at_exit(code);
  }
  void expect_steps(double seconds) override { host_->expect_steps(seconds); }
  void finish() override {
    leave();
    host_->finish();
  }
  Communicator& host() override { return *host_; }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes, void* queue) override {
    const auto stream = static_cast<cudaStream_t>(queue);
    if (const cudaError_t failed =
            cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
        failed != cudaSuccess)
      abort(ErrorCode::kDevice, fmt::format("rank {}: {}", rank(), cudaGetErrorString(failed)));
  }
  void zero(std::byte* to, std::size_t bytes, void* queue) override {
    if (const cudaError_t failed = cudaMemsetAsync(to, 0, bytes, static_cast<cudaStream_t>(queue));
        failed != cudaSuccess)
      abort(ErrorCode::kDevice, fmt::format("rank {}: {}", rank(), cudaGetErrorString(failed)));
  }

 protected:
  bool sums(ir::DType dtype) const override { return type_of(dtype).has_value(); }
  void sum_all(std::byte* data, std::int64_t count, ir::DType dtype, void* queue) override {
    run("all_reduce", queue, [&](cudaStream_t stream) {
      return ncclAllReduce(data, data, static_cast<std::size_t>(count), *type_of(dtype), ncclSum,
                           comm_, stream);
    });
  }
  void sum_parts(std::byte* data, std::int64_t count, ir::DType dtype, void* queue) override {
    std::byte* const own = data + rank() * count * ir::bits(dtype) / 8;
    run("reduce_scatter", queue, [&](cudaStream_t stream) {
      return ncclReduceScatter(data, own, static_cast<std::size_t>(count), *type_of(dtype), ncclSum,
                               comm_, stream);
    });
  }
  void sum_own(const std::byte* data, Parts parts, std::byte* out, ir::DType dtype,
               void* queue) override {
    run("reduce_scatter", queue, [&](cudaStream_t stream) {
      ncclResult_t code = ncclGroupStart();
      for (int r = 0; r < size() && code == ncclSuccess; ++r) {
        const Interval<std::int64_t> part = parts[static_cast<std::size_t>(r)];
        const std::int64_t count = (part.end - part.begin) * 8 / ir::bits(dtype);
        code = ncclReduce(data + part.begin, out, static_cast<std::size_t>(count), *type_of(dtype),
                          ncclSum, r, comm_, stream);
      }
      const ncclResult_t end = ncclGroupEnd();
      return code == ncclSuccess ? end : code;
    });
  }
  void exchange(const std::byte*, Parts, std::byte*, void*) override {
    abort(ErrorCode::kInternal, "NCCL: sums in the order of ranks are not made on cards");
  }
  void gather_parts(std::byte* data, Parts parts, void* queue) override {
    run("all_gather", queue, [&](cudaStream_t stream) {
      ncclResult_t out = ncclGroupStart();
      for (int r = 0; r < size() && out == ncclSuccess; ++r) {
        const Interval<std::int64_t> part = parts[static_cast<std::size_t>(r)];
        out = ncclBroadcast(data + part.begin, data + part.begin,
                            static_cast<std::size_t>(part.end - part.begin), ncclUint8, r, comm_,
                            stream);
      }
      const ncclResult_t end = ncclGroupEnd();
      return out == ncclSuccess ? end : out;
    });
  }
  void send_to_all(std::byte* data, std::int64_t bytes, int root, void* queue) override {
    run("broadcast", queue, [&](cudaStream_t stream) {
      return ncclBroadcast(data, data, static_cast<std::size_t>(bytes), ncclUint8, root, comm_,
                           stream);
    });
  }

 private:
  void leave() {
    if (comm_ != nullptr) ncclCommDestroy(comm_);
    comm_ = nullptr;
  }

  template <typename Enqueue>
  void run(const char* what, void* queue, Enqueue enqueue) {
    const auto stream = static_cast<cudaStream_t>(queue);
    const ncclResult_t code = enqueue(stream);
    if (code != ncclSuccess)
      abort(ErrorCode::kDevice,
            fmt::format("rank {}: NCCL {}: {}", rank(), what, ncclGetErrorString(code)));
    if (queue != nullptr) return;
    if (const cudaError_t failed = cudaStreamSynchronize(stream); failed != cudaSuccess)
      abort(ErrorCode::kDevice,
            fmt::format("rank {}: NCCL {}: {}", rank(), what, cudaGetErrorString(failed)));
  }

  std::shared_ptr<Communicator> host_;
  ncclComm_t comm_;
};

Opened open(const std::shared_ptr<Communicator>& host, int card) {
  if (const cudaError_t failed = cudaSetDevice(card); failed != cudaSuccess)
    return fail(ErrorCode::kDevice, "NCCL: card {}: {}", card, cudaGetErrorString(failed));
  // Buffers that a captured step sums lie in an arena of mapped ranges without handles to share:
  // NCCL cannot register them for others to reach, and need not try.
  ::setenv("NCCL_GRAPH_REGISTER", "0", 0);
  ncclUniqueId id{};
  if (host->rank() == 0) {
    if (const ncclResult_t code = ncclGetUniqueId(&id); code != ncclSuccess)
      return fail(ErrorCode::kDevice, "NCCL: {}", ncclGetErrorString(code));
  }
  host->broadcast(reinterpret_cast<std::byte*>(&id), Bytes(sizeof id), 0);
  ncclComm_t comm = nullptr;
  if (const ncclResult_t code = ncclCommInitRank(&comm, host->size(), id, host->rank());
      code != ncclSuccess)
    return fail(ErrorCode::kDevice, "NCCL: rank {} of {}, card {}: {}", host->rank(), host->size(),
                card, ncclGetErrorString(code));
  return std::make_shared<NcclCommunicator>(host, comm);
}

}  // namespace
}  // namespace plimsoll::dist

extern "C" {

__attribute__((visibility("default"))) std::uint64_t plimsoll_nccl_build() {
  return plimsoll::dist::communicator_library_build();
}

__attribute__((visibility("default"))) void plimsoll_nccl_open(
    const std::shared_ptr<plimsoll::dist::Communicator>& host, int card,
    plimsoll::dist::Opened& out) {
  out = plimsoll::dist::open(host, card);
}
}

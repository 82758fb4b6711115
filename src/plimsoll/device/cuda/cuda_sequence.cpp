#include "plimsoll/device/cuda/cuda_sequence.h"

#include <chrono>

namespace plimsoll::device::cuda {

Status check(cudaError_t code, std::string_view what) {
  if (code == cudaSuccess) return {};
  return fail(ErrorCode::kDevice, "CUDA: {}: {} ({})", what, cudaGetErrorString(code),
              cudaGetErrorName(code));
}

Result<std::unique_ptr<CudaStream>> CudaStream::make(DeviceNumber device) {
  auto out = std::make_unique<CudaStream>(device);
  PLIMSOLL_RETURN_IF_ERROR(
      check(cudaStreamCreateWithFlags(&out->stream_, cudaStreamNonBlocking), "a stream"));
  return out;
}

CudaStream::~CudaStream() {
  for (const cudaEvent_t event : marks_) cudaEventDestroy(event);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

Status CudaStream::run(Work& work) {
  PLIMSOLL_RETURN_IF_ERROR(work.run(stream_));
  return check(cudaGetLastError(), "a kernel cannot be launched");
}

Status CudaStream::fill(std::byte* to, std::byte value, std::size_t bytes) {
  PLIMSOLL_RETURN_IF_ERROR(
      check_copy(device_, to, nullptr, [=] { return fmt::format("fill of {} bytes", bytes); }));
  return check(cudaMemsetAsync(to, static_cast<int>(value), bytes, stream_), "a fill");
}

Status CudaStream::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  PLIMSOLL_RETURN_IF_ERROR(
      check_copy(device_, to, from, [=] { return fmt::format("copy of {} bytes", bytes); }));
  return check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "a copy");
}

Status CudaStream::synchronize() {
  before_ += static_cast<std::int64_t>(marked_);
  marked_ = 0;
  return check(cudaStreamSynchronize(stream_), "a kernel failed");
}

Result<std::int64_t> CudaStream::mark() {
  if (marked_ == marks_.size()) {
    cudaEvent_t event = nullptr;
    PLIMSOLL_RETURN_IF_ERROR(
        check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event"));
    marks_.push_back(event);
  }
  PLIMSOLL_RETURN_IF_ERROR(check(cudaEventRecord(marks_[marked_], stream_), "an event"));
  ++marked_;
  return before_ + static_cast<std::int64_t>(marked_);
}

Status CudaStream::wait(Stream& other, std::int64_t mark) {
  const auto& marked = static_cast<CudaStream&>(other);
  if (mark <= marked.before_) return {};
  const auto number = static_cast<std::size_t>(mark - marked.before_ - 1);
  return check(cudaStreamWaitEvent(stream_, marked.marks_[number], 0), "a wait");
}

namespace {

// Events of one kind, destroyed together.
class Events {
 public:
  Events() = default;
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  ~Events() {
    for (const cudaEvent_t event : events_) cudaEventDestroy(event);
  }

  Status make(std::size_t count, unsigned flags) {
    while (events_.size() < count) {
      cudaEvent_t event = nullptr;
      PLIMSOLL_RETURN_IF_ERROR(check(cudaEventCreateWithFlags(&event, flags), "an event"));
      events_.push_back(event);
    }
    return {};
  }
  cudaEvent_t operator[](std::size_t i) const { return events_[i]; }

 private:
  std::vector<cudaEvent_t> events_;
};

class CudaSequence final : public Sequence {
 public:
  CudaSequence(DeviceNumber device, std::vector<Command> commands)
      : device_(device), commands_(std::move(commands)) {}
  CudaSequence(const CudaSequence&) = delete;
  CudaSequence& operator=(const CudaSequence&) = delete;
  ~CudaSequence() override {
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  }

  Status start(int streams) {
    for (int stream = 0; stream < streams; ++stream) {
      PLIMSOLL_TRY(std::unique_ptr<CudaStream> made, CudaStream::make(device_));
      streams_.push_back(std::move(made));
    }
    event_of_.resize(commands_.size(), kNone);
    std::size_t events = 0;
    for (const Command& command : commands_) {
      for (const std::uint32_t wait : command.waits) {
        if (commands_[wait].stream != command.stream && event_of_[wait] == kNone)
          event_of_[wait] = events++;
      }
    }
    PLIMSOLL_RETURN_IF_ERROR(waits_.make(events, cudaEventDisableTiming));
    // The first starts the streams, the others end them.
    return ends_.make(static_cast<std::size_t>(streams), cudaEventDisableTiming);
  }

  Status run() override {
    if (!warm_) {
      PLIMSOLL_RETURN_IF_ERROR(enqueue(false));
      PLIMSOLL_RETURN_IF_ERROR(wait());
      warm_ = true;
      return {};
    }
    if (graph_ == nullptr) PLIMSOLL_RETURN_IF_ERROR(capture());
    PLIMSOLL_RETURN_IF_ERROR(check(cudaGraphLaunch(graph_, first()), "the graph of a step"));
    return wait();
  }

  Status run_timed(std::span<Interval<std::int64_t>> ran) override {
    PLIMSOLL_RETURN_IF_ERROR(times_.make(2 * commands_.size() + 1, cudaEventDefault));
    const cudaEvent_t start = times_[2 * commands_.size()];
    PLIMSOLL_RETURN_IF_ERROR(check(cudaEventRecord(start, first()), "an event"));
    PLIMSOLL_RETURN_IF_ERROR(check(cudaEventSynchronize(start), "an event"));
    const std::int64_t zero = std::chrono::duration_cast<std::chrono::nanoseconds>(
                                  std::chrono::steady_clock::now().time_since_epoch())
                                  .count();
    PLIMSOLL_RETURN_IF_ERROR(enqueue(true));
    PLIMSOLL_RETURN_IF_ERROR(wait());
    warm_ = true;
    const auto at = [&](std::size_t event, std::int64_t& out) {
      float milliseconds = 0;
      Status status =
          check(cudaEventElapsedTime(&milliseconds, start, times_[event]), "an event's time");
      out = zero + static_cast<std::int64_t>(1e6 * static_cast<double>(milliseconds));
      return status;
    };
    for (std::size_t c = 0; c < commands_.size(); ++c) {
      PLIMSOLL_RETURN_IF_ERROR(at(2 * c, ran[c].begin));
      PLIMSOLL_RETURN_IF_ERROR(at(2 * c + 1, ran[c].end));
    }
    return {};
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  cudaStream_t first() const { return streams_.front()->get(); }
  Status wait() { return check(cudaStreamSynchronize(first()), "a kernel of the step failed"); }

  Status capture() {
    PLIMSOLL_RETURN_IF_ERROR(
        check(cudaStreamBeginCapture(first(), cudaStreamCaptureModeRelaxed), "a capture"));
    Status enqueued = enqueue(false);
    cudaGraph_t recorded = nullptr;
    Status ended = check(cudaStreamEndCapture(first(), &recorded), "the end of a capture");
    PLIMSOLL_RETURN_IF_ERROR(std::move(enqueued));
    PLIMSOLL_RETURN_IF_ERROR(std::move(ended));
    Status made =
        check(cudaGraphInstantiate(&graph_, recorded, 0), "the graph of a step cannot be made");
    cudaGraphDestroy(recorded);
    PLIMSOLL_RETURN_IF_ERROR(std::move(made));
    return check(cudaGraphUpload(graph_, first()), "the graph of a step cannot be uploaded");
  }

  Status enqueue(bool timed) {
    PLIMSOLL_RETURN_IF_ERROR(check(cudaEventRecord(ends_[0], first()), "an event"));
    for (std::size_t s = 1; s < streams_.size(); ++s)
      PLIMSOLL_RETURN_IF_ERROR(
          check(cudaStreamWaitEvent(streams_[s]->get(), ends_[0], 0), "a wait"));
    for (std::size_t c = 0; c < commands_.size(); ++c) {
      const Command& command = commands_[c];
      CudaStream& stream = *streams_[command.stream];
      for (const std::uint32_t wait : command.waits) {
        if (commands_[wait].stream != command.stream)
          PLIMSOLL_RETURN_IF_ERROR(
              check(cudaStreamWaitEvent(stream.get(), waits_[event_of_[wait]], 0), "a wait"));
      }
      if (timed)
        PLIMSOLL_RETURN_IF_ERROR(check(cudaEventRecord(times_[2 * c], stream.get()), "an event"));
      PLIMSOLL_RETURN_IF_ERROR(enqueue(stream, command));
      if (timed)
        PLIMSOLL_RETURN_IF_ERROR(
            check(cudaEventRecord(times_[2 * c + 1], stream.get()), "an event"));
      if (event_of_[c] != kNone)
        PLIMSOLL_RETURN_IF_ERROR(
            check(cudaEventRecord(waits_[event_of_[c]], stream.get()), "an event"));
    }
    for (std::size_t s = 1; s < streams_.size(); ++s) {
      PLIMSOLL_RETURN_IF_ERROR(check(cudaEventRecord(ends_[s], streams_[s]->get()), "an event"));
      PLIMSOLL_RETURN_IF_ERROR(check(cudaStreamWaitEvent(first(), ends_[s], 0), "a wait"));
    }
    return {};
  }

  static Status enqueue(CudaStream& stream, const Command& command) {
    switch (command.kind) {
      case Command::Kind::kNothing:
        break;
      case Command::Kind::kWork:
        return stream.run(*command.work);
      case Command::Kind::kCopy:
        return check(cudaMemcpyAsync(command.to, command.from, command.bytes, cudaMemcpyDefault,
                                     stream.get()),
                     "a copy");
      case Command::Kind::kFill:
        return stream.fill(command.to, command.value, command.bytes);
    }
    return {};
  }

  const DeviceNumber device_;
  const std::vector<Command> commands_;
  std::vector<std::unique_ptr<CudaStream>> streams_;
  std::vector<std::size_t> event_of_;  // by command: its event in waits_
  Events waits_;
  Events ends_;
  Events times_;
  bool warm_ = false;  // every kernel has run once
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<Sequence>> make_cuda_sequence(DeviceNumber device,
                                                     std::vector<Command> commands) {
  PLIMSOLL_TRY(const int streams, check_commands(commands, device));
  auto out = std::make_unique<CudaSequence>(device, std::move(commands));
  PLIMSOLL_RETURN_IF_ERROR(out->start(streams));
  return out;
}

}  // namespace plimsoll::device::cuda

#include "plimsoll/device/cpu/cpu_device.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "plimsoll/base/machine_memory.h"
#include "plimsoll/device/cpu/host_memory.h"
#include "plimsoll/device/work_queue.h"

namespace plimsoll::device {
namespace {

constexpr std::int32_t kAllDone = std::numeric_limits<std::int32_t>::max();

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Status check_host_copy(const char* kind, const void* to, const void* from, std::size_t bytes) {
  return check_copy(kHost, to, from, [=] { return fmt::format("{} of {} bytes", kind, bytes); });
}

Status run_here(const Command& command) {
  switch (command.kind) {
    case Command::Kind::kNothing:
      break;
    case Command::Kind::kWork:
      return command.work->run(nullptr);
    case Command::Kind::kCopy:
      std::memcpy(command.to, command.from, command.bytes);
      break;
    case Command::Kind::kFill:
      std::memset(command.to, static_cast<int>(command.value), command.bytes);
      break;
  }
  return {};
}

class CpuSequence final : public Sequence {
 public:
  CpuSequence(std::vector<Command> commands, int streams)
      : commands_(std::move(commands)), streams_(streams) {}

  Status run() override { return run_all({}); }
  Status run_timed(std::span<Interval<std::int64_t>> ran) override { return run_all(ran); }

 private:
  Status run_all(std::span<Interval<std::int64_t>> ran) {
    for (auto& done : done_) done.store(-1, std::memory_order_relaxed);
    failed_.store(false, std::memory_order_relaxed);
    status_ = {};
    std::vector<std::thread> workers;
    for (int stream = 1; stream < streams_; ++stream)
      workers.emplace_back([this, stream, ran] { run_stream(stream, ran); });
    run_stream(0, ran);
    for (std::thread& worker : workers) worker.join();
    return status_;
  }

  void run_stream(int stream, std::span<Interval<std::int64_t>> ran) {
    auto& done = done_[static_cast<std::size_t>(stream)];
    for (std::size_t c = 0; c < commands_.size() && !failed_.load(std::memory_order_acquire); ++c) {
      const Command& command = commands_[c];
      if (command.stream != stream) continue;
      for (const std::uint32_t wait : command.waits) wait_for(wait);
      if (failed_.load(std::memory_order_acquire)) break;
      const std::int64_t begin = ran.empty() ? 0 : steady_ns();
      note(run_here(command));
      if (!ran.empty()) ran[c] = {begin, steady_ns()};
      done.store(static_cast<std::int32_t>(c), std::memory_order_release);
      if (streams_ > 1) done.notify_all();
    }
    // Nobody waits for a stream that has ended, for whatever reason.
    done.store(kAllDone, std::memory_order_release);
    if (streams_ > 1) done.notify_all();
  }

  void wait_for(std::uint32_t command) {
    auto& done = done_[commands_[command].stream];
    for (std::int32_t seen = done.load(std::memory_order_acquire);
         seen < static_cast<std::int32_t>(command); seen = done.load(std::memory_order_acquire)) {
      done.wait(seen, std::memory_order_acquire);
    }
  }

  void note(Status status) {
    if (status) return;
    const std::scoped_lock lock(failure_);
    if (status_) status_ = std::move(status);
    failed_.store(true, std::memory_order_release);
  }

  const std::vector<Command> commands_;
  const int streams_;
  std::array<std::atomic<std::int32_t>, kMostStreams> done_{};
  std::mutex failure_;
  Status status_;  // the first failure
  std::atomic<bool> failed_{false};
};

// A stream whose marks a thread can wait for.
class HostStream : public Stream {
 public:
  virtual void reach(std::int64_t mark) const = 0;
};

// Works on the caller's thread: what was enqueued is over.
class CpuStream final : public HostStream {
 public:
  Status run(Work& work) override { return work.run(nullptr); }
  Status fill(std::byte* to, std::byte value, std::size_t bytes) override {
    PLIMSOLL_RETURN_IF_ERROR(check_host_copy("fill", to, nullptr, bytes));
    std::memset(to, static_cast<int>(value), bytes);
    return {};
  }
  Status copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    PLIMSOLL_RETURN_IF_ERROR(check_host_copy("copy", to, from, bytes));
    std::memcpy(to, from, bytes);
    return {};
  }
  Status synchronize() override { return {}; }
  Result<std::int64_t> mark() override { return ++marks_; }
  Status wait(Stream& other, std::int64_t mark) override {
    static_cast<HostStream&>(other).reach(mark);
    return {};
  }
  void reach(std::int64_t) const override {}

 private:
  std::int64_t marks_ = 0;
};

// Has a thread of its own.
class CpuCopyStream final : public HostStream {
 public:
  CpuCopyStream() : thread_([this] { live(); }) {}
  CpuCopyStream(const CpuCopyStream&) = delete;
  CpuCopyStream& operator=(const CpuCopyStream&) = delete;
  ~CpuCopyStream() override {
    queue_.push([this] { over_ = true; });
    thread_.join();
  }

  Status run(Work& work) override {
    queue_.push([&work, this] {
      Status status = work.run(nullptr);
      if (status_ && !status) status_ = std::move(status);
    });
    return {};
  }
  Status fill(std::byte* to, std::byte value, std::size_t bytes) override {
    PLIMSOLL_RETURN_IF_ERROR(check_host_copy("fill", to, nullptr, bytes));
    queue_.push([=] { std::memset(to, static_cast<int>(value), bytes); });
    return {};
  }
  Status copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    PLIMSOLL_RETURN_IF_ERROR(check_host_copy("copy", to, from, bytes));
    queue_.push([=] { std::memcpy(to, from, bytes); });
    return {};
  }
  Status synchronize() override {
    queue_.wait_until_done();
    return status_;
  }
  Result<std::int64_t> mark() override {
    queue_.push([this, mark = ++marks_] {
      passed_.store(mark, std::memory_order_release);
      passed_.notify_all();
    });
    return marks_;
  }
  Status wait(Stream& other, std::int64_t mark) override {
    queue_.push([&other, mark] { static_cast<HostStream&>(other).reach(mark); });
    return {};
  }
  void reach(std::int64_t mark) const override {
    for (std::int64_t seen = passed_.load(std::memory_order_acquire); seen < mark;
         seen = passed_.load(std::memory_order_acquire))
      passed_.wait(seen, std::memory_order_acquire);
  }

 private:
  void live() {
    while (!over_) queue_.run_one();
  }

  WorkQueue queue_;
  std::atomic<std::int64_t> passed_{0};
  std::int64_t marks_ = 0;
  bool over_ = false;  // of the thread
  Status status_;      // of the thread; the host reads it behind wait_until_done()
  std::thread thread_;
};

class CpuDevice final : public Device {
 public:
  std::string name() const override { return "cpu"; }
  Bytes alignment() const override { return Bytes(64); }
  bool computes_on_host() const override { return true; }
  Result<MemoryInfo> memory_info() override {
    return MemoryInfo{machine_memory(), machine_memory()};
  }
  Result<std::unique_ptr<Arena>> make_arena(Bytes bytes) override { return take_host_arena(bytes); }
  Result<std::unique_ptr<Arena>> make_host_arena(Bytes bytes) override {
    return take_host_arena(bytes);
  }
  Result<std::unique_ptr<Pool>> make_pool(Stream&) override {
    return std::make_unique<HostMemoryPool>();
  }
  Result<std::unique_ptr<Stream>> make_stream() override { return std::make_unique<CpuStream>(); }
  Result<std::unique_ptr<Stream>> make_copy_stream() override {
    return std::make_unique<CpuCopyStream>();
  }
  Result<std::unique_ptr<Sequence>> make_sequence(std::vector<Command> commands) override {
    PLIMSOLL_TRY(const int streams, check_commands(commands));
    return std::make_unique<CpuSequence>(std::move(commands), streams);
  }
  Status write(std::byte* to, std::span<const std::byte> from) override {
    PLIMSOLL_RETURN_IF_ERROR(check_host_copy("write", to, from.data(), from.size()));
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
    return {};
  }
  Status read(std::span<std::byte> to, const std::byte* from) override {
    PLIMSOLL_RETURN_IF_ERROR(check_host_copy("read", to.data(), from, to.size()));
    if (!to.empty()) std::memcpy(to.data(), from, to.size());
    return {};
  }
};

}  // namespace

std::unique_ptr<Device> make_cpu_device() {
  return std::make_unique<CpuDevice>();
}

}  // namespace plimsoll::device

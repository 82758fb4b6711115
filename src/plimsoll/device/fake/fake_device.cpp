#include "plimsoll/device/fake/fake_device.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <unordered_map>
#include <vector>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/checked.h"
#include "plimsoll/base/random.h"
#include "plimsoll/device/cpu/host_memory.h"
#include "plimsoll/device/work_queue.h"

namespace plimsoll::device {
namespace {

constexpr int kUnwritten = 0xa5;
constexpr std::int64_t kFakeAlignment = 256;

std::int64_t fake_clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Counts how often it was passed; whoever waits names the count.
class FakeEvent {
 public:
  void pass(std::int64_t count) {
    passed_.store(count, std::memory_order_release);
    passed_.notify_all();
  }
  void wait(std::int64_t count) const {
    for (std::int64_t seen = passed_.load(std::memory_order_acquire); seen < count;
         seen = passed_.load(std::memory_order_acquire))
      passed_.wait(seen, std::memory_order_acquire);
  }

 private:
  std::atomic<std::int64_t> passed_{0};
};

class FakeStream final : public Stream {
 public:
  FakeStream(DeviceNumber device, std::uint64_t seed, int longest_delay)
      : device_(device),
        random_(seed),
        longest_delay_(longest_delay),
        thread_([this] { live(); }) {}
  ~FakeStream() override {
    queue_.push([this] { over_ = true; });
    thread_.join();
  }

  Status run(Work& work) override {
    enqueue([&work, this] { note(work.run(nullptr)); });
    return {};
  }
  Status fill(std::byte* to, std::byte value, std::size_t bytes) override {
    PLIMSOLL_RETURN_IF_ERROR(
        check_copy(device_, to, nullptr, [=] { return fmt::format("fill of {} bytes", bytes); }));
    enqueue([=] { std::memset(to, static_cast<int>(value), bytes); });
    return {};
  }
  Status synchronize() override {
    queue_.wait_until_done();
    return status_;
  }

  Status copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    PLIMSOLL_RETURN_IF_ERROR(
        check_copy(device_, to, from, [=] { return fmt::format("copy of {} bytes", bytes); }));
    enqueue([=] { std::memcpy(to, from, bytes); });
    return {};
  }
  Result<std::int64_t> mark() override {
    record(passed_, ++marks_);
    return marks_;
  }
  Status wait(Stream& other, std::int64_t mark) override {
    wait(static_cast<FakeStream&>(other).passed_, mark);
    return {};
  }
  void record(FakeEvent& event, std::int64_t count) {
    queue_.push([&event, count] { event.pass(count); });
  }
  void wait(const FakeEvent& event, std::int64_t count) {
    queue_.push([&event, count] { event.wait(count); });
  }
  void stamp(std::int64_t& at) {
    queue_.push([&at] { at = fake_clock_ns(); });
  }

 private:
  void enqueue(std::function<void()> job) {
    queue_.push([this, job = std::move(job)] {
      dawdle();
      if (status_) job();
    });
  }
  void note(Status status) {
    if (!status && status_) status_ = std::move(status);
  }
  void live() {
    while (!over_) queue_.run_one();
  }
  void dawdle() {
    if (longest_delay_ == 0) return;
    // Mostly a little, now and then so long that the others are done.
    const std::int64_t times = random_.below(8) == 0 ? 16 : 1;
    const std::int64_t turns = times * random_.below(longest_delay_);
    for (std::int64_t i = 0; i < turns; ++i) idle_.store(i, std::memory_order_relaxed);
    if (times > 1) std::this_thread::yield();
  }

  const DeviceNumber device_;
  WorkQueue queue_;
  FakeEvent passed_;  // of the marks
  std::int64_t marks_ = 0;
  Random random_;  // of the thread
  const int longest_delay_;
  std::atomic<std::int64_t> idle_{0};  // so that the loop is not optimised away
  bool over_ = false;                  // of the thread
  Status status_;                      // of the thread; the host reads it behind wait_until_done()
  std::thread thread_;
};

// Commands enqueued one after the other, as they are on a GPU.
class FakeSequence final : public Sequence {
 public:
  FakeSequence(DeviceNumber device, std::vector<Command> commands, int streams, std::uint64_t seed,
               int delay)
      : commands_(std::move(commands)), events_(commands_.size()), awaited_(commands_.size()) {
    for (const Command& command : commands_) {
      for (const std::uint32_t wait : command.waits)
        awaited_[wait] = awaited_[wait] || commands_[wait].stream != command.stream;
    }
    for (int stream = 0; stream < streams; ++stream)
      streams_.push_back(std::make_unique<FakeStream>(
          device, mix64(seed + static_cast<std::uint64_t>(stream)), delay));
  }

  Status run() override { return run_all({}); }
  Status run_timed(std::span<Interval<std::int64_t>> ran) override { return run_all(ran); }

 private:
  Status run_all(std::span<Interval<std::int64_t>> ran) {
    ++runs_;
    for (std::size_t c = 0; c < commands_.size(); ++c) {
      const Command& command = commands_[c];
      FakeStream& stream = *streams_[command.stream];
      for (const std::uint32_t wait : command.waits) {
        if (awaited_[wait]) stream.wait(events_[wait], runs_);
      }
      if (!ran.empty()) stream.stamp(ran[c].begin);
      PLIMSOLL_RETURN_IF_ERROR(enqueue(stream, command));
      if (!ran.empty()) stream.stamp(ran[c].end);
      if (awaited_[c]) stream.record(events_[c], runs_);
    }
    Status out;
    for (const auto& stream : streams_) {
      Status status = stream->synchronize();
      if (out && !status) out = std::move(status);
    }
    return out;
  }

  static Status enqueue(FakeStream& stream, const Command& command) {
    switch (command.kind) {
      case Command::Kind::kNothing:
        break;
      case Command::Kind::kWork:
        return stream.run(*command.work);
      case Command::Kind::kCopy:
        return stream.copy(command.to, command.from, command.bytes);
      case Command::Kind::kFill:
        return stream.fill(command.to, command.value, command.bytes);
    }
    return {};
  }

  const std::vector<Command> commands_;
  std::vector<FakeEvent> events_;  // by command
  std::vector<bool> awaited_;      // by another stream
  std::vector<std::unique_ptr<FakeStream>> streams_;
  std::int64_t runs_ = 0;
};

// Blocks of the host's pool at addresses that the device wants; the host writes nothing into them,
// because streams may still use what was freed.
class FakePool final : public Pool {
 public:
  explicit FakePool(DeviceNumber device) : device_(device) {}
  FakePool(const FakePool&) = delete;
  FakePool& operator=(const FakePool&) = delete;
  ~FakePool() override {
    for (const auto& [address, block] : blocks_) addresses().remove(address);
  }
  std::byte* allocate(Bytes bytes) override {
    std::byte* const block = pool_.allocate(bytes + Bytes(kFakeAlignment));
    if (block == nullptr) return nullptr;
    const auto at = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(block));
    std::byte* const out = block + (round_up(at, kFakeAlignment) - at);
    blocks_.emplace(out, Block{block, bytes});
    addresses().add(out, static_cast<std::size_t>(bytes.value), device_);
    in_use_ += bytes;
    peak_ = std::max(peak_, in_use_);
    return out;
  }
  void free(std::byte* memory) override {
    const auto found = blocks_.find(memory);
    if (found == blocks_.end()) return;
    in_use_ -= found->second.bytes;
    addresses().remove(memory);
    pool_.free(found->second.begin);
    blocks_.erase(found);
  }
  Bytes peak_in_use() const override { return peak_; }

 private:
  struct Block {
    std::byte* begin;
    Bytes bytes;
  };
  DeviceNumber device_;
  HostMemoryPool pool_;
  std::unordered_map<std::byte*, Block> blocks_;
  Bytes in_use_;
  Bytes peak_;
};

class FakeDevice final : public Device {
 public:
  explicit FakeDevice(const FakeDeviceOptions& options) : options_(options) {}

  std::string name() const override { return "fake"; }
  Bytes alignment() const override { return Bytes(kFakeAlignment); }
  DeviceNumber number() const override { return enrolled_.number(); }
  bool computes_on_host() const override { return false; }
  Result<MemoryInfo> memory_info() override { return MemoryInfo{options_.memory, options_.memory}; }

  Result<std::unique_ptr<Arena>> make_arena(Bytes bytes) override {
    if (bytes > options_.memory)
      return fail(ErrorCode::kDoesNotFit, "fake: {} are needed, {} are free", human(bytes),
                  human(options_.memory));
    return arena_of(bytes, enrolled_.number());
  }
  Result<std::unique_ptr<Arena>> make_host_arena(Bytes bytes) override {
    return arena_of(bytes, kHost);
  }
  static Result<std::unique_ptr<Arena>> arena_of(Bytes bytes, DeviceNumber device) {
    // The host's arena ends at a multiple of 64; addresses must be multiples of 256.
    PLIMSOLL_TRY(
        std::unique_ptr<Arena> out,
        take_host_arena(Bytes(round_up(std::max<std::int64_t>(bytes.value, 1), kFakeAlignment))));
    std::memset(out->data(), kUnwritten, static_cast<std::size_t>(out->size().value));
    return std::make_unique<Part>(std::move(out), bytes, device);
  }
  Result<std::unique_ptr<Pool>> make_pool(Stream&) override {
    return std::make_unique<FakePool>(enrolled_.number());
  }
  Result<std::unique_ptr<Stream>> make_stream() override {
    return std::make_unique<FakeStream>(enrolled_.number(), mix64(options_.seed ^ ++made_),
                                        options_.longest_delay);
  }
  Result<std::unique_ptr<Sequence>> make_sequence(std::vector<Command> commands) override {
    PLIMSOLL_TRY(const int streams, check_commands(commands, enrolled_.number()));
    return std::make_unique<FakeSequence>(enrolled_.number(), std::move(commands), streams,
                                          mix64(options_.seed + (++made_ << 8)),
                                          options_.longest_delay);
  }

  Status write(std::byte* to, std::span<const std::byte> from) override {
    PLIMSOLL_RETURN_IF_ERROR(check_copy(enrolled_.number(), to, from.data(), [&] {
      return fmt::format("write of {} bytes", from.size());
    }));
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
    return {};
  }
  Status read(std::span<std::byte> to, const std::byte* from) override {
    PLIMSOLL_RETURN_IF_ERROR(check_copy(enrolled_.number(), to.data(), from, [&] {
      return fmt::format("read of {} bytes", to.size());
    }));
    if (!to.empty()) std::memcpy(to.data(), from, to.size());
    return {};
  }

 private:
  class Part final : public Arena {
   public:
    Part(std::unique_ptr<Arena> whole, Bytes bytes, DeviceNumber device)
        : whole_(std::move(whole)), device_(device) {
      data_ = whole_->data();
      size_ = bytes;
      if (device_ != kHost)
        addresses().add(data_, static_cast<std::size_t>(whole_->size().value), device_);
    }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;
    ~Part() override {
      if (device_ != kHost) addresses().remove(data_);
    }

   private:
    std::unique_ptr<Arena> whole_;
    DeviceNumber device_;
  };

  FakeDeviceOptions options_;
  Enrolled enrolled_{"fake"};
  std::uint64_t made_ = 0;
};

}  // namespace

std::unique_ptr<Device> make_fake_device(const FakeDeviceOptions& options) {
  return std::make_unique<FakeDevice>(options);
}

}  // namespace plimsoll::device

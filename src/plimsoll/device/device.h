// A device: memory taken once, streams that work in order, and sequences of commands that are bound
// to addresses once and run again and again.
//
// Three stand behind this interface:
//
//   cpu    device memory is host memory, work runs on the caller's thread; streams other than 0
//          have a thread each while a sequence runs (cpu/cpu_device.h)
//   cuda   device memory is a card's, streams are CUDA streams, a sequence is one CUDA graph
//          (cuda/cuda_device.h, in libplimsoll_cuda.so)
//   fake   behaves as a GPU does (nothing has happened before somebody waited for it, host code
//          does not run in streams, memory is written and read through the device) over the host's,
//          with threads that wait at random: a race in a plan or in the runtime shows up as wrong
//          numbers, and under ThreadSanitizer as a report, without a GPU (fake/fake_device.h)
//
// A sequence is what a step of a plan becomes. Commands of one stream run in order; across streams
// a command waits for those that it names, all of which come before it in the list:
//
//   0  stream 0  work   conv             compute  0 ────── 2 ─────────
//   1  stream 1  copy   out, waits 0     out           1 ──────
//   2  stream 0  work   relu
//   3  stream 0  fill   waits 1          (3 is behind 2 and 1)
//
// Running a sequence returns when all of it is over. Nothing is allocated by running one.
//
// Work is what a kernel does. On a device that computes on the host (`computes_on_host`) it does
// its job when it is run, and may fail; on others it enqueues on the stream that it is handed,
// waits for nothing and can be captured.
//
// Threads: one caller. Failures: kDevice where a device is missing or failed, kDoesNotFit where it
// has not enough memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/interval.h"
#include "plimsoll/base/result.h"
#include "plimsoll/base/units.h"
#include "plimsoll/device/address_registry.h"

namespace plimsoll::device {

// One contiguous range of memory; dies with this object. Behind the end of device memory (rounded
// up to the device's alignment) nothing is mapped: who writes there faults.
class Arena {
 public:
  virtual ~Arena() = default;
  std::byte* data() const { return data_; }
  Bytes size() const { return size_; }
  std::span<std::byte> bytes() const { return {data_, static_cast<std::size_t>(size_.value)}; }

 protected:
  std::byte* data_ = nullptr;
  Bytes size_;
};

class Work {
 public:
  virtual ~Work() = default;
  // `queue` is the stream to enqueue on: a cudaStream_t on CUDA, null where it is done at once.
  virtual Status run(void* queue) = 0;
};

struct Command {
  enum class Kind : std::uint8_t { kNothing, kWork, kCopy, kFill };
  Kind kind = Kind::kNothing;
  std::uint8_t stream = 0;
  std::vector<std::uint32_t> waits{};  // earlier commands, of other streams
  Work* work = nullptr;                // must outlive the sequence
  std::byte* to = nullptr;             // of a copy or a fill, in an arena of the device or the host
  const std::byte* from = nullptr;
  std::size_t bytes = 0;
  std::byte value{};          // of a fill
  std::string_view tensor{};  // whose bytes these are, for errors; must outlive make_sequence()
};
inline constexpr int kMostStreams = 8;

class Sequence {
 public:
  virtual ~Sequence() = default;
  // After a failure the rest may not have run, and what was computed may not be used.
  virtual Status run() = 0;
  // The same, and when each command ran, by a clock in nanoseconds. Slower on a GPU: the commands
  // are launched one by one.
  virtual Status run_timed(std::span<Interval<std::int64_t>> ran) = 0;
};

// Work one after the other, decided as it goes.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual Status run(Work& work) = 0;  // which must be there until synchronize()
  virtual Status fill(std::byte* to, std::byte value, std::size_t bytes) = 0;
  virtual Status copy(std::byte* to, const std::byte* from, std::size_t bytes) = 0;
  virtual Status synchronize() = 0;
  // A point behind all that was enqueued so far. The marks of a stream count from 1 and grow; they
  // are good until it is synchronized.
  virtual Result<std::int64_t> mark() = 0;
  // What is enqueued from now on begins when `other`, of the same device, has passed its mark.
  virtual Status wait(Stream& other, std::int64_t mark) = 0;
  virtual void* queue() const { return nullptr; }  // as work is handed it
};

// Device memory piece by piece, in the order of one stream: what is freed may be handed out again
// at once, because whoever uses it is enqueued later.
class Pool {
 public:
  virtual ~Pool() = default;
  // Aligned as the device wants it; null when there is none left.
  virtual std::byte* allocate(Bytes bytes) = 0;
  virtual void free(std::byte* memory) = 0;  // null is fine
  virtual Bytes peak_in_use() const = 0;     // as asked for
};

struct MemoryInfo {
  Bytes free;
  Bytes total;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;  // "cpu", "cuda:0"
  virtual Bytes alignment() const = 0;   // of every address that a kernel is given
  // Whose memory its kernels work on (address_registry.h): its own, or the host's.
  virtual DeviceNumber number() const { return kHost; }
  // Whether work does its job on the host when it is run, and the host may use device memory.
  virtual bool computes_on_host() const = 0;
  virtual Result<MemoryInfo> memory_info() = 0;

  virtual Result<std::unique_ptr<Arena>> make_arena(Bytes bytes) = 0;
  // Host memory that the device copies to and from at full speed: pinned, on a GPU.
  virtual Result<std::unique_ptr<Arena>> make_host_arena(Bytes bytes) = 0;
  // For what runs on this stream, which must outlive it.
  virtual Result<std::unique_ptr<Pool>> make_pool(Stream& stream) = 0;
  virtual Result<std::unique_ptr<Stream>> make_stream() = 0;
  // A stream for copies, which go on while others work, also where work runs on the caller's
  // thread.
  virtual Result<std::unique_ptr<Stream>> make_copy_stream() { return make_stream(); }
  // The commands are checked first: streams below kMostStreams, waits for earlier commands only.
  virtual Result<std::unique_ptr<Sequence>> make_sequence(std::vector<Command> commands) = 0;

  // Between host memory and device memory, when no sequence runs; they return when it is done.
  virtual Status write(std::byte* to, std::span<const std::byte> from) = 0;
  virtual Status read(std::span<std::byte> to, const std::byte* from) = 0;
  // From work that is being run on this queue: what was enqueued there before has happened. Never
  // while work is recorded: by a stream, or by run_timed().
  virtual Status read_between(void* queue, std::span<std::byte> to, const std::byte* from);
};

// What make_sequence() demands; the number of streams. Copies and fills are in memory of the device
// or of the host.
Result<int> check_commands(std::span<const Command> commands, DeviceNumber own = kHost);

// One operand of work that is about to run on the device; null is none. Asked for its name,
// `operand` and `what` say what goes wrong.
template <typename What, typename Operand>
Status check_operand(DeviceNumber own, const void* address, const What& what,
                     const Operand& operand) {
  if (address == nullptr) return {};
  const DeviceNumber found = addresses().device_of(address);
  if (found == own) [[likely]]
    return {};
  return tl::unexpected<Error>(wrong_device(what(), operand(), found, addresses().name_of(own)));
}

}  // namespace plimsoll::device

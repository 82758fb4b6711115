// The bars of the snapshot reader: makes a snapshot of any size and reads it.
//
//   build/release/bin/snapshot_bench make /tmp/plain.pickle 1000000000 0        # no frames
//   build/release/bin/snapshot_bench make /tmp/frames.pickle 1000000000 30     # 30 frames an event
//   build/release/bin/snapshot_bench make /tmp/inline.pickle 1000000000 -30  # frames written out
//   build/release/bin/snapshot_bench read /tmp/plain.pickle
//
// The file is what Python's pickler writes for torch.cuda.memory._snapshot(): every dict and list
// goes into the memo, keys and frames are fetched from there, lists come in pieces of a thousand.
// `read` prints CPU seconds and the peak of anonymous memory (the mapped file does not count).
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "plimsoll/base/random.h"
#include "plimsoll/trace/snapshot.h"

namespace {

using namespace plimsoll;

constexpr int kDistinctFrames = 3000;
constexpr int kPiece = 1000;

class SnapshotFile {
 public:
  SnapshotFile(const char* path, std::uint64_t bytes, int frames)
      : out_(path, std::ios::binary), bytes_(bytes), frames_(frames) {}

  std::uint64_t write() {
    put("\x80\x04");
    open('}');
    key("segments");
    open(']');
    put("e");
    key("device_traces");
    open(']');
    open(']');
    std::uint64_t events = 0;
    while (written_ < bytes_) {
      for (int i = 0; i < kPiece; ++i, ++events) event(events);
      put("e(");  // the list stays on the stack, as in Python's batches
    }
    put("eeu.");
    flush();
    return events;
  }

 private:
  void put(std::string_view text) {
    buffer_ += text;
    if (buffer_.size() > 1 << 20) flush();
  }
  void flush() {
    written_ += buffer_.size();
    out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    buffer_.clear();
  }
  template <typename Integer>
  void raw(Integer value) {
    buffer_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void memoize() {
    buffer_ += '\x94';
    ++memo_;
  }
  void open(char opcode) {
    buffer_ += opcode;
    memoize();
    buffer_ += '(';
  }
  void get(std::uint32_t place) {
    if (place < 256) {
      buffer_ += 'h';
      raw(static_cast<std::uint8_t>(place));
    } else {
      buffer_ += 'j';
      raw(place);
    }
  }
  void text(const std::string& value) {
    for (const auto& [known, place] : texts_) {
      if (known == value) return get(place);
    }
    texts_.emplace_back(value, memo_);
    buffer_ += '\x8c';
    raw(static_cast<std::uint8_t>(value.size()));
    buffer_ += value;
    memoize();
  }
  void key(const char* name) { text(name); }
  void integer(std::uint64_t value) {
    if (value < 256) {
      buffer_ += 'K';
      raw(static_cast<std::uint8_t>(value));
    } else if (value < std::uint64_t{1} << 31) {
      buffer_ += 'J';
      raw(static_cast<std::int32_t>(value));
    } else {
      const unsigned length = value >> 47 == 0 ? 6 : 7;
      buffer_ += '\x8a';
      buffer_ += static_cast<char>(length);
      buffer_.append(reinterpret_cast<const char*>(&value), length);
    }
  }

  void frame(int number) {
    open('}');
    key("name");
    text("function_" + std::to_string(number % 60));
    key("filename");
    text("/usr/lib/python3/module_" + std::to_string(number % 40) + ".py");
    key("line");
    integer(static_cast<std::uint64_t>(number));
    buffer_ += 'u';
  }
  void frames() {
    key("frames");
    open(']');
    const auto first = static_cast<int>(random_.below(20000));
    for (int i = 0; i < std::abs(frames_); ++i) {
      const int number = (first * 31 + i * (1 + first % 7)) % kDistinctFrames;
      if (frames_ < 0 || places_[static_cast<std::size_t>(number)] == 0) {
        places_[static_cast<std::size_t>(number)] = memo_;
        frame(number);
      } else {
        get(places_[static_cast<std::size_t>(number)]);
      }
    }
    buffer_ += 'e';
  }

  // An allocation, its free and its completion take turns, over a thousand addresses.
  void event(std::uint64_t number) {
    static constexpr const char* kActions[] = {"alloc", "free_requested", "free_completed"};
    open('}');
    key("action");
    text(kActions[number % 3]);
    key("addr");
    integer(140101061443584 + (number / 3 % 1000 << 25));
    key("size");
    integer(512 << number / 3 % 16);
    key("stream");
    integer(0);
    key("time_us");
    integer(1794730194148776 + number);
    key("compile_context");
    text("N/A");
    key("user_metadata");
    text("");
    if (frames_ != 0) frames();
    put("u");
  }

  std::ofstream out_;
  std::uint64_t bytes_;
  int frames_;
  std::string buffer_;
  std::uint64_t written_ = 0;
  std::uint32_t memo_ = 0;
  std::vector<std::pair<std::string, std::uint32_t>> texts_;
  std::vector<std::uint32_t> places_ = std::vector<std::uint32_t>(kDistinctFrames, 0);
  Random random_{1};
};

long anonymous_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::atol(line.c_str() + 8);
  }
  return 0;
}

int read(const char* path) {
  std::atomic<bool> done{false};
  std::atomic<long> peak{0};
  std::thread watcher([&] {
    while (!done) {
      peak = std::max(peak.load(), anonymous_kib());
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t cpu = std::clock();
  const auto trace = trace::read_any_trace(path);
  const double seconds = static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  done = true;
  watcher.join();
  if (!trace) {
    std::fprintf(stderr, "%s\n", trace.error().message.c_str());
    return 3;
  }
  std::printf(
      "%zu events, %zu stacks: %.2f s of CPU, %.2f s, %.2f GB of anonymous memory at most\n",
      trace->events.size(), trace->stacks.size(), seconds, wall.count(),
      static_cast<double>(std::max(peak.load(), anonymous_kib())) * 1024 / 1e9);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count == 5 && std::strcmp(words[1], "make") == 0) {
    SnapshotFile file(words[2], std::strtoull(words[3], nullptr, 10), std::atoi(words[4]));
    std::printf("%llu events\n", static_cast<unsigned long long>(file.write()));
    return 0;
  }
  if (count == 3 && std::strcmp(words[1], "read") == 0) return read(words[2]);
  std::fprintf(stderr, "usage: snapshot_bench make FILE BYTES FRAMES | read FILE\n");
  return 2;
}

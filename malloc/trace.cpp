#include "trace.h"

#include <cstring>

#include "text.h"

namespace plimsoll::heap {

constinit Lock trace_lock;
constinit std::atomic<int> trace_file{-1};

namespace {

constinit char buffer[64 << 10] = {};
constinit std::size_t filled = 0;

void append(const Text& line) {
  if (filled + line.length() > sizeof buffer) {
    write_all(trace_file.load(std::memory_order_relaxed), buffer, filled);
    filled = 0;
  }
  std::memcpy(buffer + filled, line.c_str(), line.length());
  filled += line.length();
}

}  // namespace

bool start_trace(const char* path) {
  Guard guard(trace_lock);
  const int file = open_file(path, true);
  if (file < 0) return false;
  trace_file.store(file);
  Text header;
  header << "{\"plimsoll_trace\":1,\"source\":\"plimsoll malloc\"}\n";
  append(header);
  return true;
}

void finish_trace() {
  Guard guard(trace_lock);
  const int file = trace_file.load();
  if (file < 0) return;
  write_all(file, buffer, filled);
  filled = 0;
  close_file(file);
  trace_file.store(-1);
}

void stop_trace_in_child() {
  filled = 0;
  trace_file.store(-1);
}

void write_trace(const char* kind, const void* block, std::size_t bytes) {
  Guard guard(trace_lock);
  if (!tracing()) return;
  Text line;
  line << "{\"kind\":\"" << kind << "\",\"start\":" << now_ns();
  if (bytes > 0) line << ",\"bytes\":" << std::uint64_t{bytes};
  line << ",\"address\":" << std::uint64_t{reinterpret_cast<std::uintptr_t>(block)} << "}\n";
  append(line);
}

}  // namespace plimsoll::heap

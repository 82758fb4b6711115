#include "plimsoll/trace/chrome_trace.h"

#include <map>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/json.h"

namespace plimsoll::trace {
namespace {

class Writer {
 public:
  explicit Writer(const Trace& trace) : trace_(trace) {
    if (!trace.events.empty()) origin_ = trace.events.front().start;
    for (const InitialSegment& segment : trace.initial) {
      for (const LiveBlock& block : segment.blocks) {
        alive_[block.address] = {block.bytes.value, StringId{0}};
        live_[segment.device] += block.bytes.value;
      }
    }
  }

  void write(const Event& event) {
    switch (event.kind) {
      case EventKind::kOperator:
      case EventKind::kPhase:
        return slice(event);
      case EventKind::kAllocation:
        return born(event);
      case EventKind::kFree:
        return died(event);
      case EventKind::kOutOfMemory:
        return instant(event, "out of memory");
      default:
        return;
    }
  }

  std::string finish() && { return "{\"traceEvents\":[" + std::move(out_) + "\n]}\n"; }

 private:
  struct Alive {
    std::int64_t bytes;
    StringId name;
  };

  std::string quoted(StringId id) const {
    return json_text(nlohmann::json(trace_.strings.text(id)));
  }
  double microseconds(std::int64_t time) const {
    return static_cast<double>(time - origin_) * 1e-3;
  }
  void open() { out_ += out_.empty() ? "\n" : ",\n"; }

  void slice(const Event& event) {
    open();
    out_ += fmt::format(
        R"({{"ph":"X","name":{},"cat":"{}","ts":{:.3f},"dur":{:.3f},"pid":{},"tid":{}}})",
        quoted(event.name), to_string(event.kind), microseconds(event.start),
        static_cast<double>(event.end - event.start) * 1e-3, event.device, event.stream.value);
  }
  void counter(const Event& event) {
    open();
    out_ += fmt::format(R"({{"ph":"C","name":"live bytes","ts":{:.3f},)"
                        R"("pid":{},"args":{{"bytes":{}}}}})",
                        microseconds(event.start), event.device, live_[event.device]);
  }
  void edge(const Event& event, char phase, StringId name, std::int64_t bytes) {
    open();
    out_ += fmt::format(R"({{"ph":"{}","name":{},"cat":"memory","id":{},"ts":{:.3f},)"
                        R"("pid":{},"tid":{},"args":{{"bytes":{}}}}})",
                        phase, quoted(name), event.address, microseconds(event.start), event.device,
                        event.stream.value, bytes);
  }
  void instant(const Event& event, const char* name) {
    open();
    out_ += fmt::format(R"({{"ph":"i","name":"{}","s":"g","ts":{:.3f},)"
                        R"("pid":{},"tid":{}}})",
                        name, microseconds(event.start), event.device, event.stream.value);
  }
  void born(const Event& event) {
    live_[event.device] += event.bytes.value;
    alive_[event.address] = {event.bytes.value, event.name};
    if (event.name != StringId{0}) edge(event, 'b', event.name, event.bytes.value);
    counter(event);
  }
  void died(const Event& event) {
    const auto found = alive_.find(event.address);
    if (found == alive_.end()) return;
    live_[event.device] -= found->second.bytes;
    if (found->second.name != StringId{0})
      edge(event, 'e', found->second.name, found->second.bytes);
    alive_.erase(found);
    counter(event);
  }

  const Trace& trace_;
  std::int64_t origin_ = 0;
  std::map<int, std::int64_t> live_;
  std::unordered_map<std::uint64_t, Alive> alive_;
  std::string out_;
};

}  // namespace

std::string format_chrome_trace(const Trace& trace) {
  Writer writer(trace);
  for (const Event& event : trace.events) writer.write(event);
  return std::move(writer).finish();
}

}  // namespace plimsoll::trace

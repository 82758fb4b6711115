#include "plimsoll/trace/trace_file.h"

#include <nlohmann/json.hpp>

#include "plimsoll/base/file.h"
#include "plimsoll/base/json.h"
#include "plimsoll/base/log.h"
#include "plimsoll/base/utf8.h"
#include "plimsoll/trace/gzip.h"

namespace plimsoll::trace {
namespace {

using Json = nlohmann::json;
constexpr JsonLimits kLineLimits{.bytes = std::size_t{1} << 20, .depth = 4, .values = 1 << 19};
constexpr std::int64_t kMostInflated = std::int64_t{8} << 30;

// Fields of one line, with the first thing that is wrong with them.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {}

  template <typename Integer>
  void integer(const char* key, Integer& out, std::int64_t low, std::int64_t high) {
    const auto found = object_.find(key);
    if (found == object_.end()) return;
    if (!found->is_number_integer()) return note(key, "is not an integer");
    if (found->is_number_unsigned() &&
        found->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
      return note(key, "is out of range");
    }
    const std::int64_t value = found->get<std::int64_t>();
    if (value < low || value > high) return note(key, "is out of range");
    out = static_cast<Integer>(value);
  }
  void text(const char* key, StringTable& strings, StringId& out) {
    const auto found = object_.find(key);
    if (found == object_.end()) return;
    if (!found->is_string()) return note(key, "is not a string");
    out = strings.intern(found->get_ref<const std::string&>());
  }
  void flag(const char* key, bool& out) {
    const auto found = object_.find(key);
    if (found == object_.end()) return;
    if (!found->is_boolean()) return note(key, "is not true or false");
    out = found->get<bool>();
  }
  std::string_view raw(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end() || !found->is_string()) return {};
    return found->get_ref<const std::string&>();
  }
  void note(const char* key, const char* problem) {
    if (problem_.empty()) problem_ = fmt::format("'{}' {}", key, problem);
  }
  Status status() const {
    if (problem_.empty()) return {};
    return bad_input("{}", problem_);
  }

 private:
  const Json& object_;
  std::string problem_;
};

Status parse_blocks(const Json& list, InitialSegment& segment) {
  if (!list.is_array()) return bad_input("'blocks' is not a list");
  for (const Json& item : list) {
    if (!item.is_object()) return bad_input("a block is not an object");
    LiveBlock block;
    Fields fields(item);
    fields.integer("address", block.address, 0, INT64_MAX);
    fields.integer("bytes", block.bytes.value, 0, INT64_MAX / 2);
    fields.integer("size", block.size.value, 0, INT64_MAX / 2);
    PLIMSOLL_RETURN_IF_ERROR(fields.status());
    segment.blocks.push_back(block);
  }
  return {};
}

Status parse_segment(const Json& line, Trace& trace) {
  InitialSegment segment;
  Fields fields(line);
  fields.integer("address", segment.address, 0, INT64_MAX);
  fields.integer("size", segment.size.value, 0, INT64_MAX / 2);
  fields.integer("device", segment.device, 0, 4095);
  fields.integer("stream", segment.stream.value, 0, INT64_MAX);
  fields.flag("small", segment.small);
  fields.flag("expandable", segment.expandable);
  PLIMSOLL_RETURN_IF_ERROR(fields.status());
  if (line.contains("blocks")) PLIMSOLL_RETURN_IF_ERROR(parse_blocks(line["blocks"], segment));
  trace.initial.push_back(std::move(segment));
  return {};
}

Status parse_stack(const Json& line, Trace& trace) {
  const Json& frames = line.contains("frames") ? line["frames"] : Json::array();
  if (!frames.is_array()) return bad_input("'frames' is not a list");
  std::vector<Frame> stack;
  for (const Json& item : frames) {
    if (!item.is_object()) return bad_input("a frame is not an object");
    Frame frame;
    Fields fields(item);
    fields.text("function", trace.strings, frame.function);
    fields.text("file", trace.strings, frame.file);
    fields.integer("line", frame.line, INT32_MIN, INT32_MAX);
    PLIMSOLL_RETURN_IF_ERROR(fields.status());
    stack.push_back(frame);
  }
  trace.stacks.push_back(std::move(stack));
  return {};
}

Status parse_event(const Json& line, Trace& trace) {
  Fields fields(line);
  const std::string_view kind_text = fields.raw("kind");
  if (kind_text == "initial_segment") return parse_segment(line, trace);
  if (kind_text == "stack") return parse_stack(line, trace);
  const auto kind = event_kind_from(kind_text);
  if (!kind) return bad_input("unknown kind '{}'", excerpt(kind_text));
  Event event;
  event.kind = *kind;
  if (line.contains("category")) {
    const auto category = category_from(fields.raw("category"));
    if (!category) return bad_input("unknown category '{}'", excerpt(fields.raw("category")));
    event.category = *category;
  }
  fields.integer("start", event.start, INT64_MIN, INT64_MAX);
  event.end = event.start;
  fields.integer("end", event.end, INT64_MIN, INT64_MAX);
  if (event.end < event.start) fields.note("end", "is before 'start'");
  fields.integer("bytes", event.bytes.value, 0, INT64_MAX / 2);
  fields.integer("address", event.address, 0, INT64_MAX);
  fields.integer("device", event.device, 0, 4095);
  fields.integer("stream", event.stream.value, 0, INT64_MAX);
  fields.integer("peer_stream", event.peer_stream.value, 0, INT64_MAX);
  fields.integer("stack", event.stack, 0, static_cast<std::int64_t>(trace.stacks.size()));
  fields.text("name", trace.strings, event.name);
  fields.text("phase", trace.strings, event.phase);
  PLIMSOLL_RETURN_IF_ERROR(fields.status());
  trace.events.push_back(event);
  return {};
}

Status parse_header(const Json& line, Trace& trace) {
  std::int64_t version = 0;
  Fields fields(line);
  fields.integer("plimsoll_trace", version, 0, INT32_MAX);
  PLIMSOLL_RETURN_IF_ERROR(fields.status());
  if (version == 0)
    return bad_input("not a plimsoll trace (no 'plimsoll_trace' in the first line)");
  if (version > kTraceVersion) {
    return bad_input("trace version {}, this program reads up to {}", version, kTraceVersion);
  }
  trace.source = std::string(fields.raw("source"));
  return {};
}

Status parse_line(std::string_view text, std::int64_t number, Trace& trace) {
  PLIMSOLL_TRY(const Json line, parse_json(text, kLineLimits, number));
  Status parsed = bad_input("not a JSON object");
  if (line.is_object()) parsed = number == 1 ? parse_header(line, trace) : parse_event(line, trace);
  return parsed ? parsed : forward(parsed, fmt::format("line {}", number));
}

Json segment_line(const InitialSegment& segment) {
  Json blocks = Json::array();
  for (const LiveBlock& block : segment.blocks) {
    blocks.push_back(
        {{"address", block.address}, {"bytes", block.bytes.value}, {"size", block.size.value}});
  }
  return {{"kind", "initial_segment"},      {"address", segment.address},
          {"size", segment.size.value},     {"device", segment.device},
          {"small", segment.small},         {"expandable", segment.expandable},
          {"stream", segment.stream.value}, {"blocks", std::move(blocks)}};
}

Json stack_line(const std::vector<Frame>& stack, const StringTable& strings) {
  Json frames = Json::array();
  for (const Frame& frame : stack) {
    frames.push_back({{"function", strings.text(frame.function)},
                      {"file", strings.text(frame.file)},
                      {"line", frame.line}});
  }
  return {{"kind", "stack"}, {"frames", std::move(frames)}};
}

void append_text(std::string& out, const char* key, std::string_view text) {
  if (text.empty()) return;
  out += fmt::format(",\"{}\":{}", key, json_text(Json(text)));
}

template <typename Number>
void append_number(std::string& out, const char* key, Number value, bool always = false) {
  if (value != 0 || always) fmt::format_to(std::back_inserter(out), ",\"{}\":{}", key, value);
}

void append_event(std::string& out, const Event& event, const StringTable& strings) {
  fmt::format_to(std::back_inserter(out), "{{\"kind\":\"{}\"", to_string(event.kind));
  append_number(out, "start", event.start, true);
  if (event.end != event.start) append_number(out, "end", event.end, true);
  append_number(out, "bytes", event.bytes.value);
  append_number(out, "address", event.address);
  append_number(out, "device", event.device);
  append_number(out, "stream", event.stream.value);
  append_number(out, "peer_stream", event.peer_stream.value);
  append_number(out, "stack", event.stack);
  if (event.category != Category::kUnknown) append_text(out, "category", to_string(event.category));
  append_text(out, "name", strings.text(event.name));
  append_text(out, "phase", strings.text(event.phase));
  out += "}\n";
}

}  // namespace

Result<Trace> parse_trace(std::string_view text) {
  if (text.starts_with("{\"traceEvents\""))
    return bad_input(
        "this is a trace for Perfetto, which is written only; give the .jsonl or .pickle it was "
        "made from");
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] != '{')
    return bad_input(
        "neither a plimsoll trace, whose lines are JSON objects, nor a memory snapshot of PyTorch, "
        "which is a pickle");
  Trace trace;
  std::int64_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty() && number > 1) continue;
    PLIMSOLL_RETURN_IF_ERROR(parse_line(line, number, trace));
  }
  if (number == 0) return bad_input("empty file, expected a plimsoll trace");
  return trace;
}

std::string format_trace(const Trace& trace) {
  std::string out =
      json_text(Json({{"plimsoll_trace", kTraceVersion}, {"source", trace.source}})) + "\n";
  for (const auto& stack : trace.stacks) {
    out += json_text(stack_line(stack, trace.strings));
    out += '\n';
  }
  for (const InitialSegment& segment : trace.initial)
    out += json_text(segment_line(segment)) + "\n";
  for (const Event& event : trace.events) append_event(out, event, trace.strings);
  return out;
}

Result<Trace> read_trace(const std::filesystem::path& path) {
  PLIMSOLL_TRY(const MappedFile file, MappedFile::open(path));
  Result<Trace> trace = Trace{};
  if (is_gzip(file.text())) {
    const Result<std::string> text = inflate(file.text(), Bytes(kMostInflated));
    if (!text) return forward(text, path.string());
    trace = parse_trace(*text);
  } else {
    trace = parse_trace(file.text());
  }
  if (!trace) return forward(trace, path.string());
  return trace;
}

Status write_trace(const std::filesystem::path& path, const Trace& trace) {
  std::size_t other = 0;
  for (std::size_t i = 0; i < trace.strings.size(); ++i)
    other += !is_utf8(trace.strings.text(StringId(i)));
  if (other > 0)
    log::warn("{}: {} names are not UTF-8; their other bytes are written as U+FFFD", path.string(),
              other);
  return write_file(path, format_trace(trace));
}

}  // namespace plimsoll::trace

// The pickle machine: a stack, a memo, and the opcodes that plain data needs.
#include <algorithm>
#include <bit>
#include <vector>

#include "plimsoll/base/file.h"
#include "plimsoll/trace/pickle_memo.h"
#include "plimsoll/trace/pickle_source.h"
#include "plimsoll/trace/snapshot_records.h"
#include "plimsoll/trace/trace_file.h"

namespace plimsoll::trace {
namespace {

constexpr std::size_t kMostStack = std::size_t{1} << 24;
constexpr std::size_t kMostMarks = 1 << 16;
constexpr std::size_t kMostStrings = std::size_t{1} << 22;
constexpr std::size_t kMostStringBytes = std::size_t{1} << 28;
constexpr std::uint64_t kLongestString = 1 << 20;
constexpr std::size_t kBytesPerEvent = 40;  // the least that a pickler writes for one, about

class PickleMachine {
 public:
  explicit PickleMachine(std::string_view bytes) : source_(bytes) {
    // Address space, not memory: pages that are never written cost nothing.
    if (!is_gzip(bytes)) records_.expect_events(bytes.size() / kBytesPerEvent + 1024);
  }

  Result<Snapshot> run() {
    while (true) {
      if (!source_.need(1)) return cut_off();
      const auto opcode = static_cast<std::uint8_t>(source_.read<char>());
      if (opcode == '.') break;
      if (!step(opcode)) return failure(opcode);
    }
    if (stack_.empty()) return bad_input("snapshot: the pickle ends with nothing on its stack");
    return records_.finish(stack_.back());
  }

 private:
  tl::unexpected<Error> cut_off() const {
    if (source_.problem()) return tl::unexpected<Error>(*source_.problem());
    return bad_input("snapshot: cut off at byte {}", source_.position());
  }
  tl::unexpected<Error> failure(std::uint8_t opcode) const {
    if (!problem_.empty()) {
      return bad_input("snapshot: {} (opcode 0x{:02x} before byte {})", problem_, opcode,
                       source_.position());
    }
    if (source_.problem()) return tl::unexpected<Error>(*source_.problem());
    return bad_input("snapshot: cut off in opcode 0x{:02x} before byte {}", opcode,
                     source_.position());
  }
  bool refuse(std::string_view problem) {
    problem_ = problem;
    return false;
  }

  // Called for every second byte of a file: inlined, or it takes a third of the time.
  [[gnu::always_inline]] bool push(ValueType type, std::int64_t bits) {
    if (stack_.size() == stack_.capacity() && !grow_stack()) [[unlikely]]
      return false;
    stack_.push_back({type, bits});
    return true;
  }
  bool grow_stack() {
    if (stack_.size() >= kMostStack) return refuse("more than 2^24 values on the stack");
    stack_.reserve(2 * stack_.size() + 1024);
    return true;
  }
  template <typename Integer>
  bool push_integer() {
    if (!source_.need(sizeof(Integer))) return false;
    return push(ValueType::kInteger, static_cast<std::int64_t>(source_.read<Integer>()));
  }
  bool push_object() {
    if (!records_.can_make_object()) return refuse("more than 2^28 objects");
    return push(ValueType::kObject, records_.make_object());
  }

  bool step(std::uint8_t opcode);
  bool step_rarely(std::uint8_t opcode);
  bool long1();
  bool binary_float();
  template <typename Length>
  bool string();
  bool memoize(std::uint64_t place);
  template <typename Index>
  bool get();
  template <typename Index>
  bool put();
  bool pop_mark(std::size_t& first);
  bool set_items(std::size_t first);
  bool append(std::size_t first);
  bool tuple(std::size_t first);
  bool tuple_of(std::size_t count);
  bool skip_frame();

  PickleSource source_;
  SnapshotRecords records_;
  std::vector<Value> stack_;
  std::vector<std::size_t> marks_;
  PickleMemo memo_;
  std::size_t string_bytes_ = 0;
  std::string problem_;
};

bool PickleMachine::step(std::uint8_t opcode) {
  switch (opcode) {
    case 'h':
      return get<std::uint8_t>();
    case 'j':
      return get<std::uint32_t>();
    case 0x94:
      return memoize(memo_.next_place());
    case 0x8a:
      return long1();
    case 'K':
      return push_integer<std::uint8_t>();
    case 'M':
      return push_integer<std::uint16_t>();
    case 'J':
      return push_integer<std::int32_t>();
    case 0x8c:
      return string<std::uint8_t>();
    case '}':
    case ']':
      return push_object();
    case '(':
      if (marks_.size() >= kMostMarks) return refuse("nested more than 65536 deep");
      marks_.push_back(stack_.size());
      return true;
    case 'u': {
      std::size_t first = 0;
      return pop_mark(first) && set_items(first);
    }
    case 'e': {
      std::size_t first = 0;
      return pop_mark(first) && append(first);
    }
    default:
      return step_rarely(opcode);
  }
}

bool PickleMachine::step_rarely(std::uint8_t opcode) {
  switch (opcode) {
    case 0x80:
      return source_.need(1) &&
             (source_.read<std::uint8_t>() <= 5 || refuse("a pickle protocol newer than 5"));
    case 0x95:
      return skip_frame();
    case 'N':
      return push(ValueType::kNone, 0);
    case 0x88:
      return push(ValueType::kBool, 1);
    case 0x89:
      return push(ValueType::kBool, 0);
    case 'G':
      return binary_float();
    case 'X':
      return string<std::uint32_t>();
    case 0x8d:
      return string<std::uint64_t>();
    case 'q':
      return put<std::uint8_t>();
    case 'r':
      return put<std::uint32_t>();
    case 's':
      return stack_.size() >= 3 ? set_items(stack_.size() - 2) : refuse("stack is empty");
    case 'a':
      return stack_.size() >= 2 ? append(stack_.size() - 1) : refuse("stack is empty");
    case ')':
      return push_object();
    case 0x85:
      return tuple_of(1);
    case 0x86:
      return tuple_of(2);
    case 0x87:
      return tuple_of(3);
    case 't': {
      std::size_t first = 0;
      return pop_mark(first) && tuple(first);
    }
    case 'c':
    case 0x93:
    case 'R':
    case 'b':
    case 0x81:
    case 0x92:
    case 'i':
    case 'o':
      return refuse("it would create an object or call a function, which a snapshot never needs");
    default:
      return refuse("an opcode that snapshots do not use");
  }
}

bool PickleMachine::skip_frame() {
  if (!source_.need(8)) return false;
  source_.skip(8);
  return true;
}

bool PickleMachine::long1() {
  if (!source_.need(1)) return false;
  const auto length = source_.read<std::uint8_t>();
  if (length > 9) return refuse("an integer of more than 64 bits");
  if (!source_.need(length)) return false;
  std::uint64_t value = 0;
  for (unsigned i = 0; i < std::min<unsigned>(length, 8); ++i) {
    value |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(source_.here()[i])) << (8 * i);
  }
  const bool negative = length > 0 && (source_.here()[length - 1] & 0x80) != 0;
  if (length > 0 && length < 8 && negative) value |= ~std::uint64_t{0} << (8 * length);
  source_.skip(length);
  return push(ValueType::kInteger, static_cast<std::int64_t>(value));
}

bool PickleMachine::binary_float() {
  if (!source_.need(8)) return false;
  source_.skip(8);  // no float of a snapshot is of use here
  return push(ValueType::kFloat, 0);
}

template <typename Length>
bool PickleMachine::string() {
  if (!source_.need(sizeof(Length))) return false;
  const std::uint64_t length = source_.read<Length>();
  if (length > kLongestString) return refuse("a string of more than 1 MiB");
  if (!source_.need(length)) return false;
  const std::size_t before = records_.strings().size();
  const StringId id = records_.strings().intern({source_.here(), length});
  source_.skip(length);
  if (records_.strings().size() > before) {
    string_bytes_ += length;
    if (before >= kMostStrings || string_bytes_ > kMostStringBytes)
      return refuse("too many strings");
  }
  return push(ValueType::kString, static_cast<std::int64_t>(id.index()));
}

bool PickleMachine::memoize(std::uint64_t place) {
  if (stack_.empty()) return refuse("stack is empty");
  const std::string_view problem = memo_.set(place, stack_.back());
  return problem.empty() || refuse(problem);
}

template <typename Index>
bool PickleMachine::get() {
  if (!source_.need(sizeof(Index))) return false;
  const std::uint64_t place = source_.read<Index>();
  if (place >= memo_.next_place()) return refuse("a memo place that was never set");
  const Value value = memo_.get(place);
  return push(value.type, value.bits);
}

template <typename Index>
bool PickleMachine::put() {
  if (!source_.need(sizeof(Index))) return false;
  return memoize(source_.read<Index>());
}

bool PickleMachine::pop_mark(std::size_t& first) {
  if (marks_.empty() || marks_.back() > stack_.size()) return refuse("no mark on the stack");
  first = marks_.back();
  marks_.pop_back();
  return true;
}

bool PickleMachine::set_items(std::size_t first) {
  if (first == 0 || stack_[first - 1].type != ValueType::kObject ||
      (stack_.size() - first) % 2 != 0) {
    return refuse("items for what is not a dict");
  }
  const std::string_view problem =
      records_.set_items(stack_[first - 1].bits, std::span<const Value>(stack_).subspan(first));
  stack_.resize(first);
  return problem.empty() || refuse(problem);
}

bool PickleMachine::append(std::size_t first) {
  if (first == 0 || stack_[first - 1].type != ValueType::kObject) {
    return refuse("items for what is not a list");
  }
  const std::string_view problem =
      records_.append(stack_[first - 1].bits, std::span<const Value>(stack_).subspan(first));
  stack_.resize(first);
  return problem.empty() || refuse(problem);
}

bool PickleMachine::tuple_of(std::size_t count) {
  if (stack_.size() < count) return refuse("stack is empty");
  return tuple(stack_.size() - count);
}

bool PickleMachine::tuple(std::size_t first) {
  stack_.resize(first);
  return push_object();
}

}  // namespace

Result<Snapshot> parse_snapshot(std::string_view bytes) {
  return PickleMachine(bytes).run();
}

bool looks_like_snapshot(std::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5;
}

Result<Trace> read_any_trace(const std::filesystem::path& path) {
  PLIMSOLL_TRY(const MappedFile file, MappedFile::open(path));
  std::string_view head = file.text();
  std::string first(2, '\0');
  if (is_gzip(head)) {
    GzipSource source(head);
    const auto made = source.fill(first);
    if (!made) return forward(made, path.string());
    head = first;
  }
  if (!looks_like_snapshot(head)) return read_trace(path);
  Result<Snapshot> snapshot = parse_snapshot(file.text());
  if (!snapshot) return forward(snapshot, path.string());
  return to_trace(std::move(*snapshot));
}

}  // namespace plimsoll::trace

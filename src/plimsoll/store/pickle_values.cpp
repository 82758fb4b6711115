#include "plimsoll/store/pickle_values.h"

#include <cstring>
#include <unordered_map>

namespace plimsoll::store {
namespace {

using Kind = PickleValue::Kind;

// A value takes some 60 bytes; the pickle of a checkpoint has some dozens a tensor.
constexpr std::size_t kMostValues = 4'000'000;

class PickleReader {
 public:
  explicit PickleReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  Result<Pickle> read() {
    for (;;) {
      PLIMSOLL_TRY(const std::uint64_t opcode, number(1));
      if (opcode == '.') break;
      PLIMSOLL_RETURN_IF_ERROR(step(static_cast<unsigned char>(opcode)));
    }
    PLIMSOLL_TRY(out_.root, pop());
    return std::move(out_);
  }

 private:
  tl::unexpected<Error> wrong(std::string_view what) const {
    return bad_input("pickle, byte {}: {}", at_, what);
  }
  std::size_t left() const { return bytes_.size() - at_; }
  Result<std::uint64_t> number(std::size_t width) {
    if (left() < width) return wrong("it is cut off");
    std::uint64_t out = 0;
    std::memcpy(&out, bytes_.data() + at_, width);
    at_ += width;
    return out;
  }
  Result<std::string_view> text(std::size_t width) {
    PLIMSOLL_TRY(const std::uint64_t length, number(width));
    if (left() < length) return wrong("a text is cut off");
    const std::string_view out(reinterpret_cast<const char*>(bytes_.data()) + at_, length);
    at_ += length;
    return out;
  }
  Result<std::string_view> line() {
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + at_, left());
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) return wrong("a line does not end");
    at_ += end + 1;
    return rest.substr(0, end);
  }

  Result<std::uint32_t> pop() {
    const std::size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() <= floor) return wrong("takes a value from an empty stack");
    const std::uint32_t top = stack_.back();
    stack_.pop_back();
    return top;
  }
  // Everything above the last mark.
  Result<std::vector<std::uint32_t>> pop_marked() {
    if (marks_.empty()) return wrong("there is no mark");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<std::uint32_t> out(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return out;
  }
  Status push(PickleValue value) {
    if (out_.values.size() == kMostValues) return wrong("it has more than 4,000,000 values");
    stack_.push_back(static_cast<std::uint32_t>(out_.values.size()));
    out_.values.push_back(std::move(value));
    return {};
  }
  Status push_integer(std::int64_t value) { return push({Kind::kInteger, value, {}, {}}); }
  Status push_nothing() { return push({}); }
  Status push_tuple(int count) {
    PickleValue out{Kind::kSequence, 0, {}, {}};
    out.items.resize(static_cast<std::size_t>(count));
    for (int i = count; i-- > 0;) {
      PLIMSOLL_TRY(out.items[static_cast<std::size_t>(i)], pop());
    }
    return push(std::move(out));
  }
  Result<PickleValue*> top(Kind kind) {
    const std::size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() <= floor) return wrong("takes a value from an empty stack");
    PickleValue* value = &out_.values[stack_.back()];
    // An object of no meaning takes items and has none.
    if (value->kind != kind && value->kind != Kind::kNothing && value->kind != Kind::kCall)
      return wrong("adds items to what has none");
    return value;
  }
  Status add_items(const std::vector<std::uint32_t>& items, Kind kind) {
    PLIMSOLL_TRY(PickleValue* const to, top(kind));
    if (kind == Kind::kDictionary && items.size() % 2 != 0) return wrong("a key has no value");
    if (to->kind == kind) to->items.insert(to->items.end(), items.begin(), items.end());
    return {};
  }

  Status remember(std::uint64_t place) {
    const std::size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() <= floor) return wrong("remembers a value of an empty stack");
    memo_[place] = stack_.back();
    return {};
  }
  Status recall(std::uint64_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) return wrong("recalls what was never remembered");
    if (stack_.size() > 4 * kMostValues) return wrong("its stack is too large");
    stack_.push_back(found->second);
    return {};
  }

  Status call() {
    PLIMSOLL_TRY(const std::uint32_t arguments, pop());
    PLIMSOLL_TRY(const std::uint32_t what, pop());
    const PickleValue& callee = out_.values[what];
    if (callee.kind == Kind::kGlobal && callee.text == "collections\nOrderedDict\n")
      return push({Kind::kDictionary, 0, {}, {}});
    return push({Kind::kCall, 0, {}, {what, arguments}});
  }
  // "module\nname\n", as it stands in the pickle.
  Status global() {
    const std::size_t begin = at_;
    PLIMSOLL_TRY(const std::string_view module, line());
    PLIMSOLL_TRY(const std::string_view name, line());
    (void)module;
    (void)name;
    return push({Kind::kGlobal,
                 0,
                 {reinterpret_cast<const char*>(bytes_.data()) + begin, at_ - begin},
                 {}});
  }
  // Little-endian, two's complement; longer ones than 8 bytes have no use here.
  Status long_integer() {
    PLIMSOLL_TRY(const std::string_view digits, text(1));
    if (digits.size() > 8) return push_nothing();
    std::uint64_t value = 0;
    std::memcpy(&value, digits.data(), digits.size());
    const auto shift = static_cast<unsigned>(64 - 8 * digits.size());
    return push_integer(digits.empty() ? 0 : static_cast<std::int64_t>(value << shift) >> shift);
  }
  Status push_text(std::size_t width) {
    PLIMSOLL_TRY(const std::string_view words, text(width));
    return push({Kind::kText, 0, words, {}});
  }
  Status skip(std::size_t width) {
    PLIMSOLL_TRY(const std::uint64_t ignored, number(width));
    (void)ignored;
    return {};
  }
  template <typename Then>
  Status with_number(std::size_t width, Then then) {
    PLIMSOLL_TRY(const std::uint64_t value, number(width));
    return then(value);
  }
  template <typename Then>
  Status with_marked(Then then) {
    PLIMSOLL_TRY(std::vector<std::uint32_t> items, pop_marked());
    return then(std::move(items));
  }

  Status step(unsigned char opcode) {
    switch (opcode) {
      case 0x80:
        return skip(1);  // PROTO
      case 0x95:
        return skip(8);  // FRAME
      case '(':
        if (marks_.size() == kMostValues) return wrong("it has too many marks");
        marks_.push_back(stack_.size());
        return {};
      case '}':
        return push({Kind::kDictionary, 0, {}, {}});
      case ']':
      case ')':
        return push({Kind::kSequence, 0, {}, {}});
      case 'N':
        return push_nothing();
      case 0x88:
        return push_integer(1);  // NEWTRUE
      case 0x89:
        return push_integer(0);  // NEWFALSE
      case 'J':
        return with_number(4, [&](std::uint64_t value) {
          return push_integer(static_cast<std::int32_t>(static_cast<std::uint32_t>(value)));
        });
      case 'K':
        return with_number(
            1, [&](std::uint64_t value) { return push_integer(static_cast<std::int64_t>(value)); });
      case 'M':
        return with_number(
            2, [&](std::uint64_t value) { return push_integer(static_cast<std::int64_t>(value)); });
      case 0x8a:
        return long_integer();  // LONG1
      case 'G':
        PLIMSOLL_RETURN_IF_ERROR(skip(8));
        return push_nothing();  // BINFLOAT
      case 'X':
        return push_text(4);  // BINUNICODE
      case 0x8c:
        return push_text(1);  // SHORT_BINUNICODE
      case 0x8d:
        return push_text(8);  // BINUNICODE8
      case 'U':
        return push_text(1);  // SHORT_BINSTRING
      case 'T':
        return push_text(4);  // BINSTRING
      case 'C':
        return push_text(1);  // SHORT_BINBYTES
      case 'B':
        return push_text(4);  // BINBYTES
      case 'c':
        return global();
      case 0x93: {  // STACK_GLOBAL
        PLIMSOLL_TRY(const std::uint32_t name, pop());
        PLIMSOLL_TRY(const std::uint32_t module, pop());
        (void)name;
        (void)module;
        return push_nothing();
      }
      case 'q':
        return with_number(1, [&](std::uint64_t place) { return remember(place); });
      case 'r':
        return with_number(4, [&](std::uint64_t place) { return remember(place); });
      case 0x94:
        return remember(memo_.size());  // MEMOIZE
      case 'h':
        return with_number(1, [&](std::uint64_t place) { return recall(place); });
      case 'j':
        return with_number(4, [&](std::uint64_t place) { return recall(place); });
      case 't':
      case 'l':
        return with_marked([&](std::vector<std::uint32_t> items) {
          return push({Kind::kSequence, 0, {}, std::move(items)});
        });
      case 'd':
        return with_marked([&](std::vector<std::uint32_t> items) -> Status {
          if (items.size() % 2 != 0) return wrong("a key has no value");
          return push({Kind::kDictionary, 0, {}, std::move(items)});
        });
      case 0x85:
        return push_tuple(1);
      case 0x86:
        return push_tuple(2);
      case 0x87:
        return push_tuple(3);
      case 'Q': {  // BINPERSID
        PLIMSOLL_TRY(const std::uint32_t id, pop());
        return push({Kind::kPersistent, 0, {}, {id}});
      }
      case 'R':
      case 0x81:  // NEWOBJ
        return call();
      case 'b': {  // BUILD: gives what is on the stack its state
        PLIMSOLL_TRY(const std::uint32_t state, pop());
        PLIMSOLL_TRY(const std::uint32_t object, pop());
        PickleValue& built = out_.values[object];
        if (built.kind == Kind::kCall && built.items.size() == 2) built.items.push_back(state);
        stack_.push_back(object);
        return {};
      }
      case 's': {
        PLIMSOLL_TRY(const std::uint32_t value, pop());
        PLIMSOLL_TRY(const std::uint32_t key, pop());
        return add_items({key, value}, Kind::kDictionary);
      }
      case 'u':
        return with_marked([&](const std::vector<std::uint32_t>& items) {
          return add_items(items, Kind::kDictionary);
        });
      case 'a': {
        PLIMSOLL_TRY(const std::uint32_t item, pop());
        return add_items({item}, Kind::kSequence);
      }
      case 'e':
        return with_marked([&](const std::vector<std::uint32_t>& items) {
          return add_items(items, Kind::kSequence);
        });
      case 0x8f:
        return push({Kind::kSequence, 0, {}, {}});  // EMPTY_SET
      case '0': {
        PLIMSOLL_TRY(const std::uint32_t ignored, pop());
        (void)ignored;
        return {};
      }
      default:
        return bad_input("pickle, byte {}: opcode 0x{:02x} is not read", at_ - 1, opcode);
    }
  }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  Pickle out_;
  std::vector<std::uint32_t> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, std::uint32_t> memo_;
};

}  // namespace

Result<Pickle> read_pickle(std::span<const std::byte> bytes) {
  return PickleReader(bytes).read();
}

}  // namespace plimsoll::store

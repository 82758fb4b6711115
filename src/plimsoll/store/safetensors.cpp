#include "plimsoll/store/safetensors.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "plimsoll/base/utf8.h"

namespace plimsoll::store {
namespace {

constexpr std::uint64_t kLongestHeader = 100'000'000;
constexpr int kDeepest = 127;

// One pass over the header, after its bytes were found to be UTF-8.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  Result<SafetensorsHeader> parse() {
    SafetensorsHeader out;
    bool metadata_seen = false;
    std::unordered_map<std::string, std::size_t> by_name;
    PLIMSOLL_RETURN_IF_ERROR(members(1, [&](const std::string& key) -> Status {
      if (key == "__metadata__") {
        if (metadata_seen) return wrong("'__metadata__' is there twice");
        metadata_seen = true;
        return metadata(out.metadata);
      }
      SafetensorsEntry entry;
      entry.name = key;
      const Status read = description(entry);
      if (!read) return forward(read, fmt::format("tensor '{}'", excerpt(key)));
      const auto [place, is_new] = by_name.emplace(key, out.entries.size());
      if (is_new) {
        out.entries.push_back(std::move(entry));
      } else {
        out.entries[place->second] = std::move(entry);
      }
      return {};
    }));
    skip_space();
    if (at_ != text_.size()) return wrong("there is more behind the object");
    return out;
  }

 private:
  template <typename... Args>
  tl::unexpected<Error> wrong(fmt::format_string<Args...> format, Args&&... args) const {
    return bad_input("header, byte {}: {}", at_, fmt::format(format, std::forward<Args>(args)...));
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  bool take(char letter) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != letter) return false;
    ++at_;
    return true;
  }
  Status demand(char letter) {
    if (take(letter)) return {};
    return wrong("expected '{}'", letter);
  }

  // Calls member(key) for each, with the place behind the colon.
  template <typename Member>
  Status members(int depth, Member member) {
    if (depth > kDeepest) return wrong("nested more than {} deep", kDeepest);
    PLIMSOLL_RETURN_IF_ERROR(demand('{'));
    if (take('}')) return {};
    do {
      std::string key;
      PLIMSOLL_RETURN_IF_ERROR(string(key));
      PLIMSOLL_RETURN_IF_ERROR(demand(':'));
      PLIMSOLL_RETURN_IF_ERROR(member(key));
    } while (take(','));
    return demand('}');
  }
  template <typename Item>
  Status items(int depth, Item item) {
    if (depth > kDeepest) return wrong("nested more than {} deep", kDeepest);
    PLIMSOLL_RETURN_IF_ERROR(demand('['));
    if (take(']')) return {};
    do {
      PLIMSOLL_RETURN_IF_ERROR(item());
    } while (take(','));
    return demand(']');
  }

  Result<unsigned> hex4() {
    if (text_.size() - at_ < 4) return wrong("an escape is cut off");
    unsigned code = 0;
    const char* end = text_.data() + at_ + 4;
    const auto [stop, error] = std::from_chars(text_.data() + at_, end, code, 16);
    if (error != std::errc() || stop != end) return wrong("an escape needs four digits");
    at_ += 4;
    return code;
  }
  // Behind "\u".
  Status escaped_character(std::string& out) {
    PLIMSOLL_TRY(unsigned code, hex4());
    if (code >= 0xdc00 && code < 0xe000) return wrong("half of a surrogate pair");
    if (code >= 0xd800 && code < 0xdc00) {
      if (text_.substr(at_, 2) != "\\u") return wrong("half of a surrogate pair");
      at_ += 2;
      PLIMSOLL_TRY(const unsigned low, hex4());
      if (low < 0xdc00 || low >= 0xe000) return wrong("half of a surrogate pair");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    const auto put = [&](unsigned byte) { out += static_cast<char>(byte); };
    if (code < 0x80) {
      put(code);
    } else if (code < 0x800) {
      put(0xc0 | code >> 6);
      put(0x80 | (code & 63));
    } else if (code < 0x10000) {
      put(0xe0 | code >> 12);
      put(0x80 | (code >> 6 & 63));
      put(0x80 | (code & 63));
    } else {
      put(0xf0 | code >> 18);
      put(0x80 | (code >> 12 & 63));
      put(0x80 | (code >> 6 & 63));
      put(0x80 | (code & 63));
    }
    return {};
  }
  Status string(std::string& out) {
    PLIMSOLL_RETURN_IF_ERROR(demand('"'));
    for (;;) {
      const std::size_t begin = at_;
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
             static_cast<unsigned char>(text_[at_]) >= 0x20)
        ++at_;
      out.append(text_.substr(begin, at_ - begin));
      if (at_ == text_.size()) return wrong("a string does not end");
      const char letter = text_[at_++];
      if (letter == '"') return {};
      if (letter != '\\') return wrong("a control character in a string");
      if (at_ == text_.size()) return wrong("a string does not end");
      switch (text_[at_++]) {
        case '"':
          out += '"';
          break;
        case '\\':
          out += '\\';
          break;
        case '/':
          out += '/';
          break;
        case 'b':
          out += '\b';
          break;
        case 'f':
          out += '\f';
          break;
        case 'n':
          out += '\n';
          break;
        case 'r':
          out += '\r';
          break;
        case 't':
          out += '\t';
          break;
        case 'u':
          PLIMSOLL_RETURN_IF_ERROR(escaped_character(out));
          break;
        default:
          return wrong("an unknown escape");
      }
    }
  }

  bool digits() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    return at_ > begin;
  }
  // By the grammar of JSON; the number itself where it is whole, not negative, and fits 64 bits.
  Result<std::optional<std::uint64_t>> number() {
    skip_space();
    const std::size_t begin = at_;
    bool whole = true;
    if (peek() == '-') {
      whole = false;
      ++at_;
    }
    if (peek() == '0') {
      ++at_;
      if (peek() >= '0' && peek() <= '9') return wrong("a number begins with 0");
    } else if (!digits()) {
      return wrong("expected a value");
    }
    if (peek() == '.') {
      whole = false;
      ++at_;
      if (!digits()) return wrong("a number ends with its point");
    }
    if (peek() == 'e' || peek() == 'E') {
      whole = false;
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (!digits()) return wrong("a number ends with its exponent");
    }
    const std::string_view token = text_.substr(begin, at_ - begin);
    std::uint64_t value = 0;
    if (whole) {
      const auto [stop, error] = std::from_chars(token.data(), token.data() + token.size(), value);
      if (error == std::errc()) return std::optional(value);
    }
    if (std::isinf(std::strtod(std::string(token).c_str(), nullptr)))
      return wrong("a number beyond the range of double");
    return std::optional<std::uint64_t>();
  }
  Result<std::uint64_t> size() {
    PLIMSOLL_TRY(const std::optional<std::uint64_t> value, number());
    if (!value) return wrong("expected a whole number from 0 to 2^64 - 1");
    return *value;
  }

  Status word(std::string_view expected) {
    if (text_.substr(at_, expected.size()) != expected) return wrong("expected a value");
    at_ += expected.size();
    return {};
  }
  Status null() {
    skip_space();
    return word("null");
  }
  Status skip_value(int depth) {
    skip_space();
    switch (peek()) {
      case '{':
        return members(depth, [&](const std::string&) { return skip_value(depth + 1); });
      case '[':
        return items(depth, [&] { return skip_value(depth + 1); });
      case '"': {
        std::string ignored;
        return string(ignored);
      }
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case 'n':
        return word("null");
      default: {
        const auto ignored = number();
        return ignored ? Status{} : Status(forward(ignored));
      }
    }
  }

  Status metadata(Metadata& out) {
    skip_space();
    if (peek() == 'n') return null();
    std::unordered_map<std::string, std::size_t> by_name;
    return members(2, [&](const std::string& key) -> Status {
      std::string value;
      skip_space();
      PLIMSOLL_RETURN_IF_ERROR(string(value));
      const auto [place, is_new] = by_name.emplace(key, out.size());
      if (is_new) {
        out.emplace_back(key, std::move(value));
      } else {
        out[place->second].second = std::move(value);
      }
      return {};
    });
  }

  Status dtype(Element& out) {
    std::string spelled;
    skip_space();
    if (peek() == '{') {
      int variants = 0;
      PLIMSOLL_RETURN_IF_ERROR(members(3, [&](const std::string& key) {
        ++variants;
        spelled = key;
        return null();
      }));
      if (variants != 1) return wrong("its dtype names {} types", variants);
    } else {
      PLIMSOLL_RETURN_IF_ERROR(string(spelled));
    }
    const auto element = parse_element(spelled);
    if (!element) return wrong("there is no dtype '{}'", excerpt(spelled));
    out = *element;
    return {};
  }
  Status shape(std::vector<std::uint64_t>& out) {
    return items(3, [&]() -> Status {
      PLIMSOLL_TRY(const std::uint64_t extent, size());
      out.push_back(extent);
      return {};
    });
  }
  Status offsets(SafetensorsEntry& out) {
    std::vector<std::uint64_t> both;
    PLIMSOLL_RETURN_IF_ERROR(items(3, [&]() -> Status {
      PLIMSOLL_TRY(const std::uint64_t offset, size());
      if (both.size() == 2) return wrong("data_offsets has more than two numbers");
      both.push_back(offset);
      return {};
    }));
    if (both.size() != 2) return wrong("data_offsets has {} numbers, expected 2", both.size());
    out.begin = both[0];
    out.end = both[1];
    return {};
  }
  Status field(int which, SafetensorsEntry& out) {
    return which == 0 ? dtype(out.element) : which == 1 ? shape(out.dims) : offsets(out);
  }
  Status description(SafetensorsEntry& out) {
    static constexpr std::string_view kFields[] = {"dtype", "shape", "data_offsets"};
    skip_space();
    if (peek() == '[') {
      int which = 0;
      PLIMSOLL_RETURN_IF_ERROR(items(2, [&]() -> Status {
        if (which == 3) return wrong("more than dtype, shape and data_offsets");
        return field(which++, out);
      }));
      if (which != 3) return wrong("{} is missing", kFields[which]);
      return {};
    }
    bool seen[3] = {};
    PLIMSOLL_RETURN_IF_ERROR(members(2, [&](const std::string& key) -> Status {
      for (int which = 0; which < 3; ++which) {
        if (key != kFields[which]) continue;
        if (seen[which]) return wrong("{} is there twice", key);
        seen[which] = true;
        return field(which, out);
      }
      return skip_value(3);
    }));
    for (int which = 0; which < 3; ++which)
      if (!seen[which]) return wrong("{} is missing", kFields[which]);
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

Status check_places(std::span<const SafetensorsEntry> entries) {
  std::uint64_t next = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != next || entry.end < entry.begin)
      return bad_input("tensor '{}': data_offsets [{}, {}], expected it to begin at {}",
                       excerpt(entry.name), entry.begin, entry.end, next);
    const auto needed = bytes_of(entry.element, entry.dims);
    if (!needed)
      return bad_input("tensor '{}': {} is too large or no whole number of bytes",
                       excerpt(entry.name), to_string(entry.element, entry.dims));
    if (*needed != entry.end - entry.begin)
      return bad_input("tensor '{}': {} needs {} bytes, data_offsets give {}", excerpt(entry.name),
                       to_string(entry.element, entry.dims), *needed, entry.end - entry.begin);
    next = entry.end;
  }
  return {};
}

Result<std::string> json_quoted(std::string_view text) {
  if (!is_utf8(text))
    return bad_input("'{}' is not UTF-8, which safetensors demands", printable(text));
  std::string out = "\"";
  for (const char letter : text) {
    switch (letter) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(letter) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(letter));
        } else {
          out += letter;
        }
    }
  }
  return out + '"';
}

}  // namespace

Result<SafetensorsHeader> read_safetensors_header(std::string_view text) {
  if (!is_utf8(text)) return bad_input("its header is not UTF-8");
  PLIMSOLL_TRY(SafetensorsHeader out, HeaderParser(text).parse());
  std::stable_sort(out.entries.begin(), out.entries.end(), [](const auto& a, const auto& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  PLIMSOLL_RETURN_IF_ERROR(check_places(out.entries));
  out.text = text;
  return out;
}

Result<SafetensorsHeader> read_safetensors(std::span<const std::byte> file) {
  if (file.size() < 8)
    return bad_input("not a safetensors file: it has {} bytes, a header needs 8", file.size());
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  if (length > kLongestHeader)
    return bad_input("not a safetensors file: a header of {} bytes, at most {} are read", length,
                     kLongestHeader);
  if (length > file.size() - 8)
    return bad_input("its header has {} bytes, the file {}: it is cut off", length, file.size());
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + 8, length);
  PLIMSOLL_TRY(SafetensorsHeader out, read_safetensors_header(text));
  out.data_begin = 8 + length;
  const std::uint64_t end = out.entries.empty() ? 0 : out.entries.back().end;
  if (end != file.size() - out.data_begin)
    return bad_input("its tensors have {} bytes, the file has {} for them: it is {}", end,
                     file.size() - out.data_begin,
                     end > file.size() - out.data_begin ? "cut off" : "longer than it says");
  return out;
}

Status place_safetensors(std::vector<SafetensorsEntry>& entries) {
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return a.element != b.element ? a.element > b.element : a.name < b.name;
  });
  std::uint64_t next = 0;
  std::unordered_set<std::string_view> names;
  for (SafetensorsEntry& entry : entries) {
    if (!names.insert(entry.name).second)
      return bad_input("there are two tensors called '{}'", printable(entry.name));
    const auto bytes = bytes_of(entry.element, entry.dims);
    if (!bytes || __builtin_add_overflow(next, *bytes, &entry.end))
      return bad_input("tensor '{}': {} is too large", printable(entry.name),
                       to_string(entry.element, entry.dims));
    entry.begin = next;
    next = entry.end;
  }
  return {};
}

Result<std::string> safetensors_header(std::span<const SafetensorsEntry> entries,
                                       const Metadata& metadata) {
  std::string out = "{";
  if (!metadata.empty()) {
    out += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      PLIMSOLL_TRY(const std::string quoted_key, json_quoted(key));
      PLIMSOLL_TRY(const std::string quoted_value, json_quoted(value));
      if (out.back() != '{') out += ',';
      out += quoted_key + ":" + quoted_value;
    }
    out += '}';
  }
  for (const SafetensorsEntry& entry : entries) {
    if (entry.name == "__metadata__")
      return bad_input("a tensor cannot be called '__metadata__' in a safetensors file");
    PLIMSOLL_TRY(const std::string quoted_name, json_quoted(entry.name));
    if (out.size() > 1) out += ',';
    fmt::format_to(std::back_inserter(out),
                   R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", quoted_name,
                   name(entry.element), fmt::join(entry.dims, ","), entry.begin, entry.end);
  }
  out += '}';
  out.resize((out.size() + 7) / 8 * 8, ' ');
  if (out.size() > kLongestHeader)
    return bad_input("a header of {} bytes: a safetensors file has at most {}", out.size(),
                     kLongestHeader);
  return out;
}

Result<SafetensorsWriter> SafetensorsWriter::create(const std::filesystem::path& path,
                                                    std::string_view header) {
  SafetensorsWriter out;
  PLIMSOLL_TRY(out.file_, OutputFile::create(path));
  const std::uint64_t length = header.size();
  PLIMSOLL_RETURN_IF_ERROR(out.file_.write(std::as_bytes(std::span(&length, 1))));
  PLIMSOLL_RETURN_IF_ERROR(out.file_.write(header));
  return out;
}

}  // namespace plimsoll::store

#include "plimsoll/base/json_position.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace plimsoll {
namespace {

class Walker {
 public:
  explicit Walker(std::string_view text) : text_(text) {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
    skip_blanks();
  }

  std::size_t at() const { return at_; }

  // Moves to the value of a key of the object, or of an index of the list, that begins here.
  bool enter(std::string_view key) {
    return descend('{', [&](std::size_t) { return read_key() == key; });
  }
  bool enter(std::size_t index) {
    return descend('[', [&](std::size_t k) { return k == index; });
  }

 private:
  template <typename Wanted>
  bool descend(char opening, Wanted wanted) {
    const std::size_t start = at_;
    if (peek() != opening) return false;
    ++at_;
    for (std::size_t k = 0; at_ < text_.size(); ++k) {
      skip_blanks();
      if (peek() == ']' || peek() == '}') break;
      if (wanted(k)) return true;
      skip_value();
      skip_blanks();
      if (peek() == ',') ++at_;
    }
    at_ = start;
    return false;
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_blanks() {
    while (at_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }
  std::string_view read_key() {
    const std::size_t begin = at_ + 1;
    skip_string();
    const std::string_view key = text_.substr(begin, at_ > begin ? at_ - begin - 1 : 0);
    skip_blanks();
    if (peek() == ':') ++at_;
    skip_blanks();
    return key;
  }
  void skip_string() {
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) at_ += text_[at_] == '\\';
    at_ = std::min(at_ + 1, text_.size());
  }
  void skip_value() {
    int depth = 0;
    const std::size_t start = at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        skip_string();
        if (depth == 0) return;
        continue;
      }
      if (depth == 0 && (c == ',' || c == ']' || c == '}')) break;
      depth += (c == '{' || c == '[') - (c == '}' || c == ']');
      ++at_;
      if (depth == 0 && (c == '}' || c == ']')) return;
    }
    if (at_ == start) ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string line_and_column(std::string_view text, std::size_t at, std::int64_t first_line) {
  const std::string_view before = text.substr(0, std::min(at, text.size()));
  const std::size_t newline = before.rfind('\n');
  const std::size_t column =
      newline == std::string_view::npos ? before.size() : before.size() - newline - 1;
  return fmt::format("line {}, column {}",
                     first_line + std::count(before.begin(), before.end(), '\n'), column + 1);
}

std::size_t find_in_json(std::string_view text, std::string_view path) {
  Walker walker(text);
  while (!path.empty()) {
    if (path.front() == '.') path.remove_prefix(1);
    if (path.starts_with('[')) {
      std::size_t index = 0;
      std::from_chars(path.data() + 1, path.data() + path.size(), index);
      if (!walker.enter(index)) break;
      path.remove_prefix(std::min(path.find(']'), path.size() - 1) + 1);
    } else {
      const std::string_view key = path.substr(0, path.find_first_of(".["));
      if (key.empty() || !walker.enter(key)) break;
      path.remove_prefix(key.size());
    }
  }
  return walker.at();
}

}  // namespace plimsoll

#include "plimsoll/ir/text_scanner.h"

#include <algorithm>
#include <charconv>

#include "plimsoll/base/units.h"

namespace plimsoll::ir {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// -1 for a character that is no hexadecimal digit.
int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The whole of `text` as a number, or nothing.
template <typename T>
bool parse_whole(std::string_view text, T& out) {
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), out);
  return problem == std::errc() && rest == text.data() + text.size();
}

}  // namespace

std::string TextScanner::place() const {
  const std::string_view before = text_.substr(0, at_);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t last = before.rfind('\n');
  const std::size_t column = last == std::string_view::npos ? at_ + 1 : at_ - last;
  return fmt::format("line {}, column {}", line, column);
}

std::string TextScanner::found() const {
  if (at_end()) return "the end of the text";
  if (text_[at_] == '\n') return "the end of the line";
  return quoted(text_.substr(at_, 1));
}

void TextScanner::skip_spaces() {
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
}

void TextScanner::skip_to_line() {
  while (true) {
    skip_spaces();
    if (at_end()) return;
    if (text_[at_] == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (text_[at_] == '\n') {
      ++at_;
    } else {
      return;
    }
  }
}

char TextScanner::peek() {
  skip_spaces();
  return at_end() ? '\n' : text_[at_];
}

bool TextScanner::take(char c) {
  if (peek() != c || at_end()) return false;
  ++at_;
  return true;
}

bool TextScanner::next_is(std::string_view text) {
  skip_spaces();
  return text_.substr(at_, text.size()) == text;
}

Status TextScanner::expect(char c) {
  if (!take(c)) return error("expected '{}', found {}", c, found());
  return {};
}

Status TextScanner::expect_line_end() {
  const char next = peek();
  if (next != '\n' && next != '#') return error("expected the end of the line, found {}", found());
  return {};
}

Result<std::string_view> TextScanner::word(std::string_view what) {
  skip_spaces();
  std::size_t end = at_;
  while (end < text_.size() &&
         (is_letter(text_[end]) || (end > at_ && (is_digit(text_[end]) || text_[end] == '.'))))
    ++end;
  if (end == at_) return error("expected {}, found {}", what, found());
  const std::string_view out = text_.substr(at_, end - at_);
  at_ = end;
  return out;
}

// Stands behind a backslash.
Result<char> TextScanner::escape() {
  const char c = at_end() ? '\n' : text_[at_];
  if (c == '"' || c == '\\' || c == 'n') {
    ++at_;
    return c == 'n' ? '\n' : c;
  }
  if (c == 'x' && at_ + 2 < text_.size()) {
    const int high = hex_digit(text_[at_ + 1]);
    const int low = hex_digit(text_[at_ + 2]);
    if (high >= 0 && low >= 0) {
      at_ += 3;
      return static_cast<char>(high * 16 + low);
    }
  }
  return error("a backslash in a string stands before \", \\, n or xNN, found {}", found());
}

Result<std::string> TextScanner::string(std::string_view what) {
  if (!take('"')) return error("expected {} in quotes, found {}", what, found());
  std::string out;
  while (true) {
    if (at_end() || text_[at_] == '\n') return error("the string is not closed");
    const char c = text_[at_++];
    if (c == '"') return out;
    if (c == '\\') {
      PLIMSOLL_TRY(const char escaped, escape());
      out += escaped;
    } else {
      out += c;
    }
  }
}

Result<std::uint32_t> TextScanner::id() {
  PLIMSOLL_RETURN_IF_ERROR(expect('%'));
  std::uint32_t out = 0;
  const std::size_t begin = at_;
  while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
  if (!parse_whole(text_.substr(begin, at_ - begin), out) || out == ValueId::kNone) {
    at_ = begin;
    return error("expected the number of a value after '%'");
  }
  return out;
}

std::string_view TextScanner::number_text() {
  skip_spaces();
  std::size_t end = at_;
  while (end < text_.size() &&
         (is_digit(text_[end]) || is_letter(text_[end]) || text_[end] == '.' || text_[end] == '-' ||
          text_[end] == '+' || text_[end] == '*' || text_[end] == '^'))
    ++end;
  return text_.substr(at_, end - at_);
}

// A symbol stands in it: what would be no number, or a real, without symbols.
bool TextScanner::is_expression(std::string_view token) const {
  while (!token.empty() && !symbols_.empty()) {
    const std::size_t end = std::min(token.find_first_of("*+-^"), token.size());
    if (find_symbol(symbols_, token.substr(0, end)) != nullptr) return true;
    token.remove_prefix(std::min(end + 1, token.size()));
  }
  return false;
}

Result<std::int64_t> TextScanner::integer() {
  const std::string_view token = number_text();
  std::int64_t out = 0;
  if (is_expression(token)) {
    const auto value = evaluate(token, symbols_);
    if (!value) return error("{}", value.error().message);
    at_ += token.size();
    return value;
  }
  if (!parse_whole(token, out))
    return error("expected an integer of 64 bits, found {}",
                 token.empty() ? found() : quoted(token));
  at_ += token.size();
  return out;
}

Result<double> TextScanner::real() {
  const std::string_view token = number_text();
  double out = 0;
  if (!parse_whole(token, out))
    return error("expected a number, found {}", token.empty() ? found() : quoted(token));
  at_ += token.size();
  return out;
}

Result<Attribute> TextScanner::number() {
  const std::string_view token = number_text();
  if (is_expression(token) || token.find_first_of(".eEfn") == std::string_view::npos) {
    PLIMSOLL_TRY(const std::int64_t value, integer());
    return Attribute(value);
  }
  PLIMSOLL_TRY(const double value, real());
  return Attribute(value);
}

Result<std::vector<std::byte>> TextScanner::bytes() {
  skip_spaces();
  if (text_.substr(at_, 2) != "0x")
    return error("expected data as 0x and hexadecimal digits, found {}", found());
  at_ += 2;
  std::size_t end = at_;
  while (end < text_.size() && hex_digit(text_[end]) >= 0) ++end;
  const std::string_view digits = text_.substr(at_, end - at_);
  if (digits.size() % 2 != 0)
    return error("data has {} hexadecimal digits, an odd number", digits.size());
  std::vector<std::byte> out(digits.size() / 2);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<std::byte>(hex_digit(digits[2 * i]) * 16 + hex_digit(digits[2 * i + 1]));
  }
  at_ = end;
  return out;
}

Result<Ints> TextScanner::integers() {
  PLIMSOLL_RETURN_IF_ERROR(expect('['));
  Ints out;
  if (take(']')) return out;
  do {
    PLIMSOLL_TRY(const std::int64_t value, integer());
    out.push_back(value);
  } while (take(','));
  PLIMSOLL_RETURN_IF_ERROR(expect(']'));
  return out;
}

std::string_view TextScanner::layout_text() {
  if (at_end() || text_[at_] != '@') return {};
  std::size_t end = at_ + 1;
  while (end < text_.size() && (is_digit(text_[end]) || text_[end] == ':' || text_[end] == 'b'))
    ++end;
  const std::string_view out = text_.substr(at_, end - at_);
  at_ = end;
  return out;
}

}  // namespace plimsoll::ir

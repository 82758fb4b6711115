// Reads the words, numbers and strings of the text form off a buffer, one at a time, and says where
// it stands when something else is there. Never reads past the end, never recurses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/attributes.h"
#include "plimsoll/ir/polynomial.h"

namespace plimsoll::ir {

class TextScanner {
 public:
  explicit TextScanner(std::string_view text) : text_(text) {}

  // From here on integers may be expressions in these symbols: "2*batch+1".
  void set_symbols(std::vector<SymbolSize> symbols) { symbols_ = std::move(symbols); }

  // Past spaces, blank lines and `#` comments, to the first byte of the next line that says
  // something.
  void skip_to_line();
  bool at_end() const { return at_ == text_.size(); }
  // Past spaces on this line.
  void skip_spaces();
  // What comes next on this line after spaces; '\n' at the end of the line or of the text.
  char peek();
  // Takes `c` if it is what comes next.
  bool take(char c);
  bool next_is(std::string_view text);
  Status expect(char c);
  // The line must end here (a comment may follow).
  Status expect_line_end();

  // A bare word; its error says that `what` was expected.
  Result<std::string_view> word(std::string_view what);
  Result<std::string> string(std::string_view what);
  // The id behind a '%'.
  Result<std::uint32_t> id();
  Result<std::int64_t> integer();
  Result<double> real();
  // An integer, or a real if it has a point, an exponent, or is inf or nan.
  Result<Attribute> number();
  // Bytes behind "0x", two digits each.
  Result<std::vector<std::byte>> bytes();
  // "[2,3,-1]"
  Result<Ints> integers();
  // "@0231:16b1" if that comes next, else nothing.
  std::string_view layout_text();

  // An error that begins with the place: "line 3, column 17: ...".
  template <typename... Args>
  tl::unexpected<Error> error(fmt::format_string<Args...> format, Args&&... args) const {
    return bad_input("{}: {}", place(), fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  std::string place() const;
  std::string found() const;
  std::string_view number_text();
  bool is_expression(std::string_view token) const;
  Result<char> escape();

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<SymbolSize> symbols_;
};

}  // namespace plimsoll::ir

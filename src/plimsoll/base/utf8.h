// Which bytes are UTF-8 text, and what to show of those that are not.
//
// Inside the program a name is any bytes, as it stood in the file. Only where it leaves the program
// is a choice needed: JSON must be UTF-8 (json.h), a message must be one line that cannot steer a
// terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace plimsoll {

// Bytes of the character at the front of a text that is not empty; 0: they are no UTF-8. Forms
// longer than needed, halves of surrogate pairs and what lies beyond U+10FFFF are none.
std::size_t utf8_character(std::string_view text);

bool is_utf8(std::string_view text);

// On one line and without power over a terminal: control characters and bytes that are no UTF-8 as
// \xNN.
std::string printable(std::string_view text);

// A piece of a file for an error message: printable, cut to 40 bytes of the text.
std::string excerpt(std::string_view text);

}  // namespace plimsoll

// Where in a JSON text a value stands, for error messages: "line 4, column 17".
//
// The parser keeps no positions, and keeping them for a million buffers would cost more than the
// buffers. So they are looked up when something is wrong: the path of the value
// (`buffers[3].gaps[0]`) is walked through the text once more. The text has been parsed before, so
// it is well-formed; on any other text the answer is some position inside it, never a crash.
//
// Lines and columns count from 1, columns in bytes. Cost O(text), no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace plimsoll {

// "line L, column C" of byte `at`; the text's own first line has this number.
std::string line_and_column(std::string_view text, std::size_t at, std::int64_t first_line = 1);

// The byte at which the value of `path` begins, or, where the path ends before that, its last
// ancestor.
std::size_t find_in_json(std::string_view text, std::string_view path);

}  // namespace plimsoll

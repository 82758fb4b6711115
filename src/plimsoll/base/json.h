// The one door for JSON: every JSON text that the program reads comes through parse_json(), every
// one it writes leaves through json_text().
//
// A file is hostile until it is read. The parser beneath (nlohmann) is sound but has no limits: it
// builds a tree as deep and as wide as the text asks for, and copying, comparing or printing such a
// tree recurses once a level, so that 200,000 brackets end the program. Of two equal keys it keeps
// one silently, and it stops at a NUL byte and calls the rest of the file read. Hence limits are
// enforced while the tree is built, before anything can recurse over it:
//
//   bytes    of the text values in the tree, keys included: its memory is at most
//   depth    of arrays and objects                   about 130 bytes a value (a key and its node)
//
// and refused are also equal keys in one object, NUL bytes, texts that are not UTF-8, and numbers
// beyond the range of double. What is refused is said in one line, with the place first:
//
//   {"a": 1,
//    "a": 2}         line 2, column 2: the key 'a' is there twice
//
// Time is n log n in the text (objects are sorted maps: reading a key is never linear in their
// number). No exception leaves this header. The tree keeps no positions; readers that complain
// about a value look its place up with json_position.h.
//
// Writing. JSON is UTF-8, names from other formats (ONNX, CSV, pickles) may be any bytes. What is
// meant for people or other programs to look at is written with U+FFFD for each byte that is no
// UTF-8. A name that the file is read back by (the id of a buffer) may not change silently: whoever
// writes one asks is_utf8() (utf8.h) first and refuses, or escapes it so that it reads back (the
// graph of a plan).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "plimsoll/base/result.h"

namespace plimsoll {

struct JsonLimits {
  std::size_t bytes = std::size_t{512} << 20;
  int depth = 16;
  std::size_t values = 8'000'000;
};

// Of a file of many texts, one a line, `first_line` is the number of this one.
Result<nlohmann::json> parse_json(std::string_view text, const JsonLimits& limits = {},
                                  std::int64_t first_line = 1);

// The tree as text; `indent` as in nlohmann's dump(): -1 is one line.
std::string json_text(const nlohmann::json& tree, int indent = -1);
std::string json_text(const nlohmann::ordered_json& tree, int indent = -1);

}  // namespace plimsoll

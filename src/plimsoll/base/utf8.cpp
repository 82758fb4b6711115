#include "plimsoll/base/utf8.h"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {
namespace {

constexpr std::size_t kExcerptBytes = 40;

}  // namespace

std::size_t utf8_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const std::size_t bytes = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (text.size() < bytes) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Forms longer than needed, the halves of surrogate pairs, and what lies beyond U+10FFFF.
  const unsigned char second = byte(1);
  const bool excluded = (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
                        (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f);
  return excluded ? 0 : bytes;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t bytes = utf8_character(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = utf8_character(text.substr(at));
    const auto lead = static_cast<unsigned char>(text[at]);
    if (bytes == 0 || lead < 0x20 || lead == 0x7f) {
      out += fmt::format("\\x{:02x}", lead);
    } else {
      out += text.substr(at, bytes);
    }
    at += std::max<std::size_t>(bytes, 1);
  }
  return out;
}

std::string excerpt(std::string_view text) {
  if (text.size() <= kExcerptBytes) return printable(text);
  std::size_t end = kExcerptBytes;
  // Not in the middle of a character; what has no beginning within four bytes is none.
  while (end > kExcerptBytes - 4 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return printable(text.substr(0, end)) + "...";
}

}  // namespace plimsoll

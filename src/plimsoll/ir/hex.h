// Bytes as hexadecimal text: how constants stand in the text form and in JSON.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace plimsoll::ir {

// "0x0a1b": two digits a byte, first byte first.
inline std::string to_hex(std::span<const std::byte> data) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out = "0x";
  out.reserve(2 + 2 * data.size());
  for (const std::byte byte : data) {
    const auto bits = std::to_integer<unsigned>(byte);
    out += kDigits[bits >> 4];
    out += kDigits[bits & 15];
  }
  return out;
}

}  // namespace plimsoll::ir

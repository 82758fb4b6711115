// "memo,backjump": the words of a list a user gave, in order.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace plimsoll {

// Nothing for no text; a comma at the end begins no word, two in a row have an empty one between
// them.
inline std::vector<std::string_view> comma_list(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    out.push_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return out;
}

}  // namespace plimsoll

// Any bytes as JSON: refused with one line, or read as the parser beneath reads it, and written so
// that it reads back.
#include <cstdlib>
#include <string_view>

#include <nlohmann/json.hpp>

#include "plimsoll/base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace plimsoll;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto tree = parse_json(text);
  if (!tree) {
    if (tree.error().message.find('\n') != std::string::npos ||
        !tree.error().message.starts_with("line "))
      std::abort();
    return 0;
  }
  if (nlohmann::json::parse(text, nullptr, false) != *tree) std::abort();
  const auto again = parse_json(json_text(*tree));
  if (!again || *again != *tree) std::abort();
  return 0;
}

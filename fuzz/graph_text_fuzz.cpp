// Any bytes: the parser refuses or gives a verified graph, and that graph's text reads back to the
// same text (compared as text because a NaN attribute equals nothing). Where the text has symbols,
// other sizes are tried too.
#include <cstdlib>

#include "plimsoll/ir/dot.h"
#include "plimsoll/ir/text.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace plimsoll;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const ir::SymbolSize other{"batch", 1 << 20};
  static_cast<void>(ir::parse_text(bytes, {&other, 1}));
  const auto graph = ir::parse_text(bytes);
  if (!graph) return 0;
  const std::string text = ir::to_text(*graph);
  const auto again = ir::parse_text(text);
  if (!again || ir::to_text(*again) != text) std::abort();
  ir::to_dot(*graph);
  return 0;
}

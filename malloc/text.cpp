#include "text.h"

#include <cstdlib>

namespace plimsoll::heap {

void die(const char* call, const void* block, const char* what) {
  Text line;
  line << "plimsoll malloc: " << call << "(" << block << "): " << what << "\n";
  line.write_to(2);
  std::abort();
}

}  // namespace plimsoll::heap

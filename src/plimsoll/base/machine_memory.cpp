#include "plimsoll/base/machine_memory.h"

#include <unistd.h>

#include "plimsoll/base/byte_size.h"

namespace plimsoll {

Bytes machine_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGE_SIZE);
  return Bytes(std::int64_t{pages} * page);
}

Status check_machine_memory(Bytes needed) {
  const Bytes there = machine_memory();
  if (needed.value <= there.value) return {};
  return fail(ErrorCode::kDoesNotFit, "needs {} of memory, this machine has {}", human(needed),
              human(there));
}

}  // namespace plimsoll

// Any bytes as an .npz archive: an error or arrays.
#include <cstddef>
#include <cstdint>
#include <span>

#include "plimsoll/store/npz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)plimsoll::store::read_npz_bytes({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}

// Any bytes as a safetensors file: an error, or tensors that lie in it one behind the other.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "plimsoll/store/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto header =
      plimsoll::store::read_safetensors({reinterpret_cast<const std::byte*>(data), size});
  if (!header) return 0;
  std::uint64_t next = header->data_begin;
  for (const auto& entry : header->entries) {
    if (header->data_begin + entry.begin != next) std::abort();
    next = header->data_begin + entry.end;
  }
  if (next != size) std::abort();
  return 0;
}

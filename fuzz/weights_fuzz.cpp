// Any bytes as a file of weights, of whatever format they begin like: an error, or tensors whose
// values can be read or are refused.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plimsoll/store/weights_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file =
      plimsoll::store::WeightsFile::from_bytes({reinterpret_cast<const std::byte*>(data), size});
  if (!file) return 0;
  for (const auto& tensor : file->tensors()) {
    if (tensor.bytes > (1u << 20)) continue;
    std::vector<std::byte> out(tensor.bytes);
    (void)file->read_into(tensor, out);
  }
  return 0;
}

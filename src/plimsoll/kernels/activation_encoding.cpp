#include "plimsoll/kernels/activation_encoding.h"

#include <algorithm>

#include "plimsoll/base/checked.h"
#include "plimsoll/kernels/kernel.h"

namespace plimsoll::kernels {

Bytes Overflow::memory_wanted() const {
  const auto stored = static_cast<std::int64_t>(blocks() * sizeof(std::uint32_t));
  return Bytes(round_up(static_cast<std::int64_t>(activation_bytes_), kAlignment) +
               round_up(stored, kAlignment));
}

std::span<std::byte> Overflow::take_memory(std::span<std::byte> memory) {
  const auto activation =
      static_cast<std::size_t>(round_up(static_cast<std::int64_t>(activation_bytes_), kAlignment));
  memory_ = memory.first(activation_bytes_);
  stored_ = {reinterpret_cast<std::uint32_t*>(memory.data() + activation), blocks()};
  std::fill(stored_.begin(), stored_.end(), 0U);
  return memory.subspan(static_cast<std::size_t>(memory_wanted().value));
}

Bytes Overflow::bytes() const {
  Bytes total;
  for (std::size_t block = 0; block < stored_.size(); ++block) {
    if (holds(block))
      total += Bytes(
          static_cast<std::int64_t>(codec::uncompressed_part(*codec_, memory_, block).size()));
  }
  return total;
}

Bytes Overflow::stored_bytes() const {
  auto total = static_cast<std::int64_t>(
      codec::least_compressed_bytes(activation_bytes_ / codec_->element_bytes));
  for (const std::uint32_t bytes : stored_) total += bytes;
  return Bytes(total);
}

}  // namespace plimsoll::kernels

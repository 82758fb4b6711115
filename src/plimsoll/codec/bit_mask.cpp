#include "plimsoll/codec/bit_mask.h"

#include <algorithm>

#include "plimsoll/base/check.h"
#include "plimsoll/codec/vector_loops.h"

namespace plimsoll::codec {

void encode_positive(std::span<const float> values, std::span<std::uint8_t> out) {
  PLIMSOLL_CHECK(out.size() == mask_bytes(values.size()));
  const std::size_t whole = vector_positive_bits(values.data(), values.size(), out.data());
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(whole / 8), out.end(), std::uint8_t{0});
  for (std::size_t i = whole; i < values.size(); ++i) {
    out[i / 8] = static_cast<std::uint8_t>(out[i / 8] | (values[i] > 0 ? 1u << (i % 8) : 0u));
  }
}

void encode_nonzero(std::span<const std::uint8_t> flags, std::span<std::uint8_t> out) {
  PLIMSOLL_CHECK(out.size() == mask_bytes(flags.size()));
  std::fill(out.begin(), out.end(), std::uint8_t{0});
  for (std::size_t i = 0; i < flags.size(); ++i) {
    out[i / 8] = static_cast<std::uint8_t>(out[i / 8] | ((flags[i] != 0 ? 1u : 0u) << (i % 8)));
  }
}

void decode_flags(std::span<const std::uint8_t> mask, std::span<std::uint8_t> flags) {
  PLIMSOLL_CHECK(mask.size() == mask_bytes(flags.size()));
  for (std::size_t i = 0; i < flags.size(); ++i) flags[i] = (mask[i / 8] >> (i % 8)) & 1;
}

void select_by_mask(std::span<const float> values, std::span<const std::uint8_t> mask,
                    std::span<float> out) {
  PLIMSOLL_CHECK(mask.size() == mask_bytes(values.size()) && out.size() == values.size());
  for (std::size_t i = vector_select(values.data(), mask.data(), values.size(), out.data());
       i < values.size(); ++i) {
    out[i] = (mask[i / 8] >> (i % 8)) & 1 ? values[i] : 0.0f;
  }
}

}  // namespace plimsoll::codec

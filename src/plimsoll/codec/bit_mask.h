// One bit for a value: where a gradient needs only "did it pass".
//
// Bit i of the mask is bit i % 8 of byte i / 8; bits past the end are zero. An activation of fp32
// shrinks 32 times. Lossless for its purpose: the gradient of relu and of clip is the incoming
// gradient where the bit is set, else 0. +0, -0 and NaN are not positive, as relu's own comparison
// has it; nor is NaN inside, as clip_grad has it. Vectorised; about as fast as memory can be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace plimsoll::codec {

constexpr std::size_t mask_bytes(std::size_t count) {
  return count / 8 + (count % 8 != 0);
}

// out.size() == mask_bytes(values.size()).
void encode_positive(std::span<const float> values, std::span<std::uint8_t> out);
// Neither below `least` nor above `most`.
void encode_inside(std::span<const float> values, float least, float most,
                   std::span<std::uint8_t> out);
// out[i] = bit i ? values[i] : 0. In place is fine.
void select_by_mask(std::span<const float> values, std::span<const std::uint8_t> mask,
                    std::span<float> out);

}  // namespace plimsoll::codec

// What the bits in blocks of weights mean (block_weights.h): for decoding, and for multiplying
// without it.
#pragma once

#include <array>
#include <cstdint>

namespace plimsoll::codec {

// The 16 levels of QLoRA's NormalFloat: quantiles of a normal distribution, scaled to -1..1.
inline constexpr std::array<float, 16> kNf4Levels = {
    -1.0f,
    -0.6961928009986877f,
    -0.5250730514526367f,
    -0.39491748809814453f,
    -0.28444138169288635f,
    -0.18477343022823334f,
    -0.09105003625154495f,
    0.0f,
    0.07958029955625534f,
    0.16093020141124725f,
    0.24611230194568634f,
    0.33791524171829224f,
    0.44070982933044434f,
    0.5626170039176941f,
    0.7229568362236023f,
    1.0f,
};

// Eight scales and offsets of six bits in twelve bytes: of q4_k and q5_k.
struct SixBits {
  std::uint8_t scale[8];
  std::uint8_t offset[8];
};
inline SixBits unpack_six(const std::uint8_t* q) {
  SixBits out{};
  for (int j = 0; j < 4; ++j) {
    out.scale[j] = q[j] & 63;
    out.offset[j] = q[j + 4] & 63;
    out.scale[j + 4] = static_cast<std::uint8_t>((q[j + 8] & 15) | ((q[j] >> 6) << 4));
    out.offset[j + 4] = static_cast<std::uint8_t>((q[j + 8] >> 4) | ((q[j + 4] >> 6) << 4));
  }
  return out;
}

}  // namespace plimsoll::codec

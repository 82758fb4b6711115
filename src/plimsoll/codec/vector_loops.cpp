#include "plimsoll/codec/vector_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plimsoll/codec/vector_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace plimsoll::codec {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// At most 8 lanes, so that a vector's mask is at most one byte; 4 lanes fill a byte in two halves.
std::size_t PositiveBits(const float* HWY_RESTRICT values, std::size_t count,
                         std::uint8_t* HWY_RESTRICT mask) {
  const hn::CappedTag<float, 8> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    unsigned byte = 0;
    for (std::size_t k = 0; k < 8; k += lanes) {
      std::uint8_t bits[8] = {};
      hn::StoreMaskBits(d, hn::Gt(hn::LoadU(d, values + i + k), hn::Zero(d)), bits);
      byte |= static_cast<unsigned>(bits[0]) << k;
    }
    mask[i / 8] = static_cast<std::uint8_t>(byte);
  }
  return i;
}

std::size_t Select(const float* values, const std::uint8_t* mask, std::size_t count, float* out) {
  const hn::CappedTag<float, 8> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (std::size_t k = 0; k < 8; k += lanes) {
      const std::uint8_t bits[8] = {static_cast<std::uint8_t>(mask[i / 8] >> k)};
      hn::StoreU(hn::IfThenElseZero(hn::LoadMaskBits(d, bits), hn::LoadU(d, values + i + k)), d,
                 out + i + k);
    }
  }
  return i;
}

// Round to nearest even; a NaN stays one.
std::size_t ToBf16(const float* HWY_RESTRICT values, std::size_t count,
                   std::uint16_t* HWY_RESTRICT out) {
  const hn::ScalableTag<std::uint32_t> d;
  const hn::Rebind<float, decltype(d)> df;
  const hn::Rebind<std::uint16_t, decltype(d)> half;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + 64 <= count; i += 64) {
    for (std::size_t k = 0; k < 64; k += lanes) {
      const auto value = hn::LoadU(df, values + i + k);
      const auto bits = hn::BitCast(d, value);
      const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
      const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7fff))));
      const auto quiet = hn::ShiftRight<16>(hn::Or(bits, hn::Set(d, 0x400000)));
      const auto is_nan = hn::RebindMask(d, hn::Ne(value, value));
      hn::StoreU(hn::DemoteTo(half, hn::BitCast(hn::Rebind<std::int32_t, decltype(d)>(),
                                                hn::IfThenElse(is_nan, quiet, rounded))),
                 half, out + i + k);
    }
  }
  return i;
}

std::size_t FromBf16(const std::uint16_t* HWY_RESTRICT values, std::size_t count,
                     float* HWY_RESTRICT out) {
  const hn::ScalableTag<std::uint32_t> d;
  const hn::Rebind<float, decltype(d)> df;
  const hn::Rebind<std::uint16_t, decltype(d)> half;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + 64 <= count; i += 64) {
    for (std::size_t k = 0; k < 64; k += lanes) {
      hn::StoreU(
          hn::BitCast(df, hn::ShiftLeft<16>(hn::PromoteTo(d, hn::LoadU(half, values + i + k)))), df,
          out + i + k);
    }
  }
  return i;
}

}  // namespace HWY_NAMESPACE
}  // namespace plimsoll::codec
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::codec {

HWY_EXPORT(PositiveBits);
HWY_EXPORT(Select);
HWY_EXPORT(ToBf16);
HWY_EXPORT(FromBf16);

std::size_t vector_positive_bits(const float* values, std::size_t count, std::uint8_t* mask) {
  return HWY_DYNAMIC_DISPATCH(PositiveBits)(values, count, mask);
}
std::size_t vector_select(const float* values, const std::uint8_t* mask, std::size_t count,
                          float* out) {
  return HWY_DYNAMIC_DISPATCH(Select)(values, mask, count, out);
}
std::size_t vector_to_bf16(const float* values, std::size_t count, std::uint16_t* out) {
  return HWY_DYNAMIC_DISPATCH(ToBf16)(values, count, out);
}
std::size_t vector_from_bf16(const std::uint16_t* values, std::size_t count, float* out) {
  return HWY_DYNAMIC_DISPATCH(FromBf16)(values, count, out);
}

}  // namespace plimsoll::codec
#endif

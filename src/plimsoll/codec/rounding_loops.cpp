#include "plimsoll/codec/rounding_loops.h"

#include "plimsoll/codec/small_float.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plimsoll/codec/rounding_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace plimsoll::codec {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Words = hn::ScalableTag<std::uint32_t>;
using Ints = hn::Rebind<std::int32_t, Words>;
using Floats = hn::Rebind<float, Words>;
using Word = hn::Vec<Words>;

// chance_at(), without the multiplication by the place: the caller adds it up.
Word Mixed(Word bits) {
  const Words d;
  bits = hn::Mul(hn::Xor(bits, hn::ShiftRight<16>(bits)), hn::Set(d, 0x21f0aaadu));
  bits = hn::Mul(hn::Xor(bits, hn::ShiftRight<15>(bits)), hn::Set(d, 0xd35a2d97u));
  return hn::Xor(bits, hn::ShiftRight<15>(bits));
}

Word Places(std::uint32_t seed, std::uint32_t first) {
  const Words d;
  return hn::Add(hn::Mul(hn::Iota(d, first), hn::Set(d, 0x9e3779b9u)), hn::Set(d, seed));
}

// a > b where both are below 2^31. Signed comparisons are what every vector has.
hn::Mask<Words> Above(Word a, std::uint32_t b) {
  const Words d;
  const Ints di;
  return hn::RebindMask(d, hn::Gt(hn::BitCast(di, a), hn::Set(di, static_cast<std::int32_t>(b))));
}

template <SmallFloat F>
Word SubnormalCode(Word magnitude, Word chance) {
  using Codes = SmallCodes<F>;
  const Words d;
  const Word wanted =
      hn::Sub(hn::Set(d, static_cast<std::uint32_t>(Codes::kShift + 128 - Codes::kBias)),
              hn::ShiftRight<23>(magnitude));
  // Lanes of normal values come by as well; their shifts must only be in range.
  const Word drop =
      hn::Max(hn::Min(hn::And(wanted, hn::Set(d, 0xffu)), hn::Set(d, 31u)), hn::Set(d, 1u));
  const Word fraction = hn::Or(hn::And(magnitude, hn::Set(d, 0x7fffffu)), hn::Set(d, 0x800000u));
  const Word code = (fraction + (chance >> (hn::Set(d, 32u) - drop))) >> drop;
  return hn::IfThenZeroElse(Above(wanted, 31u), code);
}

template <SmallFloat F, typename Code>
std::size_t Round(const float* HWY_RESTRICT values, std::size_t count, std::uint32_t seed,
                  Code* HWY_RESTRICT codes, bool& too_large) {
  using Codes = SmallCodes<F>;
  constexpr std::uint32_t kInfinite = 0x7f800000u;
  const Words d;
  const std::size_t lanes = hn::Lanes(d);
  const Word stride = hn::Set(d, static_cast<std::uint32_t>(lanes) * 0x9e3779b9u);
  Word place = Places(seed, 0);
  Word over = hn::Zero(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes, place = hn::Add(place, stride)) {
    const Word bits = hn::BitCast(d, hn::LoadU(Floats(), values + i));
    const Word magnitude = hn::And(bits, hn::Set(d, 0x7fffffffu));
    const Word chance = Mixed(place);
    Word code =
        hn::Sub(hn::ShiftRight<Codes::kShift>(
                    hn::Add(magnitude, hn::ShiftRight<32 - Codes::kShift>(chance))),
                hn::Set(d, static_cast<std::uint32_t>(127 - Codes::kBias) << F.fraction_bits));
    if constexpr (Codes::kNormal > 0) {
      code = hn::IfThenElse(Above(magnitude, Codes::kNormal - 1), code,
                            SubnormalCode<F>(magnitude, chance));
    }
    const auto is_nan = Above(magnitude, kInfinite);
    const auto is_infinite = hn::AndNot(is_nan, Above(magnitude, kInfinite - 1));
    // Infinities have a code of their own, or count as too large.
    if constexpr (F.has_infinity) code = hn::IfThenElse(is_infinite, hn::Zero(d), code);
    over = hn::Or(
        over, hn::IfThenElseZero(hn::AndNot(is_nan, Above(code, Codes::kLargest)), hn::Set(d, 1u)));
    if constexpr (F.has_infinity) code = hn::IfThenElse(is_infinite, hn::Set(d, Codes::kTop), code);
    code = hn::IfThenElse(is_nan, hn::Set(d, Codes::kNan), code);
    const Word sign = hn::ShiftLeft<F.exponent_bits + F.fraction_bits>(hn::ShiftRight<31>(bits));
    const hn::Rebind<Code, Words> dc;
    hn::StoreU(hn::DemoteTo(dc, hn::BitCast(Ints(), hn::Or(sign, code))), dc, codes + i);
  }
  too_large = too_large || !hn::AllFalse(d, hn::Ne(over, hn::Zero(d)));
  return i;
}

template <SmallFloat F, typename Code>
std::size_t Widen(const Code* HWY_RESTRICT codes, std::size_t count, float* HWY_RESTRICT values) {
  using Codes = SmallCodes<F>;
  const Words d;
  const Floats df;
  const hn::Rebind<Code, Words> dc;
  const std::size_t lanes = hn::Lanes(d);
  constexpr std::uint32_t kMagnitude = (1u << (F.exponent_bits + F.fraction_bits)) - 1;
  const auto unit = hn::Set(df, from_small<F>(1));
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const Word code = hn::PromoteTo(d, hn::LoadU(dc, codes + i));
    if constexpr (F.exponent_bits == 8) {
      hn::StoreU(hn::BitCast(df, hn::ShiftLeft<16>(code)), df, values + i);
    } else {
      const Word magnitude = hn::And(code, hn::Set(d, kMagnitude));
      const Word wide = hn::ShiftLeft<Codes::kShift>(magnitude);
      Word bits = hn::Add(wide, hn::Set(d, static_cast<std::uint32_t>(127 - Codes::kBias) << 23));
      const auto below =
          hn::BitCast(d, hn::Mul(hn::ConvertTo(df, hn::BitCast(Ints(), magnitude)), unit));
      bits = hn::IfThenElse(Above(magnitude, (1u << F.fraction_bits) - 1), bits, below);
      if constexpr (F.has_infinity) {
        bits = hn::IfThenElse(Above(magnitude, Codes::kTop - 1),
                              hn::Or(wide, hn::Set(d, 0x7f800000u)), bits);
      } else {
        bits = hn::IfThenElse(Above(magnitude, Codes::kLargest), hn::Set(d, 0x7fc00000u), bits);
      }
      const Word sign = hn::ShiftLeft<31>(hn::ShiftRight<F.exponent_bits + F.fraction_bits>(code));
      hn::StoreU(hn::BitCast(df, hn::Or(bits, sign)), df, values + i);
    }
  }
  return i;
}

std::size_t RoundWide(SmallForm form, const float* values, std::size_t count, std::uint32_t seed,
                      std::uint16_t* codes, bool& too_large) {
  return form == SmallForm::kBf16Form ? Round<kBf16>(values, count, seed, codes, too_large)
                                      : Round<kFp16>(values, count, seed, codes, too_large);
}

std::size_t RoundNarrow(SmallForm form, const float* values, std::size_t count, std::uint32_t seed,
                        std::uint8_t* codes, bool& too_large) {
  return form == SmallForm::kE4m3Form ? Round<kE4m3>(values, count, seed, codes, too_large)
                                      : Round<kE5m2>(values, count, seed, codes, too_large);
}

std::size_t WidenWide(SmallForm form, const std::uint16_t* codes, std::size_t count,
                      float* values) {
  return form == SmallForm::kBf16Form ? Widen<kBf16>(codes, count, values)
                                      : Widen<kFp16>(codes, count, values);
}

std::size_t WidenNarrow(SmallForm form, const std::uint8_t* codes, std::size_t count,
                        float* values) {
  return form == SmallForm::kE4m3Form ? Widen<kE4m3>(codes, count, values)
                                      : Widen<kE5m2>(codes, count, values);
}

std::size_t Largest(const float* values, std::size_t count, std::uint32_t& magnitude) {
  const Words d;
  const Ints di;
  const std::size_t lanes = hn::Lanes(d);
  auto largest = hn::Zero(di);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const Word bits = hn::BitCast(d, hn::LoadU(Floats(), values + i));
    largest = hn::Max(largest, hn::BitCast(di, hn::And(bits, hn::Set(d, 0x7fffffffu))));
  }
  magnitude = static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(di, largest)));
  return i;
}

std::size_t ToInt8(const float* HWY_RESTRICT values, std::size_t count, float factor,
                   std::uint32_t seed, std::uint32_t first, std::int8_t* HWY_RESTRICT out) {
  const Words d;
  const Ints di;
  const Floats df;
  const hn::Rebind<std::int8_t, Words> d8;
  const std::size_t lanes = hn::Lanes(d);
  const Word stride = hn::Set(d, static_cast<std::uint32_t>(lanes) * 0x9e3779b9u);
  Word place = Places(seed, first);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes, place = hn::Add(place, stride)) {
    const auto fixed = hn::NearestInt(hn::Mul(hn::LoadU(df, values + i), hn::Set(df, factor)));
    const auto chance = hn::BitCast(di, hn::ShiftRight<16>(Mixed(place)));
    const auto rounded = hn::ShiftRight<16>(hn::Add(fixed, chance));
    const auto code = hn::Max(hn::Min(rounded, hn::Set(di, 127)), hn::Set(di, -127));
    hn::StoreU(hn::DemoteTo(d8, code), d8, out + i);
  }
  return i;
}

std::size_t FromInt8(const std::int8_t* HWY_RESTRICT codes, std::size_t count, float scale,
                     float* HWY_RESTRICT values) {
  const Ints di;
  const Floats df;
  const hn::Rebind<std::int8_t, Words> d8;
  const std::size_t lanes = hn::Lanes(di);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto code = hn::ConvertTo(df, hn::PromoteTo(di, hn::LoadU(d8, codes + i)));
    hn::StoreU(hn::Mul(code, hn::Set(df, scale)), df, values + i);
  }
  return i;
}

}  // namespace HWY_NAMESPACE
}  // namespace plimsoll::codec
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::codec {

HWY_EXPORT(RoundWide);
HWY_EXPORT(RoundNarrow);
HWY_EXPORT(WidenWide);
HWY_EXPORT(WidenNarrow);
HWY_EXPORT(Largest);
HWY_EXPORT(ToInt8);
HWY_EXPORT(FromInt8);

std::size_t vector_round(SmallForm form, const float* values, std::size_t count, std::uint32_t seed,
                         std::uint16_t* codes, bool& too_large) {
  return HWY_DYNAMIC_DISPATCH(RoundWide)(form, values, count, seed, codes, too_large);
}
std::size_t vector_round(SmallForm form, const float* values, std::size_t count, std::uint32_t seed,
                         std::uint8_t* codes, bool& too_large) {
  return HWY_DYNAMIC_DISPATCH(RoundNarrow)(form, values, count, seed, codes, too_large);
}
std::size_t vector_widen(SmallForm form, const std::uint16_t* codes, std::size_t count,
                         float* values) {
  return HWY_DYNAMIC_DISPATCH(WidenWide)(form, codes, count, values);
}
std::size_t vector_widen(SmallForm form, const std::uint8_t* codes, std::size_t count,
                         float* values) {
  return HWY_DYNAMIC_DISPATCH(WidenNarrow)(form, codes, count, values);
}
std::size_t vector_largest(const float* values, std::size_t count, std::uint32_t& magnitude) {
  return HWY_DYNAMIC_DISPATCH(Largest)(values, count, magnitude);
}
std::size_t vector_to_int8(const float* values, std::size_t count, float factor, std::uint32_t seed,
                           std::uint32_t place, std::int8_t* out) {
  return HWY_DYNAMIC_DISPATCH(ToInt8)(values, count, factor, seed, place, out);
}
std::size_t vector_from_int8(const std::int8_t* codes, std::size_t count, float scale,
                             float* values) {
  return HWY_DYNAMIC_DISPATCH(FromInt8)(codes, count, scale, values);
}

}  // namespace plimsoll::codec
#endif

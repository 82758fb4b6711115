#include "plimsoll/codec/weights/product_loops.h"

#include <cstring>

#include "plimsoll/codec/small_float.h"
#include "plimsoll/codec/weights/block_codes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plimsoll/codec/weights/product_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace plimsoll::codec {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Lane = hn::CappedTag<float, 16>;
using Vec = hn::Vec<Lane>;
constexpr std::size_t kLane = hn::MaxLanes(Lane());

HWY_INLINE float Half(const std::uint8_t* bytes) {
  std::uint16_t code;
  std::memcpy(&code, bytes, 2);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(code)));
#else
  return from_small<kFp16>(code);
#endif
}

HWY_INLINE Vec Signed(const std::int8_t* codes) {
  const Lane d;
  const hn::RebindToSigned<Lane> d32;
  const hn::Rebind<std::int8_t, Lane> d8;
  return hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, codes)));
}
HWY_INLINE Vec Unsigned(const std::uint8_t* codes) {
  const Lane d;
  const hn::RebindToSigned<Lane> d32;
  const hn::Rebind<std::uint8_t, Lane> d8;
  return hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, codes)));
}

// Each form calls visit(place, weights) for the vectors of a block, in order.
struct FloatRow {
  static constexpr std::size_t kValues = 32;
  static constexpr std::size_t kBytes = 128;
  template <class Visit>
  static HWY_INLINE void Each(const std::uint8_t* block, Visit visit) {
    _Pragma("GCC unroll 16") for (std::size_t j = 0; j < kValues; j += kLane) {
      // memory of the caller's is aligned to elements at least
      visit(j, hn::LoadU(Lane(), reinterpret_cast<const float*>(block) + j));
    }
  }
};
// Two bytes each.
template <class Widen>
struct ShortRow {
  static constexpr std::size_t kValues = 32;
  static constexpr std::size_t kBytes = 64;
  template <class Visit>
  static HWY_INLINE void Each(const std::uint8_t* block, Visit visit) {
    _Pragma("GCC unroll 16") for (std::size_t j = 0; j < kValues; j += kLane)
        visit(j, Widen::Lanes(reinterpret_cast<const std::uint16_t*>(block) + j));
  }
};
struct WidenBf16 {
  static HWY_INLINE Vec Lanes(const std::uint16_t* codes) {
    const hn::RebindToUnsigned<Lane> d32;
    const hn::Rebind<std::uint16_t, Lane> d16;
    return hn::BitCast(Lane(), hn::ShiftLeft<16>(hn::PromoteTo(d32, hn::LoadU(d16, codes))));
  }
};
// Of small magnitude the code times the smallest value, else the exponent moved; `kTop` has no
// number.
template <SmallFloat F, std::uint32_t kTop, class Code>
HWY_INLINE Vec WidenSmall(const Code* codes) {
  using Codes = SmallCodes<F>;
  constexpr std::uint32_t kMagnitude = (1u << (F.exponent_bits + F.fraction_bits)) - 1;
  const Lane d;
  const hn::RebindToUnsigned<Lane> du;
  const hn::RebindToSigned<Lane> di;
  const hn::Rebind<Code, Lane> dc;
  const auto code = hn::PromoteTo(du, hn::LoadU(dc, codes));
  const auto magnitude = hn::And(code, hn::Set(du, kMagnitude));
  const auto wide = hn::ShiftLeft<Codes::kShift>(magnitude);
  const auto normal =
      hn::Add(wide, hn::Set(du, static_cast<std::uint32_t>(127 - Codes::kBias) << 23));
  const auto below = hn::BitCast(
      du, hn::Mul(hn::ConvertTo(d, hn::BitCast(di, magnitude)), hn::Set(d, from_small<F>(1))));
  const auto above = [&](std::uint32_t bound) HWY_ATTR {
    return hn::RebindMask(
        du, hn::Gt(hn::BitCast(di, magnitude), hn::Set(di, static_cast<std::int32_t>(bound))));
  };
  auto bits = hn::IfThenElse(above((1u << F.fraction_bits) - 1), normal, below);
  bits = hn::IfThenElse(above(kTop - 1), hn::Or(wide, hn::Set(du, 0x7f800000u)), bits);
  const auto sign = hn::ShiftLeft<31 - F.exponent_bits - F.fraction_bits>(
      hn::And(code, hn::Set(du, kMagnitude + 1)));
  return hn::BitCast(d, hn::Or(bits, sign));
}
struct WidenFp16 {
  static HWY_INLINE Vec Lanes(const std::uint16_t* codes) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
    const hn::Rebind<hwy::float16_t, Lane> d16;
    return hn::PromoteTo(Lane(), hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(codes)));
#else
    return WidenSmall<kFp16, SmallCodes<kFp16>::kTop>(codes);
#endif
  }
};
using Fp16Row = ShortRow<WidenFp16>;
using Bf16Row = ShortRow<WidenBf16>;
struct E4m3Row {
  static constexpr std::size_t kValues = 32;
  static constexpr std::size_t kBytes = 32;
  template <class Visit>
  static HWY_INLINE void Each(const std::uint8_t* block, Visit visit) {
    _Pragma("GCC unroll 16") for (std::size_t j = 0; j < kValues; j += kLane)
        visit(j, WidenSmall<kE4m3, SmallCodes<kE4m3>::kNan>(block + j));
  }
};
struct Int8Row {
  static constexpr std::size_t kValues = 32;
  static constexpr std::size_t kBytes = 32;
  template <class Visit>
  static HWY_INLINE void Each(const std::uint8_t* block, Visit visit) {
    _Pragma("GCC unroll 16") for (std::size_t j = 0; j < kValues; j += kLane)
        visit(j, Signed(reinterpret_cast<const std::int8_t*>(block) + j));
  }
};
struct Q8Row {
  static constexpr std::size_t kValues = 32;
  static constexpr std::size_t kBytes = 34;
  template <class Visit>
  static HWY_INLINE void Each(const std::uint8_t* block, Visit visit) {
    const Vec d = hn::Set(Lane(), Half(block));
    _Pragma("GCC unroll 16") for (std::size_t j = 0; j < kValues; j += kLane)
        visit(j, hn::Mul(d, Signed(reinterpret_cast<const std::int8_t*>(block + 2) + j)));
  }
};

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void LowAndHigh(const std::uint8_t* bytes, std::uint8_t* low, std::uint8_t* high) {
  for (std::size_t j = 0; j < 16; ++j) {
    low[j] = bytes[j] & 15;
    high[j] = static_cast<std::uint8_t>(bytes[j] >> 4);
  }
}
// The high nibble is the first of two.
HWY_INLINE void InTurn(const std::uint8_t* bytes, std::uint8_t* codes) {
  for (std::size_t j = 0; j < 16; ++j) {
    codes[2 * j] = static_cast<std::uint8_t>(bytes[j] >> 4);
    codes[2 * j + 1] = bytes[j] & 15;
  }
}
#else
using Sixteen = hn::FixedTag<std::uint8_t, 16>;
HWY_INLINE void Nibbles(const std::uint8_t* bytes, hn::Vec<Sixteen>& low, hn::Vec<Sixteen>& high) {
  const Sixteen d;
  const hn::Repartition<std::uint16_t, Sixteen> d16;
  const auto mask = hn::Set(d, std::uint8_t{15});
  const auto both = hn::LoadU(d, bytes);
  low = hn::And(both, mask);
  high = hn::And(hn::BitCast(d, hn::ShiftRight<4>(hn::BitCast(d16, both))), mask);
}
HWY_INLINE void LowAndHigh(const std::uint8_t* bytes, std::uint8_t* low, std::uint8_t* high) {
  hn::Vec<Sixteen> l, h;
  Nibbles(bytes, l, h);
  hn::StoreU(l, Sixteen(), low);
  hn::StoreU(h, Sixteen(), high);
}
HWY_INLINE void InTurn(const std::uint8_t* bytes, std::uint8_t* codes) {
  hn::Vec<Sixteen> low, high;
  Nibbles(bytes, low, high);
  hn::StoreU(hn::InterleaveLower(Sixteen(), high, low), Sixteen(), codes);
  hn::StoreU(hn::InterleaveUpper(Sixteen(), high, low), Sixteen(), codes + 16);
}
#endif

struct Q4Row {
  static constexpr std::size_t kValues = 32;
  static constexpr std::size_t kBytes = 18;
  template <class Visit>
  static HWY_INLINE void Each(const std::uint8_t* block, Visit visit) {
    const Vec d = hn::Set(Lane(), Half(block));
    const Vec eight = hn::Set(Lane(), 8.0f);
    std::uint8_t codes[kValues];
    LowAndHigh(block + 2, codes, codes + 16);
    _Pragma("GCC unroll 16") for (std::size_t j = 0; j < kValues; j += kLane)
        visit(j, hn::Mul(d, hn::Sub(Unsigned(codes + j), eight)));
  }
};
struct Q4KRow {
  static constexpr std::size_t kValues = 256;
  static constexpr std::size_t kBytes = 144;
  template <class Visit>
  static HWY_INLINE void Each(const std::uint8_t* block, Visit visit) {
    const float d = Half(block);
    const float m = Half(block + 2);
    const SixBits six = unpack_six(block + 4);
    _Pragma("GCC unroll 16") for (std::size_t pair = 0; pair < 4; ++pair) {
      std::uint8_t codes[64];
      const std::uint8_t* q = block + 16 + 32 * pair;
      LowAndHigh(q, codes, codes + 32);
      LowAndHigh(q + 16, codes + 16, codes + 48);
      _Pragma("GCC unroll 16") for (std::size_t half = 0; half < 2; ++half) {
        const std::size_t sub = 2 * pair + half;
        const Vec scale = hn::Set(Lane(), d * six.scale[sub]);
        const Vec offset = hn::Set(Lane(), m * six.offset[sub]);
        _Pragma("GCC unroll 16") for (std::size_t j = 0; j < 32; j += kLane)
            visit(32 * sub + j, hn::Sub(hn::Mul(scale, Unsigned(codes + 32 * half + j)), offset));
      }
    }
  }
};
struct Nf4Row {
  static constexpr std::size_t kValues = 64;
  static constexpr std::size_t kBytes = 36;
  template <class Visit>
  static HWY_INLINE void Each(const std::uint8_t* block, Visit visit) {
    float largest;
    std::memcpy(&largest, block, 4);
    const Lane d;
    const hn::RebindToSigned<Lane> d32;
    const hn::Rebind<std::uint8_t, Lane> d8;
    const Vec scale = hn::Set(d, largest);
    const float* levels = kNf4Levels.data();
    _Pragma("GCC unroll 16") for (std::size_t half = 0; half < 2; ++half) {
      std::uint8_t codes[32];
      InTurn(block + 4 + 16 * half, codes);
      _Pragma("GCC unroll 16") for (std::size_t j = 0; j < 32; j += kLane) {
        const auto index = hn::PromoteTo(d32, hn::LoadU(d8, codes + j));
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
        const Vec level = hn::TableLookupLanes(hn::LoadU(d, levels), hn::IndicesFromVec(d, index));
#else
        const Vec level = hn::GatherIndex(d, levels, index);
#endif
        visit(32 * half + j, hn::Mul(level, scale));
      }
    }
  }
};

template <class Form>
float DotOf(const std::uint8_t* HWY_RESTRICT row, std::size_t count, const float* HWY_RESTRICT in) {
  const Lane d;
  // Two sums: one need not wait for the last addition of the other. Loops of constant length are
  // unrolled by hand, or the sums would live in memory.
  Vec even = hn::Zero(d);
  Vec odd = hn::Zero(d);
  for (std::size_t i = 0; i < count; i += Form::kValues, row += Form::kBytes) {
    Form::Each(row, [&](std::size_t j, Vec weights) HWY_ATTR {
      if ((j / kLane) % 2 == 0) {
        even = hn::MulAdd(weights, hn::LoadU(d, in + i + j), even);
      } else {
        odd = hn::MulAdd(weights, hn::LoadU(d, in + i + j), odd);
      }
    });
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
}

template <class Form, std::size_t kRows>
void AxpyOf(const std::uint8_t* const* rows, std::size_t count, const float* scales,
            float* HWY_RESTRICT out) {
  const Lane d;
  const std::uint8_t* at[kRows];
  _Pragma("GCC unroll 16") for (std::size_t r = 0; r < kRows; ++r) at[r] = rows[r];
  for (std::size_t i = 0; i < count; i += Form::kValues) {
    alignas(64) float sums[Form::kValues];
    _Pragma("GCC unroll 16") for (std::size_t j = 0; j < Form::kValues; j += kLane)
        hn::Store(hn::LoadU(d, out + i + j), d, sums + j);
    _Pragma("GCC unroll 16") for (std::size_t r = 0; r < kRows; ++r) {
      const Vec scale = hn::Set(d, scales[r]);
      Form::Each(at[r], [&](std::size_t j, Vec weights) HWY_ATTR {
        hn::Store(hn::MulAdd(scale, weights, hn::Load(d, sums + j)), d, sums + j);
      });
      at[r] += Form::kBytes;
    }
    _Pragma("GCC unroll 16") for (std::size_t j = 0; j < Form::kValues; j += kLane)
        hn::StoreU(hn::Load(d, sums + j), d, out + i + j);
  }
}

float Dot(RowForm form, const std::uint8_t* row, std::size_t count, const float* in) {
  switch (form) {
    case RowForm::kFloat:
      return DotOf<FloatRow>(row, count, in);
    case RowForm::kFloat16:
      return DotOf<Fp16Row>(row, count, in);
    case RowForm::kBfloat16:
      return DotOf<Bf16Row>(row, count, in);
    case RowForm::kFloat8:
      return DotOf<E4m3Row>(row, count, in);
    case RowForm::kInt8:
      return DotOf<Int8Row>(row, count, in);
    case RowForm::kQ8_0:
      return DotOf<Q8Row>(row, count, in);
    case RowForm::kQ4_0:
      return DotOf<Q4Row>(row, count, in);
    case RowForm::kQ4K:
      return DotOf<Q4KRow>(row, count, in);
    case RowForm::kNf4:
      return DotOf<Nf4Row>(row, count, in);
  }
  return 0;
}

template <std::size_t kRows>
HWY_INLINE void AxpyFor(RowForm form, const std::uint8_t* const* rows, std::size_t count,
                        const float* scales, float* out) {
  switch (form) {
    case RowForm::kFloat:
      return AxpyOf<FloatRow, kRows>(rows, count, scales, out);
    case RowForm::kFloat16:
      return AxpyOf<Fp16Row, kRows>(rows, count, scales, out);
    case RowForm::kBfloat16:
      return AxpyOf<Bf16Row, kRows>(rows, count, scales, out);
    case RowForm::kFloat8:
      return AxpyOf<E4m3Row, kRows>(rows, count, scales, out);
    case RowForm::kInt8:
      return AxpyOf<Int8Row, kRows>(rows, count, scales, out);
    case RowForm::kQ8_0:
      return AxpyOf<Q8Row, kRows>(rows, count, scales, out);
    case RowForm::kQ4_0:
      return AxpyOf<Q4Row, kRows>(rows, count, scales, out);
    case RowForm::kQ4K:
      return AxpyOf<Q4KRow, kRows>(rows, count, scales, out);
    case RowForm::kNf4:
      return AxpyOf<Nf4Row, kRows>(rows, count, scales, out);
  }
}
void Axpy(RowForm form, const std::uint8_t* const* rows, std::size_t count, const float* scales,
          float* out) {
  AxpyFor<1>(form, rows, count, scales, out);
}
void Axpy4(RowForm form, const std::uint8_t* const* rows, std::size_t count, const float* scales,
           float* out) {
  AxpyFor<4>(form, rows, count, scales, out);
}

using Lane16 = hn::CappedTag<std::int16_t, 32>;
using Lane32 = hn::RepartitionToWide<Lane16>;
using Vec32 = hn::Vec<Lane32>;
constexpr std::size_t kLane16 = hn::MaxLanes(Lane16());

// One sum in two vectors, as some machines want it.
struct WholeSum {
  Vec32 first;
  Vec32 second;
  HWY_INLINE WholeSum() : first(hn::Zero(Lane32())), second(hn::Zero(Lane32())) {}
  HWY_INLINE void Add(hn::Vec<Lane16> weights, const std::int16_t* in) {
    first =
        hn::ReorderWidenMulAccumulate(Lane32(), weights, hn::LoadU(Lane16(), in), first, second);
  }
  HWY_INLINE Vec32 Both() const { return hn::Add(first, second); }
};
HWY_INLINE hn::Vec<Lane16> Widened(const std::uint8_t* codes) {
  const hn::Rebind<std::int8_t, Lane16> d8;
  return hn::PromoteTo(Lane16(), hn::LoadU(d8, reinterpret_cast<const std::int8_t*>(codes)));
}
HWY_INLINE float Total(Vec32 sums) {
  return static_cast<float>(hn::GetLane(hn::SumOfLanes(Lane32(), sums)));
}
// Of a q8_0 block: its scale times its sum, added lane by lane.
using LaneOfWhole = hn::Rebind<float, Lane32>;
using VecOfWhole = hn::Vec<LaneOfWhole>;
HWY_INLINE VecOfWhole Scaled(const WholeSum& sum, VecOfWhole scale, VecOfWhole before) {
  return hn::MulAdd(scale, hn::ConvertTo(LaneOfWhole(), sum.Both()), before);
}

void Int8WholeFour(const std::uint8_t* HWY_RESTRICT row, std::size_t count,
                   const std::int16_t* HWY_RESTRICT in, std::size_t step, float* out) {
  WholeSum a, b, c, d;
  for (std::size_t i = 0; i < count; i += kLane16) {
    const auto weights = Widened(row + i);
    a.Add(weights, in + i);
    b.Add(weights, in + step + i);
    c.Add(weights, in + 2 * step + i);
    d.Add(weights, in + 3 * step + i);
  }
  out[0] = Total(a.Both());
  out[1] = Total(b.Both());
  out[2] = Total(c.Both());
  out[3] = Total(d.Both());
}
void Int8WholeOne(const std::uint8_t* HWY_RESTRICT row, std::size_t count,
                  const std::int16_t* HWY_RESTRICT in, float* out) {
  WholeSum sum;
  for (std::size_t i = 0; i < count; i += kLane16) sum.Add(Widened(row + i), in + i);
  out[0] = Total(sum.Both());
}
void Q8WholeFour(const std::uint8_t* HWY_RESTRICT row, std::size_t count,
                 const std::int16_t* HWY_RESTRICT in, std::size_t step, float* out) {
  const LaneOfWhole df;
  VecOfWhole e = hn::Zero(df);
  VecOfWhole f = hn::Zero(df);
  VecOfWhole g = hn::Zero(df);
  VecOfWhole h = hn::Zero(df);
  for (std::size_t i = 0; i < count; i += Q8Row::kValues, row += Q8Row::kBytes) {
    const VecOfWhole scale = hn::Set(df, Half(row));
    WholeSum a, b, c, d;
    _Pragma("GCC unroll 16") for (std::size_t j = 0; j < Q8Row::kValues; j += kLane16) {
      const auto weights = Widened(row + 2 + j);
      a.Add(weights, in + i + j);
      b.Add(weights, in + step + i + j);
      c.Add(weights, in + 2 * step + i + j);
      d.Add(weights, in + 3 * step + i + j);
    }
    e = Scaled(a, scale, e);
    f = Scaled(b, scale, f);
    g = Scaled(c, scale, g);
    h = Scaled(d, scale, h);
  }
  out[0] = hn::GetLane(hn::SumOfLanes(df, e));
  out[1] = hn::GetLane(hn::SumOfLanes(df, f));
  out[2] = hn::GetLane(hn::SumOfLanes(df, g));
  out[3] = hn::GetLane(hn::SumOfLanes(df, h));
}
void Q8WholeOne(const std::uint8_t* HWY_RESTRICT row, std::size_t count,
                const std::int16_t* HWY_RESTRICT in, float* out) {
  const LaneOfWhole df;
  VecOfWhole e = hn::Zero(df);
  for (std::size_t i = 0; i < count; i += Q8Row::kValues, row += Q8Row::kBytes) {
    WholeSum a;
    _Pragma("GCC unroll 16") for (std::size_t j = 0; j < Q8Row::kValues; j += kLane16)
        a.Add(Widened(row + 2 + j), in + i + j);
    e = Scaled(a, hn::Set(df, Half(row)), e);
  }
  out[0] = hn::GetLane(hn::SumOfLanes(df, e));
}

void DotWhole(RowForm form, const std::uint8_t* row, std::size_t count, const std::int16_t* in,
              std::size_t step, std::size_t vectors, float* out) {
  const bool int8 = form == RowForm::kInt8;
  std::size_t v = 0;
  for (; v + 4 <= vectors; v += 4)
    int8 ? Int8WholeFour(row, count, in + v * step, step, out + v)
         : Q8WholeFour(row, count, in + v * step, step, out + v);
  for (; v < vectors; ++v)
    int8 ? Int8WholeOne(row, count, in + v * step, out + v)
         : Q8WholeOne(row, count, in + v * step, out + v);
}

}  // namespace HWY_NAMESPACE
}  // namespace plimsoll::codec
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::codec {

HWY_EXPORT(Dot);
HWY_EXPORT(Axpy);
HWY_EXPORT(Axpy4);
HWY_EXPORT(DotWhole);

namespace {

// Values in a block, and its bytes, of the loops above.
struct RowBlock {
  std::size_t values;
  std::size_t bytes;
};
RowBlock block_of(RowForm form) {
  switch (form) {
    case RowForm::kFloat:
      return {32, 128};
    case RowForm::kFloat16:
    case RowForm::kBfloat16:
      return {32, 64};
    case RowForm::kFloat8:
    case RowForm::kInt8:
      return {32, 32};
    case RowForm::kQ8_0:
      return {32, 34};
    case RowForm::kQ4_0:
      return {32, 18};
    case RowForm::kQ4K:
      return {256, 144};
    case RowForm::kNf4:
      return {64, 36};
  }
  return {1, 1};
}

// What is behind the last whole block; forms of single values have it.
float row_value(RowForm form, const std::uint8_t* row, std::size_t i) {
  if (form == RowForm::kInt8) return static_cast<float>(static_cast<std::int8_t>(row[i]));
  if (form == RowForm::kFloat8) return from_small<kE4m3>(row[i]);
  if (form == RowForm::kFloat16 || form == RowForm::kBfloat16) {
    std::uint16_t code;
    std::memcpy(&code, row + 2 * i, 2);
    return form == RowForm::kFloat16 ? from_small<kFp16>(code) : from_small<kBf16>(code);
  }
  float value;
  std::memcpy(&value, row + 4 * i, 4);
  return value;
}

}  // namespace

float vector_dot(RowForm form, const std::uint8_t* row, std::size_t count, const float* in) {
  const std::size_t whole = count - count % block_of(form).values;
  float sum = HWY_DYNAMIC_DISPATCH(Dot)(form, row, whole, in);
  for (std::size_t i = whole; i < count; ++i) sum += row_value(form, row, i) * in[i];
  return sum;
}
void vector_axpy(RowForm form, const std::uint8_t* row, std::size_t count, float scale,
                 float* out) {
  const std::size_t whole = count - count % block_of(form).values;
  HWY_DYNAMIC_DISPATCH(Axpy)(form, &row, whole, &scale, out);
  for (std::size_t i = whole; i < count; ++i) out[i] += scale * row_value(form, row, i);
}
void vector_axpy4(RowForm form, const std::uint8_t* const* rows, std::size_t count,
                  const float* scales, float* out) {
  const std::size_t whole = count - count % block_of(form).values;
  HWY_DYNAMIC_DISPATCH(Axpy4)(form, rows, whole, scales, out);
  for (std::size_t r = 0; r < 4 && whole < count; ++r)
    for (std::size_t i = whole; i < count; ++i) out[i] += scales[r] * row_value(form, rows[r], i);
}
void vector_dot_whole(RowForm form, const std::uint8_t* row, std::size_t count,
                      const std::int16_t* in, std::size_t step, std::size_t vectors, float* out) {
  const std::size_t blocks = count - count % block_of(form).values;
  HWY_DYNAMIC_DISPATCH(DotWhole)(form, row, blocks, in, step, vectors, out);
  for (std::size_t v = 0; v < vectors && blocks < count; ++v) {
    std::int32_t rest = 0;
    for (std::size_t i = blocks; i < count; ++i)
      rest += static_cast<std::int8_t>(row[i]) * in[v * step + i];
    out[v] += static_cast<float>(rest);
  }
}

}  // namespace plimsoll::codec
#endif

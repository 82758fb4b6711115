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

}  // namespace HWY_NAMESPACE
}  // namespace plimsoll::codec
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::codec {

HWY_EXPORT(Dot);
HWY_EXPORT(Axpy);
HWY_EXPORT(Axpy4);

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

// What is behind the last whole block; only floats and int8 have such values.
float row_value(RowForm form, const std::uint8_t* row, std::size_t i) {
  if (form == RowForm::kInt8) return static_cast<float>(static_cast<std::int8_t>(row[i]));
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

}  // namespace plimsoll::codec
#endif

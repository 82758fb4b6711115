#include "plimsoll/codec/weights/weight_loops.h"

#include <bit>
#include <cstring>

#include "plimsoll/codec/small_float.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plimsoll/codec/weights/weight_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace plimsoll::codec {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

std::size_t Q8(const std::uint8_t*, std::size_t, float*) {
  return 0;
}
std::size_t Q4(const std::uint8_t*, std::size_t, float*) {
  return 0;
}
std::size_t Exponents(const std::uint8_t*, const std::uint8_t*, const std::uint8_t*,
                      const std::uint8_t*, std::size_t, std::uint16_t*) {
  return 0;
}

#else

using Floats = hn::CappedTag<float, 16>;

HWY_INLINE float HalfAt(const std::uint8_t* bytes) {
  std::uint16_t code;
  std::memcpy(&code, bytes, 2);
  return from_small<kFp16>(code);
}

// Signed bytes times d, 32 of them.
HWY_INLINE void Scaled(const std::int8_t* HWY_RESTRICT codes, float d, float* HWY_RESTRICT out) {
  const Floats df;
  const hn::RebindToSigned<Floats> d32;
  const hn::Rebind<std::int8_t, Floats> d8;
  const auto factor = hn::Set(df, d);
  for (std::size_t j = 0; j < 32; j += hn::Lanes(df)) {
    const auto whole = hn::ConvertTo(df, hn::PromoteTo(d32, hn::LoadU(d8, codes + j)));
    hn::StoreU(hn::Mul(factor, whole), df, out + j);
  }
}

std::size_t Q8(const std::uint8_t* HWY_RESTRICT blocks, std::size_t count,
               float* HWY_RESTRICT values) {
  std::size_t i = 0;
  for (; i + 32 <= count; i += 32, blocks += 34)
    Scaled(reinterpret_cast<const std::int8_t*>(blocks + 2), HalfAt(blocks), values + i);
  return i;
}

std::size_t Q4(const std::uint8_t* HWY_RESTRICT blocks, std::size_t count,
               float* HWY_RESTRICT values) {
  const hn::FixedTag<std::uint8_t, 16> d8;
  const hn::RebindToSigned<decltype(d8)> di8;
  const auto low = hn::Set(d8, std::uint8_t{15});
  const auto eight = hn::Set(di8, std::int8_t{8});
  std::size_t i = 0;
  for (; i + 32 <= count; i += 32, blocks += 18) {
    const auto both = hn::LoadU(d8, blocks + 2);
    const hn::Repartition<std::uint16_t, decltype(d8)> d16;
    const auto first = hn::And(both, low);
    const auto second = hn::And(hn::BitCast(d8, hn::ShiftRight<4>(hn::BitCast(d16, both))), low);
    std::int8_t codes[32];
    hn::StoreU(hn::Sub(hn::BitCast(di8, first), eight), di8, codes);
    hn::StoreU(hn::Sub(hn::BitCast(di8, second), eight), di8, codes + 16);
    Scaled(codes, HalfAt(blocks), values + i);
  }
  return i;
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL

// A mask register is a bit plane of 64 values, one instruction looks 64 of them up in the table,
// and one spreads the escapes.
std::size_t Exponents(const std::uint8_t* HWY_RESTRICT table,
                      const std::uint8_t* HWY_RESTRICT planes,
                      const std::uint8_t* HWY_RESTRICT rest,
                      const std::uint8_t* HWY_RESTRICT escapes, std::size_t count,
                      std::uint16_t* HWY_RESTRICT values) {
  long long words;
  std::memcpy(&words, table, 8);
  const __m512i lookup = _mm512_set1_epi64(words);
  const __m512i first = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
  const __m512i second = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
  std::size_t i = 0;
  for (; i + 64 <= count; i += 64, planes += 24) {
    std::uint64_t m[3];
    std::memcpy(m, planes, 24);
    const __m512i code =
        _mm512_or_si512(_mm512_maskz_mov_epi8(m[0], _mm512_set1_epi8(1)),
                        _mm512_or_si512(_mm512_maskz_mov_epi8(m[1], _mm512_set1_epi8(2)),
                                        _mm512_maskz_mov_epi8(m[2], _mm512_set1_epi8(4))));
    const std::uint64_t escaped = m[0] & m[1] & m[2];
    __m512i exponent = _mm512_permutexvar_epi8(code, lookup);
    exponent = _mm512_mask_expandloadu_epi8(exponent, escaped, escapes);
    escapes += std::popcount(escaped);
    const __m512i r = _mm512_loadu_si512(rest + i);
    const __m512i top = _mm512_set1_epi8(static_cast<char>(0x80));
    // The low byte has the exponent's last bit above the fraction, the high byte the sign above the
    // other seven. Shifts are of 16 bits: what comes from the neighbour is masked away.
    const __m512i low = _mm512_ternarylogic_epi64(top, _mm512_slli_epi16(exponent, 7), r, 0xca);
    const __m512i high = _mm512_ternarylogic_epi64(top, r, _mm512_srli_epi16(exponent, 1), 0xca);
    const __m512i even = _mm512_unpacklo_epi8(low, high);
    const __m512i odd = _mm512_unpackhi_epi8(low, high);
    _mm512_storeu_si512(values + i, _mm512_permutex2var_epi64(even, first, odd));
    _mm512_storeu_si512(values + i + 32, _mm512_permutex2var_epi64(even, second, odd));
  }
  return i;
}

#else

std::size_t Exponents(const std::uint8_t* HWY_RESTRICT table,
                      const std::uint8_t* HWY_RESTRICT planes,
                      const std::uint8_t* HWY_RESTRICT rest,
                      const std::uint8_t* HWY_RESTRICT escapes, std::size_t count,
                      std::uint16_t* HWY_RESTRICT values) {
  alignas(16) static constexpr std::uint8_t kBytes[16] = {0, 0, 0, 0, 0, 0, 0, 0,
                                                          1, 1, 1, 1, 1, 1, 1, 1};
  alignas(16) static constexpr std::uint8_t kBits[16] = {1, 2, 4, 8, 16, 32, 64, 128,
                                                         1, 2, 4, 8, 16, 32, 64, 128};
  const hn::FixedTag<std::uint8_t, 16> d;
  const hn::FixedTag<std::uint16_t, 8> d16;
  alignas(16) std::uint8_t twice[16];
  std::memcpy(twice, table, 8);
  std::memcpy(twice + 8, table, 8);
  const auto lookup = hn::Load(d, twice);
  const auto spread = hn::Load(d, kBytes);
  const auto bit = hn::Load(d, kBits);
  const auto top = hn::Set(d, std::uint8_t{0x80});
  std::size_t i = 0;
  for (; i + 64 <= count; i += 64, planes += 24) {
    std::uint64_t m[3];
    std::memcpy(m, planes, 24);
    alignas(16) std::uint8_t exponents[64];
    for (std::size_t k = 0; k < 64; k += 16) {
      auto code = hn::Zero(d);
      for (unsigned p = 0; p < 3; ++p) {
        std::uint16_t two;
        std::memcpy(&two, planes + 8 * p + k / 8, 2);
        const auto copies = hn::TableLookupBytes(hn::BitCast(d, hn::Set(d16, two)), spread);
        const auto set = hn::VecFromMask(d, hn::TestBit(copies, bit));
        code = hn::Or(code, hn::And(set, hn::Set(d, static_cast<std::uint8_t>(1u << p))));
      }
      hn::Store(hn::TableLookupBytes(lookup, code), d, exponents + k);
    }
    for (std::uint64_t escaped = m[0] & m[1] & m[2]; escaped != 0; escaped &= escaped - 1)
      exponents[std::countr_zero(escaped)] = *escapes++;
    for (std::size_t k = 0; k < 64; k += 16) {
      const auto exponent = hn::Load(d, exponents + k);
      const auto r = hn::LoadU(d, rest + i + k);
      const auto wide = hn::BitCast(d16, exponent);
      const auto low =
          hn::Or(hn::And(top, hn::BitCast(d, hn::ShiftLeft<7>(wide))), hn::AndNot(top, r));
      const auto high =
          hn::Or(hn::And(top, r), hn::AndNot(top, hn::BitCast(d, hn::ShiftRight<1>(wide))));
      hn::StoreU(hn::BitCast(d16, hn::InterleaveLower(d, low, high)), d16, values + i + k);
      hn::StoreU(hn::BitCast(d16, hn::InterleaveUpper(d, low, high)), d16, values + i + k + 8);
    }
  }
  return i;
}

#endif
#endif

}  // namespace HWY_NAMESPACE
}  // namespace plimsoll::codec
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::codec {

HWY_EXPORT(Q8);
HWY_EXPORT(Q4);
HWY_EXPORT(Exponents);

std::size_t vector_q8_0(const std::uint8_t* blocks, std::size_t count, float* values) {
  return HWY_DYNAMIC_DISPATCH(Q8)(blocks, count, values);
}
std::size_t vector_q4_0(const std::uint8_t* blocks, std::size_t count, float* values) {
  return HWY_DYNAMIC_DISPATCH(Q4)(blocks, count, values);
}
std::size_t vector_exponents(const std::uint8_t* table, const std::uint8_t* planes,
                             const std::uint8_t* rest, const std::uint8_t* escapes,
                             std::size_t count, std::uint16_t* values) {
  return HWY_DYNAMIC_DISPATCH(Exponents)(table, planes, rest, escapes, count, values);
}

}  // namespace plimsoll::codec
#endif

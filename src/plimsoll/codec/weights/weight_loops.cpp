#include "plimsoll/codec/weights/weight_loops.h"

#include <bit>
#include <cstring>

#include "plimsoll/codec/small_float.h"

// Highway leaves out the target with byte permutations and expansions unless it is asked for.
#ifndef HWY_WANT_AVX3_DL
#define HWY_WANT_AVX3_DL 1
#endif
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
                      const std::uint8_t*, std::size_t, std::size_t, std::uint16_t*, std::size_t&) {
  return 0;
}
std::size_t Split(std::size_t, const std::uint8_t*, std::size_t, std::uint8_t* const*) {
  return 0;
}
std::size_t Join(std::size_t, const std::uint8_t* const*, std::size_t, std::uint8_t*) {
  return 0;
}
std::size_t SpreadValues(std::size_t, const std::uint8_t*, const std::uint8_t*, std::size_t,
                         std::size_t, std::uint8_t*, std::size_t&) {
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

// A block's planes, rest and escapes are three short streams that begin anew with each block: too
// short for a processor to see where they go. So the next block, which lies behind this one, is
// fetched while this one is decoded, as many bytes for a group of 64 as a group takes. (Decoding a
// tensor that is in no cache: 9.2 GB/s without, 15.9 with, beside 12.4 of memcpy; one of the EPYCs
// with AVX-512.)
HWY_INLINE void FetchNextBlock(const std::uint8_t* block, std::size_t value) {
  constexpr std::size_t kBlockBytes = 6000;  // of 4096 values, some 370 escapes among them
  constexpr std::size_t kGroupBytes = 92;
  const std::uintptr_t at =
      reinterpret_cast<std::uintptr_t>(block) + kBlockBytes + value / 64 * kGroupBytes;
  __builtin_prefetch(reinterpret_cast<const void*>(at));
  __builtin_prefetch(reinterpret_cast<const void*>(at + 64));
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL

HWY_INLINE std::uint64_t LowBits(std::size_t count) {
  return count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

// Where a group's values of the next block will be written is asked for too: a tensor that is in no
// cache is 1.07 times as fast to decode (17.3 to 18.6 GB/s beside other work). Compilers only ask
// for a line to read.
HWY_INLINE void FetchNextValues(const std::uint16_t* group) {
  constexpr std::size_t kBlock = 4096;
  asm volatile("prefetchw (%0)" : : "r"(group + kBlock));
  asm volatile("prefetchw (%0)" : : "r"(group + kBlock + 32));
}

// A mask register is a bit plane of 64 values, one instruction looks 64 of them up in the table,
// and one spreads the escapes.
std::size_t Exponents(const std::uint8_t* HWY_RESTRICT table,
                      const std::uint8_t* HWY_RESTRICT planes,
                      const std::uint8_t* HWY_RESTRICT rest,
                      const std::uint8_t* HWY_RESTRICT escapes, std::size_t escapes_left,
                      std::size_t count, std::uint16_t* HWY_RESTRICT values,
                      std::size_t& used_before) {
  // A local: behind a reference it would be written to memory each time.
  std::size_t used = used_before;
  long long words;
  std::memcpy(&words, table, 8);
  const __m512i lookup = _mm512_set1_epi64(words);
  const __m512i first = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
  const __m512i second = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
  const std::uint8_t* const block = planes;
  std::size_t i = 0;
  for (; i + 64 <= count; i += 64, planes += 24) {
    FetchNextBlock(block, i);
    FetchNextValues(values + i);
    std::uint64_t m[3];
    std::memcpy(m, planes, 24);
    const __m512i code =
        _mm512_or_si512(_mm512_maskz_mov_epi8(m[0], _mm512_set1_epi8(1)),
                        _mm512_or_si512(_mm512_maskz_mov_epi8(m[1], _mm512_set1_epi8(2)),
                                        _mm512_maskz_mov_epi8(m[2], _mm512_set1_epi8(4))));
    const std::uint64_t escaped = m[0] & m[1] & m[2];
    const auto taken = static_cast<std::size_t>(std::popcount(escaped));
    if (taken > escapes_left - used) break;
    __m512i exponent = _mm512_permutexvar_epi8(code, lookup);
    // Loaded first, then spread: a load that spreads is a routine of microcode on some processors.
    const __m512i written = _mm512_maskz_loadu_epi8(LowBits(taken), escapes + used);
    exponent = _mm512_mask_expand_epi8(exponent, escaped, written);
    used += taken;
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
  used_before = used;
  return i;
}

#else

std::size_t Exponents(const std::uint8_t* HWY_RESTRICT table,
                      const std::uint8_t* HWY_RESTRICT planes,
                      const std::uint8_t* HWY_RESTRICT rest,
                      const std::uint8_t* HWY_RESTRICT escapes, std::size_t escapes_left,
                      std::size_t count, std::uint16_t* HWY_RESTRICT values, std::size_t& used) {
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
  const std::uint8_t* const block = planes;
  std::size_t i = 0;
  for (; i + 64 <= count; i += 64, planes += 24) {
    FetchNextBlock(block, i);
    std::uint64_t m[3];
    std::memcpy(m, planes, 24);
    alignas(16) std::uint8_t exponents[64];
    for (std::size_t k = 0; k < 64; k += 16) {
      auto code = hn::Zero(d);
      for (unsigned p = 0; p < 3; ++p) {
        std::uint16_t two;
        std::memcpy(&two, planes + std::size_t{8} * p + k / 8, 2);
        const auto copies = hn::TableLookupBytes(hn::BitCast(d, hn::Set(d16, two)), spread);
        const auto set = hn::VecFromMask(d, hn::TestBit(copies, bit));
        code = hn::Or(code, hn::And(set, hn::Set(d, static_cast<std::uint8_t>(1u << p))));
      }
      hn::Store(hn::TableLookupBytes(lookup, code), d, exponents + k);
    }
    for (std::uint64_t escaped = m[0] & m[1] & m[2]; escaped != 0; escaped &= escaped - 1) {
      if (used == escapes_left) return i;
      exponents[std::countr_zero(escaped)] = escapes[used++];
    }
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

using Octets = hn::ScalableTag<std::uint8_t>;

// The highest bit of `next` behind the lower seven of `first`: one step of a turn to the left.
template <class V>
HWY_INLINE V Turned(V first, V next) {
  return hn::Or(hn::ShiftLeft<1>(first), hn::ShiftRight<7>(next));
}
template <class V>
HWY_INLINE V TurnedBack(V first, V before) {
  return hn::Or(hn::ShiftRight<1>(first), hn::ShiftLeft<7>(before));
}

std::size_t Split(std::size_t width, const std::uint8_t* HWY_RESTRICT values, std::size_t count,
                  std::uint8_t* const* planes) {
  const Octets d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  if (width == 2) {
    for (; i + lanes <= count; i += lanes) {
      hn::Vec<Octets> low, high;
      hn::LoadInterleaved2(d, values + 2 * i, low, high);
      hn::StoreU(Turned(high, low), d, planes[0] + i);
      hn::StoreU(Turned(low, high), d, planes[1] + i);
    }
    return i;
  }
  for (; i + lanes <= count; i += lanes) {
    hn::Vec<Octets> b0, b1, b2, b3;
    hn::LoadInterleaved4(d, values + 4 * i, b0, b1, b2, b3);
    hn::StoreU(Turned(b3, b2), d, planes[0] + i);
    hn::StoreU(Turned(b2, b1), d, planes[1] + i);
    hn::StoreU(Turned(b1, b0), d, planes[2] + i);
    hn::StoreU(Turned(b0, b3), d, planes[3] + i);
  }
  return i;
}

std::size_t Join(std::size_t width, const std::uint8_t* const* planes, std::size_t count,
                 std::uint8_t* HWY_RESTRICT values) {
  const Octets d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  if (width == 2) {
    for (; i + lanes <= count; i += lanes) {
      const auto high = hn::LoadU(d, planes[0] + i);
      const auto low = hn::LoadU(d, planes[1] + i);
      hn::StoreInterleaved2(TurnedBack(low, high), TurnedBack(high, low), d, values + 2 * i);
    }
    return i;
  }
  for (; i + lanes <= count; i += lanes) {
    const auto p0 = hn::LoadU(d, planes[0] + i);
    const auto p1 = hn::LoadU(d, planes[1] + i);
    const auto p2 = hn::LoadU(d, planes[2] + i);
    const auto p3 = hn::LoadU(d, planes[3] + i);
    hn::StoreInterleaved4(TurnedBack(p3, p2), TurnedBack(p2, p1), TurnedBack(p1, p0),
                          TurnedBack(p0, p3), d, values + 4 * i);
  }
  return i;
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL

std::size_t SpreadValues(std::size_t width, const std::uint8_t* HWY_RESTRICT mask,
                         const std::uint8_t* HWY_RESTRICT nonzero, std::size_t values_left,
                         std::size_t count, std::uint8_t* HWY_RESTRICT values,
                         std::size_t& used_before) {
  std::size_t used = used_before;
  std::size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    std::uint32_t bits;
    std::memcpy(&bits, mask + i / 8, 4);
    const auto taken = static_cast<std::size_t>(std::popcount(bits));
    if (taken > values_left - used) break;
    if (width == 2) {
      const __m512i next =
          _mm512_maskz_loadu_epi16(static_cast<__mmask32>(LowBits(taken)), nonzero + 2 * used);
      _mm512_storeu_si512(values + 2 * i, _mm512_maskz_expand_epi16(bits, next));
    } else {
      const auto low = static_cast<__mmask16>(bits);
      const auto high = static_cast<__mmask16>(bits >> 16);
      const auto half = static_cast<std::size_t>(std::popcount(low));
      const __m512i first =
          _mm512_maskz_loadu_epi32(static_cast<__mmask16>(LowBits(half)), nonzero + 4 * used);
      const __m512i second = _mm512_maskz_loadu_epi32(static_cast<__mmask16>(LowBits(taken - half)),
                                                      nonzero + 4 * (used + half));
      _mm512_storeu_si512(values + 4 * i, _mm512_maskz_expand_epi32(low, first));
      _mm512_storeu_si512(values + 4 * i + 64, _mm512_maskz_expand_epi32(high, second));
    }
    used += taken;
  }
  used_before = used;
  return i;
}

#else

std::size_t SpreadValues(std::size_t, const std::uint8_t*, const std::uint8_t*, std::size_t,
                         std::size_t, std::uint8_t*, std::size_t&) {
  return 0;
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
HWY_EXPORT(Split);
HWY_EXPORT(Join);
HWY_EXPORT(SpreadValues);

std::size_t vector_q8_0(const std::uint8_t* blocks, std::size_t count, float* values) {
  return HWY_DYNAMIC_DISPATCH(Q8)(blocks, count, values);
}
std::size_t vector_q4_0(const std::uint8_t* blocks, std::size_t count, float* values) {
  return HWY_DYNAMIC_DISPATCH(Q4)(blocks, count, values);
}
std::size_t vector_exponents(const std::uint8_t* table, const std::uint8_t* planes,
                             const std::uint8_t* rest, const std::uint8_t* escapes,
                             std::size_t escapes_left, std::size_t count, std::uint16_t* values,
                             std::size_t& used) {
  return HWY_DYNAMIC_DISPATCH(Exponents)(table, planes, rest, escapes, escapes_left, count, values,
                                         used);
}
std::size_t vector_split(std::size_t width, const std::uint8_t* values, std::size_t count,
                         std::uint8_t* const* planes) {
  return HWY_DYNAMIC_DISPATCH(Split)(width, values, count, planes);
}
std::size_t vector_join(std::size_t width, const std::uint8_t* const* planes, std::size_t count,
                        std::uint8_t* values) {
  return HWY_DYNAMIC_DISPATCH(Join)(width, planes, count, values);
}
std::size_t vector_spread_values(std::size_t width, const std::uint8_t* mask,
                                 const std::uint8_t* nonzero, std::size_t values_left,
                                 std::size_t count, std::uint8_t* values, std::size_t& used) {
  return HWY_DYNAMIC_DISPATCH(SpreadValues)(width, mask, nonzero, values_left, count, values, used);
}

}  // namespace plimsoll::codec
#endif

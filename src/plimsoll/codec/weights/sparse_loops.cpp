#include "plimsoll/codec/weights/sparse_loops.h"

#include <array>
#include <bit>
#include <cstring>

#include "plimsoll/codec/weights/stored_values.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plimsoll/codec/weights/sparse_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// The two values of a group: visit(place, value) for each.
#ifndef PLIMSOLL_SPARSE_LOOPS_ONCE
#define PLIMSOLL_SPARSE_LOOPS_ONCE
namespace plimsoll::codec {
template <WeightKind kKind, typename Visit>
void for_pairs(const PairRow& row, std::size_t first, Visit visit) {
  constexpr std::size_t kWidth = kKind == WeightKind::kF32 ? 4 : 2;
  for (std::size_t g = first / 4; g < row.count / 4; ++g) {
    const unsigned both = row.places[g / 2] >> (g % 2 * 4);
    const std::uint8_t* values = row.values + 2 * g * kWidth;
    visit(4 * g + (both & 3u), stored_value<kKind>(values));
    visit(4 * g + (both >> 2 & 3u), stored_value<kKind>(values + kWidth));
  }
}
// Those of a mask from a byte of it on; visit(place, value) for each. Returns how many there were.
template <WeightKind kKind, typename Visit>
std::size_t for_mask(const MaskRow& row, std::size_t first, std::size_t used, Visit visit) {
  constexpr std::size_t kWidth = kKind == WeightKind::kF32 ? 4 : 2;
  for (std::size_t i = first / 8; i < row.count / 8; ++i) {
    for (unsigned bits = row.mask[i]; bits != 0; bits &= bits - 1, ++used) {
      if (used == row.values_left) return used;
      visit(8 * i + static_cast<std::size_t>(std::countr_zero(bits)),
            stored_value<kKind>(row.values + kWidth * used));
    }
  }
  return used;
}
// By a byte of places, which of eight weights are there.
constexpr std::array<std::uint8_t, 256> places_as_bits() {
  std::array<std::uint8_t, 256> out{};
  for (unsigned byte = 0; byte < 256; ++byte)
    out[byte] = static_cast<std::uint8_t>(1u << (byte & 3) | 1u << (byte >> 2 & 3) |
                                          16u << (byte >> 4 & 3) | 16u << (byte >> 6));
  return out;
}
inline constexpr std::array<std::uint8_t, 256> kPlaceBits = places_as_bits();
}  // namespace plimsoll::codec
#endif

HWY_BEFORE_NAMESPACE();
namespace plimsoll::codec {
namespace HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
constexpr std::size_t kAtOnce = 32;  // weights

template <WeightKind kKind>
HWY_INLINE __m512 Sixteen(const std::uint8_t* values) {
  if constexpr (kKind == WeightKind::kF32) return _mm512_loadu_ps(values);
  const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
  if constexpr (kKind == WeightKind::kF16) return _mm512_cvtph_ps(codes);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(codes), 16));
}

template <WeightKind kKind>
std::size_t Dot(const PairRow& row, const float* HWY_RESTRICT in, float& sum) {
  constexpr std::size_t kBytes = 16 * (kKind == WeightKind::kF32 ? 4 : 2);
  const __m512i shifts =
      _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i groups =
      _mm512_setr_epi32(0, 0, 4, 4, 8, 8, 12, 12, 16, 16, 20, 20, 24, 24, 28, 28);
  const __m512i three = _mm512_set1_epi32(3);
  const auto product = [&](std::size_t i, __m512 before) HWY_ATTR {
    std::uint32_t places;
    std::memcpy(&places, row.places + i / 8, 4);
    const __m512i each = _mm512_and_si512(
        _mm512_srlv_epi32(_mm512_set1_epi32(static_cast<int>(places)), shifts), three);
    const __m512 numbers = _mm512_permutex2var_ps(
        _mm512_loadu_ps(in + i), _mm512_or_si512(each, groups), _mm512_loadu_ps(in + i + 16));
    return _mm512_fmadd_ps(Sixteen<kKind>(row.values + i / kAtOnce * kBytes), numbers, before);
  };
  __m512 even = _mm512_setzero_ps();
  __m512 odd = _mm512_setzero_ps();
  std::size_t i = 0;
  for (; i + 2 * kAtOnce <= row.count; i += 2 * kAtOnce) {
    even = product(i, even);
    odd = product(i + kAtOnce, odd);
  }
  if (i + kAtOnce <= row.count) {
    even = product(i, even);
    i += kAtOnce;
  }
  sum = _mm512_reduce_add_ps(_mm512_add_ps(even, odd));
  return i;
}

template <WeightKind kKind>
std::size_t Axpy(const PairRow& row, float scale, float* HWY_RESTRICT out) {
  constexpr std::size_t kBytes = 16 * (kKind == WeightKind::kF32 ? 4 : 2);
  const __m512 factor = _mm512_set1_ps(scale);
  std::size_t i = 0;
  for (; i + kAtOnce <= row.count; i += kAtOnce) {
    const std::uint8_t* places = row.places + i / 8;
    const auto low = static_cast<__mmask16>(kPlaceBits[places[0]] | kPlaceBits[places[1]] << 8);
    const auto high = static_cast<__mmask16>(kPlaceBits[places[2]] | kPlaceBits[places[3]] << 8);
    const __m512 values = Sixteen<kKind>(row.values + i / kAtOnce * kBytes);
    const __m512 upper = _mm512_castsi512_ps(
        _mm512_castsi256_si512(_mm512_extracti64x4_epi64(_mm512_castps_si512(values), 1)));
    const __m512 first = _mm512_maskz_expand_ps(low, values);
    const __m512 second = _mm512_maskz_expand_ps(high, upper);
    _mm512_storeu_ps(out + i, _mm512_fmadd_ps(factor, first, _mm512_loadu_ps(out + i)));
    _mm512_storeu_ps(out + i + 16, _mm512_fmadd_ps(factor, second, _mm512_loadu_ps(out + i + 16)));
  }
  return i;
}

// Calls visit(place, weights) for each sixteen weights, as long as there are values for them;
// `used` were taken.
template <WeightKind kKind, class Visit>
HWY_INLINE std::size_t EachSixteen(const MaskRow& row, std::size_t& used, Visit visit) {
  constexpr std::size_t kWidth = kKind == WeightKind::kF32 ? 4 : 2;
  std::size_t taken = 0;
  std::size_t i = 0;
  for (; i + 16 <= row.count; i += 16) {
    std::uint16_t bits;
    std::memcpy(&bits, row.mask + i / 8, 2);
    // All sixteen are loaded: behind them there must be as many.
    if (row.values_left - taken < 16) break;
    visit(i, _mm512_maskz_expand_ps(bits, Sixteen<kKind>(row.values + taken * kWidth)));
    taken += static_cast<std::size_t>(std::popcount(bits));
  }
  used = taken;
  return i;
}
template <WeightKind kKind>
std::size_t Dot(const MaskRow& row, const float* HWY_RESTRICT in, float& sum, std::size_t& used) {
  __m512 sums = _mm512_setzero_ps();
  const std::size_t done =
      EachSixteen<kKind>(row, used, [&](std::size_t i, __m512 weights) HWY_ATTR {
        sums = _mm512_fmadd_ps(weights, _mm512_loadu_ps(in + i), sums);
      });
  sum = _mm512_reduce_add_ps(sums);
  return done;
}
template <WeightKind kKind>
std::size_t Axpy(const MaskRow& row, float scale, float* HWY_RESTRICT out, std::size_t& used) {
  const __m512 factor = _mm512_set1_ps(scale);
  return EachSixteen<kKind>(row, used, [&](std::size_t i, __m512 weights) HWY_ATTR {
    _mm512_storeu_ps(out + i, _mm512_fmadd_ps(factor, weights, _mm512_loadu_ps(out + i)));
  });
}
#else
template <WeightKind kKind>
std::size_t Dot(const MaskRow&, const float*, float&, std::size_t&) {
  return 0;
}
template <WeightKind kKind>
std::size_t Axpy(const MaskRow&, float, float*, std::size_t&) {
  return 0;
}
template <WeightKind kKind>
std::size_t Dot(const PairRow&, const float*, float& sum) {
  sum = 0;
  return 0;
}
template <WeightKind kKind>
std::size_t Axpy(const PairRow&, float, float*) {
  return 0;
}
#endif

template <WeightKind kKind>
float DotOf(const PairRow& row, const float* in) {
  float sum = 0;
  const std::size_t done = Dot<kKind>(row, in, sum);
  for_pairs<kKind>(row, done, [&](std::size_t place, float value) { sum += value * in[place]; });
  return sum;
}
template <WeightKind kKind>
void AxpyOf(const PairRow& row, float scale, float* out) {
  const std::size_t done = Axpy<kKind>(row, scale, out);
  for_pairs<kKind>(row, done, [&](std::size_t place, float value) { out[place] += scale * value; });
}

template <WeightKind kKind>
MaskDot MaskDotOf(const MaskRow& row, const float* in) {
  MaskDot out;
  const std::size_t done = Dot<kKind>(row, in, out.sum, out.used);
  out.used = for_mask<kKind>(row, done, out.used,
                             [&](std::size_t place, float value) { out.sum += value * in[place]; });
  return out;
}
template <WeightKind kKind>
std::size_t MaskAxpyOf(const MaskRow& row, float scale, float* out) {
  std::size_t used = 0;
  const std::size_t done = Axpy<kKind>(row, scale, out, used);
  return for_mask<kKind>(row, done, used,
                         [&](std::size_t place, float value) { out[place] += scale * value; });
}

MaskDot DotOfMask(WeightKind kind, const MaskRow& row, const float* in) {
  return kind == WeightKind::kF32   ? MaskDotOf<WeightKind::kF32>(row, in)
         : kind == WeightKind::kF16 ? MaskDotOf<WeightKind::kF16>(row, in)
                                    : MaskDotOf<WeightKind::kBF16>(row, in);
}
std::size_t AxpyOfMask(WeightKind kind, const MaskRow& row, float scale, float* out) {
  return kind == WeightKind::kF32   ? MaskAxpyOf<WeightKind::kF32>(row, scale, out)
         : kind == WeightKind::kF16 ? MaskAxpyOf<WeightKind::kF16>(row, scale, out)
                                    : MaskAxpyOf<WeightKind::kBF16>(row, scale, out);
}

float PairsDot(WeightKind kind, const PairRow& row, const float* in) {
  return kind == WeightKind::kF32   ? DotOf<WeightKind::kF32>(row, in)
         : kind == WeightKind::kF16 ? DotOf<WeightKind::kF16>(row, in)
                                    : DotOf<WeightKind::kBF16>(row, in);
}
void PairsAxpy(WeightKind kind, const PairRow& row, float scale, float* out) {
  kind == WeightKind::kF32   ? AxpyOf<WeightKind::kF32>(row, scale, out)
  : kind == WeightKind::kF16 ? AxpyOf<WeightKind::kF16>(row, scale, out)
                             : AxpyOf<WeightKind::kBF16>(row, scale, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace plimsoll::codec
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::codec {

HWY_EXPORT(PairsDot);
HWY_EXPORT(PairsAxpy);
HWY_EXPORT(DotOfMask);
HWY_EXPORT(AxpyOfMask);

float pairs_dot(WeightKind kind, const PairRow& row, const float* in) {
  return HWY_DYNAMIC_DISPATCH(PairsDot)(kind, row, in);
}
void pairs_axpy(WeightKind kind, const PairRow& row, float scale, float* out) {
  HWY_DYNAMIC_DISPATCH(PairsAxpy)(kind, row, scale, out);
}

MaskDot mask_dot(WeightKind kind, const MaskRow& row, const float* in) {
  return HWY_DYNAMIC_DISPATCH(DotOfMask)(kind, row, in);
}
std::size_t mask_axpy(WeightKind kind, const MaskRow& row, float scale, float* out) {
  return HWY_DYNAMIC_DISPATCH(AxpyOfMask)(kind, row, scale, out);
}

}  // namespace plimsoll::codec
#endif

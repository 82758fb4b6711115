#include "plimsoll/codec/vector_loops.h"

#include <array>
#include <bit>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plimsoll/codec/vector_loops.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace plimsoll::codec {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// At most 8 lanes, so that a vector's mask is at most one byte; 4 lanes fill a byte in two halves.
template <class Test>
std::size_t TestBits(const float* HWY_RESTRICT values, std::size_t count,
                     std::uint8_t* HWY_RESTRICT mask, Test test) {
  const hn::CappedTag<float, 8> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    unsigned byte = 0;
    for (std::size_t k = 0; k < 8; k += lanes) {
      std::uint8_t bits[8] = {};
      hn::StoreMaskBits(d, test(d, hn::LoadU(d, values + i + k)), bits);
      byte |= static_cast<unsigned>(bits[0]) << k;
    }
    mask[i / 8] = static_cast<std::uint8_t>(byte);
  }
  return i;
}

std::size_t PositiveBits(const float* values, std::size_t count, std::uint8_t* mask) {
  return TestBits(values, count, mask,
                  [](auto d, auto value) HWY_ATTR { return hn::Gt(value, hn::Zero(d)); });
}

std::size_t InsideBits(const float* values, std::size_t count, float least, float most,
                       std::uint8_t* mask) {
  return TestBits(values, count, mask, [=](auto d, auto value) HWY_ATTR {
    return hn::And(hn::Ge(value, hn::Set(d, least)), hn::Le(value, hn::Set(d, most)));
  });
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

#if HWY_TARGET == HWY_SCALAR

std::size_t TakeNonzero(const std::uint32_t*, std::size_t, std::uint8_t*, std::uint32_t*,
                        Nonzeros&) {
  return 0;
}
std::size_t TakeApart(const std::uint32_t*, std::size_t, std::uint32_t, std::uint8_t*,
                      std::uint8_t* const*, bool&) {
  return 0;
}
std::size_t PutTogether(const std::uint8_t*, const std::uint8_t* const*, std::size_t, std::uint32_t,
                        std::uint32_t*) {
  return 0;
}
std::size_t FirstOutside(const std::uint32_t*, std::size_t, std::uint32_t) {
  return 0;
}
std::size_t Spread(const std::uint32_t*, const std::uint8_t*, std::size_t, std::uint32_t*,
                   std::size_t&) {
  return 0;
}

#else

constexpr std::size_t kGroup = 16;  // values whose mask is two bytes
// A block is read in one loop and worked on in the next, and written in the last of two: without
// these the memory would rest half of the time. Measured on activations that fit no cache: a tenth
// faster and more.
constexpr std::size_t kReadAhead = 1024;
constexpr std::size_t kWriteAhead = 512;
using Words = hn::CappedTag<std::uint32_t, kGroup>;

template <class M>
HWY_INLINE unsigned MaskOf(Words d, M mask) {
  std::uint8_t bits[8] = {};
  hn::StoreMaskBits(d, mask, bits);
  std::uint16_t group;
  std::memcpy(&group, bits, sizeof group);
  return group;
}

HWY_INLINE void StoreGroup(std::uint8_t* mask, std::size_t i, unsigned bits) {
  const auto two = static_cast<std::uint16_t>(bits);
  std::memcpy(mask + i / 8, &two, sizeof two);
}

std::size_t TakeNonzero(const std::uint32_t* HWY_RESTRICT values, std::size_t count,
                        std::uint8_t* HWY_RESTRICT bitmap, std::uint32_t* HWY_RESTRICT nonzero,
                        Nonzeros& found) {
  const Words d;
  const std::size_t lanes = hn::Lanes(d);
  auto any = hn::Zero(d);
  auto largest = hn::Zero(d);
  std::size_t taken = 0;
  std::size_t i = 0;
  for (; i + kGroup <= count; i += kGroup) {
    unsigned group = 0;
    hwy::Prefetch(values + i + kReadAhead);
    for (std::size_t k = 0; k < kGroup; k += lanes) {
      const auto value = hn::LoadU(d, values + i + k);
      const auto mask = hn::Ne(value, hn::Zero(d));
      group |= MaskOf(d, mask) << k;
      hn::StoreU(hn::Compress(value, mask), d, nonzero + taken);
      taken += hn::CountTrue(d, mask);
      any = hn::Or(any, value);
      largest = hn::Max(largest, hn::And(value, hn::Set(d, 0x7fffffffu)));
    }
    StoreGroup(bitmap, i, group);
  }
  std::array<std::uint32_t, kGroup> parts{};
  hn::StoreU(any, d, parts.data());
  for (std::size_t k = 0; k < lanes; ++k) found.any |= parts[k];
  hn::StoreU(largest, d, parts.data());
  for (std::size_t k = 0; k < lanes; ++k)
    found.largest = found.largest > parts[k] ? found.largest : parts[k];
  found.count = taken;
  return i;
}

// Lane 3b + r of the result is lane 4b + r of the argument for `narrow`, and the other way round.
auto ThreeOfFour(Words d, bool narrow) {
  std::array<std::int32_t, kGroup> lanes{};
  for (int to = 0; to < static_cast<int>(hn::Lanes(d)); ++to) {
    const int from = narrow ? to / 3 * 4 + to % 3 : to / 4 * 3 + to % 4 % 3;
    lanes[static_cast<std::size_t>(to)] = from < static_cast<int>(hn::Lanes(d)) ? from : 0;
  }
  return hn::SetTableIndices(d, lanes.data());
}

std::size_t TakeApart(const std::uint32_t* HWY_RESTRICT nonzero, std::size_t count,
                      std::uint32_t base, std::uint8_t* HWY_RESTRICT low,
                      std::uint8_t* const* planes, bool& outside) {
  alignas(16) static constexpr std::uint8_t kBytes[16] = {0,  1,  2,  4,  5, 6, 8,  9,
                                                          10, 12, 13, 14, 3, 7, 11, 15};
  const Words d;
  const hn::Repartition<std::uint8_t, Words> d8;
  const std::size_t lanes = hn::Lanes(d);
  const auto bytes = hn::LoadDup128(d8, kBytes);
  const auto narrow = ThreeOfFour(d, true);
  auto high = hn::Zero(d);
  std::size_t i = 0;
  for (; i + kGroup <= count; i += kGroup) {
    unsigned groups[4] = {};
    for (std::size_t k = 0; k < kGroup; k += lanes) {
      const auto value = hn::LoadU(d, nonzero + i + k);
      const auto distance = hn::Sub(hn::And(value, hn::Set(d, 0x7fffffffu)), hn::Set(d, base));
      high = hn::Or(high, distance);
      for (unsigned p = 0; p < 3; ++p)
        groups[p] |= MaskOf(d, hn::TestBit(distance, hn::Set(d, 1u << (24 + p)))) << k;
      if (planes[3] != nullptr)
        groups[3] |= MaskOf(d, hn::TestBit(value, hn::Set(d, 1u << 31))) << k;
      const auto packed = hn::BitCast(d, hn::TableLookupBytes(hn::BitCast(d8, distance), bytes));
      hn::StoreU(hn::BitCast(d8, hn::TableLookupLanes(packed, narrow)), d8, low + 3 * (i + k));
    }
    for (unsigned p = 0; p < 3; ++p) StoreGroup(planes[p], i, groups[p]);
    if (planes[3] != nullptr) StoreGroup(planes[3], i, groups[3]);
  }
  outside = !hn::AllTrue(d, hn::Eq(hn::ShiftRight<27>(high), hn::Zero(d)));
  return i;
}

std::size_t PutTogether(const std::uint8_t* HWY_RESTRICT low, const std::uint8_t* const* planes,
                        std::size_t count, std::uint32_t base,
                        std::uint32_t* HWY_RESTRICT nonzero) {
  alignas(16) static constexpr std::uint8_t kBytes[16] = {0, 1, 2, 0x80, 3, 4,  5,  0x80,
                                                          6, 7, 8, 0x80, 9, 10, 11, 0x80};
  const Words d;
  const hn::Repartition<std::uint8_t, Words> d8;
  const std::size_t lanes = hn::Lanes(d);
  const auto bytes = hn::LoadDup128(d8, kBytes);
  const auto wide = ThreeOfFour(d, false);
  std::size_t i = 0;
  for (; i + kGroup <= count; i += kGroup) {
    for (std::size_t k = 0; k < kGroup; k += lanes) {
      const auto packed = hn::BitCast(d, hn::LoadU(d8, low + 3 * (i + k)));
      const auto lanewise = hn::BitCast(d8, hn::TableLookupLanes(packed, wide));
      auto value = hn::BitCast(d, hn::TableLookupBytesOr0(lanewise, bytes));
      const auto bits_of = [&](unsigned p, std::uint32_t bit) HWY_ATTR {
        std::uint16_t group = 0;
        std::memcpy(&group, planes[p] + i / 8, sizeof group);
        const auto shifted = static_cast<std::uint16_t>(group >> k);
        std::uint8_t mask[8] = {};
        std::memcpy(mask, &shifted, sizeof shifted);
        return hn::IfThenElseZero(hn::LoadMaskBits(d, mask), hn::Set(d, bit));
      };
      for (unsigned p = 0; p < 3; ++p) value = hn::Or(value, bits_of(p, 1u << (24 + p)));
      value = hn::Add(value, hn::Set(d, base));
      if (planes[3] != nullptr) value = hn::Or(value, bits_of(3, 1u << 31));
      hn::StoreU(value, d, nonzero + i + k);
    }
  }
  return i;
}

std::size_t FirstOutside(const std::uint32_t* HWY_RESTRICT nonzero, std::size_t count,
                         std::uint32_t base) {
  const Words d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto distance =
        hn::Sub(hn::And(hn::LoadU(d, nonzero + i), hn::Set(d, 0x7fffffffu)), hn::Set(d, base));
    const auto outside = hn::Ne(hn::ShiftRight<27>(distance), hn::Zero(d));
    const auto first = hn::FindFirstTrue(d, outside);
    if (first >= 0) return i + static_cast<std::size_t>(first);
  }
  return i;
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3

// One instruction there spreads 16 values by their mask.
std::size_t Spread(const std::uint32_t* HWY_RESTRICT nonzero,
                   const std::uint8_t* HWY_RESTRICT bitmap, std::size_t count,
                   std::uint32_t* HWY_RESTRICT out, std::size_t& taken) {
  const Words d;
  std::size_t at = taken;
  std::size_t i = 0;
  for (; i + kGroup <= count; i += kGroup) {
    std::uint16_t group;
    std::memcpy(&group, bitmap + i / 8, sizeof group);
    hwy::Prefetch(out + i + kWriteAhead);
    const auto values = hn::LoadU(d, nonzero + at);
    hn::StoreU(hn::VFromD<Words>{_mm512_maskz_expand_epi32(group, values.raw)}, d, out + i);
    at += static_cast<std::size_t>(std::popcount(group));
  }
  taken = at;
  return i;
}

#else

// For each mask of 8: which of the next values goes to which lane, and how many go.
struct Ranks {
  std::uint8_t of_lane[8] = {};
  std::uint64_t count = 0;
};
constexpr auto kRanks = [] {
  std::array<Ranks, 256> out{};
  for (unsigned mask = 0; mask < 256; ++mask) {
    Ranks& ranks = out[mask];
    for (unsigned lane = 0; lane < 8; ++lane) {
      ranks.of_lane[lane] = static_cast<std::uint8_t>(ranks.count < 7 ? ranks.count : 7);
      ranks.count += (mask >> lane) & 1;
    }
  }
  return out;
}();

std::size_t Spread(const std::uint32_t* HWY_RESTRICT nonzero,
                   const std::uint8_t* HWY_RESTRICT bitmap, std::size_t count,
                   std::uint32_t* HWY_RESTRICT out, std::size_t& taken) {
  const hn::CappedTag<std::uint32_t, 8> d;
  const hn::Rebind<std::uint8_t, decltype(d)> d8;
  if (hn::Lanes(d) < 8) return 0;
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const std::uint8_t mask[8] = {bitmap[i / 8]};
    hwy::Prefetch(out + i + kWriteAhead);
    const auto ranks = hn::PromoteTo(d, hn::LoadU(d8, kRanks[mask[0]].of_lane));
    const auto values =
        hn::TableLookupLanes(hn::LoadU(d, nonzero + taken), hn::IndicesFromVec(d, ranks));
    hn::StoreU(hn::IfThenElseZero(hn::LoadMaskBits(d, mask), values), d, out + i);
    taken += kRanks[mask[0]].count;
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

HWY_EXPORT(PositiveBits);
HWY_EXPORT(InsideBits);
HWY_EXPORT(Select);
HWY_EXPORT(TakeNonzero);
HWY_EXPORT(TakeApart);
HWY_EXPORT(FirstOutside);
HWY_EXPORT(PutTogether);
HWY_EXPORT(Spread);

std::size_t vector_positive_bits(const float* values, std::size_t count, std::uint8_t* mask) {
  return HWY_DYNAMIC_DISPATCH(PositiveBits)(values, count, mask);
}
std::size_t vector_inside_bits(const float* values, std::size_t count, float least, float most,
                               std::uint8_t* mask) {
  return HWY_DYNAMIC_DISPATCH(InsideBits)(values, count, least, most, mask);
}
std::size_t vector_select(const float* values, const std::uint8_t* mask, std::size_t count,
                          float* out) {
  return HWY_DYNAMIC_DISPATCH(Select)(values, mask, count, out);
}

std::size_t vector_take_nonzero(const std::uint32_t* values, std::size_t count,
                                std::uint8_t* bitmap, std::uint32_t* nonzero, Nonzeros& found) {
  return HWY_DYNAMIC_DISPATCH(TakeNonzero)(values, count, bitmap, nonzero, found);
}
std::size_t vector_take_apart(const std::uint32_t* nonzero, std::size_t count, std::uint32_t base,
                              std::uint8_t* low, std::uint8_t* const* planes, bool& outside) {
  return HWY_DYNAMIC_DISPATCH(TakeApart)(nonzero, count, base, low, planes, outside);
}
std::size_t vector_first_outside(const std::uint32_t* nonzero, std::size_t count,
                                 std::uint32_t base) {
  return HWY_DYNAMIC_DISPATCH(FirstOutside)(nonzero, count, base);
}
std::size_t vector_put_together(const std::uint8_t* low, const std::uint8_t* const* planes,
                                std::size_t count, std::uint32_t base, std::uint32_t* nonzero) {
  return HWY_DYNAMIC_DISPATCH(PutTogether)(low, planes, count, base, nonzero);
}
std::size_t vector_spread(const std::uint32_t* nonzero, const std::uint8_t* bitmap,
                          std::size_t count, std::uint32_t* out, std::size_t& taken) {
  return HWY_DYNAMIC_DISPATCH(Spread)(nonzero, bitmap, count, out, taken);
}

}  // namespace plimsoll::codec
#endif

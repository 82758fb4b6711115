// Size classes of small blocks: what a request of n bytes is rounded up to.
//
// Up to 1 KiB a class is a multiple of 16 bytes and its number is the number of words of 16: the
// fast path needs a shift and no table, and nothing is wasted but the rounding to 16. Above, eight
// classes per doubling up to 32 KiB, so at most one byte in nine is lost:
//
//   bytes   0    1..16   17..32  …  1009..1024   1025..1152   …   30721..32768
//   class   0      1        2    …      64           65       …       104
//
// malloc(0) has a class of its own (blocks of 16), which spares the fast path a test.
//
// A multiple of a power of two A falls in a class whose blocks are multiples of A: below 1 KiB the
// class is the size itself; above, either A is at least the step between classes, and then the size
// is itself a class, or A divides the step. Pages begin at multiples of 64 KiB, hence memalign only
// rounds the size up to a multiple of A.
//
// Blocks up to 8 KiB live in pages of 64 KiB, larger ones in pages of 256 KiB, so that a page
// always has eight or more.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace plimsoll::heap {

inline constexpr std::size_t kWord = 16;
inline constexpr std::size_t kDirectLimit = 1024;     // the fast path's
inline constexpr std::size_t kSmallLimit = 32 << 10;  // the largest small block
inline constexpr unsigned kDirectClasses = kDirectLimit / kWord + 1;
inline constexpr unsigned kClasses = kDirectClasses + 5 * 8;

inline constexpr std::size_t kGranule = 64 << 10;  // what the page map distinguishes
inline constexpr std::size_t kLargestInOneGranule = 8 << 10;
inline constexpr unsigned kGranulesOfWidePage = 4;

constexpr unsigned class_of(std::size_t bytes) {
  if (bytes <= kDirectLimit) return static_cast<unsigned>((bytes + kWord - 1) / kWord);
  // eight steps per doubling
  const auto shift = static_cast<unsigned>(std::bit_width(bytes - 1)) - 4;
  return kDirectClasses + (shift - 7) * 8 + static_cast<unsigned>((bytes - 1) >> shift) - 8;
}

constexpr std::size_t block_bytes(unsigned size_class) {
  if (size_class == 0) return kWord;
  if (size_class < kDirectClasses) return size_class * kWord;
  const unsigned above = size_class - kDirectClasses;
  return std::size_t{above % 8 + 9} << (above / 8 + 7);
}

constexpr unsigned granules_of_page(unsigned size_class) {
  return block_bytes(size_class) <= kLargestInOneGranule ? 1 : kGranulesOfWidePage;
}

static_assert(class_of(1) == 1 && class_of(16) == 1 && class_of(17) == 2 && class_of(1024) == 64);
static_assert(class_of(1025) == 65 && block_bytes(65) == 1152 && class_of(1153) == 66);
static_assert(class_of(kSmallLimit) == kClasses - 1 && block_bytes(kClasses - 1) == kSmallLimit);

}  // namespace plimsoll::heap

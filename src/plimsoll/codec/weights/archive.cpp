#include "plimsoll/codec/weights/archive.h"

// The parameter that says how literals are coded is behind this door in zstd 1.5; the library takes
// it through its ordinary interface.
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include <cstring>
#include <memory>
#include <vector>

#include "plimsoll/codec/weights/weight_loops.h"

namespace plimsoll::codec {
namespace {

constexpr std::size_t kPlaneHead = 5;

bool takes_planes(const ChunkShape& shape) {
  return shape.element_bytes >= 1 && shape.element_bytes <= 8;
}
std::size_t archive_bytes(std::size_t count, const ChunkShape& shape) {
  return shape.element_bytes * (kPlaneHead + count);
}

// Left by one bit, within the element: the exponent of fp32 and bf16 becomes its highest byte, the
// sign its lowest bit.
std::uint64_t turned(std::uint64_t word, std::size_t bytes) {
  const auto bits = static_cast<unsigned>(bytes * 8);
  const std::uint64_t all = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  return ((word << 1) | (word >> (bits - 1))) & all;
}
std::uint64_t turned_back(std::uint64_t word, std::size_t bytes) {
  const auto bits = static_cast<unsigned>(bytes * 8);
  return (word >> 1) | ((word & 1) << (bits - 1));
}
bool turns(const ChunkShape& shape) {
  return shape.kind == WeightKind::kF32 || shape.kind == WeightKind::kBF16;
}

// The element's width is a constant in the loop: four times faster than a variable.
template <std::size_t kWidth>
void split_planes(std::span<const std::byte> values, bool turn, std::uint8_t* planes) {
  const std::size_t count = values.size() / kWidth;
  std::size_t i = 0;
  if constexpr (kWidth == 2 || kWidth == 4) {
    std::uint8_t* each[kWidth];
    for (std::size_t p = 0; p < kWidth; ++p) each[p] = planes + p * count;
    if (turn)
      i = vector_split(kWidth, reinterpret_cast<const std::uint8_t*>(values.data()), count, each);
  }
  for (; i < count; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, values.data() + i * kWidth, kWidth);
    if (turn) word = turned(word, kWidth);
    for (std::size_t p = 0; p < kWidth; ++p)
      planes[p * count + i] = static_cast<std::uint8_t>(word >> (8 * (kWidth - 1 - p)));
  }
}
template <std::size_t kWidth>
void join_planes(const std::uint8_t* const* planes, bool turn, std::span<std::byte> values) {
  const std::size_t count = values.size() / kWidth;
  std::size_t i = 0;
  if constexpr (kWidth == 2 || kWidth == 4) {
    if (turn)
      i = vector_join(kWidth, planes, count, reinterpret_cast<std::uint8_t*>(values.data()));
  }
  for (; i < count; ++i) {
    std::uint64_t word = 0;
    for (std::size_t p = 0; p < kWidth; ++p) word = (word << 8) | planes[p][i];
    if (turn) word = turned_back(word, kWidth);
    std::memcpy(values.data() + i * kWidth, &word, kWidth);
  }
}
template <typename Do>
bool with_width(std::size_t width, Do work) {
  switch (width) {
    case 1:
      work.template operator()<1>();
      return true;
    case 2:
      work.template operator()<2>();
      return true;
    case 4:
      work.template operator()<4>();
      return true;
    case 8:
      work.template operator()<8>();
      return true;
    default:
      return false;
  }
}

// Making one takes longer than compressing a chunk: each thread keeps its own.
ZSTD_CCtx* compressor() {
  thread_local const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> kept(ZSTD_createCCtx(),
                                                                               ZSTD_freeCCtx);
  return kept.get();
}
ZSTD_DCtx* decompressor() {
  thread_local const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> kept(ZSTD_createDCtx(),
                                                                               ZSTD_freeDCtx);
  return kept.get();
}

// How many bytes it took; 0: not worth it. To unpack a plane takes as long as for the exponents, so
// it must save a part of 32; signs and fractions of trained weights often save one in a hundred.
std::size_t compress_plane(std::span<const std::uint8_t> plane, bool one_byte, std::uint8_t* to) {
  ZSTD_CCtx* context = compressor();
  if (context == nullptr) return 0;
  ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters);
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, one_byte ? 3 : ZSTD_minCLevel());
  if (!one_byte) ZSTD_CCtx_setParameter(context, ZSTD_c_literalCompressionMode, ZSTD_ps_enable);
  const std::size_t made = ZSTD_compress2(context, to, plane.size(), plane.data(), plane.size());
  const std::size_t most = one_byte ? plane.size() : plane.size() - plane.size() / 32;
  return ZSTD_isError(made) != 0 || made >= most ? 0 : made;
}

bool encode_archive(std::span<const std::byte> values, const ChunkShape& shape,
                    std::span<std::uint8_t> out, std::size_t& used) {
  const std::size_t width = shape.element_bytes;
  const std::size_t count = values.size() / width;
  if (out.size() < archive_bytes(count, shape)) return false;
  std::vector<std::uint8_t> planes(values.size());
  if (!with_width(width, [&]<std::size_t kWidth>() {
        split_planes<kWidth>(values, turns(shape), planes.data());
      }))
    return false;
  std::uint8_t* to = out.data();
  for (std::size_t p = 0; p < width; ++p) {
    const std::span plane(planes.data() + p * count, count);
    const std::size_t packed = compress_plane(plane, width == 1, to + kPlaneHead);
    if (packed == 0 && count > 0) std::memcpy(to + kPlaneHead, plane.data(), count);
    const auto length = static_cast<std::uint32_t>(packed == 0 ? count : packed);
    to[0] = packed == 0 ? 0 : 1;
    std::memcpy(to + 1, &length, 4);
    to += kPlaneHead + length;
  }
  used = static_cast<std::size_t>(to - out.data());
  return true;
}

bool decode_archive(std::span<const std::uint8_t> bytes, const ChunkShape& shape,
                    std::span<std::byte> values) {
  const std::size_t width = shape.element_bytes;
  if (!takes_planes(shape)) return false;
  const std::size_t count = values.size() / width;
  const std::uint8_t* planes[8] = {};
  std::unique_ptr<std::uint8_t[]> unpacked[8];
  for (std::size_t p = 0; p < width; ++p) {
    if (bytes.size() < kPlaneHead) return false;
    std::uint32_t length;
    std::memcpy(&length, bytes.data() + 1, 4);
    const std::uint8_t form = bytes[0];
    bytes = bytes.subspan(kPlaneHead);
    if (form > 1 || bytes.size() < length || (form == 0 && length != count)) return false;
    planes[p] = bytes.data();
    if (form == 1) {
      unpacked[p] = std::make_unique_for_overwrite<std::uint8_t[]>(count);
      std::uint8_t* to = unpacked[p].get();
      const std::size_t made = ZSTD_decompressDCtx(decompressor(), to, count, bytes.data(), length);
      if (ZSTD_isError(made) != 0 || made != count) return false;
      planes[p] = to;
    }
    bytes = bytes.subspan(length);
  }
  return bytes.empty() && with_width(width, [&]<std::size_t kWidth>() {
           join_planes<kWidth>(planes, turns(shape), values);
         });
}

}  // namespace

const WeightCodec kArchiveWeights{"archive",     true,           takes_planes,
                                  archive_bytes, encode_archive, decode_archive};

}  // namespace plimsoll::codec

#include "plimsoll/codec/box.h"

#include <algorithm>
#include <cstring>

#include "plimsoll/base/check.h"
#include "plimsoll/codec/bit_mask.h"

namespace plimsoll::codec {
namespace {

constexpr std::size_t kHeader = sizeof(std::uint64_t);
constexpr std::uint64_t kRefusal = ~std::uint64_t{0};

}  // namespace

std::size_t box_bytes(const Codec& codec, std::size_t count) {
  if (codec.name != "sparse") return kHeader + codec.largest_bytes(count);
  const auto full = static_cast<std::size_t>(static_cast<double>(count) * (1 - kPlannedZeros)) + 1;
  return kHeader + std::min(codec.largest_bytes(count), mask_bytes(count) + full * sizeof(float));
}

bool pack_box(const Codec& codec, std::span<const float> values, std::uint64_t seed,
              std::span<std::uint8_t> box) {
  PLIMSOLL_CHECK(box.size() >= kHeader);
  std::size_t used = 0;
  const bool fits = codec.encode(values, seed, box.subspan(kHeader), used);
  const std::uint64_t length = fits ? used : kRefusal;
  std::memcpy(box.data(), &length, kHeader);
  return fits;
}

Opened open_box(const Codec& codec, std::span<const std::uint8_t> box, std::span<float> values) {
  if (box.size() < kHeader) return Opened::kDamaged;
  std::uint64_t length = 0;
  std::memcpy(&length, box.data(), kHeader);
  if (length == kRefusal) return Opened::kRefused;
  if (length > box.size() - kHeader) return Opened::kDamaged;
  const bool good = codec.decode(box.subspan(kHeader, static_cast<std::size_t>(length)), values);
  return good ? Opened::kValues : Opened::kDamaged;
}

}  // namespace plimsoll::codec

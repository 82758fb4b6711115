#include "plimsoll/kernels/cpu/boxed_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "plimsoll/kernels/cpu/parallel.h"

namespace plimsoll::kernels {

std::size_t pack_map(const codec::Codec& codec, std::span<const std::byte> map, std::span<std::uint8_t> box, Overflow& overflow,
                     std::uint64_t seed) {
  const std::size_t count = map.size() / codec.element_bytes;
  codec::BoxWriter writer(codec, count, box, seed);
  overflow.resize(codec::box_blocks(count));
  parallel_each(static_cast<std::int64_t>(overflow.size()), [&](std::int64_t i) {
    const auto block = static_cast<std::size_t>(i);
    const std::span<const std::byte> values = codec::box_part(codec, map, block);
    overflow[block].clear();
    if (!writer.put(block, values)) overflow[block].assign(values.begin(), values.end());
  });
  return writer.used_bytes();
}

bool unpack_map(const codec::Codec& codec, std::span<const std::uint8_t> box, const Overflow& overflow, std::span<std::byte> map) {
  const std::size_t count = map.size() / codec.element_bytes;
  std::atomic<bool> whole{overflow.size() == codec::box_blocks(count)};
  parallel_each(static_cast<std::int64_t>(overflow.size()), [&](std::int64_t i) {
    const auto block = static_cast<std::size_t>(i);
    const std::span<std::byte> values = codec::box_part(codec, map, block);
    const codec::Opened opened = codec::open_block(codec, count, box, block, values);
    if (opened == codec::Opened::kValues) return;
    const std::vector<std::byte>& kept = overflow[block];
    if (opened == codec::Opened::kDamaged || kept.size() != values.size()) {
      whole.store(false, std::memory_order_relaxed);
    } else {
      std::memcpy(values.data(), kept.data(), values.size());
    }
  });
  return whole.load();
}

MapError error_of(const codec::Codec& codec, std::span<const std::byte> map, std::span<const std::uint8_t> box, const Overflow& overflow,
                  std::span<MapError> by_block) {
  const std::size_t count = map.size() / codec.element_bytes;
  parallel_each(static_cast<std::int64_t>(overflow.size()), [&](std::int64_t i) {
    const auto block = static_cast<std::size_t>(i);
    if (!overflow[block].empty()) return;  // kept as it was
    const std::span<const std::byte> part = codec::box_part(codec, map, block);
    std::array<float, codec::kBoxBlock> back;
    const std::span<float> values(back.data(), part.size() / sizeof(float));
    if (codec::open_block(codec, count, box, block, std::as_writable_bytes(values)) != codec::Opened::kValues) return;
    const auto* was = reinterpret_cast<const float*>(part.data());
    MapError& sum = by_block[block];
    for (std::size_t k = 0; k < values.size(); ++k) {
      const double value = was[k];
      const double error = std::fabs(static_cast<double>(values[k]) - value);
      if (!std::isfinite(error)) continue;  // an infinity or a NaN that came back as one
      sum.largest = std::max(sum.largest, error);
      sum.squares += error * error;
      sum.value_squares += value * value;
    }
  });
  MapError out;
  for (const MapError& sum : by_block) {
    out.largest = std::max(out.largest, sum.largest);
    out.squares += sum.squares;
    out.value_squares += sum.value_squares;
  }
  return out;
}

}  // namespace plimsoll::kernels

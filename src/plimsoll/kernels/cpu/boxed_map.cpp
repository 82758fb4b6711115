#include "plimsoll/kernels/cpu/boxed_map.h"

#include <cstring>

#include "plimsoll/kernels/cpu/parallel.h"

namespace plimsoll::kernels {

void pack_map(const codec::Codec& codec, std::span<const std::byte> map, std::span<std::uint8_t> box, Overflow& overflow) {
  const std::size_t count = map.size() / codec.element_bytes;
  codec::BoxWriter writer(codec, count, box);
  overflow.resize(codec::box_blocks(count));
  parallel_each(static_cast<std::int64_t>(overflow.size()), [&](std::int64_t i) {
    const auto block = static_cast<std::size_t>(i);
    const std::span<const std::byte> values = codec::box_part(codec, map, block);
    overflow[block].clear();
    if (!writer.put(block, values)) overflow[block].assign(values.begin(), values.end());
  });
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

}  // namespace plimsoll::kernels

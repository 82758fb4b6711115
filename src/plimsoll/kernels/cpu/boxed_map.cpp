#include "plimsoll/kernels/cpu/boxed_map.h"

#include "plimsoll/kernels/cpu/parallel.h"

namespace plimsoll::kernels {

bool pack_map(const codec::Codec& codec, std::span<const std::byte> map, std::span<std::uint8_t> box) {
  const std::size_t count = map.size() / codec.element_bytes;
  codec::BoxWriter writer(codec, count, box);
  parallel_each(static_cast<std::int64_t>(codec::box_blocks(count)), [&](std::int64_t i) {
    const auto block = static_cast<std::size_t>(i);
    writer.put(block, codec::box_part(codec, map, block));
  });
  return writer.close();
}

codec::Opened unpack_map(const codec::Codec& codec, std::span<const std::uint8_t> box, std::span<std::byte> map) {
  const std::size_t count = map.size() / codec.element_bytes;
  std::atomic<codec::Opened> worst{codec::Opened::kValues};
  parallel_each(static_cast<std::int64_t>(codec::box_blocks(count)), [&](std::int64_t i) {
    const auto block = static_cast<std::size_t>(i);
    const codec::Opened one = codec::open_block(codec, count, box, block, codec::box_part(codec, map, block));
    if (one != codec::Opened::kValues) worst.store(one, std::memory_order_relaxed);
  });
  return worst.load();
}

}  // namespace plimsoll::kernels

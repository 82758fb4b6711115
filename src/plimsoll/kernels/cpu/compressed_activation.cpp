#include "plimsoll/kernels/cpu/compressed_activation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "plimsoll/base/check.h"
#include "plimsoll/kernels/cpu/parallel.h"

namespace plimsoll::kernels {

std::size_t compress_activation(const codec::Codec& codec, std::span<const std::byte> activation,
                                std::span<std::uint8_t> buffer, const Overflow& overflow,
                                std::uint64_t seed) {
  PLIMSOLL_CHECK(overflow.memory().size() == activation.size(),
                 "the overflow's memory is another activation's");
  codec::CompressedWriter writer(codec, activation.size() / codec.element_bytes, buffer, seed);
  parallel_each(static_cast<std::int64_t>(overflow.blocks()), [&](std::int64_t i) {
    const auto block = static_cast<std::size_t>(i);
    const std::span<const std::byte> values = codec::uncompressed_part(codec, activation, block);
    overflow.stored()[block] = static_cast<std::uint32_t>(writer.put(block, values));
    if (overflow.holds(block))
      std::copy(values.begin(), values.end(),
                codec::uncompressed_part(codec, overflow.memory(), block).begin());
  });
  return writer.used_bytes();
}

bool decompress_activation(const codec::Codec& codec, std::span<const std::uint8_t> buffer,
                           const Overflow& overflow, std::span<std::byte> activation) {
  const std::size_t count = activation.size() / codec.element_bytes;
  std::atomic<bool> whole{overflow.memory().size() == activation.size()};
  parallel_each(whole ? static_cast<std::int64_t>(overflow.blocks()) : 0, [&](std::int64_t i) {
    const auto block = static_cast<std::size_t>(i);
    const std::span<std::byte> values = codec::uncompressed_part(codec, activation, block);
    const codec::Opened opened = codec::open_block(codec, count, buffer, block, values);
    if (opened == codec::Opened::kValues) return;
    if (opened == codec::Opened::kDamaged || !overflow.holds(block)) {
      whole.store(false, std::memory_order_relaxed);
    } else {
      std::memcpy(values.data(), codec::uncompressed_part(codec, overflow.memory(), block).data(),
                  values.size());
    }
  });
  return whole.load();
}

ActivationError error_of(const codec::Codec& codec, std::span<const std::byte> activation,
                         std::span<const std::uint8_t> buffer, const Overflow& overflow,
                         std::span<ActivationError> by_block) {
  const std::size_t count = activation.size() / codec.element_bytes;
  parallel_each(static_cast<std::int64_t>(overflow.blocks()), [&](std::int64_t i) {
    const auto block = static_cast<std::size_t>(i);
    if (overflow.holds(block)) return;  // kept as it was
    const std::span<const std::byte> part = codec::uncompressed_part(codec, activation, block);
    std::array<float, codec::kCompressedBlock> back;
    const std::span<float> values(back.data(), part.size() / sizeof(float));
    if (codec::open_block(codec, count, buffer, block, std::as_writable_bytes(values)) !=
        codec::Opened::kValues)
      return;
    const auto* was = reinterpret_cast<const float*>(part.data());
    ActivationError& sum = by_block[block];
    for (std::size_t k = 0; k < values.size(); ++k) {
      const double value = was[k];
      const double error = std::fabs(static_cast<double>(values[k]) - value);
      if (!std::isfinite(error)) continue;  // an infinity or a NaN that came back as one
      sum.largest = std::max(sum.largest, error);
      sum.squares += error * error;
      sum.value_squares += value * value;
    }
  });
  ActivationError out;
  for (const ActivationError& sum : by_block) {
    out.largest = std::max(out.largest, sum.largest);
    out.squares += sum.squares;
    out.value_squares += sum.value_squares;
  }
  return out;
}

void encode_on_host(const ActivationEncoding& encoding) {
  compress_activation(*encoding.codec, encoding.plain, encoding.compressed, *encoding.overflow,
                      encoding.step->seed ^ encoding.seed);
  if (encoding.errors.empty() || encoding.step->measures_errors == 0) return;
  error_of(*encoding.codec, encoding.plain, encoding.compressed, *encoding.overflow,
           encoding.errors);
}

void decode_on_host(const ActivationEncoding& encoding) {
  PLIMSOLL_CHECK(decompress_activation(*encoding.codec, encoding.compressed, *encoding.overflow,
                                       encoding.plain),
                 "an encoded activation was overwritten");
}

}  // namespace plimsoll::kernels

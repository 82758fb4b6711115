// What encodings on a device promise, whoever runs them: the bytes of every block are those of the
// CPU's codec, what it refuses waits in host memory, and everything comes back. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "plimsoll/base/random.h"
#include "plimsoll/kernels/cpu/compressed_activation.h"

namespace plimsoll::kernels::cuda {

// All that one encoding works on, in memory that the host can read.
struct EncodingMemory {
  EncodingMemory(const codec::Codec& codec, std::span<const std::byte> activation, double zeros)
      : plain(activation.begin(), activation.end()),
        compressed(codec::compressed_bytes(codec, activation.size() / codec.element_bytes, zeros),
                   std::uint8_t{0xa5}),
        overflow(codec, activation.size()),
        host(static_cast<std::size_t>(overflow.memory_wanted().value)),
        errors(overflow.blocks()) {
    overflow.take_memory(host);
    encoding = {.codec = &codec,
                .plain = plain,
                .compressed = compressed,
                .overflow = &overflow,
                .step = &step,
                .seed = 77,
                .errors = errors};
  }
  EncodingMemory(const EncodingMemory&) = delete;
  EncodingMemory& operator=(const EncodingMemory&) = delete;

  std::vector<std::byte> plain;
  std::vector<std::uint8_t> compressed;
  Overflow overflow;
  std::vector<std::byte> host;
  EncodingStep step{1234, 1};
  std::vector<ActivationError> errors;
  ActivationEncoding encoding;
};

// Encodes in place, or decodes: whatever lies in the memory afterwards is what the device left.
using RunEncoding = std::function<void(EncodingMemory&, bool encodes)>;

inline std::vector<std::byte> bytes_of_values(std::span<const float> values) {
  const auto bytes = std::as_bytes(values);
  return {bytes.begin(), bytes.end()};
}

// Floats of every kind that a codec treats apart.
inline std::vector<float> varied_values(std::size_t count, double zeros, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    const float sign = i % 5000 < 2500 || random.chance(0.5) ? 1.0F : -1.0F;
    const float size = std::exp2(static_cast<float>(random.below(i % 700 == 0 ? 200 : 12)) - 14);
    out[i] = random.chance(zeros) ? 0.0F : sign * size * (1 + static_cast<float>(random.uniform()));
    if (i % 997 == 0) out[i] = -0.0F;
    if (i % 1999 == 0) out[i] = 1e-42F;
  }
  return out;
}

// Seeds and blocks as codec/compressed_buffer.h has them.
inline void expect_bytes_of_cpu(const EncodingMemory& memory,
                                std::span<const std::byte> activation) {
  const codec::Codec& codec = *memory.encoding.codec;
  const std::size_t list = codec::least_compressed_bytes(memory.encoding.count());
  for (std::size_t block = 0; block < memory.overflow.blocks(); ++block) {
    SCOPED_TRACE("block " + std::to_string(block));
    const auto values = codec::uncompressed_part(codec, activation, block);
    std::vector<std::uint8_t> expected(codec::kCompressedBlock * sizeof(float) + 4096);
    std::size_t bytes = 0;
    const bool represented = codec.encode(
        values, mix64((memory.step.seed ^ memory.encoding.seed) + block), expected, bytes);
    std::array<std::uint32_t, 2> entry{};
    std::memcpy(entry.data(), memory.compressed.data() + 8 * block, sizeof(entry));
    EXPECT_EQ(entry[0] == 0, memory.overflow.holds(block));
    if (entry[0] == 0) {
      const auto kept = codec::uncompressed_part(
          codec, std::span<const std::byte>(memory.overflow.memory()), block);
      EXPECT_TRUE(std::equal(values.begin(), values.end(), kept.begin(), kept.end()));
      continue;
    }
    ASSERT_TRUE(represented);
    ASSERT_EQ(entry[1], bytes);
    EXPECT_EQ(memory.overflow.stored()[block], (bytes + 7) / 8 * 8);
    const std::size_t place = std::size_t{entry[0]} * 8;
    ASSERT_GE(place, list);
    ASSERT_LE(place + bytes, memory.compressed.size());
    EXPECT_TRUE(std::equal(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(bytes),
                           memory.compressed.begin() + static_cast<std::ptrdiff_t>(place)));
  }
}

// What the CPU makes of the buffer; so codecs of both can read each other's.
inline std::vector<std::byte> opened_by_cpu(const EncodingMemory& memory) {
  std::vector<std::byte> out(memory.plain.size());
  EXPECT_TRUE(
      decompress_activation(*memory.encoding.codec, memory.compressed, memory.overflow, out));
  return out;
}

inline void expect_encoding_contract(const codec::Codec& codec,
                                     std::span<const std::byte> activation, double zeros,
                                     const RunEncoding& run) {
  EncodingMemory memory(codec, activation, zeros);
  run(memory, true);
  expect_bytes_of_cpu(memory, activation);
  EXPECT_TRUE(std::equal(memory.plain.begin(), memory.plain.end(), activation.begin()))
      << "encoding changed what it read";
  const std::vector<std::byte> expected = opened_by_cpu(memory);
  if (codec.lossless) {
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), activation.begin()));
  }
  if (!codec.lossless) {
    std::vector<ActivationError> by_block(memory.overflow.blocks());
    error_of(codec, activation, memory.compressed, memory.overflow, by_block);
    for (std::size_t block = 0; block < by_block.size(); ++block) {
      EXPECT_EQ(memory.errors[block].largest, by_block[block].largest);
      EXPECT_NEAR(memory.errors[block].squares, by_block[block].squares,
                  1e-12 * by_block[block].squares);
      EXPECT_NEAR(memory.errors[block].value_squares, by_block[block].value_squares,
                  1e-12 * by_block[block].value_squares);
    }
  }
  std::fill(memory.plain.begin(), memory.plain.end(), std::byte{0x5a});
  run(memory, false);
  EXPECT_EQ(memory.plain, expected);
}

// Every codec on `blocks` blocks and a little, with values that it takes and some that it refuses.
inline void expect_encoding_contract_of_all(std::size_t blocks, const RunEncoding& run) {
  for (const codec::Codec& codec : codec::codecs()) {
    SCOPED_TRACE(std::string(codec.name));
    const std::size_t count = blocks * codec::kCompressedBlock + 4133;
    if (codec.element_bytes == 1) {
      const std::uint64_t limit = codec.name == "crumbs" ? 4 : 16;
      Random random(3);
      std::vector<std::byte> indices(count);
      for (std::byte& index : indices) index = static_cast<std::byte>(random.below(limit));
      expect_encoding_contract(codec, indices, 0, run);
      indices[100] = static_cast<std::byte>(limit);
      expect_encoding_contract(codec, indices, 0, run);
      continue;
    }
    // Half zero as planned, fuller than that, and not sparse at all.
    for (const double zeros : codec.lossless ? std::vector{0.55, 0.3, 0.0} : std::vector{0.3}) {
      SCOPED_TRACE(zeros);
      std::vector<float> values = varied_values(count, zeros, 5);
      expect_encoding_contract(codec, bytes_of_values(values), 0.45, run);
      if (zeros == 0.3) {
        values[50] = std::numeric_limits<float>::infinity();
        values[51] = std::numeric_limits<float>::quiet_NaN();
        values[codec::kCompressedBlock] = 3e38F;
        expect_encoding_contract(codec, bytes_of_values(values), 0.45, run);
      }
    }
  }
}

// A decoder reads nothing outside the buffer and writes nothing outside the activation, whatever it
// finds.
inline void expect_damage_is_survived(std::size_t rounds, const RunEncoding& run) {
  Random random(9);
  for (const codec::Codec& codec : codec::codecs()) {
    SCOPED_TRACE(std::string(codec.name));
    const std::vector<float> values = varied_values(codec::kCompressedBlock / 4 + 301, 0.5, 5);
    for (std::size_t round = 0; round < rounds; ++round) {
      EncodingMemory memory(codec, bytes_of_values(values), 0.45);
      run(memory, true);
      for (int hit = 0; hit < 8; ++hit) {
        const std::uint64_t reach = hit % 2 == 0 ? 32 : memory.compressed.size();
        memory.compressed[random.below(reach)] = static_cast<std::uint8_t>(random.below(256));
      }
      run(memory, false);
    }
  }
}

}  // namespace plimsoll::kernels::cuda

#include "plimsoll/codec/weights/encoded_matrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "plimsoll/base/random.h"
#include "plimsoll/codec/weights/float_values.h"
#include "plimsoll/codec/weights/weight_codecs.h"

namespace plimsoll::codec {
namespace {

struct Made {
  std::vector<std::uint8_t> bytes;
  std::vector<float> values;  // decoded
};

// Some chunks in the form, every third raw.
Made made(std::string_view form, const EncodedType& type, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(type.elements);
  for (float& value : values)
    value = random.chance(0.7) ? 0.0f : static_cast<float>(0.02 * random.normal());
  std::vector<std::byte> all(values.size() * type.element_bytes());
  from_floats(values, type.kind, all);
  if (type.kind == WeightKind::kF32 && form == "bf16-lossless")
    for (std::size_t i = 0; i < values.size(); ++i) all[4 * i] = all[4 * i + 1] = std::byte{0};
  Made out;
  out.values.resize(type.elements);
  std::vector<EncodedChunk> chunks;
  std::vector<std::uint8_t> stored;
  const auto codecs = weight_codecs();
  for (std::size_t i = 0; i < type.chunks(); ++i) {
    const std::size_t begin = i * kChunkBytes;
    const auto part = std::span(all).subspan(begin, std::min(kChunkBytes, all.size() - begin));
    const ChunkShape shape{type.kind, type.element_bytes(), type.columns,
                           i * type.chunk_elements()};
    const std::size_t count = part.size() / type.element_bytes();
    const auto* codec = find_weight_codec(form);
    std::vector<std::uint8_t> bytes(codec->largest_bytes(count, shape));
    std::size_t used = 0;
    const bool raw = i % 3 == 2;
    std::vector<std::byte> back(part.begin(), part.end());
    if (raw) {
      bytes.assign(reinterpret_cast<const std::uint8_t*>(part.data()),
                   reinterpret_cast<const std::uint8_t*>(part.data()) + part.size());
    } else {
      EXPECT_TRUE(codec->encode(part, shape, bytes, used));
      bytes.resize(used);
      EXPECT_TRUE(codec->decode(bytes, shape, back));
    }
    to_floats(back, type.kind, std::span(out.values).subspan(i * type.chunk_elements(), count));
    chunks.push_back({static_cast<std::uint8_t>(raw ? 0 : codec - codecs.data() + 1),
                      static_cast<std::uint32_t>(bytes.size())});
    stored.insert(stored.end(), bytes.begin(), bytes.end());
  }
  out.bytes.resize(encoded_table_bytes(chunks.size()));
  write_encoded_table(chunks, out.bytes);
  out.bytes.insert(out.bytes.end(), stored.begin(), stored.end());
  return out;
}

const std::vector<EncodedType> kTypes = {{WeightKind::kF32, 1000 * 256, 256},
                                         {WeightKind::kF32, 777 * 300, 300},
                                         {WeightKind::kBF16, 900 * 512, 512}};

TEST(EncodedMatrix, DecodesAnyRange) {
  for (const WeightCodec& codec : weight_codecs()) {
    for (const EncodedType& type : kTypes) {
      const Made weight = made(codec.name, type, 3);
      const auto matrix = EncodedMatrix::view(weight.bytes, type);
      ASSERT_TRUE(matrix) << codec.name;
      std::vector<std::byte> scratch(EncodedMatrix::kScratchBytes);
      for (const auto& [first, count] : {std::pair<std::size_t, std::size_t>{0, type.elements},
                                         {5, 100},
                                         {65530, 70000},
                                         {type.elements, 0}}) {
        std::vector<float> out(count);
        ASSERT_TRUE(matrix->decode(first, count, out.data(), scratch.data())) << codec.name;
        for (std::size_t i = 0; i < count; ++i) {
          // narrow tensors are not rounded to again
          const float tolerance = type.kind == WeightKind::kF32 ? 0.0f : 1e-3f;
          ASSERT_NEAR(out[i], weight.values[first + i], tolerance)
              << codec.name << " " << first + i;
        }
      }
      std::vector<float> out(8);
      EXPECT_FALSE(matrix->decode(type.elements - 3, 4, out.data(), scratch.data()));
    }
  }
}

TEST(EncodedMatrix, MultipliesChunkByChunk) {
  for (const WeightCodec& codec : weight_codecs()) {
    for (const EncodedType& type : kTypes) {
      const Made weight = made(codec.name, type, 5);
      const auto matrix = EncodedMatrix::view(weight.bytes, type);
      ASSERT_TRUE(matrix);
      Random random(1);
      std::vector<float> in(type.rows());
      for (float& value : in) value = static_cast<float>(random.normal());
      std::vector<float> out(type.columns);
      std::vector<std::byte> scratch(EncodedMatrix::kScratchBytes);
      for (std::size_t i = 0; i < type.chunks(); ++i)
        ASSERT_TRUE(matrix->multiply(i, Product::kColumns, {1, in.data(), 0, out.data(), 0},
                                     scratch.data()));
      for (const std::size_t column : {std::size_t{0}, type.columns / 2, type.columns - 1}) {
        double sum = 0;
        for (std::size_t r = 0; r < type.rows(); ++r)
          sum += static_cast<double>(weight.values[r * type.columns + column]) * in[r];
        EXPECT_NEAR(out[column], sum, type.kind == WeightKind::kF32 ? 1e-4 : 3e-3) << codec.name;
      }
    }
  }
}

// Rows that lie in one chunk and rows in two, of forms with codes for it and of others.
TEST(EncodedMatrix, MultipliesRowsByWholeNumbers) {
  for (const WeightCodec& codec : weight_codecs()) {
    std::vector<EncodedType> types = kTypes;
    types.push_back({WeightKind::kBF16, 2 * 70000, 70000});  // longer than a row has one scale
    for (const EncodedType& type : types) {
      const Made weight = made(codec.name, type, 5);
      const auto matrix = EncodedMatrix::view(weight.bytes, type);
      ASSERT_TRUE(matrix);
      Random random(1);
      const std::size_t step = type.columns + 3;
      std::vector<std::int16_t> in(WeightCodec::kMostWhole * step);
      for (auto& value : in) value = static_cast<std::int16_t>(random.below(255) - 127);
      std::vector<std::byte> scratch(EncodedMatrix::kScratchBytes);
      const std::size_t split = type.chunk_elements() / type.columns;  // the row at a chunk's end
      for (const std::size_t row :
           {std::size_t{0}, split, std::min(split + 1, type.rows() - 1), type.rows() - 1}) {
        for (const std::size_t vectors : {1, 4, 7, 8}) {
          std::vector<float> out(vectors + 1, -1.0f);
          ASSERT_TRUE(
              matrix->multiply_row(row, in.data(), step, vectors, out.data(), scratch.data()));
          for (std::size_t v = 0; v < vectors; ++v) {
            double sum = 0;
            for (std::size_t i = 0; i < type.columns; ++i)
              sum += static_cast<double>(weight.values[row * type.columns + i]) * in[v * step + i];
            EXPECT_NEAR(out[v], sum,
                        type.kind == WeightKind::kF32
                            ? 2e-3
                            : 0.3 * std::sqrt(static_cast<double>(type.columns) / 512))
                << codec.name << " " << row << " " << v;
          }
          EXPECT_EQ(out[vectors], -1.0f);
        }
      }
      std::vector<float> out(9);
      EXPECT_FALSE(
          matrix->multiply_row(type.rows(), in.data(), step, 1, out.data(), scratch.data()));
      EXPECT_FALSE(matrix->multiply_row(0, in.data(), step, 9, out.data(), scratch.data()));
    }
  }
}

TEST(EncodedMatrix, RefusesATableThatDoesNotFit) {
  const EncodedType type = kTypes[0];
  const Made weight = made("q8_0", type, 3);
  ASSERT_TRUE(EncodedMatrix::view(weight.bytes, type));
  EXPECT_FALSE(EncodedMatrix::view(std::span(weight.bytes).first(16), type));
  EXPECT_FALSE(EncodedMatrix::view(std::span(weight.bytes).first(weight.bytes.size() - 1), type));
  EXPECT_FALSE(EncodedMatrix::view(weight.bytes, {WeightKind::kF32, type.elements * 4, 256}));
  EXPECT_FALSE(EncodedMatrix::view(weight.bytes, {WeightKind::kF32, type.elements, 0}));
  Random random(2);
  std::vector<std::byte> scratch(EncodedMatrix::kScratchBytes);
  std::vector<float> out(type.elements);
  std::vector<float> in(type.rows());
  for (int round = 0; round < 300; ++round) {
    std::vector<std::uint8_t> edited = weight.bytes;
    edited[static_cast<std::size_t>(random.below(40))] =
        static_cast<std::uint8_t>(random.below(256));
    const auto matrix = EncodedMatrix::view(edited, type);
    if (!matrix) continue;
    (void)matrix->decode(0, type.elements, out.data(), scratch.data());
    for (std::size_t i = 0; i < type.chunks(); ++i)
      (void)matrix->multiply(i, Product::kColumns, {1, in.data(), 0, out.data(), 0},
                             scratch.data());
  }
}

}  // namespace
}  // namespace plimsoll::codec

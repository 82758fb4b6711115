#include "plimsoll/codec/weights/weight_codecs.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "plimsoll/base/random.h"
#include "plimsoll/codec/weights/float_values.h"

namespace plimsoll::codec {
namespace {

using Chunk = std::vector<std::byte>;

const std::vector<ChunkShape> kShapes = {
    {WeightKind::kF32, 4, 48, 0},  {WeightKind::kF32, 4, 1, 7},    {WeightKind::kBF16, 2, 100, 30},
    {WeightKind::kF16, 2, 64, 0},  {WeightKind::kF64, 8, 7, 3},    {WeightKind::kOther, 1, 300, 10},
    {WeightKind::kOther, 4, 5, 2}, {WeightKind::kF32, 4, 9000, 1},
};
constexpr std::size_t kLengths[] = {0,  1,  2,   3,   7,   8,   9,    31,   32,   33,   63,
                                    64, 65, 127, 255, 256, 257, 1000, 4095, 4096, 4097, 9000};

Chunk of_floats(const std::vector<float>& values, const ChunkShape& shape) {
  Chunk out(values.size() * shape.element_bytes);
  from_floats(values, shape.kind, out);
  return out;
}

// Like trained weights, with a share of zeros; elements that are no floats are any bytes.
Chunk weights_like(std::size_t count, const ChunkShape& shape, double zeros, std::uint64_t seed) {
  Random random(seed);
  if (shape.kind == WeightKind::kOther) {
    Chunk out(count * shape.element_bytes);
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = random.chance(zeros) ? std::byte{0} : static_cast<std::byte>(random.below(256));
    return out;
  }
  std::vector<float> values(count);
  for (float& value : values)
    value = random.chance(zeros) ? 0.0f : static_cast<float>(0.02 * random.normal());
  return of_floats(values, shape);
}

// Memory that ends where a page begins that nobody may touch.
class Guarded {
 public:
  explicit Guarded(std::size_t bytes) : bytes_(bytes) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    whole_ = (bytes + page - 1) / page * page + 2 * page;
    base_ = static_cast<std::byte*>(
        ::mmap(nullptr, whole_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(base_ + page, whole_ - 2 * page, PROT_READ | PROT_WRITE);
    end_ = base_ + whole_ - page;
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { ::munmap(base_, whole_); }
  std::span<std::byte> bytes() const { return {end_ - bytes_, bytes_}; }
  std::span<std::uint8_t> words() const {
    return {reinterpret_cast<std::uint8_t*>(end_ - bytes_), bytes_};
  }

 private:
  std::size_t bytes_;
  std::size_t whole_ = 0;
  std::byte* base_ = nullptr;
  std::byte* end_ = nullptr;
};

// How far a value may be from what it was, as a share of the largest value of its row or block.
double error_of(std::string_view codec) {
  if (codec == "fp16") return 0x1p-11;
  if (codec == "bf16") return 0x1p-8;
  if (codec == "fp8") return 0x1p-4;
  if (codec == "int8") return 0.5 / 127;
  if (codec == "q8_0") return 0.6 / 127;
  if (codec == "q4_0") return 1.01 / 8;
  if (codec == "q4_k") return 2.0 / 15;
  if (codec == "nf4") return 0.16;
  return 1.0;  // 2:4 and ternary drop values
}

class WeightCodecContract : public ::testing::TestWithParam<WeightCodec> {
 protected:
  // False: the codec refused.
  bool encode(const Chunk& values, const ChunkShape& shape, std::vector<std::uint8_t>& bytes) {
    const WeightCodec& codec = GetParam();
    const std::size_t most = codec.largest_bytes(values.size() / shape.element_bytes, shape);
    const Guarded room(most);
    std::size_t used = 0;
    if (!codec.encode(values, shape, room.words(), used)) return false;
    EXPECT_LE(used, most);
    bytes.assign(room.words().begin(), room.words().begin() + static_cast<std::ptrdiff_t>(used));
    return true;
  }
};

TEST_P(WeightCodecContract, GivesBackWhatItPromises) {
  const WeightCodec& codec = GetParam();
  int decided = 0;
  for (const ChunkShape& shape : kShapes) {
    if (!codec.takes(shape)) continue;
    for (const std::size_t count : kLengths) {
      for (const double zeros : {0.0, 0.5, 0.97, 1.0}) {
        Chunk values = weights_like(count, shape, zeros, count + 1);
        if (codec.name == "bf16-lossless" && shape.kind == WeightKind::kF32)
          for (std::size_t i = 0; i < count; ++i) values[4 * i] = values[4 * i + 1] = std::byte{0};
        std::vector<std::uint8_t> bytes;
        ASSERT_TRUE(encode(values, shape, bytes)) << count;
        const Guarded back(values.size());
        ASSERT_TRUE(codec.decode(bytes, shape, back.bytes())) << count;
        ++decided;
        const Chunk is(back.bytes().begin(), back.bytes().end());
        if (codec.lossless) {
          ASSERT_EQ(is, values) << count << " zeros " << zeros;
          continue;
        }
        std::vector<float> before(count);
        std::vector<float> after(count);
        to_floats(values, shape.kind, before);
        to_floats(is, shape.kind, after);
        float largest = 0;
        for (const float value : before) largest = std::max(largest, std::fabs(value));
        // What is decoded is rounded to the tensor's type, and fp16 scales of tiny values have few
        // bits left.
        const double type = shape.kind == WeightKind::kBF16 ? 0x1p-8 : 0x1p-11;
        const double most = (error_of(codec.name) + type) * largest + 8e-6;
        for (std::size_t i = 0; i < count; ++i)
          ASSERT_LE(std::fabs(static_cast<double>(before[i]) - after[i]), most)
              << "value " << i << " of " << count << ": " << before[i] << " became " << after[i];
      }
    }
  }
  EXPECT_GE(decided, 88);
}

TEST_P(WeightCodecContract, RefusesOrKeepsSpecialValues) {
  const WeightCodec& codec = GetParam();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> special = {kInfinity,
                                      -kInfinity,
                                      std::bit_cast<float>(0x7fc12345u),
                                      std::bit_cast<float>(0xff812345u),
                                      -0.0f,
                                      std::numeric_limits<float>::denorm_min(),
                                      -1e-40f,
                                      std::numeric_limits<float>::max(),
                                      std::numeric_limits<float>::min()};
  for (const ChunkShape& shape : kShapes) {
    if (!codec.takes(shape) || shape.kind == WeightKind::kOther) continue;
    for (const float value : special) {
      for (const std::size_t place : {std::size_t{0}, std::size_t{130}}) {
        Chunk values = weights_like(131, shape, 0.5, 5);
        const Chunk one = of_floats({value}, shape);
        std::copy(one.begin(), one.end(),
                  values.begin() + static_cast<std::ptrdiff_t>(place * shape.element_bytes));
        std::vector<std::uint8_t> bytes;
        if (!encode(values, shape, bytes)) continue;
        Chunk back(values.size());
        ASSERT_TRUE(codec.decode(bytes, shape, back));
        if (codec.lossless) {
          ASSERT_EQ(back, values);
          continue;
        }
        std::vector<float> after(131);
        to_floats(back, shape.kind, after);
        std::vector<float> before(131);
        to_floats(values, shape.kind, before);
        // What is finite stays finite, what is not stays what it was.
        for (std::size_t i = 0; i < 131; ++i) {
          ASSERT_EQ(std::isnan(after[i]), std::isnan(before[i])) << i << " " << value;
          ASSERT_EQ(std::isinf(after[i]), std::isinf(before[i])) << i << " " << value;
        }
      }
    }
  }
}

TEST_P(WeightCodecContract, GivesTheSameBytesEveryTime) {
  for (const ChunkShape& shape : kShapes) {
    if (!GetParam().takes(shape)) continue;
    const Chunk values = weights_like(5000, shape, 0.9, 3);
    std::vector<std::uint8_t> one, two;
    ASSERT_EQ(encode(values, shape, one), encode(values, shape, two));
    EXPECT_EQ(one, two);
  }
}

TEST_P(WeightCodecContract, RefusesTooLittleRoom) {
  const WeightCodec& codec = GetParam();
  for (const ChunkShape& shape : kShapes) {
    if (!codec.takes(shape)) continue;
    Chunk values = weights_like(500, shape, 0.0, 3);
    if (codec.name == "bf16-lossless" && shape.kind == WeightKind::kF32) continue;
    std::vector<std::uint8_t> bytes;
    ASSERT_TRUE(encode(values, shape, bytes));
    const Guarded room(bytes.size() - 1);
    std::size_t used = 0;
    EXPECT_FALSE(codec.encode(values, shape, room.words(), used));
  }
}

// Bytes of files are hostile: whatever they are, only the chunk's own memory is written, and only
// the given bytes are read.
TEST_P(WeightCodecContract, DecodesAnyBytesWithinItsChunk) {
  const WeightCodec& codec = GetParam();
  Random random(11);
  int refused = 0;
  int decoded = 0;
  for (const ChunkShape& shape : kShapes) {
    if (!codec.takes(shape)) continue;
    for (const std::size_t count : {std::size_t{1}, std::size_t{70}, std::size_t{4200}}) {
      Chunk values = weights_like(count, shape, 0.8, count);
      if (codec.name == "bf16-lossless" && shape.kind == WeightKind::kF32)
        for (std::size_t i = 0; i < count; ++i) values[4 * i] = values[4 * i + 1] = std::byte{0};
      std::vector<std::uint8_t> right;
      ASSERT_TRUE(encode(values, shape, right));
      for (int round = 0; round < 60; ++round) {
        std::vector<std::uint8_t> bytes = right;
        const auto edits = random.between(0, 4);
        for (int i = 0; i < edits && !bytes.empty(); ++i) {
          const auto place = static_cast<std::size_t>(
              random.below(random.chance(0.5)
                               ? static_cast<std::int64_t>(std::min<std::size_t>(bytes.size(), 16))
                               : static_cast<std::int64_t>(bytes.size())));
          bytes[place] = static_cast<std::uint8_t>(random.below(256));
        }
        if (random.chance(0.3))
          bytes.resize(
              static_cast<std::size_t>(random.below(static_cast<std::int64_t>(bytes.size()) + 40)));
        const Guarded in(bytes.size());
        std::copy(bytes.begin(), bytes.end(), in.words().begin());
        const Guarded out(values.size());
        if (codec.decode(in.words(), shape, out.bytes())) {
          ++decoded;
        } else {
          ++refused;
        }
      }
    }
  }
  EXPECT_GE(refused, 20);
  EXPECT_GE(decoded, 20);
}

// Rows that begin with blocks and rows that do not; chunks that begin in the middle of a row.
TEST_P(WeightCodecContract, MultipliesWhatItDecodes) {
  const WeightCodec& codec = GetParam();
  if (codec.multiply == nullptr) return;
  const ChunkShape shapes[] = {
      {WeightKind::kF32, 4, 512, 256}, {WeightKind::kF32, 4, 256, 0},
      {WeightKind::kF32, 4, 100, 30},  {WeightKind::kF32, 4, 3, 1},
      {WeightKind::kF32, 4, 9000, 8},  {WeightKind::kBF16, 2, 256, 0},
      {WeightKind::kF16, 2, 77, 5},
  };
  int decided = 0;
  for (const ChunkShape& shape : shapes) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{512}, std::size_t{4096}}) {
      for (const double zeros : {0.0, 0.5, 0.95}) {
        const Chunk values = weights_like(count, shape, zeros, count + 5);
        std::vector<std::uint8_t> bytes;
        ASSERT_TRUE(encode(values, shape, bytes));
        Chunk back(values.size());
        ASSERT_TRUE(codec.decode(bytes, shape, back));
        std::vector<float> floats(count);
        to_floats(back, shape.kind, floats);
        const std::size_t first_row = shape.begin / shape.columns;
        const std::size_t rows = (shape.begin + count - 1) / shape.columns - first_row + 1;
        Random random(count);
        std::vector<float> in(std::max(shape.columns, first_row + rows));
        for (float& value : in) value = static_cast<float>(random.normal());
        for (const Product product : {Product::kRows, Product::kColumns}) {
          const bool by_rows = product == Product::kRows;
          const std::size_t outs = by_rows ? rows : shape.columns;
          // what was there is added to
          const Guarded room(outs * 4);
          auto* out = reinterpret_cast<float*>(room.bytes().data());
          std::fill_n(out, outs, 1.0f);
          if (!codec.multiply(bytes, shape, count, product, in.data(), out)) continue;
          ++decided;
          std::vector<double> expected(outs, 1.0);
          for (std::size_t i = 0; i < count; ++i) {
            const std::size_t row = (shape.begin + i) / shape.columns;
            const std::size_t column = (shape.begin + i) % shape.columns;
            expected[by_rows ? row - first_row : column] +=
                static_cast<double>(floats[i]) * in[by_rows ? column : row];
          }
          // floats of narrow tensors are not rounded to them on the way
          const double tolerance = shape.kind == WeightKind::kF32 ? 2e-5 : 2e-2;
          for (std::size_t i = 0; i < outs; ++i)
            ASSERT_NEAR(out[i], expected[i], tolerance)
                << shape.columns << " " << count << " " << zeros << " at " << i;
        }
      }
    }
  }
  EXPECT_GE(decided, 18) << codec.name;
}

TEST_P(WeightCodecContract, MultipliesAnyBytesWithinItsVectors) {
  const WeightCodec& codec = GetParam();
  if (codec.multiply == nullptr) return;
  const std::size_t count = 2048;
  Random random(11);
  for (const ChunkShape& shape :
       {ChunkShape{WeightKind::kF32, 4, 256, 256}, ChunkShape{WeightKind::kF32, 4, 100, 30}}) {
    std::vector<std::uint8_t> bytes;
    ASSERT_TRUE(encode(weights_like(count, shape, 0.9, 3), shape, bytes));
    const std::size_t first_row = shape.begin / shape.columns;
    const std::size_t last_row = (shape.begin + count - 1) / shape.columns;
    const Guarded in(4 * std::max(shape.columns, last_row + 1));
    for (int round = 0; round < 2000; ++round) {
      std::vector<std::uint8_t> edited = bytes;
      for (int edit = 0; edit < 1 + round % 4; ++edit)
        edited[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(edited.size())))] =
            static_cast<std::uint8_t>(random.below(256));
      if (round % 8 == 0)
        edited.resize(
            static_cast<std::size_t>(random.below(static_cast<std::int64_t>(edited.size()) + 1)));
      const bool by_rows = round % 2 == 0;
      const Guarded out(4 * (by_rows ? last_row - first_row + 1 : shape.columns));
      (void)codec.multiply(edited, shape, count, by_rows ? Product::kRows : Product::kColumns,
                           reinterpret_cast<const float*>(in.bytes().data()),
                           reinterpret_cast<float*>(out.bytes().data()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, WeightCodecContract,
                         ::testing::ValuesIn(weight_codecs().begin(), weight_codecs().end()),
                         [](const auto& tested) {
                           std::string name(tested.param.name);
                           for (char& letter : name)
                             if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
                           return name;
                         });

}  // namespace
}  // namespace plimsoll::codec

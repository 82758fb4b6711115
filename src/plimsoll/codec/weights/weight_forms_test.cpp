// What single forms promise beyond the contract: sizes, sparse break-even, products from coded
// form, and the same bits with every kind of vectors.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "plimsoll/base/random.h"
#include "plimsoll/codec/weights/float_values.h"
#include "plimsoll/codec/weights/ternary.h"
#include "plimsoll/codec/weights/weight_codecs.h"

namespace plimsoll::codec {
namespace {

std::vector<float> normal_values(std::size_t count, double zeros, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> out(count);
  for (float& value : out)
    value = random.chance(zeros) ? 0.0f : static_cast<float>(0.02 * random.normal());
  return out;
}
std::vector<std::byte> as_kind(const std::vector<float>& values, WeightKind kind,
                               std::size_t width) {
  std::vector<std::byte> out(values.size() * width);
  from_floats(values, kind, out);
  return out;
}
std::vector<std::uint8_t> coded(std::string_view name, std::span<const std::byte> values,
                                const ChunkShape& shape) {
  const WeightCodec* codec = find_weight_codec(name);
  std::vector<std::uint8_t> out(codec->largest_bytes(values.size() / shape.element_bytes, shape));
  std::size_t used = 0;
  EXPECT_TRUE(codec->encode(values, shape, out, used)) << name;
  out.resize(used);
  return out;
}

// Normal values of one size are harder than trained ones, whose sizes differ from tensor to tensor
// less within one.
TEST(WeightForms, Bf16LosslessIsAtMost72PercentOfNormalWeights) {
  const ChunkShape shape{WeightKind::kBF16, 2, 1024, 0};
  const auto values = as_kind(normal_values(131072, 0, 1), WeightKind::kBF16, 2);
  const auto lossless = coded("bf16-lossless", values, shape);
  EXPECT_LT(static_cast<double>(lossless.size()), 0.715 * static_cast<double>(values.size()));
  const auto archive = coded("archive", values, shape);
  EXPECT_LT(static_cast<double>(archive.size()), 0.68 * static_cast<double>(values.size()));
  EXPECT_LT(archive.size(), lossless.size());
}

TEST(WeightForms, KernelsOfConvolutionsHaveRowsWorthAScale) {
  using Dims = std::vector<std::uint64_t>;
  EXPECT_EQ(row_elements(Dims{}), 1u);
  EXPECT_EQ(row_elements(Dims{7}), 7u);
  EXPECT_EQ(row_elements(Dims{1000, 4}), 4u);
  EXPECT_EQ(row_elements(Dims{480, 240, 1, 1}), 240u);
  EXPECT_EQ(row_elements(Dims{60, 960, 1, 3}), 2880u);
  EXPECT_EQ(row_elements(Dims{64, 3, 7, 7}), 49u);
  EXPECT_EQ(row_elements(Dims{16, 1, 3, 3}), 9u);
  EXPECT_EQ(row_elements(Dims{32, 768, 256}), 256u);
  EXPECT_EQ(row_elements(Dims{2, 0, 3}), 1u);
}

// As channels have that died in training.
TEST(WeightForms, ValuesTooSmallForAScaleDoNotKeepAChunkAsItIs) {
  const ChunkShape shape{WeightKind::kF32, 4, 256, 0};
  for (const float tiny : {1e-45f, 1e-40f, 1e-36f}) {
    std::vector<float> values = normal_values(4096, 0, 3);
    std::fill_n(values.begin(), 256, tiny);
    for (const char* name : {"fp16", "fp8", "int8", "q8_0", "q4_0", "q4_k", "nf4", "ternary"}) {
      const auto bytes = coded(name, std::as_bytes(std::span(values)), shape);
      std::vector<float> back(values.size());
      ASSERT_TRUE(
          find_weight_codec(name)->decode(bytes, shape, std::as_writable_bytes(std::span(back))));
      for (std::size_t i = 0; i < 256; ++i) ASSERT_LE(std::fabs(back[i]), 2 * tiny) << name;
    }
  }
}

TEST(WeightForms, SparseFormsBreakEvenWhereTheySay) {
  const ChunkShape shape{WeightKind::kF16, 2, 512, 0};
  const auto bytes = [&](std::string_view name, double density) {
    return coded(name, as_kind(normal_values(65536, 1 - density, 7), WeightKind::kF16, 2), shape)
        .size();
  };
  const std::size_t raw = 65536 * 2;
  EXPECT_LT(bytes("bitmask", 0.90), raw);  // 15/16 for two bytes
  EXPECT_GT(bytes("bitmask", 0.97), raw);
  EXPECT_LT(bytes("bitmask", 0.30), bytes("csr", 0.30));
  EXPECT_LT(bytes("csr", 0.05), bytes("bitmask", 0.05));
  EXPECT_LT(bytes("csr", 0.01), bytes("coo", 0.01));
  EXPECT_LT(bytes("coo", 0.0005), bytes("csr", 0.0005));
  EXPECT_EQ(bytes("2:4", 0.5), 65536u / 4 * 4 + 65536 / 8);
}

std::vector<float> ternary_values(std::size_t rows, std::size_t columns, double zeros) {
  Random random(3);
  std::vector<float> out(rows * columns);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const float scale = 0.01f * static_cast<float>(1 + i / columns % 5);
    out[i] = random.chance(zeros) ? 0.0f : random.chance(0.5) ? scale : -scale;
  }
  return out;
}

TEST(WeightForms, TernaryTakesLittleMoreThanItsEntropy) {
  for (const auto& [zeros, most] : {std::pair(0.9, 0.65), std::pair(1.0 / 3, 1.70)}) {
    const auto values = ternary_values(64, 1024, zeros);
    const ChunkShape shape{WeightKind::kF32, 4, 1024, 0};
    const auto bytes = coded("ternary", std::as_bytes(std::span(values)), shape);
    EXPECT_LT(8.0 * static_cast<double>(bytes.size()) / static_cast<double>(values.size()), most);
    // Values that are ternary already come back exactly.
    std::vector<float> back(values.size());
    ASSERT_TRUE(find_weight_codec("ternary")->decode(bytes, shape,
                                                     std::as_writable_bytes(std::span(back))));
    EXPECT_EQ(back, values);
  }
}

TEST(WeightForms, TernaryMultipliesFromItsCodedForm) {
  // Rows shorter than runs, and rows that are not.
  for (const std::size_t columns :
       {std::size_t{1}, std::size_t{3}, std::size_t{7}, std::size_t{100}, std::size_t{1000}}) {
    for (const double zeros : {0.0, 0.5, 0.95, 1.0}) {
      const std::size_t rows = 37;
      const auto values = ternary_values(rows, columns, zeros);
      const ChunkShape shape{WeightKind::kF32, 4, columns, 0};
      const auto bytes = coded("ternary", std::as_bytes(std::span(values)), shape);
      const auto in = normal_values(columns, 0, 9);
      std::vector<float> out(rows);
      ASSERT_TRUE(kTernaryWeights.multiply(bytes, shape, values.size(), Product::kRows, in.data(),
                                           out.data()))
          << columns << " " << zeros;
      for (std::size_t r = 0; r < rows; ++r) {
        double sum = 0;
        for (std::size_t c = 0; c < columns; ++c)
          sum += static_cast<double>(values[r * columns + c]) * in[c];
        ASSERT_NEAR(out[r], sum, 1e-5) << columns << " row " << r;
      }
      std::vector<std::uint8_t> edited = bytes;
      Random random(columns);
      for (int round = 0; round < 40; ++round) {
        edited[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(edited.size())))] =
            static_cast<std::uint8_t>(random.below(256));
        (void)kTernaryWeights.multiply(edited, shape, values.size(), Product::kRows, in.data(),
                                       out.data());
      }
    }
  }
}

TEST(WeightForms, EveryKindOfVectorsDecodesToTheSameBits) {
  const auto use = [](std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  };
  const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  for (const auto& [form, kind, width] :
       {std::tuple("bf16-lossless", WeightKind::kBF16, std::size_t{2}),
        std::tuple("q8_0", WeightKind::kF32, std::size_t{4}),
        std::tuple("q4_0", WeightKind::kF32, std::size_t{4}),
        std::tuple("bitmask", WeightKind::kF32, std::size_t{4}),
        std::tuple("bitmask", WeightKind::kBF16, std::size_t{2}),
        std::tuple("archive", WeightKind::kBF16, std::size_t{2}),
        std::tuple("archive", WeightKind::kF32, std::size_t{4})}) {
    const ChunkShape shape{kind, width, 333, 0};
    const auto values = as_kind(normal_values(9000, 0.1, 5), kind, width);
    const auto bytes = coded(form, values, shape);
    std::vector<std::byte> first;
    for (const std::int64_t target : targets) {
      use(target);
      EXPECT_EQ(coded(form, values, shape), bytes) << form << " " << hwy::TargetName(target);
      std::vector<std::byte> back(values.size());
      ASSERT_TRUE(find_weight_codec(form)->decode(bytes, shape, back));
      if (first.empty()) first = back;
      EXPECT_EQ(std::memcmp(back.data(), first.data(), first.size()), 0)
          << form << " " << hwy::TargetName(target);
    }
    use(0);
    if (find_weight_codec(form)->lossless) {
      EXPECT_EQ(first, values) << form;
    }
  }
}

}  // namespace
}  // namespace plimsoll::codec

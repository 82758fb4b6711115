// Which convolutions of the zoo cuDNN has a deterministic engine for, and what they cost in
// workspace. Those without one run on direct kernels, which are right and slow.
#include "plimsoll/kernels/cuda/cudnn_convolution.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace plimsoll::kernels::cuda {
namespace {

struct Layer {
  const char* name;
  std::int64_t batch, inputs, outputs, group, extent, kernel, stride, pad;
};

constexpr Layer kLayers[] = {
    {"resnet50 stem", 8, 3, 64, 1, 224, 7, 2, 3},
    {"resnet50 1x1", 8, 64, 256, 1, 56, 1, 1, 0},
    {"resnet50 1x1 stride 2", 8, 256, 512, 1, 56, 1, 2, 0},
    {"resnet50 3x3", 8, 128, 128, 1, 28, 3, 1, 1},
    {"resnet50 3x3 stride 2", 8, 128, 128, 1, 56, 3, 2, 1},
    {"alexnet stem", 8, 3, 64, 1, 224, 11, 4, 2},
    {"alexnet 5x5", 8, 64, 192, 1, 27, 5, 1, 2},
    {"mobilenet depthwise", 8, 96, 96, 96, 56, 3, 1, 1},
    {"mobilenet depthwise stride 2", 8, 96, 96, 96, 112, 3, 2, 1},
};

std::vector<std::int64_t> steps_of(const std::vector<std::int64_t>& extents, bool channels_last) {
  const auto [n, c, h, w] = std::array{extents[0], extents[1], extents[2], extents[3]};
  (void)n;
  return channels_last ? std::vector<std::int64_t>{h * w * c, 1, w * c, c}
                       : std::vector<std::int64_t>{c * h * w, h * w, w, 1};
}

ConvolutionShape shape_of(const Layer& layer, ConvolutionWay way, ir::DType dtype,
                          bool channels_last) {
  const std::int64_t result = (layer.extent + 2 * layer.pad - layer.kernel) / layer.stride + 1;
  ConvolutionShape out;
  out.way = way;
  out.dtype = dtype;
  out.x = {layer.batch, layer.inputs, layer.extent, layer.extent};
  out.w = {layer.outputs, layer.inputs / layer.group, layer.kernel, layer.kernel};
  out.y = {layer.batch, layer.outputs, result, result};
  out.x_steps = steps_of(out.x, channels_last);
  out.w_steps = steps_of(out.w, channels_last);
  out.y_steps = steps_of(out.y, channels_last);
  out.strides = {layer.stride, layer.stride};
  out.dilations = {1, 1};
  out.begins = out.ends = {layer.pad, layer.pad};
  return out;
}

TEST(CudaCudnn, HasAnEngineForTheZoosConvolutions) {
  int missing = 0;
  int asked = 0;
  for (const Layer& layer : kLayers) {
    for (const ir::DType dtype : {ir::DType::kF32, ir::DType::kBF16}) {
      for (const bool tf32 : {false, true}) {
        if (tf32 && dtype != ir::DType::kF32) continue;
        for (const bool last : {false, true}) {
          for (const auto way :
               {ConvolutionWay::kForward, ConvolutionWay::kData, ConvolutionWay::kWeight}) {
            const auto made =
                make_cudnn_convolution(shape_of(layer, way, dtype, last), {.tf32 = tf32});
            ASSERT_TRUE(made.has_value()) << made.error().message;
            ++asked;
            missing += *made == nullptr ? 1 : 0;
            std::printf("%s %s%s %s way %d: %s\n", layer.name, std::string(ir::name(dtype)).c_str(),
                        tf32 ? " tf32" : "", last ? "channels last" : "row-major",
                        static_cast<int>(way),
                        *made == nullptr ? "no engine"
                                         : std::to_string((*made)->workspace().value).c_str());
          }
        }
      }
    }
  }
  // Depthwise gradients may have none; the bulk must.
  EXPECT_LE(missing * 10, asked) << missing << " of " << asked << " have no engine";
}

// What was chosen is said by a name, and made again by it: the same engine and workspace.
TEST(CudaCudnn, MakesAnEngineAgainByItsName) {
  int named = 0;
  int made = 0;
  for (const Layer& layer : kLayers) {
    for (const ir::DType dtype : {ir::DType::kF32, ir::DType::kBF16}) {
      for (const auto way :
           {ConvolutionWay::kForward, ConvolutionWay::kData, ConvolutionWay::kWeight}) {
        SCOPED_TRACE(
            fmt::format("{} {} way {}", layer.name, ir::name(dtype), static_cast<int>(way)));
        const ConvolutionShape shape = shape_of(layer, way, dtype, true);
        EngineTrail chosen;
        CudaKernelOptions options{.tf32 = true, .engines = &chosen};
        const auto first = make_cudnn_convolution(shape, options);
        ASSERT_TRUE(first.has_value()) << first.error().message;
        ++made;
        if (chosen.text().empty()) continue;
        ++named;
        EngineTrail wanted(chosen.text());
        options.engines = &wanted;
        const auto again = make_cudnn_convolution(shape, options);
        ASSERT_TRUE(again.has_value()) << again.error().message;
        EXPECT_TRUE(wanted.finish());
        EXPECT_EQ(wanted.text(), chosen.text());
        ASSERT_EQ(*again == nullptr, *first == nullptr);
        if (*first != nullptr) {
          EXPECT_EQ((*again)->workspace(), (*first)->workspace());
        }
        EngineTrail unknown("cudnn:99999");
        options.engines = &unknown;
        EXPECT_EQ(make_cudnn_convolution(shape, options).error().code, ErrorCode::kBadInput);
      }
    }
  }
  EXPECT_EQ(named, made) << "cuDNN says which engines it lists";
}

}  // namespace
}  // namespace plimsoll::kernels::cuda

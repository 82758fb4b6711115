// Products by cuBLASLt, on a card: an algorithm is made again by its name.
#include "plimsoll/kernels/cuda/product.h"

#include <gtest/gtest.h>

namespace plimsoll::kernels::cuda {
namespace {

TEST(CudaProduct, MakesAnAlgorithmAgainByItsName) {
  for (const ir::DType dtype : {ir::DType::kF32, ir::DType::kBF16}) {
    for (const std::int64_t extent : {64, 768, 2304}) {
      ProductShape shape;
      shape.dtype = shape.result = dtype;
      shape.m = 512;
      shape.n = extent;
      shape.k = 768;
      shape.row_a = shape.k;
      shape.row_b = shape.row_c = shape.n;
      EngineTrail chosen;
      CudaKernelOptions options{.tf32 = true, .engines = &chosen};
      const auto first = Product::make(shape, options);
      ASSERT_TRUE(first) << first.error().message;
      EngineTrail wanted(chosen.text());
      options.engines = &wanted;
      const auto again = Product::make(shape, options);
      ASSERT_TRUE(again) << again.error().message;
      EXPECT_EQ(wanted.text(), chosen.text());
      EXPECT_EQ(again->workspace(), first->workspace());
      for (const char* none :
           {"cublaslt:ffff.0.0.0.0.0.0.0.0", "cublaslt:1", "cudnn:1", "direct"}) {
        EngineTrail unknown(none);
        options.engines = &unknown;
        const auto refused = Product::make(shape, options);
        ASSERT_FALSE(refused) << none;
        EXPECT_EQ(refused.error().code, ErrorCode::kBadInput);
      }
    }
  }
}

}  // namespace
}  // namespace plimsoll::kernels::cuda

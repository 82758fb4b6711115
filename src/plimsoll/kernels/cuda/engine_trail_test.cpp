#include "plimsoll/kernels/cuda/engine_trail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plimsoll/base/random.h"

namespace plimsoll::kernels::cuda {
namespace {

using ::testing::HasSubstr;

TEST(EngineTrail, TakesDownWhatIsChosenFreely) {
  EngineTrail trail;
  EXPECT_EQ(trail.next(), std::nullopt);
  trail.took("cudnn:3");
  EXPECT_EQ(trail.next(), std::nullopt);
  trail.took("direct");
  EXPECT_TRUE(trail.finish());
  EXPECT_EQ(trail.text(), "cudnn:3 direct");
}

TEST(EngineTrail, HasNoNameWhereOneChoiceHasNone) {
  EngineTrail trail;
  trail.took("cudnn:3");
  trail.took("");
  EXPECT_EQ(trail.text(), "");
}

TEST(EngineTrail, HandsOutWhatIsWantedInItsOrder) {
  EngineTrail trail("cudnn:3 direct");
  for (const char* name : {"cudnn:3", "direct"}) {
    const auto wanted = trail.next();
    ASSERT_EQ(wanted, name);
    trail.took(*wanted);
  }
  EXPECT_TRUE(trail.finish());
  EXPECT_EQ(trail.text(), "cudnn:3 direct");
}

TEST(EngineTrail, RefusesMoreOrFewerChoicesThanAreNamed) {
  EngineTrail fewer("cudnn:3 cudnn:4");
  fewer.next();
  ASSERT_FALSE(fewer.finish());
  EXPECT_THAT(fewer.finish().error().message, HasSubstr("names 2 engines, its kernel has 1 here"));
  EngineTrail more("cudnn:3");
  more.next();
  EXPECT_EQ(more.next(), "") << "no engine is called so";
  EXPECT_FALSE(more.finish());
}

TEST(EngineNames, OfCudnnComeBackAsTheyWere) {
  Random random(1);
  for (int i = 0; i < 200; ++i) {
    DnnEngine engine{random.below(1000), {}};
    for (std::int64_t k = random.below(6); k > 0; --k)
      engine.knobs.push_back({random.below(40), random.between(-5, 1 << 20)});
    EXPECT_EQ(parse_dnn_engine(to_string(engine)), engine) << to_string(engine);
  }
  EXPECT_EQ(to_string(DnnEngine{38, {{2, 11}, {9, 0}}}), "cudnn:38/2=11/9=0");
}

TEST(EngineNames, OfCublasltComeBackAsTheyWere) {
  Random random(2);
  for (int i = 0; i < 200; ++i) {
    BlasAlgorithm algorithm{};
    for (std::uint32_t& word : algorithm)
      word = random.below(3) == 0 ? 0 : static_cast<std::uint32_t>(random.next());
    EXPECT_EQ(parse_blas_algorithm(to_string(algorithm)), algorithm) << to_string(algorithm);
  }
}

TEST(EngineNames, OthersAreNone) {
  for (const char* text :
       {"", "cudnn:", "cudnn:x", "cudnn:-1", "cudnn:1/2", "cudnn:1/2=", "cudnn:1/=3",
        "cudnn:99999999999999999999", "cudnn:1/2=3 ", "direct", "cublaslt:1.2.3.4.5.6.7.8.9"}) {
    EXPECT_EQ(parse_dnn_engine(text), std::nullopt) << text;
  }
  for (const char* text :
       {"", "cublaslt:", "cublaslt:1.2.3.4.5.6.7.8", "cublaslt:1.2.3.4.5.6.7.8.9.a",
        "cublaslt:1.2.3.4.5.6.7.8.x", "cublaslt:1.2.3.4.5.6.7.8.123456789", "cudnn:1"}) {
    EXPECT_EQ(parse_blas_algorithm(text), std::nullopt) << text;
  }
  std::string many = "cudnn:1";
  for (int k = 0; k < 1000; ++k) many += "/1=1";
  EXPECT_EQ(parse_dnn_engine(many), std::nullopt);
}

}  // namespace
}  // namespace plimsoll::kernels::cuda

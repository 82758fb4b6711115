#include "plimsoll/schedule/device_profile.h"

#include <gtest/gtest.h>

namespace plimsoll::schedule {
namespace {

TEST(DeviceProfile, ReadsBackWhatItWrites) {
  for (const std::string& name : shipped_profile_names()) {
    DeviceProfile profile = *shipped_profile(name);
    profile.measured["conv2d f32[8,64,56,56]"] = 1.25e-3;
    const auto back = read_profile(to_json(profile));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, profile);
  }
}

TEST(DeviceProfile, SaysWhatTheKernelsOfItsCardTake) {
  DeviceProfile profile = *shipped_profile("cpu");
  profile.card =
      ProfiledCard{"sm_90 tf32", "cuDNN 9.19.0", {{"conv(x)", {Bytes(512), true, "cudnn:1"}}}};
  profile.card->kernels["gather(x)"] = {Bytes(0), false};
  const std::string good = to_json(profile);
  const auto back = read_profile(good);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, profile);
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"\"scratch_bytes\": 512", "\"scratch_bytes\": -512"},
           {"\"scratch_bytes\": 512", "\"scratch\": 512"},
           {"\"in_place\": false", "\"in_place\": 0"},
           {"\"engine\": \"cudnn:1\"", "\"engine\": 1"},
           {"\"card\": {", "\"card\": 1, \"cards\": {"},
           {"\"kernels\": {", "\"kernels\": 1, \"others\": {"}}) {
    std::string text = good;
    ASSERT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), from.size(), to);
    EXPECT_FALSE(read_profile(text).has_value()) << to;
  }
}

TEST(DeviceProfile, PrefersTheMeasuredTimeToTheRoofline) {
  DeviceProfile profile = *shipped_profile("cpu");
  profile.operations_per_second["fp32"] = 220e9;
  profile.memory_bytes_per_second = 18e9;
  profile.efficiency.clear();
  profile.cache = {};
  const Cost estimated = cost_of(profile, "mm", "fp32", 220e9, 0);
  EXPECT_FALSE(estimated.measured);
  EXPECT_NEAR(estimated.seconds, 1, 1e-3);
  EXPECT_NEAR(cost_of(profile, "add", "fp32", 1, 18e9).seconds, 1, 1e-3);
  profile.measured["mm"] = 2;
  EXPECT_EQ(cost_of(profile, "mm", "fp32", 220e9, 0).seconds, 2);
  EXPECT_TRUE(cost_of(profile, "mm", "fp32", 220e9, 0).measured);
}

TEST(DeviceProfile, ConvolutionsInGroupsHaveEfficienciesOfTheirOwn) {
  const std::string dense =
      "conv(fp32[8,48,56,56]@0231,fp32[48,48,3,3])->(fp32[8,48,56,56])"
      "{dilations=[1,1], pads=[1,1,1,1], strides=[1,1]}";
  const auto in_groups = [](std::int64_t groups) {
    return fmt::format(
        "conv_grad_input(fp32[8,48,56,56],fp32[48,{},3,3])->(fp32[8,48,56,56])"
        "{{dilations=[1,1], group={}, pads=[1,1,1,1]}}",
        48 / groups, groups);
  };
  EXPECT_EQ(cost_class(dense), "conv");
  EXPECT_EQ(cost_class(in_groups(1)), "conv_grad_input");
  EXPECT_EQ(cost_class(in_groups(2)), "conv_grad_input.groups");  // of 24
  EXPECT_EQ(cost_class(in_groups(3)), "conv_grad_input");         // of 16
  EXPECT_EQ(cost_class(in_groups(6)), "conv_grad_input.narrow");  // of 8
  EXPECT_EQ(cost_class(in_groups(48)), "conv_grad_input.depthwise");
  for (const char* other : {"add(fp32[4])->(fp32[4]){group=2}", "mm", "conv", "conv({group=", ""})
    EXPECT_EQ(cost_class(other), std::string(other).substr(0, std::string(other).find('(')));
  DeviceProfile profile = *shipped_profile("cpu");
  profile.launch_seconds = 0;
  profile.operations_per_second["fp32"] = 1;
  profile.efficiency = {{"conv_grad_input", 0.5}, {"conv_grad_input.groups", 0.25}};
  EXPECT_DOUBLE_EQ(cost_of(profile, in_groups(2), "fp32", 1, 0).seconds, 4);
  EXPECT_DOUBLE_EQ(cost_of(profile, in_groups(48), "fp32", 1, 0).seconds, 2);  // as the operator
  EXPECT_DOUBLE_EQ(cost_of(profile, dense, "fp32", 1, 0).seconds, 1);
}

TEST(DeviceProfile, BytesThatFitTheCacheMoveAtItsRate) {
  DeviceProfile profile = *shipped_profile("h200");
  profile.launch_seconds = 0;
  profile.memory_bytes_per_second = 10;
  profile.cache = {Bytes(100), 100};
  EXPECT_DOUBLE_EQ(cost_of(profile, "add()", "fp32", 0, 50).seconds, 0.5);
  EXPECT_DOUBLE_EQ(cost_of(profile, "add()", "fp32", 0, 130).seconds, 1 + 3);
  const auto again = read_profile(to_json(profile));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, profile);
}

TEST(DeviceProfile, AnOperatorReachesItsShareOfTheRoofline) {
  DeviceProfile profile = *shipped_profile("h200");
  profile.operations_per_second["fp32"] = 47e12;
  profile.efficiency = {{"conv", 0.5}};
  const double roofline = cost_of(profile, "matmul(x)", "fp32", 47e12, 0).seconds;
  EXPECT_NEAR(roofline, 1, 1e-3);
  EXPECT_NEAR(cost_of(profile, "conv(x)->(y)", "fp32", 47e12, 0).seconds, 2, 1e-3);
  EXPECT_EQ(cost_of(profile, "conv_grad_input(x)", "fp32", 47e12, 0).seconds, roofline);
  EXPECT_EQ(*read_profile(to_json(profile)), profile);
  std::string text = to_json(profile);
  text.replace(text.find("\"conv\": 0.5") + 8, 3, "0.0");
  EXPECT_FALSE(read_profile(text).has_value());
}

TEST(DeviceProfile, BytesInAFasterMemoryTakeItsTime) {
  const DeviceProfile& profile = *shipped_profile("accelerator");
  const CostParts parts = cost_parts(profile, "add(x)", "fp32", 1, 1.2e12);
  EXPECT_NEAR(parts.seconds, 1, 1e-3);
  EXPECT_DOUBLE_EQ(parts.with_memory(1, 1), parts.seconds);
  EXPECT_NEAR(parts.with_memory(0.25, 1), 0.25, 1e-3);
  // A measured time keeps its proportion.
  DeviceProfile measured = profile;
  measured.measured["add(x)"] = 3;
  EXPECT_NEAR(cost_parts(measured, "add(x)", "fp32", 1, 1.2e12).with_memory(0.5, 1), 1.5, 1e-2);
}

TEST(DeviceProfile, RejectsWhatMakesNoSense) {
  const std::string good = to_json(*shipped_profile("h200"));
  const auto broken = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    return !read_profile(text).has_value();
  };
  EXPECT_TRUE(broken("\"schema\": 1", "\"schema\": 2"));
  EXPECT_TRUE(broken("\"launch_seconds\": ", "\"launch_seconds\": -"));
  EXPECT_TRUE(broken("\"copies\"", "\"copy\""));
  EXPECT_TRUE(broken("\"memory_bytes\": ", "\"memory_bytes\": -"));
  const std::string level = to_json(*shipped_profile("accelerator"));
  const auto broken_level = [&](const std::string& from, const std::string& to) {
    std::string text = level;
    const auto at = text.find(from, text.find("\"memories\""));
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    return !read_profile(text).has_value();
  };
  EXPECT_TRUE(broken_level("on-chip", "device"));
  EXPECT_TRUE(broken_level("on-chip", ""));
  EXPECT_TRUE(broken_level("\"bytes\": 134217728", "\"bytes\": 0"));
  EXPECT_TRUE(broken_level("\"bytes\": 134217728", "\"bytes\": 1.5"));
  EXPECT_TRUE(broken_level("\"read_bytes_per_second\": ", "\"read_bytes_per_second\": -"));
  EXPECT_TRUE(broken_level("\"memories\": [", "\"memories\": [1, "));
  EXPECT_TRUE(broken_level("\"copies\"", "\"copy\""));
  EXPECT_FALSE(broken_level("on-chip", "scratchpad"));
  std::string locked = good;
  locked.insert(locked.find("\"schema\""), "\"read_only\": true, ");
  EXPECT_FALSE(read_profile(locked).has_value());
  EXPECT_FALSE(read_profile("").has_value());
  EXPECT_FALSE(read_profile(std::string(100'000, '[')).has_value());
  EXPECT_EQ(shipped_profile("abacus"), nullptr);
}

}  // namespace
}  // namespace plimsoll::schedule

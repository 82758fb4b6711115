#include "plimsoll/api/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "plimsoll/base/random.h"
#include "plimsoll/base/testing/scratch_folder.h"
#include "plimsoll/store/safetensors.h"

namespace plimsoll::api {
namespace {

using ::testing::HasSubstr;

class WeightsVerb : public ::testing::Test {
 protected:
  // Matrices of so many rows of 256 floats, each of the same values throughout.
  std::string write(const std::vector<std::pair<std::uint64_t, float>>& matrices) const {
    std::vector<store::SafetensorsEntry> entries;
    for (std::size_t i = 0; i < matrices.size(); ++i)
      entries.push_back(
          {"m" + std::to_string(1000 + i), store::Element::kF32, {matrices[i].first, 256}, 0, 0});
    EXPECT_TRUE(store::place_safetensors(entries));
    const auto header = store::safetensors_header(entries, {});
    std::string path = (folder_ / "w.safetensors").string();
    auto writer = store::SafetensorsWriter::create(path, *header);
    EXPECT_TRUE(writer);
    for (const store::SafetensorsEntry& entry : entries) {
      const auto& [rows, value] = matrices[std::stoul(entry.name.substr(1)) - 1000];
      const std::vector<float> values(rows * 256, value);
      EXPECT_TRUE(writer->write(std::as_bytes(std::span(values))));
    }
    EXPECT_TRUE(writer->commit());
    return path;
  }
  Result<WeightsReport> look(const std::string& file, bool all = false) const {
    WeightsRequest request;
    request.file = file;
    request.all = all;
    return weights_of_file(request);
  }

  ScratchFolder folder_{"weights_verb"};
};

TEST_F(WeightsVerb, MeasuresASmallFileWhole) {
  const auto report = look(write(std::vector<std::pair<std::uint64_t, float>>(100, {8, 0.5f})));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->tensors.size(), 100u);
  EXPECT_EQ(report->sampled_bytes, report->bytes);
}

// A sample by bytes: a thousand small tensors of zeros do not outvote a large one.
TEST_F(WeightsVerb, SamplesALargeFileByItsBytes) {
  std::vector<std::pair<std::uint64_t, float>> matrices(1000, {1, 0.0f});
  matrices.emplace_back(40'960, 1.0f);  // 40 MiB
  const std::string file = write(matrices);
  const auto report = look(file);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_GE(report->sampled_bytes, 7u << 20);
  EXPECT_LE(report->sampled_bytes, 9u << 20);
  const auto whole = look(file, true);
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(whole->sampled_bytes, whole->bytes);
  const auto bitmask = [](const WeightsReport& of) {
    for (const WeightsOfForm& form : of.by_form)
      if (form.form == "bitmask")
        return static_cast<double>(form.bytes) / static_cast<double>(of.bytes);
    return 0.0;
  };
  EXPECT_NEAR(bitmask(*report), bitmask(*whole), 0.05);
  EXPECT_GT(bitmask(*report), 0.9);
}

// The error of a file is that of its tensors, whatever others have large values.
TEST_F(WeightsVerb, ALargeTensorDoesNotHideTheErrorsOfOthers) {
  std::vector<store::SafetensorsEntry> entries = {{"bias", store::Element::kF32, {64}, 0, 0},
                                                  {"large", store::Element::kF32, {32, 64}, 0, 0},
                                                  {"small", store::Element::kF32, {32, 64}, 0, 0}};
  ASSERT_TRUE(store::place_safetensors(entries));
  const auto header = store::safetensors_header(entries, {});
  const std::string path = (folder_ / "mixed.safetensors").string();
  auto writer = store::SafetensorsWriter::create(path, *header);
  ASSERT_TRUE(writer);
  Random random(1);
  for (const auto& entry : entries) {
    const bool bias = entry.name == "bias";
    std::vector<float> values(bias ? 64 : 2048, 1e20f);
    if (!bias)
      for (float& value : values)
        value = static_cast<float>(random.normal()) * (entry.name == "large" ? 1e3f : 0.01f);
    ASSERT_TRUE(writer->write(std::as_bytes(std::span(values))));
  }
  ASSERT_TRUE(writer->commit());
  WeightsRequest request;
  request.file = path;
  request.form = "q4_0";
  request.output = (folder_ / "mixed.plim").string();
  const auto converted = weights_of_file(request);
  ASSERT_TRUE(converted) << converted.error().message;
  const auto looked = look(path);
  ASSERT_TRUE(looked);
  double largest = 0;
  for (const WeightsTensor& tensor : converted->tensors) {
    largest = std::max(largest, tensor.error.max_error);
    if (tensor.name != "bias") {
      EXPECT_NEAR(tensor.error.rms_error, converted->error.rms_error, 0.02);
    }
  }
  EXPECT_EQ(converted->error.max_error, largest);
  EXPECT_GT(converted->error.rms_error, 0.05);
  for (const WeightsOfForm& form : looked->by_form)
    if (form.form == "q4_0") {
      EXPECT_NEAR(form.error.max_error, converted->error.max_error, 1e-12);
      EXPECT_NEAR(form.error.rms_error, converted->error.rms_error, 1e-12);
    }
}

TEST_F(WeightsVerb, SaysOfEachFormItsBytesItsErrorAndWhatDecodingTakes) {
  WeightsRequest request;
  request.file = write({{64, 0.5f}});
  const auto report = weights_of_file(request);
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->by_form.size(), 16u);
  for (const WeightsOfForm& form : report->by_form) {
    EXPECT_LE(form.bytes, report->bytes) << form.form;
    EXPECT_EQ(form.decode_seconds > 0, form.form != "raw") << form.form;
  }
  EXPECT_THAT(to_json(*report), HasSubstr("\"decode_seconds\""));
}

TEST_F(WeightsVerb, NamesTheFormsThatThereAre) {
  WeightsRequest request;
  request.file = write({{8, 0.5f}});
  request.form = "q9";
  request.output = (folder_ / "out.plim").string();
  const auto report = weights_of_file(request);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kUsage);
  EXPECT_THAT(report.error().message, HasSubstr("--form: there is no form 'q9'"));
  EXPECT_THAT(report.error().message, HasSubstr("ternary, and auto"));
  EXPECT_FALSE(std::filesystem::exists(request.output));
}

}  // namespace
}  // namespace plimsoll::api

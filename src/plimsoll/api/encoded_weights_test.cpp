// Inference on weights that stay encoded, from the file to the outputs.
#include "plimsoll/api/encoded_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "plimsoll/api/run_model.h"
#include "plimsoll/api/weights.h"
#include "plimsoll/store/npz.h"

namespace plimsoll::api {
namespace {

using ::testing::HasSubstr;

class EncodedWeights : public ::testing::Test {
 protected:
  EncodedWeights() {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("encoded_weights_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~EncodedWeights() override { std::filesystem::remove_all(folder_); }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }

  // Two layers of GPT-2, of `tokens`.
  static RunRequest request(std::int64_t tokens) {
    RunRequest out;
    out.model.model = "gpt2";
    out.model.train = false;
    out.model.threads = 2;
    out.model.sizes.batch = 1;
    out.model.sizes.seq = tokens;
    out.model.sizes.layers = 2;
    out.model.sizes.width = 384;
    out.model.sizes.vocab = 2000;
    out.planning.device = "cpu";
    out.planning.deterministic = true;
    out.steps = 1;
    out.random = true;
    return out;
  }
  void write_weights(const std::string& form) {
    RunRequest plain = request(16);
    plain.files.save = at("plain.npz");
    const auto ran = run_model(plain);
    ASSERT_TRUE(ran) << ran.error().message;
    WeightsRequest convert;
    convert.file = at("plain.npz");
    convert.form = form;
    convert.output = at("coded.plim");
    const auto written = weights_of_file(convert);
    ASSERT_TRUE(written) << written.error().message;
  }
  // Outputs of a run on the encoded file, with its report.
  Result<RunReport> run(RunRequest how, const std::string& outputs, const std::string& kept) {
    how.files.weights = at("coded.plim");
    how.files.outputs = at(outputs);
    how.model.encoded_weights = kept;
    return run_model(how);
  }
  std::vector<float> read(const std::string& outputs) const {
    const auto file = store::NpzFile::open(at(outputs));
    EXPECT_TRUE(file);
    const auto array = file->read(file->entries().front());
    EXPECT_TRUE(array);
    std::vector<float> out(array->bytes.size() / 4);
    std::memcpy(out.data(), array->bytes.data(), array->bytes.size());
    return out;
  }

  std::filesystem::path folder_;
};

TEST_F(EncodedWeights, ComputeWhatDecodedOnesDo) {
  for (const char* form : {"q8_0", "q4_0", "int8", "archive", "ternary"}) {
    SCOPED_TRACE(form);
    write_weights(form);
    for (const std::int64_t tokens : {1, 16}) {
      const auto plain = run(request(tokens), "plain_out.npz", "none");
      ASSERT_TRUE(plain) << plain.error().message;
      const bool stays = std::string_view(form) != "archive";
      const auto kept = run(request(tokens), "kept_out.npz", stays ? "all" : "auto");
      ASSERT_TRUE(kept) << kept.error().message;
      ASSERT_TRUE(kept->loaded);
      EXPECT_EQ(kept->loaded->encoded.size(), stays ? 1u : 0u);
      if (stays) {
        EXPECT_EQ(kept->loaded->encoded.at(form).tensors, 10);
      }
      if (stays) {
        EXPECT_LT(kept->peak.value, plain->peak.value * 6 / 10) << tokens;
      }
      const auto expected = read("plain_out.npz");
      const auto got = read("kept_out.npz");
      ASSERT_EQ(got.size(), expected.size());
      double largest = 0;
      for (const float value : expected)
        largest = std::max(largest, std::fabs(static_cast<double>(value)));
      for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], expected[i], 2e-5 * largest) << tokens << " tokens, at " << i;
    }
  }
}

TEST_F(EncodedWeights, ABudgetKeepsAsFewEncodedAsItNeeds) {
  write_weights("q8_0");
  const auto plain = run(request(16), "out.npz", "none");
  const auto all = run(request(16), "out.npz", "all");
  ASSERT_TRUE(plain && all);
  std::int64_t before = -1;
  for (const int percent : {105, 80, 50}) {
    RunRequest how = request(16);
    how.planning.budget =
        std::to_string(all->peak.value + (plain->peak.value - all->peak.value) * percent / 100);
    const auto ran = run(how, "out.npz", "auto");
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_LE(ran->peak.value, std::stoll(how.planning.budget));
    std::int64_t tensors = 0;
    for (const auto& [form, kept] : ran->loaded->encoded) tensors += kept.tensors;
    if (percent > 100) {
      EXPECT_EQ(tensors, 0);
    }
    EXPECT_GT(tensors, before) << percent;
    before = tensors;
  }
}

TEST_F(EncodedWeights, SaysWhatDoesNotGoTogether) {
  write_weights("q8_0");
  RunRequest trains = request(16);
  trains.model.train = true;
  const auto training = run(trains, "out.npz", "all");
  ASSERT_FALSE(training);
  EXPECT_THAT(training.error().message, HasSubstr("give --infer"));
  RunRequest none = request(16);
  none.model.encoded_weights = "all";
  const auto missing = run_model(none);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("no --weights file"));
  RunRequest saves = request(16);
  saves.files.save = at("again.npz");
  const auto saved = run(saves, "out.npz", "all");
  ASSERT_FALSE(saved);
  EXPECT_THAT(saved.error().message, HasSubstr("stays encoded"));
  const auto word = run(request(16), "out.npz", "some");
  ASSERT_FALSE(word);
  EXPECT_EQ(word.error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace plimsoll::api

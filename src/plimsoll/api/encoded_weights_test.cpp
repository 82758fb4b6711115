// Inference on weights that stay encoded, from the file to the outputs.
#include "plimsoll/api/encoded_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <string>

#include <fmt/format.h>

#include "plimsoll/api/largest_batch.h"
#include "plimsoll/api/load_model.h"
#include "plimsoll/api/plan_report.h"
#include "plimsoll/api/run_model.h"
#include "plimsoll/api/weights.h"
#include "plimsoll/base/testing/scratch_folder.h"
#include "plimsoll/runtime/outside_bytes.h"
#include "plimsoll/store/npz.h"

namespace plimsoll::api {
namespace {

using ::testing::HasSubstr;

class EncodedWeights : public ::testing::Test {
 protected:
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
  void write_weights(const std::string& form, RunRequest plain = request(16)) {
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

  ScratchFolder folder_{"encoded_weights"};
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

// The output layer is [out, in]; the layers of GPT-2 are [in, out].
TEST_F(EncodedWeights, MultiplyActivationsRoundedToInt8) {
  for (const char* form : {"q8_0", "int8"}) {
    SCOPED_TRACE(form);
    write_weights(form);
    for (const std::int64_t tokens : {1, 16}) {
      RunRequest rounding = request(tokens);
      rounding.model.int8_activations = true;
      const auto plain = run(request(tokens), "plain_out.npz", "all");
      const auto rounded = run(rounding, "rounded_out.npz", "all");
      ASSERT_TRUE(plain && rounded) << rounded.error().message;
      EXPECT_FALSE(plain->rounding);
      ASSERT_TRUE(rounded->rounding);
      EXPECT_EQ(rounded->rounding->elements, tokens * 384);
      const double relative =
          std::sqrt(rounded->rounding->squares / rounded->rounding->value_squares);
      EXPECT_GT(relative, 1e-4);
      EXPECT_LT(relative, 0.02);
      const auto expected = read("plain_out.npz");
      const auto got = read("rounded_out.npz");
      ASSERT_EQ(got.size(), expected.size());
      double squares = 0;
      double differences = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        squares += std::pow(expected[i], 2);
        differences += std::pow(got[i] - expected[i], 2);
      }
      EXPECT_GT(differences, 0);
      EXPECT_LT(std::sqrt(differences / squares), 3 * relative);
    }
  }
}

TEST_F(EncodedWeights, SayWhyActivationsAreNotRounded) {
  write_weights("q4_0");
  RunRequest rounding = request(1);
  rounding.model.int8_activations = true;
  const auto other_form = run(rounding, "out.npz", "all");
  ASSERT_FALSE(other_form);
  EXPECT_THAT(other_form.error().message, HasSubstr("stays encoded as int8 or q8_0"));
  const auto none_kept = run(rounding, "out.npz", "none");
  ASSERT_FALSE(none_kept);
  EXPECT_THAT(none_kept.error().message, HasSubstr("--encoded-weights all or a --budget"));
}

TEST_F(EncodedWeights, ABudgetKeepsAsFewEncodedAsItNeeds) {
  write_weights("q8_0");
  const auto plain = run(request(16), "out.npz", "none");
  const auto all = run(request(16), "out.npz", "all");
  ASSERT_TRUE(plain && all);
  std::int64_t before = -1;
  for (const int percent : {120, 80, 50}) {
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

// The batch that fits with the weights as the file has them, not as the model has them.
TEST_F(EncodedWeights, TheLargestBatchIsThatOfWeightsThatStayEncoded) {
  write_weights("q8_0");
  const auto plain = run(request(16), "out.npz", "none");
  ASSERT_TRUE(plain);
  ModelRequest model = request(16).model;
  model.sizes.batch.reset();
  model.weights = at("coded.plim");
  PlanOptions options;
  options.deterministic = true;
  options.budget = std::to_string(plain->peak.value * 8 / 10);
  const auto largest = largest_batch(model, "cpu", options);
  ASSERT_TRUE(largest) << largest.error().message;
  EXPECT_GT(largest->batch, 1);
  const PlanReport report = report_of(largest->planned);
  EXPECT_GT(report.encoded_weights.tensors, 0);
  for (const auto& weight : report.encoded_weights.all) EXPECT_GT(weight.seconds, 0) << weight.name;
  RunRequest how = request(16);
  how.model.sizes.batch = largest->batch;
  how.planning.budget = options.budget;
  const auto ran = run(how, "out.npz", "auto");
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_LE(ran->peak.value, std::stoll(options.budget));
}

// What is measured has every byte: of the arena, of loading, of what libraries take.
TEST_F(EncodedWeights, WhatIsMeasuredStaysWithinTheBudget) {
  if (!runtime::OutsideBytes::available())
    GTEST_SKIP() << "sanitizers bring an allocator of their own";
  int fitted = 0;
  for (const char* form : {"q8_0", "archive", "ternary", "bf16"}) {
    write_weights(form);
    const auto plain = run(request(16), "out.npz", "none");
    ASSERT_TRUE(plain) << plain.error().message;
    for (const char* load : {"auto", "direct"}) {
      for (const int percent : {110, 90, 60}) {
        SCOPED_TRACE(fmt::format("{} {} {} %", form, load, percent));
        RunRequest how = request(16);
        how.measure = true;
        how.files.load = load;
        how.planning.budget = std::to_string(plain->peak.value * percent / 100);
        const auto ran = run(how, "out.npz", "auto");
        if (!ran) {
          EXPECT_THAT(ran.error().code,
                      ::testing::AnyOf(ErrorCode::kDoesNotFit, ErrorCode::kNoAnswer))
              << ran.error().message;
          continue;
        }
        ++fitted;
        ASSERT_TRUE(ran->measured);
        EXPECT_LE(ran->peak.value, std::stoll(how.planning.budget));
        EXPECT_EQ(ran->budget.value, std::stoll(how.planning.budget));
      }
    }
  }
  EXPECT_GE(fitted, 12);
}

// Layers large enough for several tiles, with as many rows as make oneDNN want room of its own.
TEST_F(EncodedWeights, NothingIsTakenBesideTheArenaInSteps) {
  if (!runtime::OutsideBytes::available())
    GTEST_SKIP() << "sanitizers bring an allocator of their own";
  RunRequest large = request(256);
  large.model.sizes.layers = 1;
  large.model.sizes.width = 768;
  large.model.sizes.vocab = 1000;
  write_weights("q8_0", large);
  for (const int threads : {1, 2}) {
    RunRequest how = large;
    how.model.threads = threads;
    how.measure = true;
    how.steps = 2;
    const auto ran = run(how, "out.npz", "all");
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_LE(ran->measured->outside.value, 1 << 20) << threads << " threads";
  }
}

// Layouts of convolutions and other float types are made a piece at a time.
TEST_F(EncodedWeights, ConvertedOnesAreLoadedWithinTheBudget) {
  if (!runtime::OutsideBytes::available())
    GTEST_SKIP() << "sanitizers bring an allocator of their own";
  RunRequest how;
  how.model.model = "resnet18";
  how.model.train = false;
  how.model.threads = 2;
  how.model.sizes = {.batch = 1, .image = 64, .classes = 10};
  how.planning.device = "cpu";
  how.planning.deterministic = true;
  how.random = true;
  how.steps = 1;
  how.files.save = at("plain.npz");
  const auto plain = run_model(how);
  ASSERT_TRUE(plain) << plain.error().message;
  how.files.save.clear();
  for (const char* name : {"plain.safetensors", "half.safetensors", "half.plim", "plain.npz"}) {
    SCOPED_TRACE(name);
    WeightsRequest convert;
    convert.file = at("plain.npz");
    convert.form = std::string_view(name).starts_with("half") ? "bf16" : "raw";
    convert.output = at(name);
    if (convert.output != convert.file) {
      ASSERT_TRUE(weights_of_file(convert));
    }
    RunRequest budgeted = how;
    budgeted.files.weights = at(name);
    budgeted.measure = true;
    budgeted.planning.budget = std::to_string(plain->peak.value * 13 / 10);
    const auto ran = run_model(budgeted);
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_LE(ran->peak.value, std::stoll(budgeted.planning.budget));
    EXPECT_LE(ran->measured->outside.value, 3 << 20) << "one tensor has 9.4 MB";
  }
}

// A plain file: what loses nothing is done unasked, what loses something where --lossy allows it.
TEST_F(EncodedWeights, ABudgetChoosesFormsForAPlainFile) {
  write_weights("raw");
  const auto plain = run(request(16), "plain_out.npz", "none");
  ASSERT_TRUE(plain) << plain.error().message;
  RunRequest how = request(16);
  how.planning.budget = std::to_string(plain->peak.value * 75 / 100);
  const auto refused = run(how, "out.npz", "auto");
  ASSERT_FALSE(refused) << "random fp32 has no smaller form that loses nothing";
  EXPECT_EQ(refused.error().code, ErrorCode::kDoesNotFit) << refused.error().message;
  EXPECT_THAT(refused.error().message, HasSubstr("`--lossy` keeps weights in fewer bits"));

  how.planning.lossy = "q8_0,q4_0";
  how.measure = true;
  const auto ran = run(how, "out.npz", "auto");
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_LE(ran->peak.value, std::stoll(how.planning.budget));
  ASSERT_FALSE(ran->loaded->kept.empty());
  for (const auto& kept : ran->loaded->kept) {
    EXPECT_EQ(kept.form, "q8_0") << "the first that does";
    ASSERT_TRUE(kept.max_error);
    EXPECT_GT(*kept.max_error, 0);
    EXPECT_LT(*kept.max_error, 0.01);
  }
  how.planning.budget = std::to_string(plain->peak.value * 48 / 100);
  const auto smaller = run(how, "out.npz", "auto");
  ASSERT_TRUE(smaller) << smaller.error().message;
  EXPECT_GT(smaller->loaded->encoded.at("q4_0").tensors, 0);
}

TEST_F(EncodedWeights, SixteenBitsOfAPlainFileStaySixteenUnasked) {
  write_weights("bf16");  // rounds
  WeightsRequest back;
  back.file = at("coded.plim");
  back.form = "bf16";
  back.output = at("half.safetensors");
  ASSERT_TRUE(weights_of_file(back));
  RunRequest how = request(16);
  how.files.weights = at("half.safetensors");
  how.files.outputs = at("plain_out.npz");
  const auto plain = run_model(how);
  ASSERT_TRUE(plain) << plain.error().message;
  const auto expected = read("plain_out.npz");
  std::int64_t lossless = 0;
  for (const int percent : {84, 77}) {
    SCOPED_TRACE(percent);
    how.planning.budget = std::to_string(plain->peak.value * percent / 100);
    how.files.outputs = at("out.npz");
    const auto ran = run_model(how);
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_LE(ran->peak.value, std::stoll(how.planning.budget));
    ASSERT_FALSE(ran->loaded->kept.empty());
    for (const auto& kept : ran->loaded->kept) {
      EXPECT_THAT(kept.form, ::testing::AnyOf("raw", "bf16-lossless"));
      EXPECT_EQ(kept.max_error, 0);
      lossless += kept.form == "bf16-lossless" ? 1 : 0;
    }
    const auto got = read("out.npz");
    ASSERT_EQ(got.size(), expected.size());
    double largest = 0;
    for (const float value : expected)
      largest = std::max(largest, std::fabs(static_cast<double>(value)));
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 2e-5 * largest);
  }
  EXPECT_GT(lossless, 0) << "sixteen bits are not enough for the smaller budget";
}

// What is chosen for weights with nine zeros in ten, where a value of each form costs so much.
class FormsOfSparseWeights : public EncodedWeights {
 protected:
  using Prices = std::map<std::string, double>;

  void SetUp() override {
    write_weights("raw");
    WeightsRequest sparse;
    sparse.file = at("plain.npz");
    sparse.prune = 0.9;
    sparse.output = at("sparse.plim");
    ASSERT_TRUE(weights_of_file(sparse));
    auto model = load_forward(request(16).model);
    ASSERT_TRUE(model);
    graph_ = std::move(model->graph);
  }
  static Bytes weight_bytes(const ir::Graph& graph) {
    Bytes out;
    for (const ir::Value& value : graph.values)
      if (value.kind == ir::ValueKind::kWeight) out += ir::bytes_of(value.type);
    return out;
  }
  static std::map<std::string, double> seconds_of(const ir::Graph& graph, const Prices& prices) {
    std::map<std::string, double> out;
    for (const ir::Value& value : graph.values)
      if (value.kind == ir::ValueKind::kWeight)
        out[value.name] = prices.at("plain") * static_cast<double>(value.type.shape.elements());
    for (const auto& weight : encoded_weight_totals(graph).all)
      out[weight.name] = prices.at(weight.form) * static_cast<double>(weight.decoded.value) / 4;
    return out;
  }
  EncodedWeightTotals chosen(Bytes arena, const Prices& prices) {
    EncodedWeightsRequest how;
    how.file = at("sparse.plim");
    how.arena_of = [](const ir::Graph& graph) -> Result<Bytes> { return weight_bytes(graph); };
    how.seconds_of = [&](const ir::Graph& graph) -> Result<std::map<std::string, double>> {
      return seconds_of(graph, prices);
    };
    // What loading takes is set aside, and is more where weights are encoded on the way.
    how.budget = "1";
    const auto loading = choose_encoded_weights(graph_, how);
    EXPECT_TRUE(loading);
    how.budget = std::to_string((arena + loading->loading).value);
    const auto choice = choose_encoded_weights(graph_, how);
    EXPECT_TRUE(choice) << choice.error().message;
    EXPECT_LE(weight_bytes(choice->graph), arena);
    return encoded_weight_totals(choice->graph);
  }

  ir::Graph graph_;
};

TEST_F(FormsOfSparseWeights, AreTheFastestThatFit) {
  const Bytes half(weight_bytes(graph_).value / 2);
  for (const char* fast : {"csr", "coo", "bitmask"}) {
    Prices prices = {{"plain", 1}, {"csr", 9}, {"coo", 9}, {"bitmask", 9}};
    prices[fast] = 2;
    const EncodedWeightTotals totals = chosen(half, prices);
    EXPECT_EQ(totals.by_form.size(), 1u) << fast;
    EXPECT_GT(totals.by_form.count(fast), 0u);
    EXPECT_LT(totals.tensors, 10) << "no more than it needs";
  }
}

TEST_F(FormsOfSparseWeights, AreSmallerWhereTheFastestDoNotFit) {
  const auto all = [&](const std::string& form) {
    Prices prices = {{"plain", 1}, {"csr", 9}, {"coo", 9}, {"bitmask", 9}};
    prices[form] = 0.5;  // faster than plain: all of them
    const EncodedWeightTotals totals = chosen(Bytes(weight_bytes(graph_).value * 9 / 10), prices);
    EXPECT_EQ(totals.by_form.at(form), totals.tensors);
    EXPECT_EQ(totals.tensors, 10);
    return totals.encoded;
  };
  const Bytes coo = all("coo");
  const Bytes csr = all("csr");
  ASSERT_LT(csr, coo);
  // All as coo do not fit by half of what csr would save: some are csr, at twice the time.
  const Bytes vectors =
      weight_bytes(graph_) - chosen(Bytes(weight_bytes(graph_).value * 9 / 10),
                                    {{"plain", 1}, {"csr", 0.5}, {"coo", 0.5}, {"bitmask", 0.5}})
                                 .decoded;
  const EncodedWeightTotals mixed =
      chosen(vectors + csr + Bytes((coo - csr).value / 2),
             {{"plain", 1}, {"csr", 1}, {"coo", 0.5}, {"bitmask", 9}});
  EXPECT_GT(mixed.by_form.count("coo"), 0u);
  EXPECT_GT(mixed.by_form.count("csr"), 0u);
  EXPECT_EQ(mixed.by_form.count("bitmask"), 0u);
}

// Adapters on a frozen model: its weights stay encoded, and what is trained learns the same.
TEST_F(EncodedWeights, FrozenOnesOfATrainingStayEncoded) {
  write_weights("q8_0");
  RunRequest how = request(16);
  how.model.train = true;
  how.model.sizes.dropout = 0;
  how.model.freeze = {"*.c_*.weight", "*wte*", "*wpe*"};
  how.steps = 3;
  const auto plain = run(how, "out.npz", "none");
  ASSERT_TRUE(plain) << plain.error().message;
  const auto kept = run(how, "out.npz", "all");
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(kept->loaded->encoded.at("q8_0").tensors, 10);
  ASSERT_EQ(kept->losses.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(kept->losses[i], plain->losses[i], 1e-5 * plain->losses[i]) << i;
  EXPECT_LT(kept->losses[2], kept->losses[0]);
  // Less than the weights as they are: what is decoded for a layer is decoded again for its
  // gradient.
  how.planning.budget = std::to_string(plain->peak.value * 75 / 100);
  EXPECT_FALSE(run(how, "out.npz", "none"));
  const auto fitted = run(how, "out.npz", "auto");
  ASSERT_TRUE(fitted) << fitted.error().message;
  EXPECT_LE(fitted->peak.value, std::stoll(how.planning.budget));
  EXPECT_FALSE(fitted->loaded->kept.empty());
  EXPECT_NEAR(fitted->losses[2], plain->losses[2], 1e-5 * plain->losses[2]);
}

// The same data through the model before and after (docs/weights.md).
TEST_F(EncodedWeights, TheLossBeforeAndAfterIsThatOfTheFirstStep) {
  double before = 0;
  for (const char* form : {"raw", "q8_0", "ternary"}) {
    write_weights(form);
    RunRequest how = request(16);
    how.model.train = true;
    how.model.sizes.dropout = 0;
    how.files.weights = at("coded.plim");
    const auto ran = run_model(how);
    ASSERT_TRUE(ran) << ran.error().message;
    const double loss = ran->losses.front();
    if (before == 0) before = loss;
    if (std::string_view(form) == "raw") continue;
    const double change = std::fabs(loss - before);
    EXPECT_GT(change, 0) << form;
    EXPECT_LT(change, std::string_view(form) == "q8_0" ? 0.01 : 1.0) << form;
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
  RunRequest forms = request(16);
  forms.planning.lossy = "q8_0";
  const auto no_budget = run(forms, "out.npz", "auto");
  ASSERT_FALSE(no_budget);
  EXPECT_THAT(no_budget.error().message, HasSubstr("--lossy q8_0"));
  const auto word = run(request(16), "out.npz", "some");
  ASSERT_FALSE(word);
  EXPECT_EQ(word.error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace plimsoll::api

// The CPU kernels at real widths agree with PyTorch in fp32: the loss of the first step, and every weight's gradient.
// tests/references/*_fp32.json hold PyTorch's numbers: of each gradient t its norm and its products with four given
// vectors r, uniform in [-1, 1). From those the angle between t and ours can be estimated: for a difference e, a
// product <e, r> has the size |e| / sqrt(3), and a cosine of 0.99 allows |e| up to 0.141 |t|.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include <nlohmann/json.hpp>

#include "deterministic.h"
#include "plimsoll/api/pipeline.h"
#include "plimsoll/autodiff/training.h"
#include "plimsoll/base/file.h"
#include "plimsoll/model/zoo.h"
#include "plimsoll/rewrite/tidy.h"
#include "plimsoll/runtime/layout_copy.h"
#include "plimsoll/runtime/on_demand.h"

namespace plimsoll {
namespace {

using Json = nlohmann::json;

model::ModelOptions options_of(const Json& given) {
  model::ModelOptions out;
  const auto set = [&](const char* name, std::optional<std::int64_t>& target) {
    if (given.contains(name)) target = given[name].get<std::int64_t>();
  };
  set("batch", out.batch);
  set("image", out.image);
  set("seq", out.seq);
  set("frames", out.frames);
  set("width", out.width);
  set("layers", out.layers);
  set("heads", out.heads);
  set("classes", out.classes);
  set("vocab", out.vocab);
  out.dropout = 0;
  return out;
}

std::int64_t bound_of(const std::string& input, const Json& options) {
  if (input == "token_type_ids") return 2;
  return options[options.contains("vocab") ? "vocab" : "classes"].get<std::int64_t>();
}

ops::Array content_of(const ir::Value& value, const Json& options) {
  const ir::TensorType plain{value.type.dtype, value.type.shape, {}};
  if (value.kind == ir::ValueKind::kWeight) return reference::weight(value.name, plain);
  if (value.kind != ir::ValueKind::kInput) {
    ops::Array start(plain);
    for (std::int64_t i = 0; i < start.elements(); ++i) start.set_number(i, value.init.a);
    return start;
  }
  if (ir::is_float(value.type.dtype)) return reference::reals(value.name, plain);
  return reference::integers(value.name, value.type.shape, bound_of(value.name, options));
}

std::vector<float> floats_of(runtime::Executor& executor, ValueId output) {
  const ir::TensorType& type = executor.graph().value(output).type;
  const std::vector<std::byte> bytes = runtime::copy_to_row_major(type, executor.result(output));
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

void expect_same_direction(const std::vector<float>& gradient, const Json& expected) {
  const std::string name = expected["name"];
  const double norm = expected["norm"];
  double squares = 0;
  for (const float value : gradient) squares += static_cast<double>(value) * value;
  // What is zero in theory is rounding noise on both sides.
  if (norm < 1e-6) {
    EXPECT_LT(std::sqrt(squares), 1e-4) << name;
    return;
  }
  EXPECT_NEAR(std::sqrt(squares), norm, 0.05 * norm) << name << " norm";
  double off = 0;
  const std::size_t products = expected["dots"].size();
  for (std::size_t k = 0; k < products; ++k) {
    const std::vector<double> vector = reference::uniform(fmt::format("{}#{}", name, k), static_cast<std::int64_t>(gradient.size()));
    double dot = 0;
    for (std::size_t i = 0; i < vector.size(); ++i) dot += gradient[i] * vector[i];
    off += std::pow(dot - expected["dots"][k].get<double>(), 2);
  }
  const double difference = std::sqrt(3 * off / static_cast<double>(products));
  EXPECT_LT(difference, 0.141 * norm) << name << " direction";
}

void expect_agreement(const std::string& name) {
  const auto text = read_file(std::string(PLIMSOLL_SOURCE_DIR) + "/tests/references/" + name + "_fp32.json");
  ASSERT_TRUE(text) << text.error().message;
  const Json reference = Json::parse(*text);
  auto forward = model::build_model(reference["model"].get<std::string>(), options_of(reference["options"]));
  ASSERT_TRUE(forward) << forward.error().message;
  auto tidied = rewrite::tidy(*forward);
  ASSERT_TRUE(tidied) << tidied.error().message;
  autodiff::TrainingOptions training;
  training.optimizer = autodiff::Optimizer::kSgd;
  training.gradients_as_outputs = true;
  const std::vector<ValueId> weights = autodiff::trained_weights(*tidied, training);
  auto step = autodiff::make_training_graph(*tidied, training);
  ASSERT_TRUE(step) << step.error().message;
  auto graph = api::lay_out(*step, api::resolve_threads(0));
  ASSERT_TRUE(graph) << graph.error().message;

  auto executor = runtime::make_on_demand(*graph, {});
  ASSERT_TRUE(executor) << executor.error().message;
  for (std::size_t v = 0; v < graph->values.size(); ++v) {
    const ir::Value& value = graph->values[v];
    if (!ir::is_source(value.kind) || value.kind == ir::ValueKind::kConstant) continue;
    runtime::copy_from_row_major(value.type, content_of(value, reference["options"]).to_bytes(), (*executor)->source(ValueId(v)));
  }
  ASSERT_TRUE((*executor)->step());

  const double loss = reference["loss"];
  EXPECT_NEAR(floats_of(**executor, graph->outputs[0])[0], loss, 1e-5 * std::abs(loss));
  std::map<std::string, ValueId> gradients;
  for (std::size_t i = 0; i < weights.size(); ++i) gradients[tidied->value(weights[i]).name] = graph->outputs[i + 1];
  ASSERT_EQ(weights.size(), reference["gradients"].size());
  for (const Json& expected : reference["gradients"]) {
    const auto place = gradients.find(expected["name"].get<std::string>());
    ASSERT_NE(place, gradients.end()) << expected["name"];
    expect_same_direction(floats_of(**executor, place->second), expected);
  }
}

TEST(RealWidths, Resnet18) { expect_agreement("resnet18"); }
TEST(RealWidths, Lstm) { expect_agreement("lstm"); }
TEST(SlowRealWidths, Alexnet) { expect_agreement("alexnet"); }
TEST(SlowRealWidths, Resnet50) { expect_agreement("resnet50"); }
TEST(SlowRealWidths, Gpt2) { expect_agreement("gpt2"); }
TEST(SlowRealWidths, Bert) { expect_agreement("bert"); }
TEST(SlowRealWidths, Whisper) { expect_agreement("whisper"); }

}  // namespace
}  // namespace plimsoll
